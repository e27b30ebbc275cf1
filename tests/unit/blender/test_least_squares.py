"""One least squares per query: closed forms, and the same by dense linear algebra."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from searchblend.blender.best.observations import (
    CellSets,
    OptinCounts,
    QuerySets,
    SetLaw,
    predict,
    query_slices,
    solve,
    solve_query,
)
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import SubsetSelection

QUERIES_ONLY = HeadList({"a": [], "b": []})
MIXED = HeadList({"a": ["1", "2"], "b": [], "c": ["1"]})
LAW = SetLaw.of(SubsetSelection.of(Fraction(2), 2, 1))


def optin(observed: list[float], noise: float = 1e-6, n: int = 1000) -> OptinCounts:
    return OptinCounts(np.array(observed), np.full(len(observed), noise), n)


def test_a_single_source_is_believed():
    """The estimate is what was observed; its variance c/n + v, less what the truth shares with it: c/N."""
    result = solve(QUERIES_ONLY, [optin([0.03, 0.01])], np.array([0.03, 0.01]), 1e-4, 5000)
    np.testing.assert_allclose(result.cells.probability, [0.03, 0.01])
    np.testing.assert_allclose(
        result.cells.variance, [0.03 / 1000 + 1e-6 - 0.03 / 5000, 0.01 / 1000 + 1e-6 - 0.01 / 5000]
    )
    np.testing.assert_allclose(result.queries.variance, result.cells.variance)


def test_two_sources_are_weighed_by_their_variances():
    clients = CellSets(LAW, 4000, np.array([0.05, 0.02]))
    shares = np.array([0.04, 0.015])
    (estimate, covariance), _ = (
        solve_query([optin([0.03, 0.01]), clients], query, shares) for query in query_slices(QUERIES_ONLY)
    )
    mine = 0.04 / 1000 + 1e-6
    theirs = (0.04 + LAW.noise(np.array([0.04]), 0.055)[0]) / 4000
    weight = theirs / (mine + theirs)
    assert estimate[0] == pytest.approx(weight * 0.03 + (1 - weight) * 0.05)
    assert covariance[0, 0] == pytest.approx(mine * theirs / (mine + theirs))


def test_a_total_moves_uncertain_cells_more():
    """Opt-in cells with variances v₁, v₂ and an exact total: the surplus is shared as v₁ : v₂."""
    head = HeadList({"a": ["1"]})
    source = OptinCounts(np.array([0.02, 0.01]), np.array([3e-6, 1e-6]), 10**9)
    total = QuerySets(LAW, 1e12, np.array([0.034]), np.array(head.query_of_cells()))
    estimate, _ = solve_query([source, total], slice(0, 2), np.array([1e-9, 1e-9]))
    np.testing.assert_allclose(estimate, [0.02 + 0.003, 0.01 + 0.001], rtol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_equal_to_generalized_least_squares(seed: int):
    """(XᵀΣ⁻¹X)⁻¹XᵀΣ⁻¹y with all observations stacked, a tilt included, on random problems."""
    generator = np.random.Generator(np.random.PCG64(seed))
    shares = generator.uniform(0.001, 0.05, 6)
    tilt = float(generator.choice([0.0, 0.1]))
    people = OptinCounts(shares * generator.uniform(0.8, 1.2, 6), generator.uniform(1e-7, 1e-5, 6), 2000, tilt=tilt)
    laws = [SetLaw.of(SubsetSelection.of(Fraction(2), m, d)) for m, d in ((3, 1), (6, 2))]
    totals = np.add.reduceat(shares, [0, 3, 4])
    queries = QuerySets(laws[0], 9000, totals * generator.uniform(0.8, 1.2, 3), np.array(MIXED.query_of_cells()))
    cells = CellSets(laws[1], 7000, shares * generator.uniform(0.8, 1.2, 6))
    for number, query in enumerate(query_slices(MIXED)):
        width, c = query.stop - query.start, shares[query]
        design = np.vstack([np.eye(width), np.ones((1, width)), np.eye(width)])
        noise = np.zeros((2 * width + 1, 2 * width + 1))
        noise[:width, :width] = np.diag(c / 2000 + people.noise_variance[query]) + tilt * np.outer(c, c)
        total = totals[number]
        noise[width, width] = (total + laws[0].noise(np.array([total]), shares.sum())[0]) / 9000
        noise[width + 1 :, width + 1 :] = np.diag((c + laws[1].noise(c, shares.sum())) / 7000)
        seen = np.concatenate([people.observed[query], queries.observed[[number]], cells.observed[query]])
        weighted = design.T @ np.linalg.inv(noise)
        expected = np.linalg.inv(weighted @ design)
        estimate, covariance = solve_query([people, queries, cells], query, shares)
        np.testing.assert_allclose(covariance, expected, rtol=1e-7)
        np.testing.assert_allclose(estimate, expected @ weighted @ seen, rtol=1e-7)


def test_query_variance_counts_covariances():
    """Cells that share an exact total are uncertain, their sum is not."""
    head = HeadList({"a": ["1"]})
    total = QuerySets(LAW, 1e9, np.array([0.03]), np.array(head.query_of_cells()))
    result = solve(head, [optin([0.02, 0.01]), total], np.array([0.02, 0.01]), 1e-4, np.inf)
    assert result.queries.variance[0] < 0.01 * result.cells.variance.sum()
    assert result.queries.probability[0] == pytest.approx(result.cells.probability.sum())


def test_variances_are_taken_at_the_pooled_shares():
    """Opt-in users who saw nobody are not certain of it: the clients' many reports win."""
    clients = CellSets(LAW, 10**7, np.array([0.01, 0.01]))
    result = solve(QUERIES_ONLY, [optin([0.0, 0.0], noise=1e-9), clients], np.zeros(2), 5e-4, np.inf)
    assert (result.cells.probability > 0.007).all()


def test_a_variance_never_falls_below_a_twentieth():
    """Whoever asks everybody has no sampling error left, but is not certain."""
    result = solve(QUERIES_ONLY, [optin([0.03, 0.01], noise=1e-12)], np.array([0.03, 0.01]), 1e-4, 1000)
    np.testing.assert_allclose(result.cells.variance, 0.05 * np.array([0.03, 0.01]) / 1000, rtol=1e-3)


def test_predicted_variances_are_those_that_solve_states():
    """At the same shares, whatever was observed."""
    shares = np.array([0.02, 0.01, 0.005, 0.03, 0.02, 0.01])
    sources = [OptinCounts(shares, np.full(6, 1e-6), 1000), CellSets(LAW, 4000, shares)]
    solved, foreseen = solve(MIXED, sources, shares, 1e-4, 5000), predict(MIXED, sources, shares, 5000)
    np.testing.assert_allclose(foreseen.cells.variance, solved.cells.variance, rtol=1e-9)
    np.testing.assert_allclose(foreseen.queries.variance, solved.queries.variance, rtol=1e-9)
