"""Bounds that must hold at any level: compared with tables, brute force and their own coverage."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from searchblend_lab.evidence.bounds import (
    bound_of_event,
    choose_event,
    epsilon_bound,
    fit,
    lower_bound,
    resolution,
    two_sided,
    upper_bound,
)


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (500, 1000)])
def test_clopper_pearson_inverts_the_binomial_tail(hits, trials):
    """At the lower end the chance of so many hits or more is exactly the level."""
    low, high = lower_bound(hits, trials, 0.01), upper_bound(hits, trials, 0.01)
    assert low <= hits / trials <= high
    if hits:
        assert tail(hits, trials, low) == pytest.approx(0.01, rel=1e-6)
    if hits < trials:
        assert 1 - tail(hits + 1, trials, high) == pytest.approx(0.01, rel=1e-6)


def tail(hits: int, trials: int, p: float) -> float:
    terms = (
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + (k * math.log(p) if k else 0)
            + ((trials - k) * math.log1p(-p) if trials - k else 0)
        )
        for k in range(hits, trials + 1)
    )
    return math.fsum(terms)


def test_the_resolution_is_about_the_logarithm_of_the_samples():
    """ln(n/14) at level 1e-6, as measured with other libraries."""
    assert resolution(100_000, 0.0, 1e-6) == pytest.approx(math.log(100_000 / 14), abs=0.05)
    assert resolution(1000, 0.05, 1e-6) < resolution(1000, 0.0, 1e-6)


def test_delta_is_taken_off_the_likely_side():
    assert epsilon_bound(100, 0, 1000, 0.2, 0.01) == -math.inf
    assert epsilon_bound(900, 10, 1000, 0.2, 0.01) < epsilon_bound(900, 10, 1000, 0.0, 0.01)


def test_two_sided_p_values():
    assert two_sided(5, 10, 0.5) == 1.0
    assert two_sided(0, 10, 0.5) == pytest.approx(2 / 1024)
    assert two_sided(10, 10, 0.5) == pytest.approx(2 / 1024)
    assert (two_sided(0, 5, 0.0), two_sided(1, 5, 0.0), two_sided(5, 5, 1.0), two_sided(4, 5, 1.0)) == (1, 0, 1, 0)


def test_fit_accepts_the_law_and_rejects_another():
    law = {0: 0.5, 1: 0.3, 2: 0.2}
    assert fit(Counter({0: 5010, 1: 2990, 2: 2000}), law) > 0.1
    assert fit(Counter({0: 5500, 1: 2500, 2: 2000}), law) < 1e-9
    assert fit(Counter({0: 5000, 1: 3000, 2: 2000, "x": 1}), law) == 0.0


def test_the_event_is_the_likelier_outputs_of_one_side():
    one, other = Counter({"a": 900, "b": 100}), Counter({"a": 100, "b": 900})
    event = choose_event(one, other, 0.0, 0.01)
    assert len(event.outputs) == 1
    assert bound_of_event(event, one, other, 0.0, 0.01) == pytest.approx(epsilon_bound(900, 100, 1000, 0.0, 0.01))
    equal = Counter({"a": 500, "b": 500})
    assert bound_of_event(choose_event(equal, equal, 0.0, 0.01), equal, equal, 0.0, 0.01) < 0.01
