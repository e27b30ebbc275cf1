"""Scores worked out by hand. [BLJ] §4.1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scored_releases import HEAD, TRUTH, gain, released
from searchblend.core.records import HeadList
from searchblend.synthetic.metrics import Metrics, Truth, listed_cells, ndcg, nested_ndcg, score

SECOND = 1 / math.log2(3)
"""The discount of the second place."""


def test_two_items_in_the_right_and_the_wrong_order():
    """Shares .6 and .2: relevances .75 and .25."""
    right = gain(0.75) + gain(0.25) * SECOND
    wrong = gain(0.25) + gain(0.75) * SECOND
    assert ndcg(np.array([0.6, 0.2])) == pytest.approx(1)
    assert ndcg(np.array([0.2, 0.6])) == pytest.approx(wrong / right)
    assert ndcg(np.array([0.2, 0.6])) == pytest.approx(0.77308, abs=1e-5)


def test_factors_multiply_gains_and_not_the_ideal():
    right = gain(0.75) + gain(0.25) * SECOND
    halved = gain(0.75) / 2 + gain(0.25) * SECOND
    assert ndcg(np.array([0.6, 0.2]), np.array([0.5, 1.0])) == pytest.approx(halved / right)


@pytest.mark.parametrize("shares", [[], [0.3], [0.0, 0.0], [0.0]])
def test_what_cannot_be_ranked_is_perfect(shares: list[float]):
    assert ndcg(np.array(shares)) == 1


def test_one_query_with_badly_ranked_urls_is_not_perfect():
    assert ndcg(np.array([0.3]), np.array([0.5])) == pytest.approx(0.5)


def test_truth_counts_every_url_of_a_query():
    np.testing.assert_allclose(TRUTH.cells, [0.10, 0.30, 0.20, 0.20, 0.05, 0.15])
    np.testing.assert_allclose(TRUTH.queries, [0.60, 0.25, 0.15])


def test_nested_score_by_hand():
    """b is ranked before a, and a's URLs are the wrong way round."""
    release = released(HEAD, [0.25, 0.05, 0.0, 0.5, 0.1, 0.1])
    rel_a, rel_b = 0.60 / 0.85, 0.25 / 0.85
    urls = (gain(0.25) + gain(0.75) * SECOND) / (gain(0.75) + gain(0.25) * SECOND)
    expected = (gain(rel_b) + gain(rel_a) * SECOND * urls) / (gain(rel_a) + gain(rel_b) * SECOND)
    assert nested_ndcg(release, TRUTH) == pytest.approx(expected)


def test_a_perfect_release():
    assert score(released(HEAD, list(TRUTH.cells)), TRUTH) == Metrics(
        query_l1=pytest.approx(0, abs=1e-12), record_l1=pytest.approx(0, abs=1e-12), ndcg=pytest.approx(1)
    )


def test_l1_leaves_the_wildcard_out():
    """⟨q,⋆⟩ and ⟨⋆,⋆⟩ may be as wrong as they like; a query's share does count its ⟨q,⋆⟩."""
    release = released(HEAD, [0.15, 0.35, 0.0, 0.20, 0.05, 0.25])
    metrics = score(release, TRUTH)
    assert metrics.record_l1 == pytest.approx(0.05 + 0.05)
    assert metrics.query_l1 == pytest.approx(0.10)


def test_ties_are_broken_by_bytes():
    """Equal probabilities: "B" comes before "a", whatever the list's order; likewise URLs."""
    head = HeadList({"a": ["v", "U"], "B": []})
    release = released(head, [0.2, 0.2, 0.0, 0.4, 0.2])
    assert [head.queries[i] for i in release.ranked_queries()] == ["B", "a"]
    assert [head.urls("a")[i] for i in release.ranked_urls(0)] == ["U", "v"]
    truth = Truth.of(head, np.array([10, 40, 0, 20, 30]))
    rel_a, rel_b = 50 / 70, 20 / 70
    assert nested_ndcg(release, truth) == pytest.approx(
        (gain(rel_b) + gain(rel_a) * SECOND) / (gain(rel_a) + gain(rel_b) * SECOND)
    )


def test_lists_without_urls_score_their_queries():
    head = HeadList({"a": [], "b": []})
    truth = Truth.of(head, np.array([60, 20, 20]))
    metrics = score(released(head, [0.1, 0.5, 0.4]), truth)
    assert metrics.query_l1 == metrics.record_l1 == pytest.approx(0.5 + 0.3)
    assert metrics.ndcg == pytest.approx(0.77308, abs=1e-5)
    assert listed_cells(head).tolist() == [0, 1]
    assert listed_cells(HEAD).tolist() == [0, 1, 3]


def test_an_empty_list_has_no_scores():
    head = HeadList({})
    assert score(released(head, [1.0]), Truth.of(head, np.array([5]))) == Metrics(None, None, None)
