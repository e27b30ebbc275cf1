"""Laws of reports and estimates that are sampled or simulated: what devices send, and what is made of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np

from searchblend.blender.best.subset_report import SINK_SETS, ReportDesign, subset_report
from searchblend.blender.paper.estimate_client import count_reports
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.subset_selection import SubsetSelection
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import noise_for_one_record
from searchblend_lab.evidence.laws.best_estimates import check_simulated_estimates
from searchblend_lab.evidence.laws.channel import ChannelCase, channel_of
from searchblend_lab.evidence.laws.estimates import (
    EstimateClients,
    EstimateOptin,
    check_clients,
    check_published_noise,
    report_law,
    simulate_optin,
)
from searchblend_lab.evidence.laws.sampler import (
    check_counts,
)

Report = Callable[[ChannelCase, int, int], Ints]
"""(case, true cell, how many reports) -> how often each cell was reported"""


def check_reports(report: Report, setting: tuple[ChannelCase, int]) -> None:
    """n reports for each true cell: the sum of all rows' χ² statistics against the enumerated channel."""
    case, n = setting
    channel = channel_of(ReportProbabilities.of(case.head, case.params))
    expected = n * np.array(channel, dtype=np.float64)
    assert expected.min() >= 20
    observed = np.array([report(case, cell, n) for cell in range(len(channel))])
    check_counts(observed.ravel(), expected.ravel(), lost=len(channel))


def in_bulk(make: Callable[[ReportProbabilities], BulkReporter]) -> Report:
    def report(case: ChannelCase, cell: int, n: int) -> Ints:
        held = np.zeros(case.head.n_cells, dtype=np.int64)
        held[cell] = n
        return make(ReportProbabilities.of(case.head, case.params)).report_counts(held)

    return report


def one_by_one(run: Callable[..., tuple[int, int]]) -> Report:
    def report(case: ChannelCase, cell: int, n: int) -> Ints:
        probabilities, first = ReportProbabilities.of(case.head, case.params), case.head.first_cells()
        query, source = case.head.query_of_cells()[cell], SystemRandomness()
        pairs = (run(query, cell - first[query], probabilities, source) for _ in range(n))
        return count_reports(np.array([first[q] + u for q, u in pairs]), case.head)

    return report


REPORT_CASES: Final = (
    ChannelCase((1, 2, 3)),
    ChannelCase((2, 2), epsilon=1.0, query_budget_fraction=0.5),
    ChannelCase((0, 0, 4), epsilon=0.5),
    ChannelCase((0,) * 5, epsilon=2.0, query_budget_fraction=1.0),
)
_SETS_EPSILON: Final = 2.0


def check_sets(more: float, mechanism: str) -> None:
    """Sets of method ``best`` against the printed law of subset selection; ``more`` is a factor of ε."""
    head = HeadList((f"q{i}", []) for i in range(5))
    params = BlenderParams(Budget(more * _SETS_EPSILON, 1e-5)).for_log(has_urls=False)
    design, n = ReportDesign(20, 2, 1, mechanism), 12_000
    sets = Counter(subset_report([Record("q1")], head, design, params)[0].items for _ in range(n))
    law = set_law(5, 2, 1, _SETS_EPSILON, sink=mechanism == SINK_SETS)
    assert set(sets) <= set(law)
    check_counts(np.array([sets[chosen] for chosen in law]), n * np.array(list(law.values())))  # type: ignore[index]


def set_law(m: int, d: int, item: int, epsilon: float, *, sink: bool) -> dict[Hashable, float]:
    """P(set | item) as printed: proofs/subset_selection.md."""
    growth, items = math.exp(epsilon), m if sink else m + 1
    if sink:
        base = 1 / (1 + d / m * growth)
        with_item, nothing = d / m * growth * base, d / m * base
    else:
        with_item, nothing = d * growth / (d * growth + items - d), 0.0
    inside, outside = math.comb(items - 1, d - 1), math.comb(items - 1, d)
    law: dict[Hashable, float] = {(): nothing} if sink else {}
    for chosen in combinations(range(items), d):
        law[chosen] = with_item / inside if item in chosen else (1 - with_item - nothing) / outside
    return law


# --- estimates, seeded -----------------------------------------------------------------------------------------------

OPTIN_HEAD: Final = HeadList({"a": ["u", "v"], "b": ["u"], "c": ["u", "v"]})
_SHARES: Final = np.array([0.25, 0.12, 0.05, 0.18, 0.03, 0.1, 0.08, 0.04, 0.15])
"""By cell. To opt-in users ⟨q,⋆⟩ is unlisted, so its share belongs to ⟨⋆,⋆⟩."""
_STARS: Final = [2, 4, 7]
_CLIENTS: Final = 20_000


def check_optin_estimates(
    estimate: EstimateOptin, budget: Budget, replicates: int = 3_000, variance_within: float = 0.12
) -> None:
    """Mean (|z| ≤ 6), variance, coverage (93-97 %) of listed records and ⟨⋆,⋆⟩ when nothing is dropped: at shares at
    which the clamp never acts, so that the shipped variance is the unclamped one."""
    counts = np.random.Generator(np.random.PCG64(8)).multinomial(1298, _SHARES, size=replicates)
    result = simulate_optin(estimate, OPTIN_HEAD, BlenderParams(budget), counts, seed=9)
    assert np.isnan(result.probability[:, _STARS]).all()
    listed = np.setdiff1d(np.arange(OPTIN_HEAD.n_cells), _STARS)
    result = type(result)(result.probability[:, listed], result.variance[:, listed])
    shares = _SHARES.copy()
    shares[-1] += shares[_STARS].sum()
    result.check_bias(shares[listed])
    result.check_variance(variance_within)
    result.check_coverage(shares[listed])


def check_optin_noise(estimate: EstimateOptin, budget: Budget) -> None:
    """What is published with the opt-in counts is independent noise of the right scale."""
    check_published_noise(estimate, BlenderParams(budget, max_head_queries=60_000), noise_for_one_record(budget))


def falling(head: HeadList) -> np.ndarray:
    weights = 1 / np.arange(1.0, head.n_cells + 1)
    weights[-1] = weights.sum()
    shares: np.ndarray = weights / weights.sum()
    return shares


def check_client_estimates(
    estimate: EstimateClients, case: ChannelCase, replicates: int = 10_000, variance_within: float = 0.06
) -> None:
    """Seeded replicates of 20,000 clients: unbiased, honest variances, intervals that cover."""
    truth = falling(case.head)
    law = report_law(case.head, case.params, truth)
    counts = np.random.Generator(np.random.PCG64(14)).multinomial(_CLIENTS, law, size=replicates)
    check_clients(estimate, case.head, case.params, truth, counts, variance_within=variance_within)


HOLDERS: Final = np.array([400] + [60] * 10 + [5] * 19 + [1005])


def check_set_estimates(law: Any, setting: tuple[type[SubsetSelection], int, int]) -> None:
    """2,100 people, 30 items, a thousand seeded rounds of reports from the bulk simulation."""
    kind, d, epsilon = setting
    check_simulated_estimates(law.of, kind.of(Fraction(epsilon), len(HOLDERS) - 1, d), HOLDERS, 1000, seed=3)
