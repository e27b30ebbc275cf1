"""The coverage of the printed method's 95 % intervals, measured and printed (``pytest -s``), with sane bounds only."""

from __future__ import annotations

import pytest
from coverage_runs import measure_coverage

from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget

REPLICATES = 120


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_coverage_of_the_printed_intervals(epsilon: float):
    """5 % of 519,371 people opt in, M = 50, δ = 1e-5. Seeded."""
    rates = measure_coverage(BlenderParams(Budget(epsilon, 1e-5)), REPLICATES, seed=7)
    print(f"\nε = {epsilon:g}: share of 95 % intervals that hold the truth, {REPLICATES} runs")
    for (what, p), rate in sorted(rates.items()):
        print(f"  {what:32} p ≈ {p:6} {rate:.3f}")
    assert all(0.5 <= rate <= 1 for rate in rates.values())
    clients = {key: rate for key, rate in rates.items() if key[0].startswith("client")}
    assert {"client records", "client trends", "client ⋆"} <= {what for what, _ in clients}
    assert all(0.88 <= rate <= 1 for rate in clients.values())
    blended = {what for what, _ in rates if what.startswith("blended")}
    assert blended == {"blended records", "blended trends", "blended ⋆"}
