"""Spark reads of a log the sum of what it reads of its people, as DuckDB does; and both read the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from input_worlds import FORMATS, PIECES, differences, found_in, shape_of, varied, worlds, write, write_parquet_worlds
from searchblend.logs.spark import parts

pytestmark = pytest.mark.usefixtures("cluster")

SUFFIXES = ("", "", ".gz", ".zst")
KINDS = (None, *PIECES)


def batch(folder: Path, format_name: str, number: int, n: int) -> None:
    """Every few lines are a part that an executor reads by itself."""
    chance = random.Random(number)
    options: dict[str, Any] = {"draws": 2}
    if format_name == "parquet":
        logs = write_parquet_worlds(folder, n, chance)
    else:
        shape = varied(shape_of(format_name, chance), random.Random(f"variant {number}"))
        made = worlds(shape, n, KINDS[number % len(KINDS)], chance)
        logs = write(folder, shape, made, chance.choice([b"", b"\n"]), chance.choice(SUFFIXES))
        options |= shape.options
    with mock.patch.object(parts, "LEAST_BYTES", 512), mock.patch.object(parts, "MOST_BYTES", 512):
        both, others = (found_in(log, format_name, engine="spark", **options) for log in logs[:2])
    assert differences(both, others, found_in(logs[2], format_name, threads=1, **options)) == []
    assert both == found_in(logs[0], format_name, threads=1, **options)


def test_no_line_changes_what_spark_reads_of_another_person(tmp_path: Path):
    """Quotes are where the engines differ most in how they read; 8 pairs."""
    batch(tmp_path, "csv", KINDS.index("quote"), 8)


@pytest.mark.slow
@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "ubi"])
def test_no_line_changes_what_spark_reads_of_another_person_in_all_formats(format_name: str, tmp_path: Path):
    """Pairs of neighbours: 2,800 of each format."""
    for number in range(2 * len(KINDS)):
        batch(tmp_path / str(number), format_name, number, 100)


@pytest.mark.slow
def test_no_row_of_parquet_changes_what_spark_reads_of_another_person(tmp_path: Path):
    """Pairs of neighbours: 200."""
    for number in range(4):
        batch(tmp_path / str(number), "parquet", number, 50)
