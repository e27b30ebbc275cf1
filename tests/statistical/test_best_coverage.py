"""95 % intervals of method ``best``: how often they hold the shares of all people, pooled over a grid of AOL-like runs.

ε = 1, 2, 4, 6 × 1 % and 5 % opt-in users × M = 10 and 50. One record of each person is used, so how unlike people
are is not known and an interval must hold for both extremes: exactly where all search alike, and at least as often
where each person has one record only ("drawn"). ⟨q,⋆⟩ is hardly bounded: what the clip takes away from it
is not in its interval (proofs/stability_histogram.md).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from best_runs import GRID, Coverage, Run, coverage_over, of_grid


def check_coverage(coverage: Coverage, low: float, high: float, records: float) -> None:
    assert low <= coverage.rate("queries") <= high
    assert records <= coverage.rate("records") <= high
    assert coverage.rate("⟨q,⋆⟩") >= 0.85
    assert coverage.rate("⋆") >= 0.85
    assert coverage.rate("queries drawn") >= low
    assert coverage.rate("records drawn") >= records


def shown(coverage: Coverage) -> str:
    return ", ".join(f"{kind} {coverage.rate(kind):.4f} of {n}" for kind, n in coverage.counted.items())


def test_coverage():
    """Some 1,400 query intervals: 0.6 % standard error, so the bounds are 92-97.5 %."""
    coverage = coverage_over(6, seed=11)
    print(shown(coverage))
    check_coverage(coverage, 0.92, 0.975, 0.92)


@pytest.mark.slow
def test_coverage_of_many_runs():
    coverage = coverage_over(60, seed=50_000)
    print(shown(coverage))
    check_coverage(coverage, 0.93, 0.97, 0.92)


def _narrower(run: Run, factor: float) -> Run:
    release = run.release
    queries, records = (
        replace(part, raw=replace(part.raw, variance=part.raw.variance * factor))
        for part in (release.queries, release.records)
    )
    return replace(run, release=replace(release, queries=queries, records=records))


@pytest.mark.parametrize("factor", [0.64, 1.7])
def test_wrong_variances_are_rejected(factor: float):
    """Standard errors a fifth too small, or three tenths too large."""
    coverage = Coverage()
    for number, (epsilon, share, max_queries) in enumerate(GRID):
        for replicate in range(3):
            run = of_grid(epsilon, share, max_queries, 11 + 1000 * number + replicate)
            coverage.add(_narrower(run, factor))
    with pytest.raises(AssertionError):
        check_coverage(coverage, 0.92, 0.975, 0.92)
