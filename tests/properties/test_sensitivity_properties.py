"""What one person can change: at most two counts, by one each, and nothing else. All proofs rest on it."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from searchblend.blender.groups import InMemoryGroup
from searchblend.core.records import HeadList, Record
from searchblend.synthetic.seeded import SeededRandomness
from strategies import LISTS_OF_THESE, USERS, neighbours

SEEDS = st.integers(0, 2**32 - 1)
Users = list[list[Record]]


def tally_of(group: InMemoryGroup) -> Counter[Record]:
    tally = group.tally()
    return Counter(
        {record: n for n, how_many in tally.sizes().items() for record in tally.pick(n, np.arange(how_many))}
    )


def groups(users: Users, changed: Users, seed: int) -> tuple[InMemoryGroup, InMemoryGroup]:
    """Both logs with the same random words: what differs is due to the one person."""
    return tuple(InMemoryGroup.from_users(log, randomness=SeededRandomness(seed)) for log in (users, changed))


def assert_one_person_apart(before: Counter, after: Counter) -> None:
    moved = {key: after[key] - before[key] for key in before | after if after[key] != before[key]}
    assert sorted(moved.values()) in ([], [-1, 1])


@given(neighbours(), SEEDS)
def test_tally(pair: tuple[Users, Users], seed: int):
    before, after = groups(*pair, seed)
    assert before.n_users == after.n_users
    assert_one_person_apart(tally_of(before), tally_of(after))


@given(neighbours(), SEEDS, LISTS_OF_THESE)
def test_cells(pair: tuple[Users, Users], seed: int, head: HeadList):
    before, after = groups(*pair, seed)
    counts = [Counter(dict(enumerate(group.cell_counts(head).tolist()))) for group in (before, after)]
    assert_one_person_apart(*counts)
    assert sum(counts[0].values()) == before.n_users


@given(neighbours(), SEEDS, st.floats(0.2, 0.8))
def test_split_does_not_look_at_records(pair: tuple[Users, Users], seed: int, fraction: float):
    """The person stays in the part where they were; the other part does not change at all."""
    before, after = groups(*pair, seed)
    parts = [group.split(fraction, randomness=SeededRandomness(seed + 1)) for group in (before, after)]
    tallies = [[tally_of(part) for part in both] for both in parts]
    assert [part.n_users for part in parts[0]] == [part.n_users for part in parts[1]]
    assert any(tallies[0][i] == tallies[1][i] for i in (0, 1))
    for first, second in zip(*tallies, strict=True):
        assert_one_person_apart(first, second)


@given(USERS, SEEDS)
def test_every_user_counts_once_with_one_of_their_records(users: Users, seed: int):
    group = InMemoryGroup.from_users(users, randomness=SeededRandomness(seed))
    tally = tally_of(group)
    assert sum(tally.values()) == len(users) == group.n_users
    for record, n in tally.items():
        assert n <= sum(record in records for records in users)


@given(USERS, SEEDS, st.integers(1, 4), LISTS_OF_THESE)
def test_draws_add_up(users: Users, seed: int, draws: int, head: HeadList):
    group = InMemoryGroup.from_users(users, randomness=SeededRandomness(seed))
    counts = group.cell_counts(head, draws, randomness=SeededRandomness(seed))
    assert counts.sum() == draws * group.n_users
    assert (counts >= group.cell_counts(head)).all()
