"""The AOL log: ten tab-separated files ``user-ct-test-collection-NN.txt``, each with its own header.

A line without a click has its last two fields empty, or ends after the third. The click is told by the URL and not
by the rank: some thousands of clicks carry rank 0. A query ``-`` is one whose text was taken out; it and blank ones
are unusable and counted. URLs are scheme and host only.
"""

from __future__ import annotations

from typing import Final

from searchblend.logs.formats.layout import Delimited

HEADER: Final = ("AnonID", "Query", "QueryTime", "ItemRank", "ClickURL")
AOL: Final = Delimited(
    "aol",
    "\t",
    n_fields=5,
    positions={"user": 0, "query": 1, "time": 2, "rank": 3, "url": 4},
    may_end_after=3,
    no_query="-",
)


def is_aol(header: str) -> bool:
    return tuple(header.split("\t")) == HEADER
