"""How far one user more can move each answer of a log, whatever everybody searched: the norms that the proofs state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.clickgraph.release.click_log import Cap, InMemoryClickLog, Search
from searchblend.core.records import Record
from searchblend.mechanisms.gaussian_account import weight
from searchblend.mechanisms.tally import InMemoryTally

QUERIES = "abcdef"
TARGETS = ("u", "v", "suggestion:a", "suggestion:b")
searches = st.tuples(
    st.sampled_from(QUERIES), st.integers(0, 5000), st.lists(st.sampled_from(TARGETS), max_size=3).map(tuple)
).map(lambda values: Search(*values))
"""without attributes, which nothing here asks for: ``st.builds`` draws all fields of a named tuple, defaults or not"""
people = st.lists(searches, max_size=12)
logs = st.lists(people, max_size=8)
caps = st.builds(Cap, st.integers(1, 5), st.booleans())
some_queries = st.lists(st.sampled_from(QUERIES), max_size=5, unique=True)
some_pairs = st.lists(st.builds(Record, st.sampled_from(QUERIES), st.sampled_from(TARGETS)), max_size=6, unique=True)
Counts = dict[object, int]


def counts(tally: InMemoryTally) -> Counts:
    return {record: n for n, size in tally.sizes().items() for record in tally.pick(n, np.arange(size))}


def moved(log: Callable[[Sequence], object], users: list, person: list, ask: Callable) -> list[int]:
    """By how much each count changes if ``person`` joins; none may fall."""
    before, after = ask(log(users)), ask(log([*users, person]))
    changes = [after.get(key, 0) - before.get(key, 0) for key in before.keys() | after.keys()]
    assert min(changes, default=0) >= 0
    return [change for change in changes if change]


def check_cap(changes: list[int], cap: Cap) -> None:
    """ℓ1 is ``first`` at most; if users count once, each change is 1 and so ℓ2 is √first at most."""
    assert sum(changes) <= cap.first
    if cap.distinct:
        assert max(changes, default=0) <= 1


def check_weights(changes: list[int], first: int, units: int) -> None:
    assert len(changes) <= first
    assert sum(change**2 for change in changes) <= units**2
    assert max(changes, default=0) <= weight(units, max(len(changes), 1))


@given(logs, people, caps)
def test_searches(users, person, cap):
    """Within the cap, and the sum over users: nobody's contribution depends on who else is there."""
    changes = moved(InMemoryClickLog, users, person, lambda log: counts(log.searches(cap)))
    check_cap(changes, cap)
    assert sorted(changes) == sorted(counts(InMemoryClickLog([person]).searches(cap)).values())


@given(logs, people, st.integers(1, 8), st.integers(8, 500), some_queries)
def test_weighted_searches(users, person, first, units, without):
    changes = moved(InMemoryClickLog, users, person, lambda log: counts(log.weighted_searches(first, units, without)))
    check_weights(changes, first, units)


@given(logs, people, st.integers(1, 8), st.integers(8, 500), some_queries)
def test_weighted_searches_of(users, person, first, units, queries):
    changes = moved(InMemoryClickLog, users, person, lambda log: log.weighted_searches_of(queries, first, units))
    check_weights(changes, first, units)


@given(logs, people, caps, some_queries)
def test_searches_of(users, person, cap, queries):
    check_cap(moved(InMemoryClickLog, users, person, lambda log: log.searches_of(queries, cap)), cap)


@given(logs, people, caps, caps, some_queries)
def test_clicks(users, person, cap, within, queries):
    changes = moved(InMemoryClickLog, users, person, lambda log: counts(log.clicks(queries, cap, within=within)))
    check_cap(changes, cap)


@given(logs, people, caps, caps, some_pairs, st.booleans())
def test_clicks_of(users, person, cap, within, pairs, restrict_first):
    def ask(log: InMemoryClickLog) -> Counts:
        return log.clicks_of(pairs, cap, within=within, restrict_first=restrict_first)

    check_cap(moved(InMemoryClickLog, users, person, ask), cap)


@given(logs, people, caps, some_queries)
def test_reformulations(users, person, cap, queries):
    changes = moved(InMemoryClickLog, users, person, lambda log: counts(log.reformulations(queries, cap)))
    check_cap(changes, cap)


class Uncapped(InMemoryClickLog):
    """Forgets the cap."""

    def searches(self, cap):
        return super().searches(Cap(10_000, cap.distinct))


class Repeating(InMemoryClickLog):
    """Counts a user as often as they search."""

    def searches(self, cap):
        return super().searches(Cap(cap.first, distinct=False))


class CapOfEverybody(InMemoryClickLog):
    """Limits the log as if it were one user: what one person adds, another loses."""

    def __init__(self, users):
        super().__init__([sorted(chain.from_iterable(users), key=lambda search: search.time)])


class NotNormalised(InMemoryClickLog):
    """Every query of a user weighs as much as if it were the only one."""

    def weighted_searches(self, first, units, without):
        tally = InMemoryClickLog(self._users).searches(Cap(first))
        return InMemoryTally(tally._universe, tally._numbers, tally._counts * units)


class SplitInLOne(InMemoryClickLog):
    """floor(units/√s) for s after the limit, but not limited."""

    def weighted_searches(self, first, units, without):
        return super().weighted_searches(10_000, units, without)


PERSON = [Search(query, time) for time, query in enumerate("abacadbe")]
OTHERS = [[Search("f", 9)], [Search("a", 100)]]


@pytest.mark.parametrize(
    ("mutant", "cap"),
    [
        (Uncapped, Cap(3)),
        (Uncapped, Cap(3, distinct=False)),
        (Repeating, Cap(3)),
        (CapOfEverybody, Cap(2)),
    ],
)
def test_a_log_that_limits_wrongly_is_rejected(mutant, cap):
    with pytest.raises(AssertionError):
        check_cap(moved(mutant, OTHERS, PERSON, lambda log: counts(log.searches(cap))), cap)


@pytest.mark.parametrize("mutant", [NotNormalised, SplitInLOne])
def test_a_log_that_weighs_wrongly_is_rejected(mutant):
    with pytest.raises(AssertionError):
        check_weights(moved(mutant, OTHERS, PERSON, lambda log: counts(log.weighted_searches(3, 100, []))), 3, 100)
