"""The made-up log follows the released counts; a log that does not is found out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from made_click_graph import CLICKS, REFORMULATIONS, SEARCHES, made_graph
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.synthesize import LONGEST_SESSION, NOTHING, SyntheticLog, synthesize_log
from searchblend.core.errors import InvalidParameter, RunError
from searchblend.synthetic.seeded import SeededRandomness

N = 200_000
GRAPH = made_graph()


@pytest.fixture(scope="module")
def log() -> SyntheticLog:
    return synthesize_log(GRAPH, N, randomness=SeededRandomness(5))


def p_value(observed: np.ndarray, weights: np.ndarray) -> float:
    weights = np.asarray(weights, dtype=float)
    assert (observed[weights == 0] == 0).all()
    seen, expected = observed[weights > 0], weights[weights > 0]
    return float(stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue)


def test_searches_follow_their_counts(log: SyntheticLog):
    first = np.flatnonzero(~log.reformulated)
    assert len(first) == len(np.unique(log.session))
    counts = np.bincount(log.query, minlength=len(SEARCHES))
    true = np.array(list(SEARCHES.values()))
    assert p_value(counts, true) > 1e-4
    assert p_value(counts, true + GRAPH.reformulation_matrix().sum(axis=0)) < 1e-9  # starts in proportion to n_q
    assert p_value(counts, true * np.where(np.arange(len(true)) == 0, 1.05, 1.0)) < 1e-4


def test_clicks_follow_their_counts(log: SyntheticLog):
    for query in ("running shoes", "marathon", "weather", "shoe sizes"):
        number = GRAPH.queries.index(query)
        clicked = log.url[log.query == number]
        weights = np.array([kept(CLICKS.get((query, url), 0)) for url in GRAPH.urls])
        observed = np.append(
            np.bincount(clicked[clicked != NOTHING], minlength=len(GRAPH.urls)), (clicked == NOTHING).sum()
        )
        assert p_value(observed, np.append(weights, SEARCHES[query] - weights.sum())) > 1e-4
        if query == "weather":
            assert p_value(observed, np.append(1.1 * weights, SEARCHES[query] - weights.sum())) < 1e-6


def test_reformulations_follow_their_counts(log: SyntheticLog):
    assert (log.url[log.query == GRAPH.queries.index("fear of flying")] == NOTHING).all()
    followers = np.flatnonzero(log.reformulated)
    assert (log.session[followers] == log.session[followers - 1]).all()
    pairs = {(GRAPH.queries[log.query[i - 1]], GRAPH.queries[log.query[i]]): 0 for i in followers}
    assert set(pairs) == {pair for pair, count in REFORMULATIONS.items() if kept(count)}
    number = GRAPH.queries.index("running shoes")
    at = np.flatnonzero(log.query == number)
    at = at[at + 1 < len(log)]
    nexts = np.where(log.reformulated[at + 1], log.query[at + 1], len(SEARCHES))
    weights = np.zeros(len(SEARCHES) + 1)
    weights[GRAPH.queries.index("trail shoes")], weights[GRAPH.queries.index("marathon")] = 80, 35
    weights[-1] = 900 - 115
    assert p_value(np.bincount(nexts, minlength=len(weights)), weights) > 1e-4


def kept(count: int) -> int:
    return count if count >= 10 else 0


def test_users_own_whole_sessions(log: SyntheticLog):
    assert len(log) == N
    assert (np.diff(log.user) >= 0).all()
    owner = np.full(log.session.max() + 1, -1)
    owner[log.session] = log.user
    assert (owner[log.session] == log.user).all()
    sessions = np.bincount(owner[owner >= 0], minlength=N // 10)
    assert len(sessions) == N // 10
    assert stats.chisquare(sessions).pvalue > 1e-4


def test_the_number_of_users_is_the_callers():
    few = synthesize_log(GRAPH, 500, users=3, randomness=SeededRandomness(1))
    assert set(few.user) == {0, 1, 2}
    assert len(few) == 500
    assert len(synthesize_log(GRAPH, 1)) == 1


def test_the_same_randomness_gives_the_same_log():
    first, second = (synthesize_log(GRAPH, 1000, randomness=SeededRandomness(9)) for _ in range(2))
    assert (first.query == second.query).all()
    assert (first.url == second.url).all()
    assert (first.query[:50] != synthesize_log(GRAPH, 1000).query[:50]).any()


def test_a_circle_of_reformulations_ends():
    row = (10, 9.0, 11.0)
    start = {"a": (30, 29.0, 31.0), "b": row}
    graph = ClickGraph.of(start, {}, {("a", "b"): row, ("b", "a"): row})
    log = synthesize_log(graph, 5000, randomness=SeededRandomness(2))
    assert np.bincount(log.session).max() <= LONGEST_SESSION


def test_nothing_to_start_from_is_an_error():
    with pytest.raises(RunError, match="from which a session could start"):
        synthesize_log(ClickGraph.of({"a": (-3, -9.0, 3.0)}, {}), 10)


@pytest.mark.parametrize("wrong", [{"searches": 0}, {"searches": 5, "users": 0}])
def test_wrong_sizes_are_refused(wrong):
    with pytest.raises(InvalidParameter, match="expected at least 1"):
        synthesize_log(GRAPH, **wrong)
