"""Pairs of one person alone are published at the stated rate: URLs that only they clicked, rewrites only they typed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import pytest
from scipy.stats import binomtest

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.in_memory import InMemoryClickLog, Search
from searchblend.clickgraph.release.release_data import private_click_counts, typed_reformulations
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend_lab.evidence.laws.click_graph import FALSE_ALARM, passes_unseen, tail
from searchblend_lab.evidence.laws.click_graph_faults import delta_not_divided, noise_scaled, threshold_moved

N, OWN = 20_000, 3
HEAD = [f"head {i}" for i in range(170)]
ALGORITHMS = {"gaussian": {"algorithm": "gaussian"}, "kkmn2009": {"algorithm": "kkmn2009", "count_unit": "users"}}
MUTANTS = {
    "threshold one lower": threshold_moved(-1),
    "noise halved": noise_scaled(0.5),
    "noise of one count for two": noise_scaled(1 / math.sqrt(2)),
    "noise a quarter too wide": noise_scaled(1.25),
}
algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


def design(algorithm: str) -> ClickGraphDesign:
    params = ClickGraphParams(
        Budget(3.0, 0.2),
        max_queries_per_user=1,
        max_clicks_per_user=OWN,
        max_reformulations_per_user=1,
        urls="private",
        reformulations="typed",
        **ALGORITHMS[algorithm],
    )
    return ClickGraphDesign.of(params)


@pytest.fixture(scope="module")
def clicks() -> InMemoryClickLog:
    """Everybody searches the same, and clicks URLs that nobody else does."""
    return InMemoryClickLog([[Search("q", 0, tuple(f"{i}-{j}" for j in range(OWN)))] for i in range(N)])


@pytest.fixture(scope="module")
def rewrites() -> InMemoryClickLog:
    """Each ordered pair of 170 queries is typed by one user."""
    return InMemoryClickLog([[Search(one, 0), Search(other, 60)] for one, other in permutations(HEAD, 2)])


def click_rate(step: StepDesign) -> float:
    """How often one of somebody's own URLs is named."""
    return -math.expm1(OWN * math.log1p(-tail(step, step.threshold - 1)))


def rewrite_rate(step: StepDesign) -> float:
    return tail(step, step.threshold - 1)


def check_clicks(log: InMemoryClickLog, made: ClickGraphDesign, run_with: StepDesign) -> None:
    rate = click_rate(made.click_counts)
    assert rate <= made.click_counts.delta * (1 + 1e-9)
    named = private_click_counts(log, ["q"], run_with, made, randomness=SystemRandomness())
    users = {str(record.url).split("-")[0] for record in named}
    assert binomtest(len(users), N, rate).pvalue >= FALSE_ALARM


def check_rewrites(log: InMemoryClickLog, made: ClickGraphDesign, run_with: StepDesign) -> None:
    rate = rewrite_rate(made.reformulations)
    assert rate <= made.reformulations.delta * (1 + 1e-9)
    named = typed_reformulations(log, HEAD, run_with, randomness=SystemRandomness())
    assert binomtest(len(named), len(HEAD) * (len(HEAD) - 1), rate).pvalue >= FALSE_ALARM


@algorithms
def test_lone_clicks_are_named_at_the_stated_rate(algorithm, clicks):
    made = design(algorithm)
    check_clicks(clicks, made, made.click_counts)


@algorithms
@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_clicks_are_rejected(algorithm, mutant, clicks):
    made = design(algorithm)
    wrong = MUTANTS[mutant](made.click_counts)
    assert passes_unseen(N, click_rate(made.click_counts), click_rate(wrong)) < FALSE_ALARM
    with pytest.raises(AssertionError):
        check_clicks(clicks, made, wrong)


@algorithms
def test_a_threshold_for_one_click_of_many_is_rejected(algorithm, clicks):
    made = design(algorithm)
    with pytest.raises(AssertionError):
        check_clicks(clicks, made, delta_not_divided(made.click_counts, 0.05))


@algorithms
def test_lone_rewrites_are_named_at_the_stated_rate(algorithm, rewrites):
    made = design(algorithm)
    check_rewrites(rewrites, made, made.reformulations)


@algorithms
@pytest.mark.parametrize("mutant", MUTANTS)
def test_wrong_rewrites_are_rejected(algorithm, mutant, rewrites):
    made = design(algorithm)
    wrong = MUTANTS[mutant](made.reformulations)
    assert (
        passes_unseen(len(HEAD) * (len(HEAD) - 1), rewrite_rate(made.reformulations), rewrite_rate(wrong)) < FALSE_ALARM
    )
    with pytest.raises(AssertionError):
        check_rewrites(rewrites, made, wrong)


def test_the_budget_of_the_queries_is_not_taken_for_the_pairs(clicks):
    """Pairs that pass the selection's threshold with the selection's noise, as if they were queries."""
    made = design("gaussian")
    wrong = replace(made.rounds[0], cap=made.click_counts.cap)
    with pytest.raises(AssertionError):
        check_clicks(clicks, made, wrong)
