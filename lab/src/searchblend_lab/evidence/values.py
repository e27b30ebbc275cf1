"""``select_values`` under attack: what one user can move, how often they are named alone, and what is said of them."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import duckdb

from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness, uniform_below
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.mechanisms.value_selection import SelectionDesign
from searchblend.releases.select_values import select_values, value_tally
from searchblend_lab.evidence.boundaries import alone, judge_boundary
from searchblend_lab.evidence.evidence import REPLACE_ONE, Claim, Effort, Finding
from searchblend_lab.evidence.sampled import Sampler, attack
from searchblend_lab.evidence.sensitivity import Bound, counted

LOOSE: Final = Budget(2.0, 0.05)
_WORLDS: Final = 400
"""copies of one small world in a table: their values are counted apart"""
_TABLES: Final = 30
_KEY: Final = "a key that both have"


def selection(effort: Effort) -> list[Finding]:
    """A user's value is x, or it is y; names and counts are published."""
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as folder:
        pair = [_world(Path(folder, f"{x}.parquet"), x, 9 - x) for x in (5, 4)]
        claim, draws = Claim.of(LOOSE, REPLACE_ONE), effort.draws // 4
        return [attack("selected values", claim, pair, draws, effort.level, "names and counts of both values")]


def _world(path: Path, x: int, y: int) -> Sampler:
    held = [f"{name}{i}" for i in range(_WORLDS) for name in "x" * x + "y" * y]
    _write(path, [[value] for value in held])

    def sample(n: int) -> Counter[Hashable]:
        seen: Counter[Hashable] = Counter()
        for _ in range(-(-n // _WORLDS)):
            counts = select_values(path, LOOSE).counts
            seen.update(tuple(counts.get(f"{name}{i}") for name in "xy") for i in range(_WORLDS))
        return seen

    return sample


def boundary(effort: Effort) -> list[Finding]:
    """Thousands of values that one user alone has: how often one is named is the δ of the selection."""
    n, design = effort.draws // 5, SelectionDesign.of(LOOSE)
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as folder:
        path = Path(folder, "rows.parquet")
        _write(path, [[f"v{i}"] for i in range(n)])
        named = len(select_values(path, LOOSE).counts)
    rate = alone(math.exp(-1 / design.noise.scale), design.integer, 1)
    return [judge_boundary("selected values: those of one user", named, n, rate, Claim.of(LOOSE, REPLACE_ONE), effort)]


def sensitivity(effort: Effort) -> list[Finding]:
    """All rows of one user are replaced; the same key draws for everyone else."""
    bound = Bound(1, 2)
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as folder:
        for _ in range(min(effort.runs // 20 + 8, _TABLES)):
            others = [_person() for _ in range(5)]
            bound.add(*(_counts(Path(folder, "rows.parquet"), [*others, _person()]) for _ in range(2)))
    return [bound.finding("one value per user", REPLACE_ONE)]


def _counts(path: Path, people: Sequence[Sequence[str]]) -> dict[Hashable, int]:
    _write(path, people)
    with closing(DuckDBSession(None, None, None)) as session:
        return counted(value_tally(session, [path], "user", "value", _KEY))


def _person() -> list[str]:
    source = SystemRandomness()
    return [f"v{uniform_below(5, source)}" for _ in range(1 + uniform_below(12, source))]


def _write(path: Path, people: Sequence[Sequence[str]]) -> None:
    rows = [(f"p{number}", value) for number, held in enumerate(people) for value in held]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE rows AS SELECT unnest(?::VARCHAR[]) AS user, unnest(?::VARCHAR[]) AS value",
            [list(column) for column in zip(*rows, strict=True)],
        )
        connection.table("rows").write_parquet(str(path))
