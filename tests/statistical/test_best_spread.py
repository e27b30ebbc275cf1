"""Several records of one person: exact law of the release, all replaced. proofs/fractional_contributions.md."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from searchblend.blender.best.stability_histogram import UNITS_WHEN_SPREAD, CuratorDesign, named_alone
from searchblend.blender.groups import InMemoryGroup, Spread
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend_lab.evidence.laws import best_faults
from searchblend_lab.evidence.laws.best_curator import (
    Curator,
    check_listing,
    check_moves,
    contributions,
    spread_moves,
    total_units,
)

CASES = [
    (Spread(2, 2), Budget(0.7, 1e-2)),
    (Spread(2, 2), Budget(4, 1e-4)),
    (Spread(2, 4), Budget(1, 1e-2)),
    (Spread(2, 4), Budget(2, 1e-3)),
    (Spread(2, 5), Budget(6, 1e-5)),
    (Spread(3, 6), Budget(1, 1e-2)),
    (Spread(3, 6), Budget(4, 1e-4)),
    (Spread(3, 7), Budget(2, 1e-3)),
]
SMALL = [(Spread(2, 2), Budget(1, 1e-2)), (Spread(3, 6), Budget(1, 1e-2))]


def ids(case: object) -> str:
    return f"{case.records}of{case.units}" if isinstance(case, Spread) else str(case)


def check_release(curator: Curator, spread: Spread, budget: Budget, stated: float, tally=InMemoryGroup.tally) -> float:
    """Counts of other people: absent, about to be clipped, about to be listed."""
    threshold = curator.design.threshold.integer
    others = sorted({0, min(max(curator.design.clip - 1, 1), threshold), threshold - 1})
    return check_moves(curator, spread_moves(contributions(spread, tally), others), budget.epsilon, stated)


@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize(("spread", "budget"), CASES, ids=ids)
def test_release_is_private(spread: Spread, budget: Budget, wide: bool):
    """Any rows of one person against any others; nearly all of the stated δ is needed."""
    design = CuratorDesign.of(budget, spread, wide=wide)
    assert design.delta <= budget.delta
    worst = check_release(Curator(design), spread, budget, design.delta)
    assert worst >= 0.9 * design.selection_delta


@pytest.mark.parametrize(("spread", "budget"), SMALL, ids=ids)
def test_listing_rule(spread: Spread, budget: Budget):
    design = CuratorDesign.of(budget, spread, wide=True)
    check_listing(Curator(design), design)


@pytest.mark.parametrize("name", best_faults.SPREAD_CURATOR)
@pytest.mark.parametrize(("spread", "budget"), SMALL, ids=ids)
def test_wrong_threshold_is_rejected(name: str, spread: Spread, budget: Budget):
    with pytest.raises(AssertionError):
        check_release(best_faults.SPREAD_CURATOR[name](budget, spread, False), spread, budget, budget.delta)


@pytest.mark.parametrize("name", ["curator: noise scale halved", "curator: residual not clipped"])
def test_wrong_curator_is_rejected(name: str):
    spread, budget = SMALL[0]
    with pytest.raises(AssertionError):
        check_release(best_faults.CURATOR[name](budget, spread, False), spread, budget, budget.delta)


@pytest.mark.parametrize("name", ["spread: every row counts in full", "spread: rows are not bounded"])
def test_unbounded_contributions_are_rejected_by_enumeration(name: str):
    spread, budget = SMALL[0]
    design = CuratorDesign.of(budget, spread)
    with pytest.raises(AssertionError):
        check_release(Curator(design), spread, budget, budget.delta, best_faults.TALLY[name])


SPREADS = [Spread(2, 2), Spread(2, 4), Spread(3, 6), Spread(3, 7), Spread(3, UNITS_WHEN_SPREAD)]


@pytest.mark.parametrize("spread", SPREADS, ids=ids)
def test_a_person_adds_at_most_the_units(spread: Spread):
    assert total_units(contributions(spread)) <= spread.units


@pytest.mark.parametrize("name", best_faults.TALLY)
def test_a_person_who_adds_more_is_found(name: str):
    assert total_units(contributions(Spread(3, 7), best_faults.TALLY[name])) > 7


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("spread", [Spread(1, 1), Spread(3, 6), Spread(4, 7), Spread(5, UNITS_WHEN_SPREAD)], ids=ids)
def test_named_alone_is_the_worst_over_all_rows(spread: Spread, epsilon: float):
    """``named_alone`` against every way to put up to m rows on records: never less than the exact probability."""
    noise = DiscreteLaplace(Fraction(epsilon) / (2 * spread.units))
    for threshold in (spread.units + 1, 3 * spread.units, 8 * spread.units):
        sums, exact = [], []
        for rows in range(1, spread.records + 1):
            for places in combinations_with_replacement(range(rows), rows):
                weights = np.bincount(places) * (spread.units // rows)
                rates = [noise.at_least(threshold - int(w)) for w in weights if w]
                sums.append(sum(rates))
                exact.append(-np.expm1(np.log1p([-rate for rate in rates]).sum()))
        assert named_alone(noise, threshold, spread) == pytest.approx(max(sums), rel=1e-12, abs=0)
        assert named_alone(noise, threshold, spread) >= max(exact) * (1 - 1e-12)


@pytest.mark.parametrize("records", [2, 5, 20])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 6.0])
def test_unit_steps_cost_what_they_may(records: int, epsilon: float):
    """With too many units to enumerate: each unit step of a count costs at most ε/(2·units), listed or not.

    U(N) = P(not listed), with the residual's e^{rate₂} where the clip lets the step through.
    """
    design = CuratorDesign.of(Budget(epsilon, 1e-5), Spread(records, UNITS_WHEN_SPREAD))
    threshold, per_unit = design.threshold, epsilon / (2 * UNITS_WHEN_SPREAD)
    counts = np.arange(1, threshold.integer + UNITS_WHEN_SPREAD)
    log_unlisted = np.array([_log_unlisted(per_unit, threshold.integer - n) for n in counts.tolist()])
    steps = log_unlisted[:-1] - log_unlisted[1:]
    through = counts[1:] <= design.clip
    assert (steps >= 0).all()
    assert (steps + through * float(design.residual_noise.rate)).max() <= per_unit * (1 + 1e-9)
    assert design.clip > threshold.integer / 2


@pytest.mark.parametrize("spread", [Spread(1, 1), Spread(3, 6), Spread(20, UNITS_WHEN_SPREAD)], ids=ids)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 6.0])
def test_designs_hold_with_sixty_digits(spread: Spread, epsilon: float):
    """The design is made in floating point with a slack of 1e-12; here anew with 60 digits, nothing rounded.

    G e^{rate₂} ≤ e^{ε/(2·units)}, and the chance of being named alone, with the sampler's, is within δ.
    """
    budget = Budget(epsilon, 1e-5)
    design = CuratorDesign.of(budget, spread)
    with localcontext(prec=60):
        per_unit = _decimal(Fraction(epsilon) / (2 * spread.units))
        a, threshold = (-per_unit).exp(), design.threshold.integer
        excess = threshold - 1 - design.clip
        growth = (1 - a ** (excess + 2) / (1 + a)) / (1 - a ** (excess + 1) / (1 + a))
        assert growth.ln() + _decimal(design.residual_noise.rate) <= per_unit
        alone = max(
            a ** (threshold - spread.units // rows * (rows - distinct + 1)) / (1 + a)
            + (distinct - 1) * a ** (threshold - spread.units // rows) / (1 + a)
            for rows in range(1, spread.records + 1)
            for distinct in range(1, rows + 1)
        )
        assert alone + Decimal(design.sampler_delta) <= Decimal(budget.delta)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


@pytest.mark.parametrize("budget", [Budget(0.5, 0.2), Budget(1, 0.3)], ids=str)
def test_no_condition_on_the_rate_of_single_persons_is_needed(budget: Budget):
    """A clip that the shipped design would not dare at so large a δ; the proof covers it all the same."""
    spread = Spread(2, 4)
    design = CuratorDesign.of(budget, spread)
    a, last = design.threshold.noise.decay, design.threshold.integer - 1
    for excess in (0, last // 2, last - 1):
        growth = (1 - a ** (excess + 2) / (1 + a)) / (1 - a ** (excess + 1) / (1 + a))
        left = Fraction((budget.epsilon / spread.units - 2 * np.log(growth)) * (1 - 1e-12))
        bent = replace(design, clip=last - excess, residual_noise=DiscreteLaplace(left / 2))
        check_release(Curator(bent), spread, budget, design.delta)


def _log_unlisted(rate: float, distance: int) -> float:
    """ln P(Y < distance) without cancellation."""
    a = np.exp(-rate)
    return float(
        np.log1p(-np.exp(-rate * distance) / (1 + a)) if distance > 0 else -rate * (1 - distance) - np.log1p(a)
    )


def test_rows_beyond_the_bound_are_drawn_without_favour():
    """Of five rows two are used: each row of the person equally often (binomial, six standard deviations)."""
    rows = [Record(f"q{i}", "u") for i in range(5)]
    group = InMemoryGroup.from_users([rows] * 4000)
    counts = np.array(list(_units(group, Spread(2, 2)).values()))
    assert counts.sum() == 8000
    assert np.abs(counts - 1600).max() <= 6 * np.sqrt(4000 * 0.4 * 0.6)


def _units(group: InMemoryGroup, spread: Spread) -> dict[Record, int]:
    tally = group.tally(spread)
    return {r: n for n, size in tally.sizes().items() for r in tally.pick(n, np.arange(size))}


def test_repeated_rows_of_a_person_count_as_often_as_they_occur():
    rows = [Record("a", "u")] * 3 + [Record("b", "u")]
    assert _units(InMemoryGroup.from_users([rows]), Spread(4, 8)) == {Record("a", "u"): 6, Record("b", "u"): 2}


def test_every_pair_of_people_was_enumerated():
    """The neighbours of the exact test: all pairs of contributions, beside all counts of others."""
    people = contributions(Spread(2, 2))
    moves = spread_moves(people, [0, 5])
    assert len(moves) == 2**4 * len(people) * (len(people) - 1) // 2
    assert len(list(product(people, people))) == 100
