"""Do the groups search alike? False alarms, power, and what a difference does to the blend.

5 % opt-in users, M = 50. A tilt of 0.3 multiplies the odds of opting in by exp(N(0, 0.3)), query by query.
"""

from __future__ import annotations

import numpy as np
import pytest
from best_runs import Coverage, disagreements, run_once

from searchblend.blender.best import trust
from searchblend_lab.evidence.laws import best_faults


def check_false_alarms(rate: float, at_most: float) -> None:
    assert rate <= at_most


def check_power(rate: float, at_least: float = 0.9) -> None:
    assert rate >= at_least


def test_false_alarms():
    """Nominal 5 %; 60 runs at ε = 4, of which 8 may be false (more have a chance of 1 in 200 at 5 %)."""
    check_false_alarms(disagreements(60, seed=5000), 8 / 60)


@pytest.mark.slow
def test_false_alarms_in_many_runs():
    rate = disagreements(400, seed=5000)
    print(f"false alarms: {rate:.4f} of 400 runs")
    check_false_alarms(rate, 0.07)


def test_power():
    check_power(disagreements(20, seed=9000, tilt=0.3))


@pytest.mark.slow
def test_power_in_many_runs():
    rate = disagreements(100, seed=9000, tilt=0.3)
    print(f"power at tilt 0.3: {rate:.3f} of 100 runs")
    check_power(rate)


@pytest.mark.parametrize("name", best_faults.ALARMING_CHECK)
def test_alarming_check_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_false_alarms(disagreements(30, seed=5000, instead=best_faults.ALARMING_CHECK[name]), 8 / 60)


@pytest.mark.parametrize("name", best_faults.BLIND_CHECK)
def test_blind_check_is_rejected(name: str):
    with pytest.raises(AssertionError):
        check_power(disagreements(12, seed=9000, tilt=0.3, instead=best_faults.BLIND_CHECK[name]))


def query_l1(tilt: float, seed: int) -> float:
    run = run_once(2.0, 0.05, 50, seed, tilt=tilt)
    return float(np.abs(run.release.queries.probability - run.true_queries)[:-1].sum())


def test_blend_leans_to_the_clients_when_the_groups_differ(monkeypatch: pytest.MonkeyPatch):
    """ε = 2, tilt 0.3: averaged over tilts the query L1 is at least a tenth lower than at none."""
    averaged = np.mean([query_l1(0.3, 700 + seed) for seed in range(12)])
    monkeypatch.setattr(trust, "prior", lambda: np.eye(len(trust.TILTS))[0] + 1e-300)
    assert averaged <= 0.9 * np.mean([query_l1(0.3, 700 + seed) for seed in range(12)])


def test_intervals_hold_where_the_groups_differ():
    """ε = 2, tilt 0.3: some 500 intervals of queries, of which 94 % should hold and 90 % must."""
    coverage = Coverage()
    for seed in range(20):
        coverage.add(run_once(2.0, 0.05, 50, 1700 + seed, tilt=0.3))
    assert coverage.rate("queries") >= 0.9


def test_agreeing_groups_are_left_alone():
    run = run_once(4.0, 0.05, 50, 5001)
    assert run.release.check is not None
    assert run.release.check.agrees
    assert not run.release.check.flagged
    assert run.release.check.divergence < 0.03
