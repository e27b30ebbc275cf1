"""Scores against the true top M, by rank, and of one group alone, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scored_releases import HEAD, TRUTH, gain, released
from searchblend.blender.estimates import Estimates, GroupEstimates
from searchblend.synthetic.metrics import nested_ndcg
from searchblend_lab.papers.blender.top_scores import group_scores, ndcg_rank, ndcg_top, top_l1

SECOND, THIRD = 1 / math.log2(3), 1 / math.log2(4)
RIGHT = released(HEAD, [0.1, 0.3, 0.2, 0.2, 0.05, 0.15])
"""a .6, b .25: the right order, URLs of a in the right order too"""


def test_against_its_own_queries_the_top_is_the_list():
    assert ndcg_top(RIGHT, TRUTH, {"a": 0.6, "b": 0.25}) == pytest.approx(nested_ndcg(RIGHT, TRUTH))


def test_a_missing_query_costs():
    top = {"c": 0.7, "a": 0.6, "b": 0.25}
    total = 1.55
    ideal = gain(0.7 / total) + gain(0.6 / total) * SECOND + gain(0.25 / total) * THIRD
    got = gain(0.6 / total) + gain(0.25 / total) * SECOND
    assert ndcg_top(RIGHT, TRUTH, top) == pytest.approx(got / ideal)
    assert ndcg_top(RIGHT, TRUTH, top) < 0.75


def test_by_rank_alone_close_shares_do_not_help():
    """b before a although the shares hardly differ: relevances are 1 and 1/2 all the same."""
    swapped = released(HEAD, [0.1, 0.1, 0.0, 0.5, 0.1, 0.2])
    top = {"a": 0.3001, "b": 0.3}
    ideal = gain(1) + gain(0.5) * SECOND
    assert ndcg_rank(RIGHT, top) == pytest.approx(1)
    assert ndcg_rank(swapped, top) == pytest.approx((gain(0.5) + gain(1) * SECOND) / ideal)


def test_by_rank_a_query_outside_the_top_counts_nothing():
    assert ndcg_rank(RIGHT, {"c": 0.7, "a": 0.6}) == pytest.approx(gain(0.5) / (gain(1) + gain(0.5) * SECOND))


def test_l1_of_the_top_counts_missing_queries_in_full():
    assert top_l1(RIGHT, {"a": 0.5, "c": 0.2}) == pytest.approx(0.1 + 0.2)


def group(cells: list[float], queries: list[float]) -> GroupEstimates:
    zeros = np.zeros(len(cells)), np.zeros(len(queries))
    return GroupEstimates(9, Estimates(np.array(cells), zeros[0]), Estimates(np.array(queries), zeros[1]))


def test_a_group_is_scored_by_its_own_estimates_after_projection():
    exact = group([0.10, 0.30, 0.20, 0.20, 0.05, 0.15], [0.60, 0.25, 0.15])
    found = group_scores(HEAD, exact, TRUTH)
    assert found.query_l1 == pytest.approx(0)
    assert found.record_l1 == pytest.approx(0)
    assert found.ndcg == pytest.approx(1)
    # queries (.9, .35, .15) are projected to (.7666…, .2166…, .0166…)
    high = group([0.10, 0.30, 0.20, 0.20, 0.05, 0.15], [0.90, 0.35, 0.15])
    assert group_scores(HEAD, high, TRUTH).query_l1 == pytest.approx(0.9 - 0.4 / 3 - 0.6 + abs(0.35 - 0.4 / 3 - 0.25))


def test_a_group_that_was_not_asked_about_urls_has_no_ndcg():
    silent = group([np.nan, np.nan, np.nan, 0.2, 0.05, 0.15], [0.60, 0.25, 0.15])
    found = group_scores(HEAD, silent, TRUTH)
    assert found.ndcg is None
    assert found.query_l1 == pytest.approx(0)


def test_opt_in_users_say_nothing_about_unlisted_urls_and_are_scored_all_the_same():
    optin = group([0.30, 0.10, np.nan, 0.20, np.nan, 0.40], [0.40, 0.20, 0.40])
    found = group_scores(HEAD, optin, TRUTH)
    assert found.ndcg is not None
    assert found.ndcg < 1  # URL u before v, against the truth
