"""What one person can change in method ``best`` of one record each, whatever they searched: two counts by one.

Both groups that hold people. All proofs of the stability histogram rest on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.blender.groups import InMemoryGroup, UserGroup
from searchblend.core.records import Record
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.relational import SqlGroup
from searchblend.mechanisms.tally import RecordTally
from searchblend.synthetic.seeded import SeededRandomness
from strategies import neighbours

SEEDS = st.integers(0, 2**32 - 1)
Users = list[list[Record]]


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


def in_memory(log: Users, seed: int) -> RecordTally:
    """The person who differs comes last in ``heavy_neighbours``: the words of all others are the same."""
    return InMemoryGroup.from_users(log, randomness=SeededRandomness(seed)).tally()


@given(heavy_neighbours(), SEEDS)
def test_one_person_moves_two_counts(pair: tuple[Users, Users], seed: int):
    before, after = (units_of(in_memory(log, seed)) for log in pair)
    assert l1(before, after) <= 2


@given(PAIRS, SEEDS)
def test_the_tally_is_the_sum_of_its_people(pair: tuple[Users, Users], seed: int):
    """Everybody adds one record of their own, whoever else is there."""
    log = [person[:1] for person in pair[0]]
    parts: Counter[Record] = Counter()
    for person in log:
        alone = units_of(in_memory([person], seed))
        assert alone.total() == 1
        parts.update(alone)
    assert units_of(in_memory(log, seed)) == parts


@given(PAIRS, SEEDS)
def test_only_own_records_gain(pair: tuple[Users, Users], seed: int):
    for record, n in units_of(in_memory(pair[0], seed)).items():
        assert 0 < n <= sum(record in person for person in pair[0])


@given(PAIRS, st.integers(1, 30), SEEDS)
def test_query_sums_keep_the_bound(pair: tuple[Users, Users], cap: int, seed: int):
    """The clipped sums of ⟨q,⋆⟩ move by no more than the counts they are made of."""
    before, after = (in_memory(log, seed) for log in pair)
    records = l1(units_of(before), units_of(after))
    assert l1(units_of(before.by_query(cap, [])), units_of(after.by_query(cap, []))) <= records


# --- the same in a database ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session() -> Iterator[DuckDBSession]:
    database = DuckDBSession(None, 1, None)
    yield database
    database.close()


def in_database(log: Users, session: DuckDBSession) -> UserGroup:
    """A group as the engine makes it, with the first of every person's rows drawn."""
    table = session.new_name("made")
    rows = [
        (f"p{i}", str(person[0].query), person[0].url if isinstance(person[0].url, str) else None)
        for i, person in enumerate(log)
    ]
    person, query, url = zip(*rows, strict=True)
    session.execute(
        f"CREATE TEMP TABLE {table} AS SELECT unnest(?::VARCHAR[]) AS person, 1 AS draw, "
        "unnest(?::VARCHAR[]) AS query, unnest(?::VARCHAR[]) AS url",
        [list(person), list(query), list(url)],
    )
    return SqlGroup(session, table, has_urls=any(url), draws=1)


@pytest.mark.thorough
@settings(max_examples=25)
@given(pair=PAIRS)
def test_one_person_moves_two_counts_in_the_database(session: DuckDBSession, pair: tuple[Users, Users]):
    tallies = [units_of(in_database(log, session).tally()) for log in pair]
    assert l1(*tallies) <= 2
    assert [tally.total() for tally in tallies] == [len(log) for log in pair]
