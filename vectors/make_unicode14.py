"""Writes the table in ``searchblend/core/unicode14.py`` anew, from an interpreter that has Unicode 14.0 (Python 3.11).

Run: ``python3.11 vectors/make_unicode14.py``. It refuses to run with another Unicode version.
"""

from __future__ import annotations

import re
import sys
import textwrap
import unicodedata
from itertools import groupby
from pathlib import Path

MODULE = Path(__file__).parent.parent / "src" / "searchblend" / "unicode14.py"
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number: int) -> str:
    head, digit = divmod(number, 36)
    return (base36(head) if head else "") + DIGITS[digit]


def unassigned(code_point: int) -> bool:
    return unicodedata.category(chr(code_point)) in ("Cn", "Cs")


def table() -> str:
    """Lengths of the runs assigned, unassigned, assigned, ...; a last run of assigned ones is left off."""
    runs = [(kind, sum(1 for _ in run)) for kind, run in groupby(range(0x110000), unassigned)]
    assert runs[0][0] is False, "U+0000 is assigned"
    assert runs[-1][0] is True, "U+10FFFF is a noncharacter"
    return textwrap.fill(" ".join(base36(length) for _, length in runs), 118)


def main() -> None:
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"needs unicodedata 14.0.0 (Python 3.11), this interpreter has {unicodedata.unidata_version}")
    source = MODULE.read_text(encoding="utf-8")
    made, count = re.subn(r'(?<=\nTABLE: Final = """\n)[^"]*(?=""")', lambda _: table() + "\n", source)
    assert count == 1, "one TABLE in the module"
    MODULE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
