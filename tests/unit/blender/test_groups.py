"""Groups in memory: tallies, cells, draws and splits."""

from __future__ import annotations

import numpy as np
import pytest
from made_groups import Quiet, people

from searchblend.blender.groups import InMemoryGroup
from searchblend.core.errors import InvalidParameter
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList, Record
from searchblend.synthetic.seeded import SeededRandomness


def tape(*words: int) -> Tape:
    return Tape(b"".join(word.to_bytes(8, "little") for word in words))


def test_tally_counts_users_by_record():
    tally = people({("a", "u"): 3, ("b", "u"): 1, ("c", "u"): 3, ("a", "v"): 2}).tally()
    assert tally.sizes() == {1: 1, 2: 1, 3: 2}
    assert tally.pick(1, np.array([0])) == [Record("b", "u")]
    assert sorted(tally.pick(3, np.array([0, 1]))) == [Record("a", "u"), Record("c", "u")]


def test_users_without_a_record_take_no_part():
    group = InMemoryGroup.from_users([[], [Record("a")], []])
    assert group.n_users == 1
    assert InMemoryGroup.from_users([]).n_users == 0
    assert InMemoryGroup.from_users([]).tally().sizes() == {}


def test_one_record_of_each_user_repeats_counting():
    """Position = word mod number of rows."""
    user = [Record("a"), Record("a"), Record("b")]
    group = InMemoryGroup.from_users([user] * 4, randomness=tape(0, 1, 2, 3))
    assert group.tally().sizes() == {3: 1, 1: 1}
    assert group.tally().pick(3, np.array([0])) == [Record("a")]


def test_cells_of_a_head_list():
    head = HeadList({"a": ["u"], "b": []})
    group = people({("a", "u"): 4, ("a", "x"): 2, ("b", "u"): 1, ("z", "u"): 5})
    assert group.cell_counts(head).tolist() == [4, 2, 1, 5]


def test_several_draws_are_with_replacement_and_the_first_is_the_groups_own():
    """One user with two records: the group drew the first, the two fresh words choose the second."""
    group = InMemoryGroup.from_users([[Record("a"), Record("b")]], randomness=tape(0))
    head = HeadList({"a": [], "b": []})
    source = tape(1, 3)
    assert group.cell_counts(head, 3, randomness=source).tolist() == [1, 2, 0]
    assert source.left == 0
    assert group.cell_counts(head, randomness=tape()).tolist() == [1, 0, 0]


@pytest.mark.parametrize(("fraction", "first"), [(0.95, 95), (0.5, 50), (0.004, 0), (0.996, 100)])
def test_split_sizes(fraction: float, first: int):
    one, two = people({"a": 60, "b": 40}).split(fraction)
    assert (one.n_users, two.n_users) == (first, 100 - first)


def test_split_parts_are_disjoint_and_complete():
    group = people({f"q{i}": 1 for i in range(200)})
    one, two = group.split(0.3, randomness=SeededRandomness(4))
    names = [set(part.tally().pick(1, np.arange(part.n_users))) for part in (one, two)]
    assert not names[0] & names[1]
    assert len(names[0] | names[1]) == 200
    again, _ = group.split(0.3, randomness=SeededRandomness(5))
    assert set(again.tally().pick(1, np.arange(60))) != names[0]


def test_split_keeps_the_drawn_records():
    group = InMemoryGroup.from_users([[Record("a"), Record("b")]] * 50, randomness=SeededRandomness(6))
    head = HeadList({"a": [], "b": []})
    parts = group.split(0.4, randomness=Quiet())
    assert sum(part.cell_counts(head) for part in parts).tolist() == group.cell_counts(head).tolist()


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0, float("nan")])
def test_split_needs_a_fraction(fraction: float):
    with pytest.raises(InvalidParameter, match="fraction"):
        people({"a": 2}).split(fraction)


def test_logs_with_and_without_urls():
    assert people({("a", "u"): 1}).has_urls
    assert not people({"a": 1}).has_urls


def test_a_group_shows_only_its_size():
    assert repr(people({"my disease": 3})) == "InMemoryGroup(3 users)"
