"""Lower bounds on ε from samples: an event is chosen on one sample and bounded on a fresh one (Clopper–Pearson).

A bound above the claimed ε refutes the claim; a bound below it proves nothing, it only says how hard the attack was.
What the samples could have shown at best stands beside it as the resolution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.stability_histogram import count_head_list, curator_design
from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.blender.best.subset_report_bulk import simulate_subset_reports
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.gaussian_account import gaussian_delta
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.threshold import printed_threshold
from searchblend_lab.evidence.bounds import bound_of_event, choose_event, epsilon_bound, resolution
from searchblend_lab.evidence.evidence import ONE_CLIENT, ONE_COUNT, REPLACE_ONE, Claim, Effort, Finding, judged

Sampler = Callable[[int], Counter[Hashable]]
"""how often each output was seen in so many independent draws"""
HEAD: Final = HeadList({"a": ["1", "2"], "b": ["1"], "c": []})
LOOSE: Final = Budget(2.0, 0.02)
"""a δ that sampling can see; the code is the same at any"""
_BLOCKS: Final = 500
"""copies of the same small world in one group: its records are counted apart"""


def attack(subject: str, claim: Claim, pair: Iterable[Sampler], n: int, level: float, detail: str = "") -> Finding:
    """Sample A chooses the event, sample B bounds it. ``pair`` samples the outputs of two neighbours.

    An attack that could not have shown the claimed ε at its best has no power.
    """
    one, other = pair
    event = choose_event(one(n), other(n), claim.delta, level)
    fresh = one(n), other(n)
    trials = min(sum(counts.values()) for counts in fresh)
    measured = bound_of_event(event, *fresh, claim.delta, level)
    best = resolution(trials, claim.delta, level)
    found = f"{len(event.outputs):,} outputs in the event{'; ' if detail else ''}{detail}"
    verdict = judged(holds=measured <= claim.epsilon, has_power=best > claim.epsilon)
    return Finding(subject, verdict, found, claim, measured, best, trials)


# --- noise -----------------------------------------------------------------------------------------------------------


def noise(effort: Effort) -> list[Finding]:
    """A count and its neighbour, with the shipped noise."""
    laplace, sigma = DiscreteLaplace(Fraction(1)), Fraction(1)
    gaussian = RoundedGaussian(sigma)
    delta = float(gaussian_delta(1.5, 1 / float(sigma)))
    source = SystemRandomness()

    def noisy(law: DiscreteLaplace | RoundedGaussian, count: int) -> Sampler:
        return lambda n: _numbers(count + law.sample(n, source))

    return [
        attack(
            "discrete Laplace noise",
            Claim(1.0, 0.0, ONE_COUNT),
            (noisy(laplace, 3), noisy(laplace, 4)),
            effort.draws,
            effort.level,
        ),
        attack(
            "rounded Gaussian noise",
            Claim(1.5, delta, ONE_COUNT),
            (noisy(gaussian, 3), noisy(gaussian, 4)),
            effort.draws,
            effort.level,
        ),
    ]


def _numbers(values: NDArray[np.int64]) -> Counter[Hashable]:
    found, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


# --- local reports ---------------------------------------------------------------------------------------------------


def local_reports(effort: Effort) -> list[Finding]:
    """Reports of two people whose records differ, as devices make them, one by one and in bulk."""
    budget = Budget(3.0, 1e-5)
    params = BlenderParams(budget)
    pair = Record("a", "1"), Record("b", "1")
    n = effort.draws // 20

    def single(record: Record) -> Sampler:
        return lambda n: Counter(local_report([record], HEAD, params) for _ in range(n))

    def bulk(record: Record) -> Sampler:
        reporter = BulkReporter(ReportProbabilities.of(HEAD, params))
        return lambda n: _numbers(reporter.report(np.full(n, HEAD.cell_of(record)), SystemRandomness()))

    several = BlenderParams(budget, records_per_client=2)

    def twice(record: Record) -> Sampler:
        return lambda n: Counter(local_report([record], HEAD, several) for _ in range(n))

    claim, level = Claim.of(budget, ONE_CLIENT), effort.level
    return [
        attack("local report (paper)", claim, map(single, pair), n, level),
        attack("local report (paper), m_C = 2", claim, map(twice, pair), n, level),
        attack("local reports in bulk (paper)", claim, map(bulk, pair), effort.draws, level),
    ]


def subset_reports(effort: Effort) -> list[Finding]:
    """Method ``best``: sets with and without a sink, two stages, about queries and about cells."""
    budget = Budget(3.0, 1e-5)
    params = BlenderParams(budget)
    designs = {
        "sets with a sink": ReportDesign(10, 1, 2, SINK_SETS),
        "plain sets": ReportDesign(10, 1, 2, PLAIN_SETS),
        "two stages, exact": ReportDesign(0, 1, 1, TWO_STAGE),
    }
    claim, findings = Claim(budget.epsilon, 0.0, ONE_CLIENT), []
    for name, design in designs.items():

        def single(record: Record, design: ReportDesign = design) -> Sampler:
            return lambda n: Counter(subset_report([record], HEAD, design, params) for _ in range(n))

        for pair in ((Record("a", "1"), Record("b", "1")), (Record("a", "1"), Record(WILDCARD, WILDCARD))):
            other = "⋆" if pair[1].query is WILDCARD else "another record"
            findings.append(
                attack(
                    f"report of {name} (best), against {other}",
                    claim,
                    map(single, pair),
                    effort.draws // 20,
                    effort.level,
                )
            )
        findings.append(_bulk_sets(f"{name} in bulk (best)", design, params, claim, effort))
    return findings


def _bulk_sets(subject: str, design: ReportDesign, params: BlenderParams, claim: Claim, effort: Effort) -> Finding:
    """Bulk reports come counted: the events are "this item is named" and "the sink is sent", by kind of report."""
    n = effort.draws

    def hits(record: Record) -> Mapping[Hashable, int]:
        held = np.zeros(HEAD.n_cells, dtype=np.int64)
        held[HEAD.cell_of(record)] = n
        found = simulate_subset_reports(held, HEAD, design, params)
        if found.two_stage is not None:
            return dict(enumerate(found.two_stage.tolist()))
        counted: dict[Hashable, int] = {}
        for kind, sets in (("query", found.queries), ("cell", found.cells)):
            if sets is not None:
                counted |= {(kind, item): times for item, times in enumerate(sets.items.tolist())}
                counted[kind, "sink"] = sets.sinks
        return counted

    pair = Record("a", "1"), Record("b", "1")
    first = [hits(record) for record in pair]

    def bound(counts: Sequence[Mapping[Hashable, int]], event: Hashable, swapped: bool) -> float:
        return epsilon_bound(counts[swapped][event], counts[not swapped][event], n, 0, effort.level)

    event, swapped = max(product(first[0], (False, True)), key=lambda choice: bound(first, *choice))
    measured = bound([hits(record) for record in pair], event, swapped)
    best = resolution(n, 0, effort.level)
    verdict = judged(holds=measured <= claim.epsilon, has_power=best > claim.epsilon)
    return Finding(subject, verdict, "one item or the sink", claim, measured, best, n)


# --- the curator -----------------------------------------------------------------------------------------------------


def head_lists(effort: Effort) -> list[Finding]:
    """Empirical head lists: in each of many small worlds one person's record is x, or it is y."""
    params = BlenderParams(LOOSE, max_head_queries=10**6)
    top = printed_threshold(LOOSE).integer
    design = curator_design(params)
    claim = Claim.of(LOOSE, REPLACE_ONE)

    def names(x: int, y: int) -> Sampler:
        group = worlds({"x": x, "y": y})

        def sample(n: int) -> Counter[Hashable]:
            seen: Counter[Hashable] = Counter()
            for _ in range(-(-n // _BLOCKS)):
                head = create_head_list(group, params)
                seen.update((f"x{i}" in head, f"y{i}" in head) for i in range(_BLOCKS))
            return seen

        return sample

    def counts(x: int, y: int) -> Sampler:
        group = worlds({"x": x, "y": y})

        def sample(n: int) -> Counter[Hashable]:
            seen: Counter[Hashable] = Counter()
            for _ in range(-(-n // _BLOCKS)):
                found = count_head_list(group, params, design)
                listed = dict(zip((cell.query for cell in found.head.cells()), found.counts.tolist(), strict=False))
                seen.update(tuple(_short(listed.get(f"{q}{i}"), top) for q in "xy") for i in range(_BLOCKS))
            return seen

        return sample

    n, level = effort.draws // 4, effort.level
    return [
        attack("names of a head list (paper)", claim, (names(top, top), names(top - 1, top + 1)), n, level),
        attack("names of a head list (paper), own record", claim, (names(1, top), names(0, top + 1)), n, level),
        attack("stability histogram (best)", claim, (counts(top + 5, top + 5), counts(top + 4, top + 6)), n, level),
        attack("stability histogram (best), own record", claim, (counts(1, top), counts(0, top + 1)), n, level),
        _optin_counts(effort),
    ]


def worlds(counts: Mapping[str, int]) -> InMemoryGroup:
    """So many copies of a small world without URLs; a record's name ends with the number of its world."""
    people = [[Record(f"{query}{i}")] for i in range(_BLOCKS) for query, n in counts.items() for _ in range(n)]
    return InMemoryGroup.from_users(people)


def _short(count: int | None, top: int) -> int | None:
    """A released count, far ones taken together."""
    return None if count is None else min(max(count, top - 1), top + 14)


def _optin_counts(effort: Effort) -> Finding:
    """EstimateOptinProbabilities: the noisy shares of two records, one person moved."""
    params = BlenderParams(LOOSE, max_head_queries=10**6)
    head = HeadList((f"{query}{i}", []) for i in range(_BLOCKS) for query in "xy")

    def shares(x: int, y: int) -> Sampler:
        group = worlds({"x": x, "y": y})

        def sample(n: int) -> Counter[Hashable]:
            seen: Counter[Hashable] = Counter()
            for _ in range(-(-n // _BLOCKS)):
                listed, found = estimate_optin_probabilities(group, head, params)
                counts = np.rint(found.queries.probability[:-1] * group.n_users).astype(int).tolist()
                by_query = dict(zip(listed.queries, counts, strict=True))
                seen.update(tuple(min(max(by_query[f"{q}{i}"], -3), 9) for q in "xy") for i in range(_BLOCKS))
            return seen

        return sample

    claim = Claim(LOOSE.epsilon, 0.0, REPLACE_ONE)
    return attack("opt-in shares (paper)", claim, (shares(3, 3), shares(2, 4)), effort.draws // 4, effort.level)
