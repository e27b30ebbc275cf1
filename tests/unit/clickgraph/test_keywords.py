"""Keywords of seeds: which URLs a seed stands for, and which queries come out."""

from __future__ import annotations

import pytest

from made_click_graph import made_graph
from searchblend.clickgraph.use.absorbing_walk import WalkSettings
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.keywords import compare_keywords, find_seeds, generate_keywords
from searchblend.core.errors import InvalidParameter, RunError


def graph_of(*urls: str) -> ClickGraph:
    return ClickGraph.of({"q": (5, 4.0, 6.0)}, {("q", url): (3, 2.0, 4.0) for url in urls})


@pytest.mark.parametrize(
    ("entry", "urls"),
    [
        ("shoes.example", {"http://shoes.example/a", "https://www.shoes.example", "http://shoes.example:8080/"}),
        ("SHOES.example.", {"http://shoes.example/a", "https://www.shoes.example", "http://shoes.example:8080/"}),
        ("www.shoes.example", {"https://www.shoes.example"}),
        ("shoes.example:8080", {"http://shoes.example:8080/"}),
        ("http://shoes.example/a", {"http://shoes.example/a"}),
        ("HTTP://Shoes.Example:80/a#top", {"http://shoes.example/a"}),
        ("http://shoes.example/b", set()),
        ("a page title", {"a page title"}),
        ("example", set()),
        ("oes.example", set()),
    ],
)
def test_what_a_seed_stands_for(entry: str, urls: set[str]):
    graph = graph_of(
        "http://shoes.example/a",
        "https://www.shoes.example",
        "http://shoes.example:8080/",
        "http://myshoes.example/",
        "http://other.example/?next=shoes.example",
        "a page title",
        "http://safe.example/",
    )
    found = find_seeds(graph, {"c": [entry, "safe.example"]})["c"]
    assert {graph.urls[i] for i in found[0]} == urls


def test_keywords_of_a_domain():
    found = generate_keywords(made_graph(), ["shoes.example"], threshold=0.5)
    queries = [word.query for word in found.keywords]
    assert queries == ["runing shoes", "trail shoes", "running shoes", "shoe sizes", "marathon"]
    relevances = [word.relevance for word in found.keywords]
    assert relevances == sorted(relevances, reverse=True)
    assert min(relevances) >= 0.5
    assert found.keywords[0].count == 110
    assert found.seed_urls == {"seed": 2}
    assert found.kept_edges == found.all_edges - 2
    assert found.error_bound is not None


def test_the_releases_cut_keeps_noise_out():
    with_noise = generate_keywords(made_graph(), ["sky.example"], threshold=0.01, cut=0)
    without = generate_keywords(made_graph(), ["sky.example"], threshold=0.01)
    assert "marathon" in {word.query for word in with_noise.keywords}
    assert {word.query for word in without.keywords} == {"weather", "weather radar"}


def test_classes_classify():
    found = generate_keywords(made_graph(), {"shoes": ["shoes.example"], "sky": ["sky.example"]}, threshold=0.6)
    classes = {word.query: word.seed_class for word in found.keywords}
    assert classes["running shoes"] == "shoes"
    assert classes["weather"] == "sky"


def test_unmatched_entries_are_counted():
    found = generate_keywords(made_graph(), ["shoes.example", "nowhere.example"])
    assert found.unmatched_seeds == 1


def test_a_class_without_a_seed_in_the_graph_is_an_error():
    with pytest.raises(InvalidParameter, match="class news: none of its 2 seeds is in the released graph"):
        generate_keywords(made_graph(), {"sky": ["sky.example"], "news": ["a.example", "http://b.example"]})


def test_a_url_in_two_classes_is_an_error():
    with pytest.raises(InvalidParameter, match="expected each URL in one class; 1 are in two or more"):
        generate_keywords(made_graph(), {"a": ["race.example"], "b": ["http://race.example/"]})


def test_a_seed_whose_edges_are_all_cut_has_no_path():
    with pytest.raises(RunError, match="nothing in the graph leads to the seeds"):
        generate_keywords(made_graph(), ["race.example"], cut=10_000)


@pytest.mark.parametrize("threshold", [0, 0.95])
def test_a_threshold_that_nothing_can_reach_is_an_error(threshold: float):
    with pytest.raises(InvalidParameter, match="threshold"):
        generate_keywords(made_graph(), ["sky.example"], threshold=threshold, settings=WalkSettings(alpha=0.1))


@pytest.mark.parametrize("seeds", [[], {}, {"a": []}])
def test_no_seeds_is_an_error(seeds):
    with pytest.raises(InvalidParameter, match="at least one seed"):
        generate_keywords(made_graph(), seeds)


def test_keywords_of_two_graphs_are_compared():
    original = generate_keywords(made_graph(), ["shoes.example"], threshold=0.5)
    sparse = generate_keywords(made_graph(), ["shoes.example"], threshold=0.5, cut=60)
    assert [word.query for word in sparse.keywords] == ["trail shoes", "running shoes"]
    low, high = compare_keywords(original, sparse, [0.5, 0.9975])
    assert (low.first, low.second, low.ratio, low.shared) == (5, 2, 0.4, 1.0)
    assert (high.first, high.second, high.ratio, high.shared) == (1, 2, 2.0, 0.0)
    assert compare_keywords(sparse, original, [0.5])[0].shared == 0.4
    nothing = compare_keywords(original, sparse, [1.0])[0]
    assert (nothing.first, nothing.second, nothing.ratio, nothing.shared) == (0, 0, None, None)
    with pytest.raises(InvalidParameter, match="thresholds"):
        compare_keywords(original, sparse, [0.4])
