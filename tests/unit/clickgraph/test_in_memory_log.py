"""What a log answers, by hand: caps, order of time, restriction before and after the cap, sessions, weights."""

from __future__ import annotations

import numpy as np
import pytest

from searchblend.clickgraph.release.click_log import SESSION_GAP, Cap, InMemoryClickLog, Search
from searchblend.core.errors import InvalidParameter
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.tally import InMemoryTally


def counts(tally: InMemoryTally) -> dict[Record, int]:
    return {record: n for n, size in tally.sizes().items() for record in tally.pick(n, np.arange(size, dtype=np.int64))}


def of(tally: InMemoryTally) -> dict[str, int]:
    return {str(record.query): n for record, n in counts(tally).items()}


ONE = [
    Search("b", 5, ("u2", "u1")),
    Search("a", 1, ("u1",)),
    Search("a", 2, ("u1", "u2")),
    Search("c", 9, ("u3",)),
    Search("a", 7, ("u4",)),
]
"""in order of time: a a b a c"""


def test_searches_are_limited_in_order_of_time():
    log = InMemoryClickLog([ONE, [Search("a"), Search("c")]])
    assert of(log.searches(Cap(3, distinct=False))) == {"a": 3, "b": 1, "c": 1}
    assert of(log.searches(Cap(2, distinct=False))) == {"a": 3, "c": 1}
    assert of(log.searches(Cap(2))) == {"a": 2, "b": 1, "c": 1}
    assert of(log.searches(Cap(1))) == {"a": 2}


def test_searches_at_the_same_time_keep_their_order():
    log = InMemoryClickLog([[Search("z"), Search("y"), Search("x")]])
    assert of(log.searches(Cap(2))) == {"z": 1, "y": 1}


def test_counts_of_queries_leave_out_the_others_before_the_cap():
    log = InMemoryClickLog([ONE])
    assert log.searches_of(["c", "nobody"], Cap(1)) == {"c": 1, "nobody": 0}
    assert log.searches_of(["a", "c"], Cap(3, distinct=False)) == {"a": 3, "c": 0}


def test_weights_share_one_norm():
    log = InMemoryClickLog([ONE, [Search("a")]])
    tally = log.weighted_searches(3, 100, [])
    assert of(tally) == {"a": 57 + 100, "b": 57, "c": 57}
    assert of(log.weighted_searches(2, 100, [])) == {"a": 70 + 100, "b": 70}
    assert of(log.weighted_searches(2, 100, ["a"])) == {"b": 70, "c": 70}


def test_weights_of_some_queries_share_one_norm_after_the_limit():
    log = InMemoryClickLog([ONE, [Search("a")]])
    assert log.weighted_searches_of(["a", "c", "nobody"], 3, 100) == {"a": 70 + 100, "c": 70, "nobody": 0}
    assert log.weighted_searches_of(["b", "c"], 2, 100) == {"b": 100, "c": 0}


def test_clicks_of_first_searches():
    """The first three searches: a u1, a u1 u2, b u2 u1."""
    log = InMemoryClickLog([ONE])
    within = Cap(3, distinct=False)
    assert counts(log.clicks(["a", "b"], Cap(9, distinct=False), within=within)) == {
        Record("a", "u1"): 2,
        Record("a", "u2"): 1,
        Record("b", "u2"): 1,
        Record("b", "u1"): 1,
    }
    assert counts(log.clicks(["a", "b"], Cap(2), within=within)) == {Record("a", "u1"): 1, Record("a", "u2"): 1}
    assert counts(log.clicks(["b"], Cap(1), within=within)) == {Record("b", "u2"): 1}


def test_clicks_of_all_searches_of_the_first_queries():
    log = InMemoryClickLog([ONE])
    clicked = counts(log.clicks(["a", "c"], Cap(9), within=Cap(2)))
    assert clicked == {Record("a", "u1"): 1, Record("a", "u2"): 1, Record("a", "u4"): 1}


def test_restriction_before_and_after_the_cap():
    log = InMemoryClickLog([ONE])
    pairs = [Record("b", "u1"), Record("a", "u2"), Record("a", "none")]
    within, cap = Cap(3, distinct=False), Cap(2, distinct=False)
    assert log.clicks_of(pairs, cap, within=within) == {pairs[0]: 0 + 1, pairs[1]: 1, pairs[2]: 0}
    assert log.clicks_of(pairs, cap, within=within, restrict_first=False) == dict.fromkeys(pairs, 0)
    third = Cap(3, distinct=False)
    after = log.clicks_of(pairs, third, within=within, restrict_first=False)
    assert after == {pairs[0]: 0, pairs[1]: 1, pairs[2]: 0}


def test_reformulations_are_typed_in_a_row_within_a_session():
    log = InMemoryClickLog(
        [
            [Search("a", 0), Search("b", SESSION_GAP), Search("b", SESSION_GAP + 1), Search("a", 3 * SESSION_GAP)],
            [Search("a", 0), Search("x", 1), Search("b", 2), Search("a", 3), Search("b", 4)],
        ]
    )
    found = counts(log.reformulations(["a", "b"], Cap(9)))
    assert found == {Record("a", "b"): 2, Record("b", "a"): 1}
    assert counts(log.reformulations(["a", "b"], Cap(1))) == {Record("a", "b"): 1, Record("b", "a"): 1}


def test_nobody_is_shown():
    log = InMemoryClickLog([[Search("secret", 0, ("url",))]])
    assert "secret" not in repr(log) + repr(Search("secret"))


def test_a_cap_of_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="first"):
        Cap(0)


def test_an_empty_log_has_empty_tallies():
    log = InMemoryClickLog([])
    assert log.searches(Cap(3)).sizes() == {}
    assert log.searches(Cap(3)).of_queries(["a"]) == {}
    assert log.weighted_searches(3, 10, []).sizes() == {}


def test_queries_stand_with_a_wildcard():
    tally = InMemoryClickLog([[Search("a")]]).searches(Cap(1))
    assert counts(tally) == {Record("a", WILDCARD): 1}
