"""t and t_q as integer thresholds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from searchblend.blender.paper.report_probabilities import WORDS, ReportProbabilities
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList

FIFTY = HeadList((f"q{i}", ["u"] * (i > 0)) for i in range(50))


def of(head: HeadList, **params: float) -> ReportProbabilities:
    return ReportProbabilities.of(head, BlenderParams(Budget(4, 1e-5), **params))


def test_keep_query_at_the_defaults():
    """t = 0.3747 at k = 51, f_C = .85, ε = 4, δ = 1e-5."""
    assert of(FIFTY).keep_query == pytest.approx(0.3747, abs=5e-5)


def test_keep_url_at_the_defaults():
    probabilities = of(FIFTY)
    assert probabilities.keep_url[0] == 1
    assert probabilities.keep_url[1] == pytest.approx(0.6457, abs=5e-5)
    assert probabilities.keep_url[-1] == 1
    assert len(probabilities.keep_url) == probabilities.n_queries == 51


def test_thresholds_are_pinned():
    """Devices in other languages must find the same integers; these were worked out with 60 decimal digits."""
    probabilities = of(HeadList({"a": ["u"], "b": []}))
    keep_query = 17292532589720066454
    assert probabilities.keep_query_below == keep_query
    assert probabilities.keep_record_below == (11165037312792751674, keep_query, keep_query)


def test_a_list_of_the_wildcard_alone_always_tells_the_truth():
    probabilities = of(HeadList({}))
    assert probabilities.keep_query_below == WORDS
    assert probabilities.channel_row(0, 0) == [1]


def test_a_row_of_the_channel():
    probabilities = of(HeadList({"a": ["u", "v"], "b": []}))
    row = probabilities.channel_row(0, 1)
    keep, query = probabilities.keep_record_below[0], probabilities.keep_query_below
    other_url, other_query = Fraction(query - keep, 2 * WORDS), Fraction(WORDS - query, 2 * WORDS)
    assert row == [other_url, Fraction(keep, WORDS), other_url, other_query, other_query]
    assert sum(row) == 1


def test_the_whole_budget_on_queries_is_for_lists_without_urls():
    assert of(HeadList({"a": []}), query_budget_fraction=1.0).keep_url == (1, 1)
    with pytest.raises(InvalidParameter, match="query_budget_fraction"):
        of(HeadList({"a": ["u", "v"]}), query_budget_fraction=1.0)


def test_more_records_mean_less_truth():
    once, twice = of(FIFTY), of(FIFTY, records_per_client=2)
    assert twice.keep_query < once.keep_query
    assert twice.keep_query == pytest.approx(ReportProbabilities.of(FIFTY, BlenderParams(Budget(2, 5e-6))).keep_query)
