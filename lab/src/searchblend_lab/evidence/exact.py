"""Exact enumeration: every output of a mechanism, every ordered pair of neighbours, on the integer thresholds in use.

Local reports are enumerated by driving the shipped code (``drive.py``); noise, head lists and selections from the exact
laws of the shipped samplers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.stability_histogram import CuratorDesign, curator_design
from searchblend.blender.best.subset_report import PLAIN_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.params import BlenderParams, ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import accept_below
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.gaussian_account import gaussian_delta
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.threshold import printed_threshold
from searchblend_lab.evidence.drive import Law, driven_law, intervals, period, residues
from searchblend_lab.evidence.evidence import (
    ADD_REMOVE,
    ONE_CLIENT,
    ONE_COUNT,
    REPLACE_ONE,
    Claim,
    Effort,
    Finding,
    judged,
)

Floats = NDArray[np.float64]
HEADS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "one query": {"a": ["1", "2"]},
    "small": {"a": ["1"], "b": []},
    "uneven": {"a": ["1"], "b": ["1", "2", "3"]},
    "no URLs": {"a": [], "b": [], "c": []},
}
LARGE: Final = HeadList((f"q{i}", [f"u{j}" for j in range(1 + i % 3)]) for i in range(12))
BUDGETS: Final = (Budget(4.0, 1e-5), Budget(1.0, 1e-6), Budget(0.5, 0.01))
_ROUNDING: Final = 1e-12
"""of sums of doubles"""


# --- local reports ---------------------------------------------------------------------------------------------------


def local_reports(effort: Effort) -> list[Finding]:
    """LocalAlg of [BLJ] Fig. 6 as shipped: driven on small lists, by its stated channel on a larger one."""
    return [_local(budget) for budget in BUDGETS] + [_several_records(BUDGETS[0], m) for m in (2, 3)]


def _local(budget: Budget) -> Finding:
    rows_of_lists = [
        [_driven_report(head, _params(budget, head), record) for record in head.cells()]
        for head in map(HeadList, HEADS.values())
    ]
    stated = ReportProbabilities.of(LARGE, _params(budget, LARGE))
    rows_of_lists.append(_stated_rows(stated))
    return _judge_rows(f"local report (paper), ε = {budget.epsilon:g}", rows_of_lists, budget, budget.delta)


def _several_records(budget: Budget, m: int) -> Finding:
    """Each of m_C cells must cost 1/m_C of the budget."""
    lists = [
        _stated_rows(ReportProbabilities.of(head, _params(budget, head, records_per_client=m)))
        for head in (LARGE, HeadList(HEADS["uneven"]))
    ]
    share = Budget(budget.epsilon / m, budget.delta / m)
    return _judge_rows(f"local report (paper), one of m_C = {m} cells", lists, share, share.delta)


def _driven_report(head: HeadList, params: BlenderParams, record: Record) -> Law:
    stated = ReportProbabilities.of(head, params)
    low = period([*head.n_urls, *(width - 1 for width in head.n_urls)])
    words = [intervals([stated.keep_query_below, *stated.keep_record_below]), residues(low, head.n_queries - 1)]
    return driven_law(lambda randomness: local_report([record], head, params, randomness=randomness), words)


def _stated_rows(stated: ReportProbabilities) -> list[Law]:
    return [
        dict(enumerate(stated.channel_row(query, url)))
        for query, width in enumerate(stated.n_urls)
        for url in range(width)
    ]


def subset_reports(effort: Effort) -> list[Finding]:
    """The three reports of method ``best``, driven: sets with a sink, plain sets, two stages exactly calibrated."""
    designs = {
        "sets with a sink": [ReportDesign(0, 1, 2), ReportDesign(20, 1, 1), ReportDesign(10, 1, 1)],
        "plain sets": [ReportDesign(0, 1, 2, PLAIN_SETS), ReportDesign(20, 2, 1, PLAIN_SETS)],
        "two stages, exact": [ReportDesign(0, 1, 1, TWO_STAGE)],
    }
    return [
        _judge_rows(
            f"report of {name} (best), ε = {budget.epsilon:g}",
            [_driven_sets(HeadList(HEADS["small"]), design, budget) for design in found],
            budget,
            0.0,
        )
        for name, found in designs.items()
        for budget in BUDGETS[:2]
    ]


def _driven_sets(head: HeadList, design: ReportDesign, budget: Budget) -> list[Law]:
    params = _params(budget, head)
    edges, coin = _set_thresholds(head, design, params), design.query_steps not in (0, 20)
    n_items = head.n_cells + (design.mechanism == PLAIN_SETS)
    if design.mechanism == TWO_STAGE:
        low = period([*head.n_urls, *(width - 1 for width in head.n_urls)])
        later = residues(low, head.n_queries - 1)
    else:
        later = residues(period(range(1, n_items + 1)))
    first = [intervals([(1 << 64) * design.query_steps // 20])] if coin else []
    words = [*first, intervals(edges), later]

    def row(record: Record) -> Law:
        return driven_law(
            lambda randomness: subset_report([record], head, design, params, randomness=randomness), words
        )

    return [row(record) for record in head.cells()]


def _set_thresholds(head: HeadList, design: ReportDesign, params: BlenderParams) -> list[int]:
    if design.mechanism == TWO_STAGE:
        stages = ReportProbabilities.exact(head, params)
        return [stages.keep_query_below, *stages.keep_record_below]
    found: list[int] = []
    for sets in (design.about_queries(head, params), design.about_cells(head, params)):
        if sets is not None:
            found += [sets.include_below, getattr(sets, "sink_below", 0)]
    return found


def uniform_choices(effort: Effort) -> list[Finding]:
    """``accept_below`` leaves a whole number of periods: choosing modulo n after rejection has no bias."""
    wrong = [n for n in range(1, 4097) if accept_below(n) % n or accept_below(n) <= (1 << 31)]
    detail = "whole periods of every n up to 4,096 are accepted, and at least half of the words"
    return [Finding("uniform choice of one of n", judged(holds=not wrong), detail)]


def _params(budget: Budget, head: HeadList, **changes: int) -> BlenderParams:
    return BlenderParams(budget, **changes).for_log(has_urls=head.has_urls)


def _judge_rows(subject: str, lists: Sequence[Sequence[Law]], budget: Budget, delta: float) -> Finding:
    """All ordered pairs of true records: Σ max(P − e^ε Q, 0) ≤ δ, exactly; e^ε from below, so that it is stricter."""
    growth = exp_fraction_bounds(Fraction(budget.epsilon))[0]
    loss, worst, pairs, whole = 0.0, Fraction(-1), 0, True
    for rows in lists:
        whole &= all(sum(row.values()) == 1 for row in rows)
        for one, other in permutations(rows, 2):
            pairs += 1
            found = _hockey_stick(one, other, growth)
            worst = max(worst, found)
            if found == worst:
                loss = max(loss, _loss(one, other, delta))
    claim = Claim(budget.epsilon, delta, ONE_CLIENT)
    detail = f"{pairs:,} ordered pairs of records; largest hockey-stick {float(worst):.3g}; laws sum to 1: {whole}"
    return Finding(subject, judged(holds=whole and worst <= Fraction(delta)), detail, claim, loss)


def _loss(one: Law, other: Law, delta: float) -> float:
    """The least ε of this pair: the largest log-likelihood ratio, or what is left of it after δ."""
    if not delta:
        return _log_ratio(one, other)
    outputs = sorted({*one, *other}, key=repr)
    p, q = (np.array([float(row.get(x, 0)) for x in outputs]) for row in (one, other))
    return least_epsilon(p, q, delta)


def _hockey_stick(one: Law, other: Law, growth: Fraction) -> Fraction:
    zero = Fraction(0)
    return sum((max(p - growth * other.get(x, zero), zero) for x, p in one.items()), zero)


def _log_ratio(one: Law, other: Law) -> float:
    """The largest ln(P/Q); ∞ for an output that only one of them has."""
    found = 0.0
    for output, p in one.items():
        q = other.get(output, Fraction(0))
        found = max(found, math.log(p / q) if q else math.inf) if p else found
    return found


# --- noise -----------------------------------------------------------------------------------------------------------


def noise_laws(effort: Effort) -> list[Finding]:
    """The Gaussian sampler's exact law against itself, one apart; Laplace noise is among the laws."""
    return [_gaussian_noise(sigma) for sigma in (Fraction(1), Fraction(5), Fraction(37))]


def _gaussian_noise(sigma: Fraction) -> Finding:
    noise = RoundedGaussian(sigma)
    law = noise.sampled_probabilities()
    holds, worst = True, ""
    for factor in (0.2, 1.0, 3.0):
        epsilon = factor / float(sigma)
        delta = math.fsum(max(float(p) - math.exp(epsilon) * float(law.get(y - 1, 0)), 0) for y, p in law.items())
        ideal = float(gaussian_delta(epsilon, 1 / float(sigma)))
        holds &= delta <= ideal + (1 + math.exp(epsilon)) * noise.distance + _ROUNDING
        worst = f"at ε = {epsilon:.3g} δ = {delta:.4g}, the continuous law has {ideal:.4g}"
    claim = Claim(3 / float(sigma), float(gaussian_delta(3 / float(sigma), 1 / float(sigma))), ONE_COUNT)
    return Finding(f"rounded Gaussian noise, σ = {float(sigma):g}", judged(holds=holds), worst, claim)


# --- head lists ------------------------------------------------------------------------------------------------------


def head_lists(effort: Effort) -> list[Finding]:
    """CreateHeadList and the stability histogram: one person moves from one record to another."""
    return [
        *(_names(budget) for budget in (Budget(4.0, 1e-5), Budget(1.0, 1e-6), Budget(2.0, 0.02))),
        *(_counted_names(budget) for budget in (Budget(4.0, 1e-5), Budget(2.0, 0.02))),
    ]


def _names(budget: Budget) -> Finding:
    threshold = printed_threshold(budget)
    tail = _tail(threshold.noise.sampled_probabilities())
    counts = range(threshold.integer + 4)
    pairs = _WorstPair(budget.epsilon, budget.delta)
    for a, b in product(counts[1:], counts):
        one, other = (_named(n, m, tail, threshold.integer) for n, m in ((a, b), (a - 1, b + 1)))
        pairs.add(one, other)
    detail = f"T = {threshold.integer}: all pairs of counts up to T + 3; largest hockey-stick {pairs.worst:.3g}"
    subject, measured = f"names of a head list (paper), ε = {budget.epsilon:g}", pairs.loss
    verdict = judged(holds=pairs.worst <= budget.delta)
    return Finding(subject, verdict, detail, Claim.of(budget, REPLACE_ONE), measured)


def _named(n: int, m: int, tail: Callable[[int], float], threshold: int) -> Floats:
    """The law of (is the first named, is the second); what no one has is never named."""
    p, q = (tail(threshold - count) if count else 0.0 for count in (n, m))
    return np.outer([p, 1 - p], [q, 1 - q])


def _counted_names(budget: Budget) -> Finding:
    """Names, counts and the count of ⟨q,⋆⟩: both records belong to one query that is listed anyway."""
    design = curator_design(BlenderParams(budget))
    top, pairs = design.threshold.integer, _WorstPair(budget.epsilon, budget.delta)
    interesting = sorted({1, 2, design.clip, design.clip + 1, top - 2, top - 1, top, top + 1} - {0, -1})
    for a, b in product([n for n in interesting if n > 0], [0, *interesting]):
        one, other = (_histogram(n, m, design) for n, m in ((a, b), (a - 1, b + 1)))
        pairs.add(one, other)
    detail = (
        f"T = {top}, clip {design.clip}: counts around both; largest hockey-stick {pairs.worst:.3g}, "
        f"stated {design.delta:.3g}"
    )
    subject, measured = f"stability histogram (best), ε = {budget.epsilon:g}", pairs.loss
    verdict = judged(holds=pairs.worst <= min(design.delta, budget.delta) + _ROUNDING)
    return Finding(subject, verdict, detail, Claim.of(budget, REPLACE_ONE), measured)


def _histogram(n: int, m: int, design: CuratorDesign) -> Floats:
    """The law of (count or hidden, count or hidden, count of ⟨q,⋆⟩) of two records."""
    reach, floor = design.residual_noise.reach, design.threshold.integer
    first, second = (_released(count, design.threshold.noise, floor) for count in (n, m))
    residual = design.residual_noise.sampled_probabilities()
    law = np.zeros((len(first), len(second), 2 * reach + 2 * design.clip + 1))
    for a_hidden, b_hidden in product((True, False), repeat=2):
        total = min(n, design.clip) * a_hidden + min(m, design.clip) * b_hidden
        z = np.zeros(law.shape[2])
        z[[y + total + reach for y in residual]] = [float(p) for p in residual.values()]
        rows, columns = (slice(0, 1) if hidden else slice(1, None) for hidden in (a_hidden, b_hidden))
        law[rows, columns] = first[rows, None, None] * second[None, columns, None] * z[None, None, :]
    return law


def _released(count: int, noise: DiscreteLaplace | RoundedGaussian, threshold: int) -> Floats:
    """P(hidden), P(count + Y = T), P(count + Y = T + 1), …"""
    law = noise.sampled_probabilities()
    shown = np.zeros(noise.reach + _HIGHEST)
    if count:
        for y, p in law.items():
            if count + y >= threshold:
                shown[count + y - threshold] = float(p)
    return np.concatenate([[1 - shown.sum()], shown])


_HIGHEST: Final = 16
"""how far above T a count may be"""


# --- click graphs ----------------------------------------------------------------------------------------------------


def click_graphs(effort: Effort) -> list[Finding]:
    """Selections of queries with small caps: a user with all their searches is added or removed."""
    findings = []
    for budget in (Budget(2.0, 0.01), Budget(1.0, 1e-6)):
        for accounting, unit in (("paper", "impressions"), ("exact", "impressions"), ("exact", "users")):
            params = ClickGraphParams(
                budget, algorithm="kkmn2009", max_queries_per_user=2, accounting=accounting, count_unit=unit
            )
            step = ClickGraphDesign.of(params).rounds[0]
            findings.append(_laplace_selection(step, f"{accounting}, {unit}"))
        params = ClickGraphParams(budget, algorithm="gaussian", max_queries_per_user=2)
        findings.append(_gaussian_selection(ClickGraphDesign.of(params), budget))
    return findings


def _laplace_selection(step: StepDesign, name: str) -> Finding:
    """Names alone, as the fresh counts are another step: two different queries, or one query twice."""
    top, d = step.count_threshold.integer, step.cap.first
    tail = _tail(step.noise.sampled_probabilities())
    ways = [(1,) * d] if step.cap.distinct else [(1,) * d, (d,)]
    pairs = _WorstPair(step.epsilon, step.delta)
    for way in ways:
        for there in product(range(top + 3), repeat=len(way)):
            with_user, without = (
                _joint([[1 - p, p] for p in (tail(top - n) if n else 0.0 for n in counts)])
                for counts in (tuple(n + more for n, more in zip(there, way, strict=True)), there)
            )
            pairs.add(with_user, without)
            pairs.add(without, with_user)
    detail = f"T = {top}: counts up to T + 2; largest hockey-stick {pairs.worst:.3g}, stated {step.delta:.3g}"
    claim, measured = Claim(step.epsilon, step.delta, ADD_REMOVE), pairs.loss
    verdict = judged(holds=pairs.worst <= step.delta + _ROUNDING)
    return Finding(f"selection of kkmn2009 ({name}), ε = {step.epsilon:g}", verdict, detail, claim, measured)


def _gaussian_selection(design: ClickGraphDesign, budget: Budget) -> Finding:
    """Names and counts of two queries, each there without the user or not."""
    step = design.rounds[0]
    top, pairs = step.count_threshold.integer, _WorstPair(budget.epsilon, budget.delta)
    for there in product((0, 1, top - 1, top, top + 2), repeat=2):
        with_user = _joint([_released(n + 1, step.noise, top) for n in there])
        without = _joint([_released(n, step.noise, top) for n in there])
        pairs.add(with_user, without)
        pairs.add(without, with_user)
    detail = f"T = {top}, σ = {step.noise.scale:g}: largest hockey-stick {pairs.worst:.3g}, stated {design.delta:.3g}"
    subject, measured = f"Gaussian selection with counts, ε = {budget.epsilon:g}", pairs.loss
    verdict = judged(holds=pairs.worst <= design.delta + _ROUNDING)
    return Finding(subject, verdict, detail, Claim.of(budget, ADD_REMOVE), measured)


# --- parts -----------------------------------------------------------------------------------------------------------


def _tail(law: Mapping[int, Fraction]) -> Callable[[int], float]:
    """P(Y ≥ value) of a sampler."""
    reach = max(law)
    values = np.array([float(law[y]) for y in range(-reach, reach + 1)])
    sums = np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])
    return lambda value: float(sums[min(max(value + reach, 0), len(sums) - 1)])


def _joint(laws: Iterable[Sequence[float] | Floats]) -> Floats:
    joint = np.ones(1)
    for law in laws:
        joint = np.multiply.outer(joint, np.asarray(law))
    return joint


def _worst(one: Floats, other: Floats, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


def least_epsilon(one: Floats, other: Floats, delta: float) -> float:
    """The ε at which Σ max(P − e^ε Q, 0) falls to δ."""
    low, high = 0.0, 64.0
    if _worst(one, other, high) > delta:
        return math.inf
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _worst(one, other, middle) > delta else (low, middle)
    return high


class _WorstPair:
    """The largest hockey-stick at ε, and the least ε at δ, of all pairs so far."""

    def __init__(self, epsilon: float, delta: float) -> None:
        self._epsilon, self._delta = epsilon, delta * (1 + 1e-9) + _ROUNDING
        self.worst, self.loss = 0.0, 0.0

    def add(self, one: Floats, other: Floats) -> None:
        self.worst = max(self.worst, _worst(one, other, self._epsilon))
        if self.loss < math.inf and _worst(one, other, self.loss) > self._delta:
            self.loss = least_epsilon(one, other, self._delta)
