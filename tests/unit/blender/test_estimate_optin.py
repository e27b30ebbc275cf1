"""Counts of the listed records, the best M queries, and what is dropped."""

from __future__ import annotations

import numpy as np
import pytest
from made_groups import Quiet, people

from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities, optin_variance
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList
from searchblend.mechanisms.threshold import noise_for_one_record

BUDGET = Budget(4, 1e-5)
CANDIDATES = HeadList({"a": ["u", "v"], "b": ["u"], "c": ["u"], "d": ["u"]})
GROUP = people(
    {("a", "u"): 10, ("a", "v"): 20, ("a", "x"): 5, ("b", "u"): 40, ("c", "u"): 8, ("d", "u"): 8, ("z", "u"): 9}
)


def estimate(max_head_queries: int = 50, group=GROUP, candidates: HeadList = CANDIDATES):
    params = BlenderParams(BUDGET, max_head_queries=max_head_queries)
    return estimate_optin_probabilities(group, candidates, params, randomness=Quiet())


def test_queries_and_urls_are_ordered_by_their_estimate_and_ties_by_bytes():
    head, _ = estimate()
    assert head.queries == ("b", "a", "c", "d")
    assert head.urls("a") == ("v", "u")


def test_shares_of_all_records():
    """By cell of the new list; an unlisted URL is ⟨⋆,⋆⟩ to opt-in users, and ⟨q,⋆⟩ has no estimate."""
    _, result = estimate()
    assert result.n == 100
    expected = [40, np.nan, 20, 10, np.nan, 8, np.nan, 8, np.nan, 14]
    np.testing.assert_allclose(result.records.probability, np.array(expected) / 100)
    np.testing.assert_allclose(result.queries.probability, np.array([40, 30, 8, 8, 14]) / 100)


@pytest.mark.parametrize(("m", "queries", "rest"), [(1, ("b",), 60), (2, ("b", "a"), 30), (3, ("b", "a", "c"), 22)])
def test_the_best_m_queries_stay_and_the_rest_becomes_the_wildcard(m: int, queries: tuple[str, ...], rest: int):
    head, result = estimate(m)
    assert head.queries == queries
    assert result.records.probability[-1] == pytest.approx(rest / 100)
    assert result.queries.probability[-1] == pytest.approx(rest / 100)
    assert result.queries.probability.sum() == pytest.approx(1)


def test_a_query_keeps_all_its_urls_and_is_chosen_by_their_sum():
    """a has two URLs of 25 each, b one of 40: a comes first."""
    group = people({("a", "u"): 25, ("a", "v"): 25, ("b", "u"): 40})
    head, _ = estimate(1, group)
    assert head == HeadList({"a": ["u", "v"]})


def test_logs_without_urls():
    candidates = HeadList({"a": [], "b": []})
    head, result = estimate(1, people({"a": 30, "b": 50, "z": 20}), candidates)
    assert head == HeadList({"b": []})
    np.testing.assert_allclose(result.records.probability, [0.5, 0.5])
    np.testing.assert_allclose(result.queries.probability, [0.5, 0.5])


def test_variances_are_those_of_the_formula():
    _, result = estimate(2)
    v = noise_for_one_record(BUDGET).variance
    expected = 0.4 * 0.6 / 99 + v / (100 * 99)
    assert result.records.variance[0] == pytest.approx(expected)
    assert result.queries.variance[0] == pytest.approx(expected)
    assert result.queries.variance[1] == pytest.approx(0.3 * 0.7 / 99 + v / 9900)
    assert result.records.variance[-1] == pytest.approx(0.3 * 0.7 / 99 + v / 9900)
    assert np.isnan(result.records.variance[1])


def test_noise_goes_to_every_listed_record_and_to_the_wildcard():
    """All bits clear: the largest noise, for 5 records and ⟨⋆,⋆⟩, and nothing more is drawn."""
    noise = noise_for_one_record(BUDGET)
    largest = max(noise.sampled_probabilities())
    source = Tape(b"\x00" * 8 * 6)
    _, result = estimate_optin_probabilities(GROUP, CANDIDATES, BlenderParams(BUDGET), randomness=source)
    assert source.left == 0
    assert np.nansum(result.records.probability) * 100 == pytest.approx(100 + 6 * largest)


def test_the_estimate_is_not_clamped_but_its_variance_is():
    v = noise_for_one_record(BUDGET).variance
    below, inside = optin_variance(np.array([-0.2, 0.2]), 10, v)
    assert below == pytest.approx(v / 90)
    assert inside == pytest.approx(0.2 * 0.8 / 9 + v / 90)
    negative = b"\x01" + b"\x00" * 7
    source = Tape(negative * 2)
    head = HeadList({"a": ["u"]})
    _, result = estimate_optin_probabilities(people({("z", "u"): 3}), head, BlenderParams(BUDGET), randomness=source)
    assert result.records.probability[0] < 0
    assert result.records.variance[0] > 0


@pytest.mark.parametrize("n", [0, 1])
def test_two_people_are_needed(n: int):
    with pytest.raises(InvalidParameter, match="at least 2"):
        estimate(group=people({("a", "u"): n}))


def test_more_than_one_record_per_user_is_refused():
    with pytest.raises(InvalidParameter, match="records_per_optin"):
        estimate_optin_probabilities(GROUP, CANDIDATES, BlenderParams(BUDGET, records_per_optin=2))
