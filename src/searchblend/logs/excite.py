"""The Excite logs of 1997: user (16 hexadecimal digits), time (YYMMDDhhmmss), query; tabs, no header, no URLs.

The query may be missing or empty (one line in nine); such a line is unusable and counted.
"""

from __future__ import annotations

import re
from typing import Final

from searchblend.logs.layout import Delimited

EXCITE: Final = Delimited(
    "excite",
    "\t",
    n_fields=3,
    positions={"user": 0, "time": 1, "query": 2},
    header=False,
    may_end_after=2,
)
_LINE: Final = re.compile(r"[0-9A-Fa-f]{16}\t[0-9]{12}(?:\t[^\t]*)?")


def looks_like_excite(line: str) -> bool:
    return _LINE.fullmatch(line) is not None
