"""What one person can change in method ``best``, whatever they searched and however often: 2·units in the tally.

Every contribution policy, one record or the weight spread over m, and both groups that hold people. All proofs rest
on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.blender.best.stability_histogram import UNITS_WHEN_SPREAD
from searchblend.blender.groups import ONE_RECORD, InMemoryGroup, Spread, UserGroup
from searchblend.core.records import Record
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.relational import SqlGroup
from searchblend.mechanisms.tally import RecordTally
from searchblend.synthetic.seeded import SeededRandomness
from strategies import neighbours

SEEDS = st.integers(0, 2**32 - 1)
Users = list[list[Record]]

SPREADS = st.one_of(
    st.just(ONE_RECORD),
    st.integers(1, 20).map(lambda m: Spread(m, UNITS_WHEN_SPREAD)),
    st.integers(1, 6).flatmap(lambda m: st.integers(m, 4 * m).map(lambda units: Spread(m, units))),
)
"""One record; the shipped units; few units, so that rounding matters."""


@st.composite
def heavy_neighbours(draw: st.DrawFn) -> tuple[Users, Users]:
    """One person with up to 40 rows, many of them the same, against any other such person."""
    users, _ = draw(neighbours())
    url = users[0][0].url
    person = st.lists(st.sampled_from("abcdefgh").map(lambda q: Record(q, url)), min_size=1, max_size=40)
    return [*users, draw(person)], [*users, draw(person)]


PAIRS = st.one_of(neighbours(), heavy_neighbours())


def units_of(tally: RecordTally) -> Counter[Record]:
    return Counter({r: n for n, size in tally.sizes().items() for r in tally.pick(n, np.arange(size))})


def l1(before: Counter[Record], after: Counter[Record]) -> int:
    return sum(abs(before[record] - after[record]) for record in before | after)


def in_memory(log: Users, spread: Spread, seed: int) -> RecordTally:
    """The person who differs comes last in ``heavy_neighbours``: the words of all others are the same."""
    group = InMemoryGroup.from_users(log, randomness=SeededRandomness(seed))
    return group.tally(spread, randomness=SeededRandomness(seed + 1))


@given(heavy_neighbours(), SPREADS, SEEDS)
def test_one_person_moves_two_weights(pair: tuple[Users, Users], spread: Spread, seed: int):
    before, after = (units_of(in_memory(log, spread, seed)) for log in pair)
    assert l1(before, after) <= 2 * spread.units


@given(PAIRS, SPREADS, SEEDS)
def test_a_person_alone_adds_at_most_the_units(pair: tuple[Users, Users], spread: Spread, seed: int):
    """What the person adds is bounded on its own, so it is in any company."""
    for log in pair:
        for person in log:
            total = units_of(in_memory([person], spread, seed)).total()
            rows = min(len(person), spread.records)
            assert total == rows * (spread.units // rows) <= spread.units


@given(PAIRS, SPREADS, SEEDS)
def test_the_tally_is_the_sum_of_its_people(pair: tuple[Users, Users], spread: Spread, seed: int):
    """Nobody's weight depends on others: people with at most m rows are drawn whole, so their sum is exact."""
    log = [person[: spread.records] for person in pair[0]]
    if spread.records == 1:
        log = [person[:1] for person in log]
    whole = units_of(in_memory(log, spread, seed))
    parts: Counter[Record] = Counter()
    for person in log:
        parts.update(units_of(in_memory([person], spread, seed)))
    assert whole == parts


@given(PAIRS, SPREADS, SEEDS)
def test_only_own_records_gain(pair: tuple[Users, Users], spread: Spread, seed: int):
    tally = units_of(in_memory(pair[0], spread, seed))
    for record, n in tally.items():
        share = max(spread.units // min(len(p), spread.records) * min(p.count(record), spread.records) for p in pair[0])
        assert 0 < n <= share * sum(record in person for person in pair[0])


@given(PAIRS, st.integers(1, 30), SEEDS)
def test_query_sums_keep_the_bound(pair: tuple[Users, Users], cap: int, seed: int):
    """The clipped sums of ⟨q,⋆⟩ move by no more than the counts they are made of."""
    before, after = (in_memory(log, ONE_RECORD, seed) for log in pair)
    records = l1(units_of(before), units_of(after))
    assert l1(units_of(before.by_query(cap, [])), units_of(after.by_query(cap, []))) <= records


# --- the same in a database ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session() -> Iterator[DuckDBSession]:
    database = DuckDBSession(None, 1, None)
    yield database
    database.close()


def in_database(log: Users, session: DuckDBSession) -> UserGroup:
    """A group as the engine makes it: every person's rows numbered in some order."""
    table = session.new_name("made")
    rows = [
        (f"p{i}", 1 if pick == 1 else None, pick, str(r.query), r.url if isinstance(r.url, str) else None)
        for i, person in enumerate(log)
        for pick, r in enumerate(person, start=1)
    ]
    person, draw, pick, query, url = zip(*rows, strict=True)
    session.execute(
        f"CREATE TEMP TABLE {table} AS SELECT unnest(?::VARCHAR[]) AS person, unnest(?::INT[]) AS draw, "
        "unnest(?::INT[]) AS pick, unnest(?::VARCHAR[]) AS query, unnest(?::VARCHAR[]) AS url",
        [list(person), list(draw), list(pick), list(query), list(url)],
    )
    return SqlGroup(session, table, has_urls=any(url), draws=1, picks=100)


@pytest.mark.thorough
@settings(max_examples=25)
@given(pair=PAIRS, spread=SPREADS)
def test_one_person_moves_two_weights_in_the_database(
    session: DuckDBSession, pair: tuple[Users, Users], spread: Spread
):
    tallies = [units_of(in_database(log, session).tally(spread)) for log in pair]
    assert l1(*tallies) <= 2 * spread.units
    for tally, log in zip(tallies, pair, strict=True):
        expected = sum(spread.units // (rows := min(len(p), spread.records)) * rows for p in log)
        assert tally.total() == expected <= spread.units * len(log)
