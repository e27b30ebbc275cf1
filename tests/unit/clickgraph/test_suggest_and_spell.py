"""Suggestions and spelling: the release must be sure of them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_click_graph import LAPLACE, made_graph
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.similar import suggest
from searchblend.clickgraph.use.spell import SpellingRules, edit_distance, spelling_corrections
from searchblend.core.errors import InvalidParameter


def test_reformulations_come_first_and_similar_queries_fill_up():
    found = suggest(made_graph(), "Running Shoes", limit=4)
    assert [(s.query, s.source) for s in found] == [
        ("trail shoes", "reformulation"),
        ("marathon", "reformulation"),
        ("runing shoes", "similar clicks"),
        ("shoe sizes", "similar clicks"),
    ]
    half = LAPLACE.half_width()
    assert found[0].score == pytest.approx((80 - half) / 900, abs=1e-4)


def test_an_edge_that_noise_may_have_made_suggests_nothing():
    found = suggest(made_graph(), "weather", cut=0)
    assert [s.query for s in found if s.source == "reformulation"] == ["weather radar"]


def test_the_lower_end_ranks_not_the_count():
    rows = {"q": (100, 90.0, 110.0), "sure": (9, 8.0, 10.0), "unsure": (9, 8.0, 10.0)}
    graph = ClickGraph.of(rows, {}, {("q", "sure"): (20, 18.0, 22.0), ("q", "unsure"): (40, 2.0, 78.0)})
    assert [s.query for s in suggest(graph, "q")] == ["sure", "unsure"]
    assert suggest(graph, "q", limit=1)[0].score == pytest.approx(0.18)


def test_limits_are_checked():
    with pytest.raises(InvalidParameter, match="limit"):
        suggest(made_graph(), "weather", limit=0)


def test_a_misspelling_is_found():
    (found,) = spelling_corrections(made_graph())
    assert (found.query, found.correction, found.edits) == ("runing shoes", "running shoes", 1)
    assert found.share == pytest.approx((60 - LAPLACE.half_width()) / (110 + LAPLACE.half_width()), abs=1e-3)


@pytest.mark.parametrize(
    "rules",
    [
        SpellingRules(least_share=0.5),
        SpellingRules(largest_click_ratio=0.2),
        SpellingRules(least_count_ratio=9),
    ],
)
def test_every_condition_counts(rules: SpellingRules):
    assert spelling_corrections(made_graph(), rules) == []


def spelled(query: str, correction: str, *, width: float = 1.0) -> list[tuple[str, str]]:
    def row(n: int) -> tuple[int, float, float]:
        return n, n - width, n + width

    graph = ClickGraph.of(
        {query: row(100), correction: row(1000)},
        {(query, "u"): row(10), (correction, "u"): row(800)},
        {(query, correction): row(40)},
    )
    return [(c.query, c.correction) for c in spelling_corrections(graph)]


@pytest.mark.parametrize(
    ("query", "correction", "is_one"),
    [
        ("teh", "the", True),
        ("abcd", "abxy", False),
        ("wether", "weather", True),
        ("wetehr", "weather", True),
        ("wthr", "weather", False),
        ("cat videos", "dog videos", False),
    ],
)
def test_edits(query: str, correction: str, is_one: bool):
    assert bool(spelled(query, correction)) == is_one


def test_wide_intervals_make_no_correction():
    assert spelled("wether", "weather")
    assert not spelled("wether", "weather", width=35)


def test_wrong_rules_are_refused():
    with pytest.raises(InvalidParameter, match="least_share"):
        SpellingRules(least_share=0)


def by_search(first: str, longest: int) -> dict[str, int]:
    """Distances from a word to all words over a, b, c, edit by edit."""
    known, frontier = {first: 0}, [first]
    while frontier:
        following = []
        for word in frontier:
            for other in neighbours(word):
                if len(other) <= longest and other not in known:
                    known[other] = known[word] + 1
                    following.append(other)
        frontier = following
    return known


def neighbours(word: str) -> set[str]:
    found = {word[:i] + word[i + 1 :] for i in range(len(word))}
    found |= {word[:i] + letter + word[i:] for i in range(len(word) + 1) for letter in "abc"}
    found |= {word[:i] + letter + word[i + 1 :] for i in range(len(word)) for letter in "abc"}
    return found | {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}


@pytest.mark.parametrize("first", ["", "ca", "abca", "bbac"])
def test_edit_distance_is_the_shortest_way(first: str):
    known = by_search(first, 6)
    for length in range(5):
        for letters in product("abc", repeat=length):
            word = "".join(letters)
            assert edit_distance(first, word) == known[word]


@given(st.text(max_size=12), st.text(max_size=12))
def test_edit_distance_is_symmetric_and_bounded(first: str, second: str):
    distance = edit_distance(first, second)
    assert distance == edit_distance(second, first)
    assert abs(len(first) - len(second)) <= distance <= max(len(first), len(second))
    assert (distance == 0) == (first == second)
