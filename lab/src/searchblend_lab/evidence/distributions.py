"""Distribution tests with a power check: the law of what is drawn, and the same test on a law that is a tenth off.

Every cell has an exact binomial test. Independence is tested too: two draws in a row agree as often as the law says.
A test that does not reject noise whose scale is 1.1 times the right one has no power, and says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, ReportDesign, subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness, uniform_below
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian, on_sigma_grid
from searchblend_lab.evidence.bounds import fit, two_sided
from searchblend_lab.evidence.evidence import Effort, Finding, judged

Noise = DiscreteLaplace | RoundedGaussian
OFF: Final = 1.1
"""times the scale: every test of noise must reject it"""
MORE: Final = 1.25
"""times the budget: every test of reports must reject it"""
_CHUNK: Final = 8_000_000
_FEWEST: Final = 8000
"""reports that a test needs to have power"""
HEAD: Final = HeadList({"a": ["1", "2"], "b": ["1"], "c": []})


# --- noise -----------------------------------------------------------------------------------------------------------


def noise(effort: Effort) -> list[Finding]:
    """Both samplers at a small, a usual and a large scale, against laws written down here anew."""
    findings = [
        _noise(f"discrete Laplace noise, b = {float(b):g}", DiscreteLaplace(1 / b), _laplace_law(float(b)), effort)
        for b in (Fraction(1, 2), Fraction(2), Fraction(20))
    ]
    for sigma in (Fraction(1), Fraction(6), Fraction(700)):
        name = f"rounded Gaussian noise, σ = {float(sigma):g}"
        findings.append(_noise(name, RoundedGaussian(sigma), _gaussian_law(float(sigma)), effort))
    return findings


def _noise(subject: str, shipped: Noise, law: Mapping[int, float], effort: Effort) -> Finding:
    sample = shipped.sample(effort.draws, SystemRandomness())
    width = max(round(shipped.scale), 1)
    coarse = _by_size(law, width)
    p = min(
        1.0, 3 * min(fit(_counts(sample), law), fit(_counts(_size(sample, width)), coarse), _pairs_agree(sample, law))
    )
    off = _wider(shipped).sample(effort.draws, SystemRandomness())
    power = fit(_counts(_size(off, width)), coarse)
    detail = f"p = {p:.2g} of {effort.draws:,} draws; the same test of a scale {OFF} times as large: p = {power:.2g}"
    verdict = judged(holds=p > effort.level, has_power=power < effort.level)
    return Finding(subject, verdict, detail, trials=effort.draws)


def _laplace_law(b: float) -> dict[int, float]:
    a = math.exp(-1 / b)
    reach = math.ceil(45 * b)
    return {y: (1 - a) / (1 + a) * a ** abs(y) for y in range(-reach, reach + 1)}


def _gaussian_law(sigma: float) -> dict[int, float]:
    reach = math.ceil(9.5 * sigma) + 1
    tails = [math.erfc((m - 0.5) / (sigma * math.sqrt(2))) / 2 for m in range(reach + 2)]
    half = {m: tails[m] - tails[m + 1] for m in range(1, reach + 1)}
    return {0: 1 - 2 * tails[1]} | half | {-m: p for m, p in half.items()}


def _size(values: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """How many widths a noise is from 0, three and more taken together: where a wrong scale shows best."""
    sizes: NDArray[np.int64] = np.minimum(np.abs(values) // width, 3)
    return sizes


def _by_size(law: Mapping[int, float], width: int) -> dict[int, float]:
    sizes = dict.fromkeys(range(4), 0.0)
    for y, p in law.items():
        sizes[min(abs(y) // width, 3)] += p
    return sizes


def _wider(noise: Noise) -> Noise:
    if isinstance(noise, RoundedGaussian):
        return RoundedGaussian(on_sigma_grid(noise.scale * OFF))
    return DiscreteLaplace(noise.rate / Fraction(OFF))


def _counts(values: NDArray[np.int64]) -> Counter[int]:
    found, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


def _pairs_agree(sample: NDArray[np.int64], law: Mapping[int, float]) -> float:
    """Draws in a row, in pairs that do not overlap, agree with probability Σ p²."""
    first, second = sample[0 : len(sample) // 2 * 2 : 2], sample[1::2]
    return two_sided(int((first == second).sum()), len(first), math.fsum(p * p for p in law.values()))


def rare_noise(effort: Effort) -> list[Finding]:
    """The short way to noise that reaches a high floor: how often, and with which values."""
    return [_rare(scale, rate, 400 * effort.draws, effort) for scale, rate in ((1.0, 3e-5), (5.0, 3e-5), (1.0, 1e-6))]


def _rare(scale: float, rate: float, size: int, effort: Effort) -> Finding:
    shipped, a = DiscreteLaplace(Fraction(1) / Fraction(scale)), math.exp(-1 / scale)
    floor = math.ceil(scale * math.log(1 / (rate * (1 + a))))
    found = [shipped.reaching(floor, min(_CHUNK, size - start), SystemRandomness()) for start in range(0, size, _CHUNK)]
    values = np.concatenate([chunk for _, chunk in found])
    late = sum(int((positions >= _CHUNK // 2).sum()) for positions, _ in found)
    expected, law = a**floor / (1 + a), {floor + k: (1 - a) * a**k for k in range(math.ceil(45 * scale))}
    halves = two_sided(late, len(values), 0.5) if size % _CHUNK == 0 else 1.0
    p = min(1.0, 3 * min(two_sided(len(values), size, expected), fit(_counts(values), law), halves))
    wide = math.exp(-1 / (OFF * scale))
    power = two_sided(round(size * wide**floor / (1 + wide)), size, expected)
    detail = f"{len(values):,} of {size:,} draws reach {floor}: p = {p:.2g}; at {OFF} times the scale {power:.2g}"
    verdict = judged(holds=p > effort.level, has_power=power < 1e-3)
    return Finding(f"noise that reaches {floor}, b = {scale:g}", verdict, detail, trials=size)


# --- choices and reports ---------------------------------------------------------------------------------------------


def choices(effort: Effort) -> list[Finding]:
    """``uniform_below``, the choice of one of n."""
    n, source = effort.draws // 4, SystemRandomness()
    findings = []
    for k in (2, 7, 100):
        counts = Counter(uniform_below(k, source) for _ in range(n))
        p = fit(counts, dict.fromkeys(range(k), 1 / k))
        biased = Counter(uniform_below(k, source) if uniform_below(5, source) else 0 for _ in range(n))
        power = fit(biased, dict.fromkeys(range(k), 1 / k))
        verdict = judged(holds=p > effort.level, has_power=power < effort.level)
        detail = f"p = {p:.2g}; with one choice in five always the first: p = {power:.2g}"
        findings.append(Finding(f"uniform choice of one of {k}", verdict, detail, trials=n))
    return findings


def local_reports(effort: Effort) -> list[Finding]:
    """Reports against the channel of [BLJ] Fig. 6, computed here anew; power: a budget a quarter larger."""
    budget = Budget(3.0, 1e-5)
    params, off = BlenderParams(budget), BlenderParams(Budget(MORE * budget.epsilon, budget.delta))
    n = max(effort.draws // 20, _FEWEST)

    def single(cell: int, params: BlenderParams) -> Counter[int]:
        record = list(HEAD.cells())[cell]
        return Counter(local_report([record], HEAD, params)[0] for _ in range(n))

    def bulk(cell: int, params: BlenderParams) -> Counter[int]:
        reporter = BulkReporter(ReportProbabilities.of(HEAD, params))
        return _counts(reporter.report(np.full(20 * n, cell), SystemRandomness()))

    return [
        _reports("local report (paper)", single, params, off, (0, HEAD.n_cells - 1), effort),
        _reports("local reports in bulk (paper)", bulk, params, off, tuple(range(HEAD.n_cells)), effort),
    ]


def _reports(
    subject: str,
    sample: Callable[[int, BlenderParams], Counter[int]],
    params: BlenderParams,
    off: BlenderParams,
    cells: tuple[int, ...],
    effort: Effort,
) -> Finding:
    laws = {cell: figure_6_row(HEAD, cell, params) for cell in cells}
    found = {cell: sample(cell, params) for cell in cells}
    p = min(1.0, len(cells) * min(fit(found[cell], laws[cell]) for cell in cells))
    power = fit(sample(cells[0], off), laws[cells[0]])
    detail = f"p = {p:.2g} over {len(cells)} records; with ε a quarter too large: p = {power:.2g}"
    trials = sum(map(Counter.total, found.values()))
    verdict = judged(holds=p > effort.level, has_power=power < effort.level)
    return Finding(subject, verdict, detail, trials=trials)


def figure_6_row(head: HeadList, cell: int, params: BlenderParams) -> dict[int, float]:
    """P(report | cell) as printed in [BLJ] Fig. 6, in doubles."""
    query = head.query_of_cells()[cell]
    fraction, m = params.query_budget_fraction, params.records_per_client
    epsilon, delta = params.budget.epsilon / m, params.budget.delta / m
    t = _keep(fraction * epsilon, fraction * delta, head.n_queries)
    t_q = _keep((1 - fraction) * epsilon, (1 - fraction) * delta, head.n_urls[query])
    row: dict[int, float] = {}
    for other, (first, width) in enumerate(zip(head.first_cells(), head.n_urls, strict=True)):
        for position in range(width):
            if other != query:
                row[first + position] = (1 - t) / (head.n_queries - 1) / width
            elif first + position == cell:
                row[first + position] = t * t_q
            else:
                row[first + position] = t * (1 - t_q) / (width - 1)
    return row


def _keep(epsilon: float, delta: float, k: int) -> float:
    return 1.0 if k == 1 else (math.exp(epsilon) + delta / 2 * (k - 1)) / (math.exp(epsilon) + k - 1)


def subset_reports(effort: Effort) -> list[Finding]:
    """Sets against the printed law of subset selection, computed here anew; power: a budget a quarter larger."""
    budget, n = Budget(2.0, 1e-5), max(effort.draws // 20, _FEWEST)
    head = HeadList((f"q{i}", []) for i in range(5))
    off = BlenderParams(Budget(MORE * budget.epsilon, budget.delta)).for_log(has_urls=False)
    params = BlenderParams(budget).for_log(has_urls=False)
    findings = []
    for name, kind in (("sets with a sink", SINK_SETS), ("plain sets", PLAIN_SETS)):
        design = ReportDesign(20, 2, 1, kind)

        def said(params: BlenderParams, design: ReportDesign = design) -> Counter[Hashable]:
            return Counter(subset_report([Record("q1")], head, design, params)[0].items for _ in range(n))

        law = set_law(5, 2, 1, budget.epsilon, sink=kind == SINK_SETS)
        p, power = _fit_sets(said(params), law, 1), _fit_sets(said(off), law, 1)
        detail = f"p = {p:.2g}; with ε a quarter too large: p = {power:.2g}"
        verdict = judged(holds=p > effort.level, has_power=power < effort.level)
        findings.append(Finding(f"report of {name} (best)", verdict, detail, trials=n))
    return findings


def _fit_sets(counts: Counter[Any], law: Mapping[Any, float], item: int) -> float:
    """Set by set, and by what a set says of the item: with it, without it, the sink."""
    kinds, kind_law = Counter[Hashable](), dict.fromkeys((0, 1, 2), 0.0)
    for chosen, n in counts.items():
        kinds[_kind(chosen, item)] += n
    for chosen, p in law.items():
        kind_law[_kind(chosen, item)] += p
    present: dict[Hashable, float] = {kind: p for kind, p in kind_law.items() if p}
    return min(1.0, 2 * min(fit(counts, law), fit(kinds, present)))


def _kind(chosen: Sequence[int], item: int) -> int:
    return (1 if item in chosen else 2) if chosen else 0


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
