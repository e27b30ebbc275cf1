"""Are estimates unbiased, and do their variances tell the truth? By full enumeration and by simulation.

Simulations work on counts: reports are multinomial with the law p·channel, which is what independent clients
send. They are seeded, so that thresholds such as 3 % need no false-alarm rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np

from searchblend.blender.estimates import NORMAL_95, Estimates, GroupEstimates
from searchblend.blender.paper import estimate_client
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.tally import Ints
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.evidence.laws.channel import channel_of
from searchblend_lab.evidence.laws.sampler import check_fit

Floats = np.ndarray
EstimateClients = Callable[[Ints, HeadList, BlenderParams], GroupEstimates]
EstimateOptin = Callable[..., tuple[HeadList, GroupEstimates]]
MAX_Z = 6.0


@dataclass(frozen=True)
class CountedGroup:
    """A group of which nothing but its counts on one list is known."""

    counts: Ints
    has_urls: bool = True

    @property
    def n_users(self) -> int:
        return int(self.counts.sum())

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        return self.counts


def report_law(head: HeadList, params: BlenderParams, truth: Floats) -> Floats:
    """P(report) of a random client when a share ``truth`` of the clients holds each cell."""
    rows = np.array([[float(p) for p in row] for row in channel_of(ReportProbabilities.of(head, params))])
    law: Floats = truth @ rows
    return law / float(law.sum())


def of_queries(head: HeadList, cells: Floats) -> Floats:
    return np.add.reduceat(cells, head.first_cells())


def _compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in _compositions(n - first, parts - 1):
            yield first, *rest


def check_exactly_unbiased(
    estimate: EstimateClients, head: HeadList, params: BlenderParams, truth: Floats, n: int
) -> None:
    """E p̂ = p and E σ̂² = Var p̂ over *all* outcomes of n reports, each with its multinomial probability."""
    law = report_law(head, params, truth)
    outcomes = np.array(list(_compositions(n, head.n_cells)))
    ways = [math.factorial(n) / math.prod(map(math.factorial, outcome)) for outcome in outcomes.tolist()]
    weights = np.array(ways) * np.prod(law**outcomes, axis=1)
    results = [estimate(outcome, head, params) for outcome in outcomes]
    for pick, p in ((_records, truth), (_queries, of_queries(head, truth))):
        estimates = np.array([pick(result).probability for result in results])
        stated = np.array([pick(result).variance for result in results])
        mean = weights @ estimates
        np.testing.assert_allclose(mean, p, atol=1e-9)
        np.testing.assert_allclose(weights @ stated, weights @ (estimates - mean) ** 2, rtol=1e-7)


def _records(result: GroupEstimates) -> Estimates:
    return result.records


def _queries(result: GroupEstimates) -> Estimates:
    return result.queries


@dataclass(frozen=True)
class Simulated:
    """Estimates and stated variances of many replicates, one row each."""

    probability: Floats
    variance: Floats

    def check_bias(self, p: Floats) -> None:
        """|z| ≤ 6 for the mean of every estimate."""
        error = self.probability.std(axis=0, ddof=1) / math.sqrt(len(self.probability))
        z = (self.probability.mean(axis=0) - p) / error
        assert np.abs(z).max() <= MAX_Z, z

    def check_variance(self, within: float) -> None:
        """The mean stated variance is the empirical one."""
        ratio = self.variance.mean(axis=0) / self.probability.var(axis=0, ddof=1)
        assert np.abs(ratio - 1).max() <= within, ratio

    def check_coverage(self, p: Floats, low: float = 0.93, high: float = 0.97) -> None:
        covered = self.coverage(p)
        assert low <= covered.min() <= covered.max() <= high, covered

    def coverage(self, p: Floats) -> Floats:
        """The share of replicates whose 95 % interval holds p."""
        covered: Floats = (np.abs(self.probability - p) <= NORMAL_95 * np.sqrt(self.variance)).mean(axis=0)
        return covered


def simulated(estimates: list[Estimates]) -> Simulated:
    return Simulated(np.array([e.probability for e in estimates]), np.array([e.variance for e in estimates]))


def estimating_with(probabilities: ReportProbabilities) -> AbstractContextManager[object]:
    """The estimator takes these probabilities instead of computing its own."""
    return patch.object(estimate_client, "ReportProbabilities", SimpleNamespace(of=lambda *_: probabilities))


def simulate_clients(
    estimate: EstimateClients, head: HeadList, params: BlenderParams, counts: Ints
) -> tuple[Simulated, Simulated]:
    """Records and queries, one replicate for each row of report counts. The probabilities are computed once."""
    with estimating_with(ReportProbabilities.of(head, params)):
        results = [estimate(row, head, params) for row in counts]
    return simulated([r.records for r in results]), simulated([r.queries for r in results])


def check_clients(
    estimate: EstimateClients,
    head: HeadList,
    params: BlenderParams,
    truth: Floats,
    counts: Ints,
    variance_within: float = 0.03,
) -> None:
    """Unbiased, variances within 3 %, 95 % intervals cover 93-97 %: for records, ⟨q,⋆⟩, queries and ⋆."""
    records, queries = simulate_clients(estimate, head, params, counts)
    for result, p in ((records, truth), (queries, of_queries(head, truth))):
        result.check_bias(p)
        result.check_variance(variance_within)
        result.check_coverage(p)


def simulate_optin(
    estimate: EstimateOptin, head: HeadList, params: BlenderParams, counts: Ints, seed: int
) -> Simulated:
    """The cells of ``head`` in its own order, one replicate for each row of counts."""
    source = SeededRandomness(seed)
    results: list[Estimates] = []
    for row in counts:
        kept, group = estimate(CountedGroup(row), head, params, randomness=source)
        order = [kept.cell_of(cell) for cell in head.cells()]
        results.append(Estimates(group.records.probability[order], group.records.variance[order]))
    return simulated(results)


@lru_cache(maxsize=1)
def _list_of(n_queries: int) -> HeadList:
    """A long list, made once for the shipped code and all of its faults."""
    return HeadList((f"{i:05}", ()) for i in range(n_queries))


def check_published_noise(estimate: EstimateOptin, params: BlenderParams, noise: DiscreteLaplace) -> None:
    """What is added to M counts in one run is independent noise of the right scale: χ², false alarm 1e-6."""
    head = _list_of(params.max_head_queries)
    counts = np.arange(head.n_cells) % 5
    group = CountedGroup(counts, has_urls=False)
    kept, result = estimate(group, head, params, randomness=SystemRandomness())
    order = [kept.cell_of(cell) for cell in head.cells()]
    noisy = result.records.probability[order] * group.n_users
    np.testing.assert_allclose(noisy, np.rint(noisy), atol=1e-6)
    check_fit(np.rint(noisy).astype(np.int64) - counts, noise)
