"""The walk against a dense solution, against walks that are really walked, and against the paper's iteration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from searchblend.clickgraph.use.absorbing_walk import NotConverged, WalkSettings, absorption
from searchblend.core.errors import InvalidParameter, RunError

EXACT = WalkSettings(rtol=1e-12, max_error=1e-9)


def dense(clicks: np.ndarray, seeds: list[np.ndarray], alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """P(class) and P(lost) of every query, each from its own linear system over all queries and URLs."""
    n_queries, n_urls = clicks.shape
    pinned = np.zeros((n_urls, len(seeds)))
    for column, numbers in enumerate(seeds):
        pinned[numbers, column] = 1
    is_seed = pinned.sum(axis=1) > 0
    down = clicks / np.maximum(clicks.sum(axis=1, keepdims=True), 1e-300)
    up = clicks.T / np.maximum(clicks.T.sum(axis=1, keepdims=True), 1e-300)
    up[is_seed] = 0
    step = (1 - alpha) * np.block([[np.zeros((n_queries, n_queries)), down], [up, np.zeros((n_urls, n_urls))]])
    start = np.vstack([np.zeros((n_queries, len(seeds))), pinned])
    lost = 1 - step.sum(axis=1) - np.concatenate([np.zeros(n_queries), is_seed])
    system = np.eye(n_queries + n_urls) - step
    return np.linalg.solve(system, start)[:n_queries], np.linalg.solve(system, lost)[:n_queries]


def random_clicks(seed: int, n_queries: int = 60, n_urls: int = 50, density: float = 0.05) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.integers(1, 40, (n_queries, n_urls)) * (generator.random((n_queries, n_urls)) < density)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.001, 0.1])
def test_every_class_and_the_null_node_as_solved_densely(seed: int, alpha: float):
    clicks, seeds = random_clicks(seed), [np.array([0, 3]), np.array([7, 8, 9])]
    expected, lost = dense(clicks, seeds, alpha)
    found = absorption(sparse.csr_array(clicks), seeds, WalkSettings(alpha=alpha))
    assert found.error_bound is not None
    assert np.abs(found.probability - expected).max() <= found.error_bound <= 1e-4
    assert np.abs(found.lost - lost).max() <= 2e-4
    assert np.allclose(found.probability.sum(axis=1) + lost, 1, atol=2e-4)


@given(st.integers(0, 10**6), st.sampled_from([0.001, 0.01, 0.3]), st.sampled_from([0.02, 0.05, 0.3]))
def test_the_certified_bound_holds(seed: int, alpha: float, density: float):
    clicks, seeds = random_clicks(seed, 25, 20, density), [np.array([1, 2]), np.array([5])]
    if not clicks[:, [1, 2, 5]].sum():
        return
    expected, _ = dense(clicks, seeds, alpha)
    found = absorption(sparse.csr_array(clicks), seeds, WalkSettings(alpha=alpha, rtol=0.5, max_error=1e-3))
    assert found.error_bound is not None
    assert np.abs(found.probability - expected).max() <= found.error_bound + 1e-12 <= 1e-3 + 1e-12
    assert ((found.probability >= 0) & (found.probability <= 1)).all()


def test_without_pruning_the_papers_iteration_ends_at_the_same_probabilities():
    clicks, seeds = sparse.csr_array(random_clicks(5)), [np.array([0, 3]), np.array([7])]
    paper = absorption(clicks, seeds, WalkSettings(alpha=0.01, method="arw2008", gamma=0, step=1e-12))
    ours = absorption(clicks, seeds, WalkSettings(alpha=0.01, rtol=1e-12, max_error=1e-9))
    assert np.abs(paper.probability - ours.probability).max() < 1e-8
    assert paper.error_bound is None
    assert ours.iterations < paper.iterations


def test_pruning_only_takes_away():
    clicks, seeds = sparse.csr_array(random_clicks(6)), [np.array([0, 3])]
    pruned = absorption(clicks, seeds, WalkSettings(alpha=0.3, method="arw2008", gamma=0.05)).probability
    full = absorption(clicks, seeds, WalkSettings(alpha=0.3, method="arw2008", gamma=0)).probability
    assert (pruned <= full + 1e-12).all()
    assert ((pruned == 0) & (full > 0)).any()
    assert not ((pruned > 0) & (pruned < 0.05)).any()


def test_walks_that_are_walked_end_as_computed():
    clicks, alpha, walks = random_clicks(8, 12, 10, 0.3), 0.05, 20_000
    seeds = np.array([2, 5])
    generator = np.random.default_rng(1)
    found = absorption(sparse.csr_array(clicks), [seeds], WalkSettings(alpha=alpha)).probability[:, 0]
    starts = np.flatnonzero(clicks.sum(axis=1))[:4]
    for start in starts:
        share = simulate(clicks, seeds, alpha, int(start), walks, generator)
        assert abs(share - found[start]) < 4.5 * np.sqrt(found[start] * (1 - found[start]) / walks) + 1e-4
    wrong = absorption(sparse.csr_array(clicks), [seeds], WalkSettings(alpha=alpha / 2)).probability[:, 0]
    shares = np.array([simulate(clicks, seeds, alpha, int(start), walks, generator) for start in starts])
    assert (np.abs(shares - wrong[starts]) > 4.5 * np.sqrt(0.25 / walks)).any()


def simulate(clicks, seeds, alpha: float, start: int, walks: int, generator: np.random.Generator) -> float:
    down = clicks.cumsum(axis=1) / np.maximum(clicks.sum(axis=1, keepdims=True), 1)
    up = clicks.T.cumsum(axis=1) / np.maximum(clicks.T.sum(axis=1, keepdims=True), 1)
    at, ended = np.full(walks, start), 0
    while len(at):
        at = at[generator.random(len(at)) >= alpha]
        at = (generator.random((len(at), 1)) >= down[at]).sum(axis=1)
        in_seed = np.isin(at, seeds)
        ended += int(in_seed.sum())
        at = at[~in_seed]
        at = at[generator.random(len(at)) >= alpha]
        at = (generator.random((len(at), 1)) >= up[at]).sum(axis=1)
    return ended / walks


def test_what_no_seed_can_be_reached_from_is_zero():
    blocks = np.zeros((40, 40))
    blocks[:20, :20], blocks[20:, 20:] = random_clicks(1, 20, 20, 0.4), random_clicks(2, 20, 20, 0.4)
    found = absorption(sparse.csr_array(blocks), [np.array([1])], EXACT).probability[:, 0]
    assert (found[20:] == 0).all()
    assert np.abs(found[:20] - dense(blocks[:20, :20], [np.array([1])], 0.001)[0][:, 0]).max() < 1e-8


def test_a_query_behind_a_seed_alone_knows_only_that_seed():
    clicks = np.array([[5.0, 0.0], [3.0, 2.0], [0.0, 4.0]])
    found = absorption(sparse.csr_array(clicks), [np.array([0]), np.array([1])], WalkSettings(alpha=0.1))
    assert found.probability == pytest.approx(np.array([[0.9, 0], [0.54, 0.36], [0, 0.9]]), abs=1e-6)


def test_iterations_are_told():
    told: list[tuple[int, float]] = []
    absorption(sparse.csr_array(random_clicks(5)), [np.array([0])], on_iteration=lambda *state: told.append(state))
    assert [iteration for iteration, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][1] < told[0][1]


def test_no_path_to_the_seeds_is_an_error():
    clicks = np.array([[5.0, 0.0], [3.0, 0.0]])
    with pytest.raises(RunError, match="nothing in the graph leads to the seeds"):
        absorption(sparse.csr_array(clicks), [np.array([1])])


def test_what_cannot_be_reached_by_rounding_is_an_error():
    with pytest.raises(NotConverged, match="rounding keeps"):
        absorption(sparse.csr_array(random_clicks(3)), [np.array([0, 1, 2])], WalkSettings(rtol=1e-30, max_error=1e-20))


@pytest.mark.parametrize(
    "seeds", [[], [np.array([], dtype=int)], [np.array([99])], [np.array([-1])], [np.array([1]), np.array([1])]]
)
def test_wrong_seeds_are_refused(seeds):
    with pytest.raises(InvalidParameter, match="seeds"):
        absorption(sparse.csr_array(random_clicks(1)), seeds)


def test_negative_clicks_are_refused():
    with pytest.raises(InvalidParameter, match="clicks: expected counts of at least 0"):
        absorption(sparse.csr_array(np.array([[1.0, -1.0]])), [np.array([0])])


@pytest.mark.parametrize(
    "wrong", [{"alpha": 0}, {"alpha": 1}, {"method": "x"}, {"gamma": -1}, {"rtol": 0}, {"max_error": 1}, {"step": 0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        WalkSettings(**wrong)
