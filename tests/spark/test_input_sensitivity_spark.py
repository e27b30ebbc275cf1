"""Spark reads of a log the sum of what it reads of its people, as DuckDB does; and both read the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from input_worlds import FORMATS, PIECES, differences, found_in, worlds, write

pytestmark = pytest.mark.usefixtures("cluster")

SUFFIXES = ("", "", ".gz", ".zst")
KINDS = (None, *PIECES)


def batch(folder: Path, format_name: str, number: int, n: int) -> None:
    chance = random.Random(number)
    made = worlds(format_name, n, KINDS[number % len(KINDS)], chance)
    suffix, ending = chance.choice(SUFFIXES), made[0].ending
    parts = [
        write(folder / "both", format_name, [world.mixed for world in made], ending, suffix),
        write(folder / "others", format_name, [world.others for world in made], ending, suffix),
        write(folder / "mine", format_name, [[line for world in made for line in world.mine]], b"\n"),
    ]
    anchor = write(folder / "anchor", format_name, [], b"\n")
    options: dict[str, Any] = {"draws": 2}
    both, others = (found_in(part, format_name, engine="spark", **options) for part in parts[:2])
    mine, alone = (found_in(part, format_name, threads=1, **options) for part in (parts[2], anchor))
    assert differences(both, others, mine, alone) == []
    assert both == found_in(parts[0], format_name, threads=1, **options)


def test_no_line_changes_what_spark_reads_of_another_person(tmp_path: Path):
    """Quotes are where the engines differ most in how they read; 8 pairs."""
    batch(tmp_path, "csv", KINDS.index("quote"), 8)


@pytest.mark.slow
@pytest.mark.parametrize("format_name", FORMATS)
def test_no_line_changes_what_spark_reads_of_another_person_in_all_formats(format_name: str, tmp_path: Path):
    """Pairs of neighbours: 2,600 of each format."""
    for number in range(2 * len(KINDS)):
        batch(tmp_path / str(number), format_name, number, 100)
