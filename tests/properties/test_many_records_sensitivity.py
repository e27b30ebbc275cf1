"""What one person can change in what the curator over many records sums, whatever all their rows are, in ℓ2.

Sums are linear in people, so that two people alone show what replacing one by the other moves beside anybody else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from searchblend.blender.groups import InMemoryGroup, OwnShares, UserGroup, Weights
from searchblend.core.records import HeadList, Record
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.relational import SqlGroup
from searchblend.mechanisms.tally import Tally
from searchblend.synthetic.seeded import SeededRandomness

Rows = list[Record]
QUERIES = [f"q{i}" for i in range(40)]
ROUNDING = 1 + 1e-12


def person(chance: np.random.Generator) -> Rows:
    """One row or hundreds, few different ones or many: what is shared is decided by a skewed law."""
    n = int(chance.choice([1, 2, 3, 7, 30, 200]))
    skew = float(chance.choice([0.3, 1.0, 4.0]))
    queries = (len(QUERIES) * chance.random(n) ** skew).astype(int)
    return [Record(QUERIES[q], f"u{u}") for q, u in zip(queries, chance.integers(0, 3, n), strict=True)]


def head_of(chance: np.random.Generator) -> HeadList:
    listed = chance.permutation(len(QUERIES))[: chance.integers(0, 12)]
    return HeadList((QUERIES[q], [f"u{u}" for u in range(chance.integers(0, 3))]) for q in listed)


def counted(tally: Tally) -> Counter[Any]:
    return Counter({record: n for n, records in tally.at_least(1).items() for record in records})


def distance(one: Mapping[Any, int], other: Mapping[Any, int]) -> float:
    return math.sqrt(sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in {*one, *other}))


def shares_distance(one: OwnShares, other: OwnShares, head: HeadList) -> float:
    """Of totals, and of records, ⟨⋆,⋆⟩ and squares, the latter divided by √2 as their noise is."""
    moved = (one.cells - other.cells).astype(np.float64)
    totals = np.bincount(head.query_of_cells(), weights=moved, minlength=len(head) + 1)[:-1]
    records = [moved[i] for i, cell in enumerate(list(head.cells())[:-1]) if isinstance(cell.url, str)]
    details = np.array([*records, moved[-1], one.squares - other.squares])
    return math.sqrt(float((totals**2).sum() + (details**2).sum() / 2))


def check_pair(groups: tuple[UserGroup, UserGroup], chance: np.random.Generator) -> float:
    """Raises if one of the sums moves further than it may; else how far the shares moved, relative."""
    weights = Weights(int(chance.choice([1, 3, 20, 100])), int(chance.integers(8, 1000)))
    head, units, seed = head_of(chance), int(chance.integers(1, 500)), int(chance.integers(1 << 30))
    queries = [counted(group.weighted_queries(weights, randomness=SeededRandomness(seed))) for group in groups]
    named = list(head.queries)
    records = [counted(g.weighted_records(named, weights, randomness=SeededRandomness(seed))) for g in groups]
    for one, other in (queries, records):
        assert distance(one, other) <= math.sqrt(2) * weights.units * ROUNDING
        assert max(map(len, (one, other))) <= weights.items
    shares = [group.own_shares(head, units, randomness=SeededRandomness(seed)) for group in groups]
    assert [int(share.cells.sum()) for share in shares] == [units, units]
    moved = shares_distance(shares[0], shares[1], head)
    assert moved <= math.sqrt(3) * units * ROUNDING
    return moved / (math.sqrt(3) * units)


def in_memory(rows: Rows) -> InMemoryGroup:
    return InMemoryGroup.from_users([rows], randomness=SeededRandomness(1))


def check_pairs(n: int, group_of: Callable[[Rows], UserGroup], seed: int) -> float:
    chance = np.random.Generator(np.random.PCG64(seed))
    return max(check_pair((group_of(person(chance)), group_of(person(chance))), chance) for _ in range(n))


def test_one_person_replaced_moves_the_sums_by_no_more_than_the_account_says():
    """The bound is nearly reached, too; over more people it is."""
    assert check_pairs(300, in_memory, seed=1) > 0.9


@pytest.mark.slow
def test_a_hundred_thousand_people_replaced():
    assert check_pairs(100_000, in_memory, seed=2) > 0.99


@pytest.fixture(scope="module")
def session() -> Iterator[DuckDBSession]:
    database = DuckDBSession(None, 1, None)
    yield database
    database.close()


def test_one_person_replaced_in_a_database(session: DuckDBSession):
    def in_database(rows: Rows) -> SqlGroup:
        table = session.new_name("made")
        session.execute(
            f"CREATE TEMP TABLE {table} AS SELECT 'p' AS person, 1 AS draw, unnest(range(?)) AS digest, "
            "unnest(?::VARCHAR[]) AS query, unnest(?::VARCHAR[]) AS url",
            [len(rows), [str(row.query) for row in rows], [str(row.url) for row in rows]],
        )
        return SqlGroup(session, table, has_urls=True, draws=1, n_users=1, rows_of=lambda people: people)

    assert check_pairs(12, in_database, seed=3) > 0.1


def _rising(self: Weights) -> list[int]:
    return [0, *(math.floor(self.units / held**0.4) for held in range(1, self.items + 1))]


def test_weights_that_are_not_normalised_are_rejected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Weights, "table", property(_rising))
    with pytest.raises(AssertionError):
        check_pairs(300, in_memory, seed=1)


def test_a_unit_for_every_row_is_rejected(monkeypatch: pytest.MonkeyPatch):
    def own_shares(self: InMemoryGroup, head: HeadList, units: int, **options: Any) -> OwnShares:
        each = max(units // int(self._lengths[0]), 1)
        cells = np.bincount(self._universe.cells(head, self._rows), minlength=head.n_cells) * each
        return OwnShares(cells, 0)

    monkeypatch.setattr(InMemoryGroup, "own_shares", own_shares)
    with pytest.raises(AssertionError):
        check_pairs(300, in_memory, seed=1)


def test_squares_that_are_not_divided_are_rejected(monkeypatch: pytest.MonkeyPatch):
    shipped = InMemoryGroup.own_shares

    def own_shares(self: InMemoryGroup, head: HeadList, units: int, **options: Any) -> OwnShares:
        shares = shipped(self, head, units, **options)
        return OwnShares(shares.cells, shares.squares * 2)

    monkeypatch.setattr(InMemoryGroup, "own_shares", own_shares)
    with pytest.raises(AssertionError):
        check_pairs(300, in_memory, seed=1)
