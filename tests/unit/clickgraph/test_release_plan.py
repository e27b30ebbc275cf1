"""The plan of a release: the paper's figures, from parameters alone."""

from __future__ import annotations

import math

import pytest

from searchblend.clickgraph.release.design import ClickGraphDesign, least_count, probability, release_plan
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.synthetic.plan_plots import release_curve_figure


def plan(**options):
    budget = Budget(math.log(10), 1e-5)
    return release_plan(ClickGraphDesign.of(ClickGraphParams(budget=budget, **options)), selection_only=True)


@pytest.mark.parametrize(
    ("d", "threshold", "scale"),
    [
        (1, 5.70, 0.43), (5, 31.99, 2.17), (10, 66.99, 4.34), (20, 140.0, 8.69), (40, 292.04, 17.37),
        (80, 608.16, 34.74), (160, 1264.49, 69.49),
    ],
)  # fmt: skip
def test_table_1(d, threshold, scale):
    found = plan(algorithm="kkmn2009", query_noise="reuse", max_queries_per_user=d)
    assert found["threshold"] == pytest.approx(threshold, abs=0.005)
    assert found["select_scale"] == pytest.approx(scale, abs=0.005)
    assert found["delta"] == pytest.approx(1e-5, rel=1e-6)
    assert found["mechanism_delta"] <= 1e-5


def test_the_default_needs_far_fewer():
    assert plan()["threshold"] <= 42
    assert plan(algorithm="weighted_gaussian")["threshold"] < 14
    assert plan()["accounts_to_force"] > 40


def test_quantiles_and_curve_agree_with_the_mechanism():
    step = ClickGraphDesign.of(ClickGraphParams(budget=Budget(math.log(10), 1e-5))).rounds[-1]
    for share in (0.01, 0.5, 0.99):
        n = least_count(step, share)
        assert probability(step, n) >= share > probability(step, n - 1)
    document = plan()
    rising = [point["probability"] for point in document["curve"]]
    assert rising == sorted(rising)
    assert rising[0] < 1e-3
    assert rising[-1] > 0.999
    assert release_curve_figure(document).axes[0].get_xlabel().endswith("(users)")
