"""Similar queries: cosines and relations against their definitions, walks against powers of the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_click_graph import made_graph
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.similar import ClickWalk, similar_queries
from searchblend.core.errors import InvalidParameter


def graph_of(table: np.ndarray) -> ClickGraph:
    clicks = {(f"q{i}", f"u{j}"): (int(n), float(n), float(n)) for (i, j), n in np.ndenumerate(table) if n}
    return ClickGraph.of({f"q{i}": (10, 9.0, 11.0) for i in range(len(table))}, clicks)


def dense(graph: ClickGraph) -> np.ndarray:
    return graph.click_matrix().toarray()


tables = st.integers(0, 10**6).map(
    lambda seed: (
        np.random.default_rng(seed).integers(0, 3, (6, 5)) * np.random.default_rng(seed + 1).integers(0, 4, (6, 5))
    )
)


@given(tables, st.booleans())
def test_scores_are_cosines(table: np.ndarray, idf: bool):
    graph = graph_of(table)
    rows = dense(graph)
    if idf and rows.size:
        rows = rows * np.log(len(rows) / np.maximum((rows > 0).sum(axis=0), 1))
    for other in similar_queries(graph, "q0", limit=None, idf=idf):
        row = rows[graph.number_of(other.query)]
        assert other.score == pytest.approx(rows[0] @ row / np.linalg.norm(rows[0]) / np.linalg.norm(row))


@given(tables)
def test_everything_that_shares_a_url_is_found_with_its_relation(table: np.ndarray):
    graph = graph_of(table)
    sets = [set(np.flatnonzero(row)) for row in dense(graph)]
    expected = {}
    for i in range(1, len(sets)):
        if sets[0] & sets[i]:
            relation = "overlapping"
            if sets[0] == sets[i]:
                relation = "identical"
            elif sets[i] < sets[0]:
                relation = "narrower"
            elif sets[i] > sets[0]:
                relation = "broader"
            expected[f"q{i}"] = relation, len(sets[0] & sets[i])
    found = similar_queries(graph, "q0", limit=None)
    assert {s.query: (s.relation, s.shared_urls) for s in found} == expected
    assert [s.score for s in found] == sorted((s.score for s in found), reverse=True)


def test_a_portal_counts_for_little_with_idf():
    table = np.array([[9, 3, 0], [9, 0, 3], [1, 3, 0], [9, 0, 1]])
    assert similar_queries(graph_of(table), "q0", limit=1)[0].query != "q2"
    assert similar_queries(graph_of(table), "q0", limit=1, idf=True)[0].query == "q2"


@pytest.mark.parametrize(("stay", "steps"), [(0.9, 11), (0.5, 3), (0.0, 4), (0.3, 1)])
def test_walks_are_powers_of_the_transition_matrix(stay: float, steps: int):
    graph = graph_of(np.random.default_rng(3).integers(0, 4, (6, 5)))
    clicks = dense(graph)
    down, up = clicks / clicks.sum(axis=1, keepdims=True), clicks.T / clicks.T.sum(axis=1, keepdims=True)
    step = np.block([[np.zeros((6, 6)), down], [up, np.zeros((5, 5))]])
    power = np.linalg.matrix_power(stay * np.eye(11) + (1 - stay) * step, steps)
    for direction, expected in (("forward", power[2]), ("backward", power[:, 2] / power[:, 2].sum())):
        walk = ClickWalk(direction, stay, steps)
        found = {r.text: r.score for r in walk.queries(graph, "q2", limit=None)}
        if stay:
            found |= {r.text: r.score for r in walk.urls(graph, "q2", limit=None)}
        for text, score in found.items():
            place = int(text[1:]) if text[0] == "q" else 6 + graph.urls.index(text)
            assert score == pytest.approx(expected[place])
        assert len(found) == (expected > 1e-15).sum() - (expected[2] > 0) - (0 if stay else (expected[6:] > 0).sum())


def test_a_walk_finds_what_no_shared_click_does():
    walk = ClickWalk("forward", steps=101)
    reached = [r.text for r in walk.queries(made_graph(), "trail shoes")]
    assert "marathon" in reached
    assert "marathon" not in [s.query for s in similar_queries(made_graph(), "trail shoes")]
    assert not {"weather", "trail shoes"} & set(reached)
    assert walk.urls(made_graph(), "trail shoes", limit=1)[0].text.startswith("http://")


def test_a_query_without_clicks_is_like_nothing():
    assert similar_queries(made_graph(), "fear of flying") == []
    assert ClickWalk().queries(made_graph(), "fear of flying") == []


@pytest.mark.parametrize(
    "wrong", [{"direction": "up"}, {"self_transition": 1}, {"self_transition": -0.1}, {"steps": 0}]
)
def test_wrong_walks_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ClickWalk(**wrong)


def test_a_walk_that_cannot_end_there_is_refused():
    with pytest.raises(InvalidParameter, match="odd walks end on URLs"):
        ClickWalk("forward", 0.0, 11).queries(made_graph(), "weather")
    with pytest.raises(InvalidParameter, match="even walks end on queries"):
        ClickWalk("forward", 0.0, 2).urls(made_graph(), "weather")
    assert ClickWalk("forward", 0.0, 2).queries(made_graph(), "weather")
