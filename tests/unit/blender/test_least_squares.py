"""One least squares over all queries: closed forms, and the same by dense linear algebra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from searchblend.blender.best.joint_least_squares import Equations, Joint, Layout, LinearData
from searchblend.blender.best.observations import CellSets, OptinCounts, People, QuerySets, TwoStageReports
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection

MIXED = HeadList({"a": ["1", "2"], "b": [], "c": ["1"]})
LAYOUT = Layout(MIXED)
PEOPLE = People(2000, 18_000)


def data_of(seed: int) -> tuple[np.ndarray, list[LinearData]]:
    """Shares, and random observations of all kinds of sources."""
    generator = np.random.Generator(np.random.PCG64(seed))
    shares = generator.uniform(0.001, 0.05, 6)
    padded, totals = LAYOUT.padded(shares), np.add.reduceat(shares, [0, 3, 4])
    about = generator.uniform(0.8, 1.2, (4, 6))
    optin = OptinCounts(
        shares * about[0], generator.uniform(1e-7, 1e-5, 6), 2000, shared_error=np.array([0, 0, 5e-4, 0, 0, 5e-4])
    )
    kind = SubsetSelection if seed % 2 else PlainSubsetSelection
    sources = [
        QuerySets(SetLaw.of(kind.of(Fraction(2), 3, 1)), 9000, totals * about[1, :3]),
        CellSets(SetLaw.of(kind.of(Fraction(2), 6, 2)), 7000, shares * about[2]),
    ]
    if seed % 3 == 0:
        stages = ReportProbabilities.exact(MIXED, BlenderParams(Budget(2, 1e-5)))
        sources = [TwoStageReports(stages, 9000, shares * about[3])]  # type: ignore[list-item]
    return padded, [source.data(LAYOUT, padded, PEOPLE) for source in (optin, *sources)]


def dense(data: Sequence[LinearData], padded: np.ndarray, tilt: float) -> tuple[np.ndarray, np.ndarray]:
    """(XᵀΣ⁻¹X)⁻¹XᵀΣ⁻¹y with everything stacked, Σ with the tilt that all sources of a query share."""
    cells = np.cumsum(LAYOUT.present).reshape(LAYOUT.shape) - 1
    rows, seen, leans, query_of = [], [], [], []
    blocks = []
    for source in data:
        asked = np.any(source.response != 0, axis=2)
        common = source.common[asked]
        block, first = common @ source.strength @ common.T, 0
        for query in range(len(MIXED)):
            here = np.flatnonzero(asked[query])
            place = np.arange(first, first + len(here))
            block[np.ix_(place, place)] += source.covariance[query][np.ix_(here, here)]
            first += len(here)
            for observation in here:
                row = np.zeros(6)
                row[cells[query][LAYOUT.present[query]]] = source.response[query, observation][LAYOUT.present[query]]
                rows.append(row)
                seen.append(source.observed[query, observation])
                leans.append(source.leans * source.response[query, observation] @ padded[query])
                query_of.append(query)
        blocks.append(block)
    size = sum(len(block) for block in blocks)
    noise, first = np.zeros((size, size)), 0
    for block in blocks:
        noise[first : first + len(block), first : first + len(block)] = block
        first += len(block)
    together = np.equal.outer(query_of, query_of)
    noise += np.expm1(tilt**2) * np.outer(leans, leans) * together
    design = np.array(rows)
    weighted = design.T @ np.linalg.inv(noise)
    covariance = np.linalg.inv(weighted @ design)
    return covariance @ weighted @ np.array(seen), covariance


@pytest.mark.parametrize("tilt", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_equal_to_generalized_least_squares(seed: int, tilt: float):
    padded, data = data_of(seed)
    joint = Equations(LAYOUT, data, padded).solve(tilt)
    expected, covariance = dense(data, padded, tilt)
    np.testing.assert_allclose(LAYOUT.flat(joint.cells), expected, rtol=1e-6)
    np.testing.assert_allclose(LAYOUT.flat(joint.cell_variance), np.diag(covariance), rtol=1e-6)
    sums = np.zeros((3, 6))
    sums[0, :3] = sums[1, 3] = sums[2, 4:] = 1
    np.testing.assert_allclose(joint.totals, sums @ expected, rtol=1e-6)
    np.testing.assert_allclose(joint.total_variance, np.diag(sums @ covariance @ sums.T), rtol=1e-6)
    assert joint.sum_variance == pytest.approx(covariance.sum(), rel=1e-6)


@pytest.mark.parametrize("tilt", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_gains_are_what_an_observation_moves(seed: int, tilt: float):
    """Linear, so a difference of any size is exact."""
    padded, data = data_of(seed)

    def solved(number: int, observed: np.ndarray) -> Joint:
        changed = [replace(entry, observed=observed) if i == number else entry for i, entry in enumerate(data)]
        return Equations(LAYOUT, changed, padded).solve(tilt)

    before = Equations(LAYOUT, data, padded).solve(tilt)
    for number, source in enumerate(data):
        gain = before.gain(number)
        for query, observation in np.argwhere(np.any(source.response != 0, axis=2)):
            observed = source.observed.copy()
            observed[query, observation] += 1.0
            expected = gain.reach @ gain.spread[query, observation]
            expected[query] += gain.own[query, observation]
            moved = solved(number, observed).totals - before.totals
            np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-9)


def optin(observed: list[float], noise: float = 1e-6, n: int = 1000) -> OptinCounts:
    return OptinCounts(np.array(observed), np.full(len(observed), noise), n)


def solved(head: HeadList, sources: Sequence[OptinCounts | QuerySets | CellSets], shares: list[float]) -> Joint:
    layout = Layout(head)
    padded = layout.padded(np.array(shares))
    return Equations(layout, [source.data(layout, padded, PEOPLE) for source in sources], padded).solve()


def test_a_single_source_is_believed():
    result = solved(HeadList({"a": [], "b": []}), [optin([0.03, 0.01])], [0.03, 0.01])
    np.testing.assert_allclose(result.totals, [0.03, 0.01])
    np.testing.assert_allclose(result.total_variance, [0.03 * 0.97 / 1000 + 1e-6, 0.01 * 0.99 / 1000 + 1e-6])


def test_a_total_moves_uncertain_cells_more():
    """Opt-in cells with variances v₁, v₂ and an exact total: the surplus is shared as v₁ : v₂."""
    source = OptinCounts(np.array([0.02, 0.01]), np.array([3e-6, 1e-6]), 10**9)
    total = QuerySets(SetLaw.of(SubsetSelection.of(Fraction(2), 1, 1)), 1e12, np.array([0.034]))
    result = solved(HeadList({"a": ["1"]}), [source, total], [1e-9, 1e-9])
    np.testing.assert_allclose(result.cells[0], [0.02 + 0.003, 0.01 + 0.001], rtol=1e-3)


def test_query_variance_counts_covariances():
    """Cells that share an exact total are uncertain, their sum is not."""
    total = QuerySets(SetLaw.of(SubsetSelection.of(Fraction(2), 1, 1)), 1e9, np.array([0.03]))
    result = solved(HeadList({"a": ["1"]}), [optin([0.02, 0.01]), total], [0.02, 0.01])
    assert result.total_variance[0] < 0.01 * result.cell_variance.sum()


def test_what_sets_say_of_all_queries_together_is_more_certain_than_query_by_query():
    """A set of fixed size that names one query leaves less room for the others."""
    head = HeadList({f"q{i}": [] for i in range(20)})
    sets = QuerySets(SetLaw.of(SubsetSelection.of(Fraction(1), 20, 6)), 10_000, np.full(20, 0.01))
    result = solved(head, [sets], [0.01] * 20)
    assert result.sum_variance < 0.5 * result.total_variance.sum()
