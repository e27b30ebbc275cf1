"""40,000 records of one person each through the shipped selection: the rate at which they are named is δ.

At budgets loose enough that it can be seen. Exact two-sided binomial tests with a false-alarm rate of 1e-6 each.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from searchblend.blender.paper.create_head_list import create_head_list, noisy_selection
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.mechanisms.threshold import Threshold, printed_threshold
from searchblend_lab.evidence.laws.sampled_graph import singles
from searchblend_lab.evidence.laws.selection import FixedNoise, check_boundary_rate, people_with

SETTINGS = [
    pytest.param(Fraction(1), 2, 0.269, Budget(2, 0.5), id="b=1,T=2"),
    pytest.param(Fraction(2), 3, 0.016, Budget(4, 0.05), id="b=0.5,T=3"),
    pytest.param(Fraction(1, 2), 4, 0.139, Budget(1, 0.29), id="b=2,T=4"),
]
settings = pytest.mark.parametrize(("rate", "integer", "about", "budget"), SETTINGS)


@settings
def test_single_persons_are_named_at_the_stated_rate(rate, integer, about, budget):
    """``create_head_list`` itself, at a budget whose τ gives the noise and threshold of the table of sampled laws."""
    threshold = printed_threshold(budget)
    assert (threshold.noise.rate, threshold.integer) == (rate, integer)
    assert threshold.single_person_rate == pytest.approx(about, rel=0.03)
    check_boundary_rate(
        lambda group: len(create_head_list(group, BlenderParams(budget))), singles(), threshold.single_person_rate
    )


@pytest.mark.parametrize(("count", "noise"), [(3, 3), (3, 4), (3, 5), (6, 0), (7, 0), (8, 0), (1, 5), (1, 6)])
def test_noisy_count_at_the_threshold_is_named(count: int, noise: int):
    """N + Y = T − 1 is not, T and T + 1 are, with T = 7."""
    threshold = Threshold(6.756, 7, FixedNoise(noise))
    named = noisy_selection(people_with([count]), threshold, randomness=SystemRandomness())
    assert len(named) == (1 if count + noise >= 7 else 0)
