"""Fractional contributions pay: the same people, the same (ε, δ), a smaller error. SPEC §5, point 6."""

from __future__ import annotations

import numpy as np
import pytest
from best_many_records import Comparison, People, compare, counted

from searchblend.blender.best.observations import OptinCounts
from searchblend.blender.groups import InMemoryGroup
from searchblend.core.privacy import Budget
from searchblend_lab.evidence.laws import best_faults

REPLICATES = 12


def check_gain(comparison: Comparison) -> None:
    """Query L1 of the opt-in estimates at least a fifth lower than with one record per person."""
    print(f"L1 {comparison.one.mean():.4f} → {comparison.many.mean():.4f}, ratio {comparison.ratio:.3f}")
    assert comparison.ratio <= 0.8


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_many_records_lower_the_error(epsilon: float):
    """records_per_optin = 20, 3,000 opt-in users of 15,000; the truth is the mean of all people's own shares."""
    comparison = compare(Budget(epsilon, 1e-5), 20, REPLICATES, seed=1)
    check_gain(comparison)
    assert abs(comparison.bias.mean()) <= 0.02


@pytest.mark.parametrize("name", best_faults.SPREAD_WASTE)
def test_wasted_records_are_rejected(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(InMemoryGroup, "tally", best_faults.SPREAD_WASTE[name])
    with pytest.raises(AssertionError):
        check_gain(compare(Budget(4, 1e-5), 20, 4, seed=1))


def test_stated_variance_is_not_too_small():
    """The variance model counts one record per person, so with many it overstates: never the other way round."""
    errors, stated = [], []
    for seed in range(12):
        people = People.made(6000, seed)
        result = counted(people.group(seed).select(np.arange(2000)), Budget(4, 1e-5), 20, seed)
        source = OptinCounts.of(result)
        for i, query in enumerate(result.head.queries[:8]):
            cells = slice(result.head.first_cells()[i], result.head.first_cells()[i + 1])
            total = float(source.observed[cells].sum())
            errors.append((total - people.true_queries[int(query[1:])]) ** 2)
            stated.append(source.sampling * max(total, 0.0) + float(source.noise_variance[cells].sum()))
    assert np.mean(errors) <= np.mean(stated)
