"""The graph in memory: what it refuses, its matrices and its tables."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_click_graph import CLICKS, SEARCHES, made_graph
from searchblend.clickgraph.use.graph import ClickGraph, Counts, Edges, ranked
from searchblend.core.errors import InvalidParameter, UsageError


def test_matrices_hold_what_is_positive_and_not_below_the_cut():
    graph = made_graph()
    everything, cut = graph.click_matrix(cut=0).toarray(), graph.click_matrix().toarray()
    for (query, url), count in CLICKS.items():
        place = graph.queries.index(query), graph.urls.index(url)
        assert everything[place] == max(count, 0)
        assert cut[place] == (count if count >= 10 else 0)
    assert graph.reformulation_matrix().toarray().sum() == 60 + 80 + 35 + 120
    assert graph.reformulation_matrix(cut=100).nnz == 1


def test_a_query_is_found_as_typed():
    graph = made_graph()
    assert graph.queries[graph.number_of("  Running   SHOES ")] == "running shoes"
    assert "Weather" in graph
    assert "nothing of the kind" not in graph
    with pytest.raises(InvalidParameter, match="was not released") as caught:
        graph.number_of("my secret")
    assert "secret" not in str(caught.value)


def test_repr_tells_sizes_alone():
    assert repr(made_graph()) == f"ClickGraph({len(SEARCHES)} queries, 7 URLs, 14 clicks, 5 reformulations)"


def test_counts_below_zero_are_clamped():
    counts = Counts.of([(10, 8.0, 12.0), (-3, -5.0, -1.0)])
    assert counts.clamped.tolist() == [10, 0]
    assert counts[np.array([1])].count.tolist() == [-3]


def test_columns_become_data_frames(monkeypatch: pytest.MonkeyPatch):
    library = SimpleNamespace(DataFrame=lambda columns: list(columns), table=lambda columns: list(columns))
    for name, convert in (("pandas", ClickGraph.to_pandas), ("pyarrow", ClickGraph.to_arrow)):
        monkeypatch.setitem(sys.modules, name, library)
        assert convert(made_graph(), "clicks") == ["query", "url", "count", "count_clamped", "estimate", "lo95", "hi95"]
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UsageError, match=f"{name} is not installed"):
            convert(made_graph(), "clicks")


ONE = Counts.of([(1, 0.0, 2.0)])


def edge(source: int, target: int, n: int = 1) -> Edges:
    return Edges(np.full(n, source), np.full(n, target), Counts.of([(1, 0.0, 2.0)] * n))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Counts.of([(1, 2.0, 0.0)]), "lower end"),
        (lambda: Counts.of([(1, 0.0, float("nan"))]), "lower end"),
        (lambda: Counts(np.array([1]), np.array([0.0]), np.array([])), "as many interval ends"),
        (lambda: Edges(np.array([0]), np.array([0, 1]), ONE), "one source, one target"),
        (lambda: ClickGraph(("a", "b"), (), ONE, Edges.none()), "searches: expected one count"),
        (lambda: ClickGraph(("a",), ("u", "u"), ONE, Edges.none()), "each URL once"),
        (lambda: ClickGraph(("a",), ("u",), ONE, edge(1, 0)), "clicks: expected the numbers"),
        (lambda: ClickGraph(("a",), ("u",), ONE, edge(0, 1)), "clicks: expected the numbers"),
        (lambda: ClickGraph(("a",), ("u",), ONE, edge(-1, 0)), "clicks: expected the numbers"),
        (lambda: ClickGraph(("a",), ("u",), ONE, edge(0, 0, 2)), "clicks: expected each edge once"),
        (lambda: ClickGraph(("a",), (), ONE, Edges.none(), edge(0, 1)), "reformulations: expected the numbers"),
        (lambda: ClickGraph.of({}, {("a", "u"): (1, 0.0, 2.0)}), "edges of released queries only"),
    ],
)
def test_what_is_no_graph_is_refused(make, problem: str):
    with pytest.raises(InvalidParameter, match=problem):
        make()


def test_arrays_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        made_graph().searches.count[0] = 5


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(0, 35))
def test_a_limited_ranking_is_the_start_of_the_whole_one(scores: list[int], limit: int):
    texts = [f"{(7 * i) % 31:02}" for i in range(len(scores))]
    whole = sorted(range(len(scores)), key=lambda i: (-scores[i], texts[i]))
    assert ranked(scores, texts) == whole
    assert ranked(scores, texts, limit) == whole[:limit]
