"""Runs of the click graph's experiments, small."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from searchblend_lab.papers.cells import Cell, Results
from searchblend_lab.papers.clickgraph import table1
from searchblend_lab.papers.clickgraph.cells import SPAN_LIMITS, _span_counts, fear_queries
from searchblend_lab.papers.clickgraph.published import DELTA, EPSILON
from searchblend_lab.papers.experiment import Agreement, Request

BUDGET = {"epsilon": EPSILON, "delta": DELTA}


def selection(**changes) -> dict:
    settings = {"method": "paper", "users": 20_000, "vocabulary": 50_000, "searches": 20, **BUDGET} | changes
    return Cell.of("kkmn-selection", 0, **settings).compute(1)


def test_more_budget_publishes_more_and_all_of_it_is_in_the_log():
    little, much = selection(epsilon=math.log(2)), selection()
    assert 0 < little["published"] < much["published"] < much["distinct"]
    assert much["published_impressions"] <= much["volume"] <= much["impressions"]


def test_best_publishes_more_than_the_paper():
    assert selection(method="best")["published"] > 1.5 * selection()["published"]


def test_a_longer_log_has_more_of_everything():
    day, week = (
        Cell.of("kkmn-span", 0, days=days, users=3000, vocabulary=20_000, **BUDGET).compute(1) for days in (1, 7)
    )
    assert week["impressions"] > 4 * day["impressions"]
    assert week["published_20"] > day["published_20"]
    assert week["published_impressions_1"] < week["published_impressions_20"]


def test_limits_only_take_away():
    counts, total = _span_counts(3, 2000, 500, np.random.default_rng(1))
    sums = [int(counted.sum()) for counted in counts]
    assert sums == sorted(sums)
    assert sums[-1] <= total
    assert all(np.all(a <= b) for a, b in pairwise(counts))
    assert len(counts) == len(SPAN_LIMITS)


@pytest.mark.parametrize("method", ["paper", "best"])
def test_the_study_ranks_the_clear_cases_right(method):
    found = Cell.of("kkmn-study", 0, method=method, searches=21, **BUDGET).compute(1)
    assert found["released"][:2] == found["original"][:2] == ["Flying", "Heights"]
    assert "Clowns" not in found["released"]
    assert found["overlap"] >= 8 / 9


def test_every_query_of_the_study_is_searched():
    records, means = fear_queries()
    assert len(records) == len(set(records)) == len(means)
    assert means.min() > 0


def test_keywords_of_the_release_are_fewer_and_mostly_the_same():
    settings = {"queries": 40_000, "method": "paper", "searches": 21, "click_noise": 0.43, **BUDGET}
    found = Cell.of("kkmn-keywords", 0, **settings).compute(1)
    assert 0 < found["colleges_0.5_released"] < found["colleges_0.5_original"]
    assert found["colleges_0.5_original"] >= found["colleges_0.95_original"]
    assert found["colleges_0.5_shared"] > 0.7
    assert 0 < found["queries_kept"] < found["edges_kept"] < 1


def test_table_1_to_two_decimals():
    outcome = table1.EXPERIMENT.conclude(Request(), Results({}))
    assert {finding.agreement for finding in outcome.findings} == {Agreement.AGREES}
    assert all(
        round(row["threshold"], 2) == pytest.approx(row["published_threshold"], abs=0.011) for row in outcome.rows
    )
