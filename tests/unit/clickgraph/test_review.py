"""What a reviewer is shown."""

from __future__ import annotations

import pytest

from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.review import ABANDONED, review
from searchblend.core.errors import InvalidParameter
from searchblend.core.suspects import Suspects


def graph() -> ClickGraph:
    return ClickGraph.of(
        {"weather": (1000, 990, 1010), "4111 1111 1111 1111": (50, 40, 60), "bad word here": (40, 30, 50)},
        {("weather", "http://sky.example"): (20, 10, 30), ("weather", "http://a:b@sky.example"): (5, 0, 10)},
    )


def test_what_looks_like_somebodys_own_is_shown_with_its_row():
    found = review(graph(), Suspects(["bad word"]))
    assert [(finding.table, finding.row, finding.reasons[0]) for finding in found] == [
        ("queries", 2, "card-number"),
        ("queries", 3, "listed-term"),
        ("clicks", 2, "credentials-in-url"),
    ]
    assert found[2].texts == ("weather", "http://a:b@sky.example")


def test_head_queries_without_clicks_are_shown_if_all_clicks_are_known():
    assert not [finding for finding in review(graph(), Suspects()) if ABANDONED in finding.reasons]
    found = [finding for finding in review(graph(), Suspects(), has_all_clicks=True) if ABANDONED in finding.reasons]
    assert ("weather",) in [finding.texts for finding in found]
    assert len(found) == 1, "a query that the table of URLs does not have is not abandoned"
    none = review(graph(), Suspects(), has_all_clicks=True, abandoned_below=0)
    assert not [finding for finding in none if ABANDONED in finding.reasons]


def test_misuse():
    with pytest.raises(InvalidParameter, match="abandoned_below"):
        review(graph(), Suspects(), abandoned_below=2)
