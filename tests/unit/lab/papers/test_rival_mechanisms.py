"""The mechanisms that ours is compared with promise what their pages say, and are drawn from their own law."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from searchblend.core.privacy import Budget
from searchblend_lab.papers.comparisons.rival_cells import KNOWN, RIVALS, compute, crowd
from searchblend_lab.papers.comparisons.rival_mechanisms import (
    LocalOracle,
    SampledThreshold,
    TrieHH,
    add_remove_threshold,
    detected,
    halves,
)

BUDGETS = [Budget(1.0, 1e-8), Budget(4.0, 1e-5)]
SIGMAS = 5.5
"""of a normal law: a false alarm below 1e-7; the draws are seeded besides"""


def divergence(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The least δ at which the first law is within e^ε of the second."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


def published_count(n: int, mechanism: SampledThreshold) -> np.ndarray:
    """The whole law of one query's line: nothing, or a count from K on."""
    law = binom.pmf(np.arange(200), n, mechanism.p)
    law[0] = law[: mechanism.k].sum()
    law[1 : mechanism.k] = 0
    return law


def test_the_deployed_parameters_are_those_of_the_formulas():
    deployed = SampledThreshold.deployed(BUDGETS[0])
    assert round(deployed.p, 3) == 0.105
    assert deployed.k == 20


@pytest.mark.parametrize("mechanism", [SampledThreshold(0.3, 3), SampledThreshold(0.105, 20), SampledThreshold(0.5, 9)])
def test_the_delta_of_sampling_is_that_of_its_enumerated_law(mechanism):
    epsilon = 1.0
    laws = [published_count(n, mechanism) for n in range(120)]
    pairs = list(pairwise(laws))
    more = max(divergence(following, law, epsilon) for law, following in pairs)
    fewer = max(divergence(law, following, epsilon) for law, following in pairs)
    assert mechanism.exact_delta(epsilon) == pytest.approx(max(more, fewer), rel=1e-6)
    assert fewer < 1e-15, "who leaves is hidden by e^ε alone"


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_tuned_threshold_holds_the_budget_and_one_less_does_not(budget):
    tuned = SampledThreshold.tuned(budget)
    assert tuned.p <= 1 - math.exp(-budget.epsilon)
    assert tuned.exact_delta(budget.epsilon) <= budget.delta
    assert SampledThreshold(tuned.p, tuned.k - 1).exact_delta(budget.epsilon) > budget.delta
    assert SampledThreshold.deployed(budget).exact_delta(budget.epsilon) <= budget.delta
    half = halves(budget)
    assert 2 * half.epsilon == budget.epsilon
    assert half.delta * (1 + math.exp(half.epsilon)) == pytest.approx(budget.delta)


def test_sampling_publishes_by_its_law():
    mechanism, n, draws = SampledThreshold(0.3, 5), 14, 40_000
    named, counts = mechanism.release(np.full(draws, n), np.random.default_rng(1))
    expected = binom.sf(4, n, 0.3)
    assert abs(len(named) / draws - expected) < SIGMAS * math.sqrt(expected / draws)
    conditional = (np.arange(5, n + 1) * binom.pmf(np.arange(5, n + 1), n, 0.3)).sum() / expected / 0.3
    assert counts.mean() == pytest.approx(conditional, rel=0.02)


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_central_threshold_under_add_or_remove_is_the_least(budget):
    """All outputs of the counts 0 to 4, both ways; count 0 is never named."""
    threshold = add_remove_threshold(budget)
    noise, span = threshold.noise, threshold.integer + 60

    def law(count: int, least: int) -> np.ndarray:
        if not count:
            return np.eye(1, span + 1)[0]
        at_least = np.array([noise.at_least(value - count) for value in range(least, least + span + 1)])
        return np.concatenate([[1 - at_least[0]], at_least[:-1] - at_least[1:]])

    def worst(least: int) -> float:
        pairs = [(law(count, least), law(count + 1, least)) for count in range(5)]
        return max(max(divergence(a, b, budget.epsilon), divergence(b, a, budget.epsilon)) for a, b in pairs)

    assert worst(threshold.integer) <= budget.delta * (1 + 1e-9)
    assert worst(threshold.integer - 1) > budget.delta


@pytest.mark.parametrize(("budget", "theta"), list(zip(BUDGETS, (12, 9), strict=True)))
def test_triehh_has_the_published_parameters_and_an_exact_delta_below_them(budget, theta):
    trie = TrieHH.of(budget, 20)
    assert trie.theta == theta
    assert trie.q == pytest.approx((1 - math.exp(-budget.epsilon / 20)) / theta)
    level = budget.epsilon / 20
    added = binom.sf(theta - 1, np.arange(5000), trie.q)
    both = [np.stack([added, 1 - added], axis=1)[i : 4999 + i] for i in (0, 1)]
    found = max(divergence(both[i][n], both[1 - i][n], level) for n in range(0, 4999, 7) for i in (0, 1))
    everywhere = max(divergence(both[i][n], both[1 - i][n], level) for n in range(theta - 1, 300) for i in (0, 1))
    assert trie.exact_delta(budget.epsilon) == pytest.approx(20 * max(found, everywhere), rel=0.05)
    assert trie.exact_delta(budget.epsilon) <= budget.delta


def test_triehh_finds_a_query_if_every_prefix_of_it_gets_its_votes():
    trie, counts = TrieHH(theta=3, q=0.2, levels=3), np.array([12, 9, 50])
    queries = ["ab", "ac", "long"]
    draw = np.random.default_rng(2)
    found = [trie.release(queries, counts, draw).tolist() for _ in range(4000)]
    assert not any(2 in one for one in found), "a query that is longer than the levels is not found"
    expected = binom.sf(2, 21, 0.2) * binom.sf(2, 12, 0.2) ** 2
    share = sum(0 in one for one in found) / len(found)
    assert abs(share - expected) < SIGMAS * math.sqrt(expected / len(found))


@pytest.mark.parametrize("star", [0.0, 0.9])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_local_oracle_is_unbiased_with_the_variance_that_it_predicts(epsilon, star):
    n, items = 20_000, 12
    oracle = LocalOracle.of(epsilon, items, star)
    counts = np.zeros(items, dtype=np.int64)
    counts[:3] = (0.6 * (1 - star) * n, 0.3 * (1 - star) * n, 0.1 * (1 - star) * n)
    draw = np.random.default_rng(3)
    drawn = [oracle.release(counts, n, draw) for _ in range(400)]
    shares = np.array([one for one, _ in drawn])
    deviation = float(np.mean([one for _, one in drawn]))
    assert np.abs(shares.mean(axis=0) - counts / n).max() < SIGMAS * shares.std(axis=0).max() / math.sqrt(400)
    assert shares[:, 3:].std() == pytest.approx(deviation, rel=0.15)


def test_the_local_oracle_names_nothing_of_noise_but_rarely():
    draw = np.random.default_rng(4)
    named = [len(detected(draw.standard_normal(KNOWN), 1.0)) > 0 for _ in range(2000)]
    assert abs(np.mean(named) - 0.05) < SIGMAS * math.sqrt(0.05 / 2000)


@pytest.mark.parametrize("name", RIVALS)
def test_every_mechanism_counts_the_same_people(name):
    settings = {"people": "aol", "users": 40_000, "rival": name, "optin": 0.2 if name == "ours" else None}
    found = compute(settings | {"epsilon": 4.0, "delta": 1e-5}, 0, 1)
    assert found == compute(settings | {"epsilon": 4.0, "delta": 1e-5}, 0, 1)
    assert found["queries"] >= 0
    assert found["bytes"] > 0
    people = crowd("aol", 40_000, 0, 1)
    top = people.counts[:50].sum() / people.n_users
    assert name == "TrieHH" or 0 <= found["l1_50"] <= 1.5 * top


def test_thirty_users_are_exact_and_a_small_list_costs_what_it_leaves_out():
    people = crowd("aol", 40_000, 0, 1)
    settings = {"people": "aol", "users": 40_000, "rival": "30 users", "optin": None, "epsilon": 1.0, "delta": 1e-8}
    found = compute(settings, 0, 1)
    assert found["queries"] == (people.counts >= 30).sum()
    assert found["l1_50"] == pytest.approx(people.counts[:50][people.counts[:50] < 30].sum() / people.n_users)
