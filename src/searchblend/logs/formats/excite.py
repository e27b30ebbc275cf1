"""The Excite logs of 1997: user (16 hexadecimal digits), time (YYMMDDhhmmss), query; tabs, no header, no URLs.

The query may be missing or empty (one line in nine); such a line is unusable and counted.
"""

from __future__ import annotations

from typing import Final

from searchblend.logs.formats.layout import Delimited

EXCITE: Final = Delimited(
    "excite",
    "\t",
    n_fields=3,
    positions={"user": 0, "time": 1, "query": 2},
    header=False,
    may_end_after=2,
)
