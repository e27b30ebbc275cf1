"""Adaptive selection: its law for small cases against what it states, and whom it names of users who are alone."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binomtest

from searchblend.clickgraph.release.adaptive_selection import (
    PARTS,
    FirstRound,
    OwnQueries,
    reach_of_two_rounds,
    two_rounds,
)
from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import release_data, select_queries
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.mechanisms.gaussian_account import Reach, total_delta, weight
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.wire.click_graph_statement import statement_page

UNITS, SIGMA, THRESHOLD = 8, 16, 70
FIRST = FirstRound(RoundedGaussian(Fraction(SIGMA)), UNITS, lower=32, upper=85, carried=PARTS // 2)
FALSE_ALARM = 1e-7
LOOSE = Budget(2.0, 0.05)


def law(total):
    """P(total + Y = z) for z from −REACH on."""
    z = np.arange(-REACH, REACH + 1)
    return ndtr((z + 0.5 - total) / SIGMA) - ndtr((z - 0.5 - total) / SIGMA)


REACH = 220
Z = np.arange(-REACH, REACH + 1)
RUNNING = (FIRST.lower <= Z) & (FIRST.upper > Z)


def own_named(threshold, weight_now, first=FIRST):
    """P(named | Z₁ = z) of an own query in the running with this weight, by z."""
    missing = np.ceil(threshold - first.carried * Z / PARTS)
    return ndtr(-(missing - 0.5 - weight_now) / SIGMA)


@cache
def alone(s, threshold):
    """P(a user's s own queries, all there is of them, are not all kept silent), without any bound."""
    cells = law(weight(UNITS, s))
    dropped = cells[FIRST.lower > Z].sum()
    silent = 0.0
    for m in range(s + 1):
        quiet = (cells * RUNNING * (1 - own_named(threshold, weight(UNITS, m or 1)))).sum()
        silent += math.comb(s, m) * quiet**m * dropped ** (s - m)
    return 1 - silent


@pytest.mark.parametrize("cap", [1, 2, 5, 12])
def test_what_one_user_alone_has_is_named_at_most_as_often_as_stated(cap):
    own = OwnQueries(cap, FIRST, SIGMA, UNITS)
    for threshold in (55, 70, 85):
        exact = max(alone(s, threshold) for s in range(1, cap + 1))
        assert exact <= own.named(threshold) <= 1.25 * exact


def test_a_threshold_named_for_a_user_with_one_query_is_too_low_for_many():
    assert alone(12, THRESHOLD) > 1.25 * OwnQueries(1, FIRST, SIGMA, UNITS).named(THRESHOLD)


def joint(others, held, threshold, sigma=SIGMA):
    """The law of (Z₁, Z₂, own query named) of one query that others search too; ``held``: what the user searches.

    Z₁ and Z₂ of the shared query are all that a release could be made of, and more than any publishes. Others search
    nothing else.
    """
    shared, own = "shared" in held, "own" in held
    at_first = weight(UNITS, len(held)) if held else 0
    first = law(others * UNITS + shared * at_first)
    patterns = [(False, 1.0, None)]
    if own:
        mine = law(at_first)
        certain = mine[FIRST.upper <= Z].sum()
        active = (mine * RUNNING).sum()
        patterns = [(False, 1 - certain - active, 0.0), (False, certain, 1.0), (True, active, None)]
    silent, named = np.zeros((2, len(Z), len(Z)))
    for is_active, probability, fate in patterns:
        for runs in (False, True):
            with_shared = weight(UNITS, 1 + is_active) if shared else 0
            second = np.array(
                [(ndtr((z + 0.5) / sigma) - ndtr((z - 0.5) / sigma)) for z in Z - (others * UNITS + with_shared) * runs]
            )
            part = np.outer(first * (runs == RUNNING), second) * probability
            if own and is_active:
                now = weight(UNITS, 2 if shared and runs else 1)
                rate = (law(at_first) * RUNNING * own_named(threshold, now)).sum() / active
            else:
                rate = fate or 0.0
            silent += part * (1 - rate)
            named += part * rate
    return np.stack([silent, named])


def divergence(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def worst(epsilon, threshold, sigma=SIGMA):
    largest = 0.0
    for others in (0, 4, 6):
        for held in (("shared",), ("own",), ("shared", "own")):
            if not others and "shared" in held:
                continue  # then it is the user's own
            with_user, without = joint(others, held, threshold, sigma), joint(others, (), threshold, sigma)
            largest = max(largest, divergence(with_user, without, epsilon), divergence(without, with_user, epsilon))
    return largest


def stated(epsilon):
    named = OwnQueries(2, FIRST, SIGMA, UNITS).named(THRESHOLD)
    return total_delta(epsilon, reach_of_two_rounds(FIRST, UNITS, SIGMA, named))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_everything_that_the_curator_computes_is_as_private_as_stated(epsilon):
    assert worst(epsilon, THRESHOLD) <= stated(epsilon)


def test_little_is_wasted():
    assert worst(0.5, THRESHOLD) >= 0.5 * stated(0.5)
    assert worst(2.0, THRESHOLD) >= 0.3 * stated(2.0)


@pytest.mark.parametrize(("threshold", "sigma"), [(THRESHOLD - 2 * UNITS, SIGMA), (THRESHOLD, SIGMA / 2)])
def test_the_enumeration_rejects_a_lower_threshold_and_less_noise(threshold, sigma):
    assert max(worst(epsilon, threshold, sigma) / stated(epsilon) for epsilon in (0.5, 2.0)) > 1


def test_the_first_round_has_its_price():
    """As if only the second round's noise counted."""
    named = OwnQueries(2, FIRST, SIGMA, UNITS).named(THRESHOLD)
    forgotten = reach_of_two_rounds(replace(FIRST, units=0), UNITS, SIGMA, named)
    assert worst(0.5, THRESHOLD) > total_delta(0.5, forgotten)


CLICK_SIGMA, CLICK_THRESHOLD = 2.0, 6
ENDS = np.arange(-6, 8) + 0.5
PUBLISHED = (FIRST.upper <= Z)[:, None] | (
    RUNNING[:, None] & (FIRST.carried * Z[:, None] + PARTS * Z[None, :] >= PARTS * THRESHOLD)
)
"""whether the shared query is, by (Z₁, Z₂)"""


def clicks(total, sigma):
    """The law of a noisy count of clicks, those far out taken together."""
    return np.diff(ndtr((ENDS - total) / sigma), prepend=0, append=1)


def excess(p, q, first, second):
    """Σ (p·first − q·second)₊ over cells and a further, independent outcome, whose likelihood ratio is monotone."""
    order = np.argsort(first / second)[::-1]
    tops = [np.concatenate([[0], np.cumsum(one[order])]) for one in (first, second)]
    ratio = (second / first)[order]  # rising: the best outcomes for ``first`` come first
    kept = np.searchsorted(ratio, p / np.maximum(q, 1e-300))
    return float((p * tops[0][kept] - q * tops[1][kept]).sum())


def worst_with_clicks(epsilon, sigma=CLICK_SIGMA):
    """Both rounds, and then the clicks on the shared query, where it was published: the user clicked on what others
    click, whose count is published, and on something that no one else has, which is named or not."""
    alone = float(ndtr(-(CLICK_THRESHOLD - 1.5) / sigma))
    more, same = clicks(1, sigma), clicks(0, sigma)
    growth, largest = math.exp(epsilon), 0.0
    for others in (4, 7, 10):
        for held in (("shared",), ("shared", "own")):
            (silent, named), (without, _) = joint(others, held, THRESHOLD), joint(others, (), THRESHOLD)
            hidden = [law[~PUBLISHED] for law in (silent, without)]
            seen, gone = silent[PUBLISHED], without[PUBLISHED]
            appears = named.sum() + np.maximum(hidden[0] - growth * hidden[1], 0).sum() + alone * seen.sum()
            appears += excess((1 - alone) * seen, growth * gone, more, same)
            vanishes = np.maximum(hidden[1] - growth * hidden[0], 0).sum()
            vanishes += excess(gone, growth * (1 - alone) * seen, same, more)
            largest = max(largest, float(appears), float(vanishes))
    return largest


def stated_with_clicks(epsilon, sigma=CLICK_SIGMA):
    named = OwnQueries(2, FIRST, SIGMA, UNITS).named(THRESHOLD)
    alone = float(ndtr(-(CLICK_THRESHOLD - 1.5) / sigma))
    later = Reach.one(1 / sigma**2, math.log1p(-alone))
    return total_delta(epsilon, reach_of_two_rounds(FIRST, UNITS, SIGMA, named), later)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_a_later_step_that_knows_what_was_published_is_within_what_both_state(epsilon):
    assert worst_with_clicks(epsilon) <= stated_with_clicks(epsilon)


def test_the_enumeration_rejects_a_later_step_that_is_free_or_has_less_noise():
    assert worst_with_clicks(0.5) > stated(0.5)
    assert worst_with_clicks(0.5, CLICK_SIGMA / 2) > stated_with_clicks(0.5)


@cache
def shipped(**options):
    params = {"algorithm": "adaptive_gaussian", "max_queries_per_user": 4} | options
    return ClickGraphDesign.of(ClickGraphParams(LOOSE, **params))


def lone_rate(step, s):
    """P(a user with s queries that no one else has sees one of them published), from the step's own integers."""
    first, held = step.first_round, weight(step.first_round.units, s)
    z = np.arange(first.lower, first.upper)
    tails = ndtr(-(np.arange(first.lower, first.upper + 1) - 0.5 - held) / first.noise.scale)
    cells, dropped = tails[:-1] - tails[1:], 1 - tails[0]
    silent = 0.0
    for m in range(s + 1):
        missing = np.ceil(step.threshold - first.carried * z / PARTS)
        quiet = (cells * ndtr((missing - 0.5 - weight(step.units, m or 1)) / step.noise.scale)).sum()
        silent += math.comb(s, m) * quiet**m * dropped ** (s - m)
    return 1 - silent


def lone_users(n, s):
    return InMemoryClickLog([[Search(f"{i} {j}", float(j)) for j in range(s)] for i in range(n)])


@pytest.mark.thorough
@pytest.mark.parametrize("s", [1, 4])
def test_lone_users_are_named_at_the_rate_of_the_design(s):
    n, [step] = 20_000, shipped().rounds
    rate = lone_rate(step, s)
    assert rate <= step.delta <= LOOSE.delta
    chosen, _ = select_queries(lone_users(n, s), shipped(), randomness=SystemRandomness())
    named = len({query.split()[0] for query in chosen})
    assert binomtest(named, n, rate).pvalue > FALSE_ALARM
    lower = replace(step, threshold=step.threshold - step.units)
    assert binomtest(named, n, lone_rate(lower, s)).pvalue < FALSE_ALARM


@pytest.mark.thorough
def test_queries_that_nothing_speaks_for_take_no_weight_from_the_others():
    """Ten common queries among thirty of their own each: in one round all get 1/√40."""
    users = [[*(Search(f"c{j}") for j in range(10)), *(Search(f"{i} {j}", 1.0) for j in range(30))] for i in range(24)]
    named = {}
    for algorithm in ("weighted_gaussian", "adaptive_gaussian"):
        params = ClickGraphParams(Budget(2.0, 1e-3), algorithm=algorithm, max_queries_per_user=40)
        runs = [
            select_queries(InMemoryClickLog(users), ClickGraphDesign.of(params), randomness=SeededRandomness(seed))[0]
            for seed in range(3)
        ]
        named[algorithm] = sum(len(chosen) for chosen in runs)
        assert all(query.startswith("c") for chosen in runs for query in chosen)
    assert named["adaptive_gaussian"] > named["weighted_gaussian"]


def test_the_plan_says_how_likely_a_query_is_named():
    """As often as so many users who search nothing else see it named."""
    [step] = shipped().rounds
    users = 4
    log = InMemoryClickLog([[Search(f"q{i}")] for i in range(3000) for _ in range(users)])
    chosen, _ = select_queries(log, shipped(), randomness=SystemRandomness())
    probability = step.first_round.release_probability(users, step.units, step.noise, step.threshold)
    assert 0.1 < probability < 0.9
    assert binomtest(len(chosen), 3000, probability).pvalue > FALSE_ALARM
    assert binomtest(len(chosen), 3000, probability * 0.8).pvalue < FALSE_ALARM


@pytest.mark.parametrize("budget", [Budget(math.log(10), 1e-5), Budget(1.0, 1e-6), Budget(6.0, 1e-8)])
@pytest.mark.parametrize("cap", [1, 20])
def test_designs_stay_within_the_budget_and_say_both_rounds(budget, cap):
    design = ClickGraphDesign.of(
        ClickGraphParams(budget, algorithm="adaptive_gaussian", max_queries_per_user=cap, urls="private")
    )
    assert 0.8 * budget.delta <= design.delta <= budget.delta
    document = design.as_json()["steps"][0]["first_round"]
    assert set(document) == {"noise_scale", "units", "lower", "upper", "carried"}
    assert document["upper"] > document["lower"] > document["units"]


def test_the_statement_says_the_noise_of_both_rounds():
    log = InMemoryClickLog([[Search("q")]] * 400)
    release = release_data(log, shipped().params, randomness=SeededRandomness(1))
    page = " ".join(statement_page(release, created="now", options={}).split())
    first = release.design.rounds[0].first_round
    for figure in (f"scale {first.noise.scale:.4g}; below {first.lower} dropped", f"from {first.upper} on published"):
        assert f"{figure}" in page
    assert f"scale {release.design.rounds[0].noise.scale:.4g}" in page


def test_the_noise_of_the_first_round_is_that_of_its_share():
    first, sigma, units = two_rounds(20, 1.8, 1e-6)
    both = first.mu_squared + (units / float(sigma)) ** 2
    assert both == pytest.approx(1 / 1.8**2, rel=1e-2)
    assert both <= 1 / 1.8**2
