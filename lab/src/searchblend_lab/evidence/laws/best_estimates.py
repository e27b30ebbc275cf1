"""Do the estimates of method ``best`` undo what the devices do, and do their variances tell the truth?

Estimates are linear in the reports, so one report at a time gives the exact mean and the exact variance. Simulations
are seeded, so that bounds such as 3 % need no false-alarm rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.subset_report import SetMechanism
from searchblend.blender.best.subset_report_bulk import SubsetCounts, simulate_subsets
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.evidence.laws.best_reports import naming_rates, row_of_law

MAX_Z = 6.0
MakeLaw = Callable[[SetMechanism], SetLaw]


def expected_counts(mechanism: SetMechanism, shares: np.ndarray, n: float) -> SubsetCounts:
    """What reports of n people show on average, from the exact law of the sets; ``shares`` of items, the rest is ⋆."""
    rates = np.array([naming_rates(mechanism, holder) for holder in [*range(mechanism.n_items), None]])
    everyone = np.append(shares, 1 - shares.sum())
    *items, sinks = n * (everyone @ rates)
    return SubsetCounts(np.array(items), sinks, n)  # type: ignore[arg-type]


def check_unbiased(make: MakeLaw, mechanism: SetMechanism, shares: np.ndarray) -> None:
    """Expected counts give back the truth."""
    estimate = make(mechanism).estimate(expected_counts(mechanism, shares, 1e6))
    np.testing.assert_allclose(estimate, shares, atol=1e-12, rtol=1e-9)


def check_variance(make: MakeLaw, mechanism: SetMechanism, shares: np.ndarray) -> None:
    """n·Var of every item's estimate, people given: all reports of all holders enumerated."""
    law = make(mechanism)
    exact = np.zeros(mechanism.n_items)
    for holder, share in zip([*range(mechanism.n_items), None], [*shares, 1 - shares.sum()], strict=True):
        row = row_of_law(mechanism, holder)
        probability = np.array([float(p) for p in row.values()])
        moves = np.array([law.estimate(_one_report(mechanism, items)) for items in row])
        exact += share * (probability @ moves**2 - (probability @ moves) ** 2)
    np.testing.assert_allclose(law.noise(shares, float(shares.sum())), exact, rtol=1e-9)


def check_covariance(make: MakeLaw, mechanism: SetMechanism, shares: np.ndarray) -> None:
    """n·Cov of all items' estimates: what everyone holds and all their reports enumerated."""
    law = make(mechanism)
    mean, square = np.zeros(len(shares)), np.zeros((len(shares), len(shares)))
    for holder, share in zip([*range(mechanism.n_items), None], [*shares, 1 - shares.sum()], strict=True):
        for items, probability in row_of_law(mechanism, holder).items():
            moved = law.estimate(_one_report(mechanism, items))
            mean += share * float(probability) * moved
            square += share * float(probability) * np.outer(moved, moved)
    own, strength = law.covariance(shares, float(shares.sum()))
    columns = np.stack([np.ones_like(shares), shares], axis=1)
    exact = square - np.outer(mean, mean)
    np.testing.assert_allclose(np.diag(own) + columns @ strength @ columns.T, exact, atol=1e-9 * np.abs(exact).max())


def _one_report(mechanism: SetMechanism, items: Any) -> SubsetCounts:
    named = np.zeros(mechanism.n_items + 1, dtype=np.int64)
    named[list(items)] = 1
    return SubsetCounts(named[: mechanism.n_items], int(not items), 1)


def check_simulated_estimates(
    make: MakeLaw, mechanism: SetMechanism, holders: np.ndarray, runs: int, seed: int
) -> None:
    """Mean within 6 standard errors; variance within 3 % for the items of one share, taken together."""
    law, source, n = make(mechanism), SeededRandomness(seed), int(holders.sum())
    estimates = np.array([law.estimate(simulate_subsets(holders, mechanism, source)) for _ in range(runs)])
    shares = holders[:-1] / n
    z = (estimates.mean(axis=0) - shares) / (estimates.std(axis=0, ddof=1) / np.sqrt(runs))
    assert np.abs(z).max() <= MAX_Z, z
    stated = law.noise(shares, float(shares.sum())) / n
    for share in np.unique(shares):
        same = shares == share
        if same.sum() >= 8:
            ratio = estimates[:, same].var(axis=0, ddof=1).mean() / stated[same].mean()
            assert abs(ratio - 1) <= 0.03, (share, ratio)
