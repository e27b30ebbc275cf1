"""The curator of method ``best``: its design, and what it lists."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from made_groups import Quiet, people

from searchblend.blender.best.stability_histogram import CuratorDesign, count_head_list, named_alone
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace

BUDGET = Budget(4, 1e-5)
PARAMS = BlenderParams(BUDGET, max_head_queries=3)
DESIGN = CuratorDesign.of(BUDGET)
WIDE = CuratorDesign.of(BUDGET, wide=True)
"""T = 7, clip 6, T_q = 8"""


def counted(counts: dict, params: BlenderParams = PARAMS, design: CuratorDesign = DESIGN):
    """Without noise: all random bits are ones."""
    return count_head_list(people(counts), params, design, randomness=Quiet())


@pytest.mark.parametrize("budget", [Budget(e, d) for e in (0.5, 1, 4, 8) for d in (1e-3, 1e-5, 1e-7)], ids=str)
def test_the_threshold_is_the_least_that_the_budget_allows(budget: Budget):
    design = CuratorDesign.of(budget)
    noise, threshold = design.threshold.noise, design.threshold.integer
    assert noise.rate == Fraction(budget.epsilon) / 2
    assert named_alone(noise, threshold) == design.selection_delta <= design.delta <= budget.delta
    assert threshold == 2 or named_alone(noise, threshold - 1) > budget.delta * (1 - 1e-9)


@pytest.mark.parametrize("budget", [Budget(e, 1e-5) for e in (1, 2, 4, 6)], ids=str)
def test_the_residual_has_at_least_85_percent_of_epsilon(budget: Budget):
    design = CuratorDesign.of(budget)
    left = 2 * float(design.residual_noise.rate)
    assert 0.85 * budget.epsilon * (1 - 1e-9) <= left < budget.epsilon
    assert 1 < design.clip < design.threshold.integer


@pytest.mark.parametrize("budget", [Budget(e, 1e-5) for e in (1, 2, 4, 6)], ids=str)
def test_the_wide_list_takes_what_is_left_of_delta(budget: Budget):
    design, wide = (CuratorDesign.of(budget, wide=w) for w in (False, True))
    assert design.wide_threshold is None
    assert wide.wide_threshold is not None
    assert wide.wide_threshold.noise is wide.residual_noise
    assert wide.threshold.integer == design.threshold.integer
    left = budget.delta - design.delta
    alone = named_alone(wide.residual_noise, wide.wide_threshold.integer)
    assert alone == pytest.approx(wide.selection_delta - design.selection_delta, rel=1e-6)
    assert alone <= left < named_alone(wide.residual_noise, wide.wide_threshold.integer - 1)


def test_the_sampler_is_paid_for_every_noise_a_person_can_touch():
    """The old and the new record and as many queries: 4 values, each off by η on both inputs."""
    needed = sampler_needs(BUDGET)
    assert needed <= CuratorDesign.of(BUDGET).sampler_delta <= 1.3 * needed


def sampler_needs(budget: Budget) -> float:
    design = CuratorDesign.of(budget)
    distance = max(design.threshold.noise.distance, design.residual_noise.distance)
    return 4 * (1 + np.exp(budget.epsilon)) * distance


def test_the_samplers_part_is_never_understated():
    """Tables of 35 and of 42 entries at ε = 2.49971."""
    for epsilon in (2.499709645351878, *np.geomspace(0.3, 20, 60).tolist()):
        budget = Budget(epsilon, 1e-3)
        assert CuratorDesign.of(budget).sampler_delta >= sampler_needs(budget) * (1 - 1e-12)


def test_a_delta_below_the_samplers_distance_is_refused():
    with pytest.raises(InvalidParameter, match="delta"):
        CuratorDesign.of(Budget(4, 1e-17))


def test_named_alone_of_one_record():
    noise = DiscreteLaplace(Fraction(2))
    a = np.exp(-2)
    assert named_alone(noise, 7) == pytest.approx(a**6 / (1 + a))


def test_records_of_seven_people_are_listed_with_their_counts():
    """⟨a,⋆⟩: six people of v and, clipped, three of w; a record of 8 people is listed and not clipped."""
    result = counted({("a", "u"): 7, ("a", "v"): 6, ("a", "w"): 3, ("b", "u"): 8, ("c", "u"): 6})
    assert result.head == HeadList({"a": ["u"], "b": ["u"]})
    assert result.counts.tolist() == [7, 9, 8, 0]
    assert result.n_users == 30


def test_queries_are_ordered_by_their_noisy_totals_and_urls_by_their_noisy_counts():
    result = counted({("b", "u"): 9, ("a", "u"): 9, ("z", "x"): 8, ("z", "y"): 12, ("a", "v"): 2})
    assert result.head.queries == ("z", "a", "b")
    assert result.head.urls("z") == ("y", "x")


def test_ties_are_broken_by_bytes():
    result = counted({("é", "u"): 9, ("z", "v"): 9, ("Z", "u"): 9, ("z", "u"): 9})
    assert result.head.queries == ("z", "Z", "é")
    assert result.head.urls("z") == ("u", "v")


def test_the_most_common_queries_stay():
    counts = {(f"q{i}", "u"): 10 + i for i in range(6)}
    assert counted(counts).head.queries == ("q5", "q4", "q3")


def test_the_order_of_the_input_does_not_matter():
    counts = {(f"q{i}", f"u{i % 3}"): 10 + i % 4 for i in range(20)}
    one, two = (counted(c) for c in (counts, dict(reversed(counts.items()))))
    assert one.head == two.head
    assert one.counts.tolist() == two.counts.tolist()


def test_the_wide_list_names_queries_whose_people_chose_different_urls():
    """⟨c,⋆⟩ with 9 people in three records is listed, ⟨d,⋆⟩ with 7 is not: T_q = 8 at ε = 4."""
    assert WIDE.wide_threshold is not None
    assert WIDE.wide_threshold.integer == 8
    counts = {("a", "u"): 20, **{("c", f"u{i}"): 3 for i in range(3)}, **{("d", f"u{i}"): 1 for i in range(7)}}
    result = counted(counts, design=WIDE)
    assert result.head == HeadList({"a": ["u"], "c": []})
    assert result.counts.tolist() == [20, 0, 9]
    assert counted(counts).head == HeadList({"a": ["u"]})


def test_one_url_alone_does_not_bring_a_query_to_the_wide_list():
    """Six people and the clip of 6: a single record just below T does not pass T_q."""
    assert counted({("c", "u"): 6, ("a", "u"): 9}, design=WIDE).head == HeadList({"a": ["u"]})


def test_logs_without_urls_have_no_residual():
    result = counted({"a": 9, "b": 7, "c": 6})
    assert result.head == HeadList({"a": [], "b": []})
    assert result.counts.tolist() == [9, 7]


def test_nothing_common_gives_an_empty_list():
    result = counted({("a", "u"): 3})
    assert len(result.head) == 0
    assert len(result.counts) == 0
