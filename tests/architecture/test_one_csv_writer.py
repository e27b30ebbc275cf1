"""CSV is written in one place, since every other would have to think of spreadsheets' formulas again."""

from __future__ import annotations

import re
from pathlib import Path

TREE = Path(__file__).parents[2]
SOURCES = [path for top in ("src", "lab/src") for path in (TREE / top).rglob("*.py")]
WRITERS = re.compile(r"csv\.(writer|DictWriter)|FORMAT\s+csv|\.(to|write)_csv\(", re.IGNORECASE)


def test_no_module_has_a_csv_writer_of_its_own():
    others = [path for path in SOURCES if WRITERS.search(path.read_text())]
    assert [str(path.relative_to(TREE)) for path in others] == []
