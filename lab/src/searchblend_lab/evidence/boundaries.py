"""The boundary of every threshold: thousands of records that one person alone holds go through the real code.

How often one of them is published is the δ of the step. It must be what the design states, tested on both sides (exact
binomial test), and not above the budget's δ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from searchblend.blender.best.many_records import measure_head_list
from searchblend.blender.best.many_records_design import many_records_design
from searchblend.blender.best.stability_histogram import count_head_list, curator_design
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.clickgraph.release.adaptive_selection import PARTS, FirstRound
from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import release_data, select_queries
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.params import BlenderParams, ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.gaussian_account import normal_tail, weight
from searchblend.mechanisms.threshold import printed_threshold
from searchblend_lab.evidence.bounds import lower_bound, two_sided
from searchblend_lab.evidence.evidence import ADD_REMOVE, REPLACE_ONE, Claim, Effort, Finding, judged

LOOSE: Final = Budget(2.0, 0.02)


def head_list(effort: Effort) -> list[Finding]:
    """CreateHeadList ([BLJ] Fig. 3): one-user records, and records at T − 1, T and T + 1."""
    params, n = BlenderParams(LOOSE), effort.draws // 5
    threshold = printed_threshold(LOOSE)
    findings = [
        judge_boundary(
            "head list (paper): records of one user",
            sum(query.startswith("n1 ") for query in create_head_list(_with_count(1, n), params).queries),
            n,
            math.exp(-(threshold.integer - 1) * LOOSE.epsilon / 2) / (1 + math.exp(-LOOSE.epsilon / 2)),
            Claim.of(LOOSE, REPLACE_ONE),
            effort,
        )
    ]
    for count in (threshold.integer - 1, threshold.integer, threshold.integer + 1):
        named = len(create_head_list(_with_count(count, n // 10), params))
        expected = _laplace_tail(threshold.integer - count, LOOSE.epsilon / 2)
        name = f"head list (paper): records of {count} users (T = {threshold.integer})"
        findings.append(judge_boundary(name, named, n // 10, expected, None, effort))
    return findings


def _laplace_tail(value: int, rate: float) -> float:
    """P(Y ≥ value), written down here anew."""
    a = math.exp(-rate)
    return a**value / (1 + a) if value > 0 else 1 - a ** (1 - value) / (1 + a)


def _with_count(count: int, n: int) -> InMemoryGroup:
    return InMemoryGroup.from_users([[Record(f"n{count} {i}")] for i in range(n) for _ in range(count)])


def stability_histogram(effort: Effort) -> list[Finding]:
    """Method ``best`` with one record per user, and ⟨q,⋆⟩ of the wide list."""
    n, claim = effort.draws // 10, Claim.of(LOOSE, REPLACE_ONE)
    params = BlenderParams(LOOSE, max_head_queries=10**6)
    design = curator_design(params)
    found = count_head_list(InMemoryGroup.from_users([[Record(f"{i}")] for i in range(n)]), params, design)
    rate = alone(design.threshold.noise.decay, design.threshold.integer, 1)
    name = "stability histogram (best): records of one user"
    findings = [judge_boundary(name, len(found.head), n, rate, claim, effort)]
    design = curator_design(params, wide=True)
    if design.wide_threshold is None:
        raise AssertionError("expected a design with a wide list")
    n = effort.draws
    found = count_head_list(InMemoryGroup.from_users([[Record(f"{i}", "u")] for i in range(n)]), params, design)
    wide = sum(cell.url is WILDCARD and not found.head.urls(str(cell.query)) for cell in list(found.head.cells())[:-1])
    listed = sum(bool(found.head.urls(query)) for query in found.head.queries)
    rate = alone(design.wide_threshold.noise.decay, design.wide_threshold.integer, 1)
    findings.append(judge_boundary("wide list (best): queries of one user", wide, n - listed, rate, claim, effort))
    return findings


def many_records(effort: Effort) -> list[Finding]:
    """Method ``best`` over many records: users whose two queries no one else has; how many have one named."""
    n, claim = effort.draws // 10, Claim.of(LOOSE, REPLACE_ONE)
    params = BlenderParams(LOOSE, max_head_queries=10**6, records_per_optin=2)
    design = many_records_design(LOOSE, 2, has_urls=False)
    people = [[Record(f"{i} a"), Record(f"{i} b")] for i in range(n)]
    found = measure_head_list(InMemoryGroup.from_users(people), params, design)
    named = {query.split()[0] for query in found.head.queries}
    step = design.queries
    rate = step.noise.at_least(step.integer - step.weights.table[2])
    name = "weights of many records (best): queries of one user"
    return [judge_boundary(name, len(named), n, 1 - (1 - rate) ** 2, claim, effort)]


def alone(decay: float, threshold: int, weight: int) -> float:
    return decay ** (threshold - weight) / (1 + decay)


def click_graph(algorithm: str, effort: Effort) -> list[Finding]:
    """Select-Queries: users whose two queries no one else has; how many of them have one published."""
    budget = Budget(1.5, 0.05)
    params = ClickGraphParams(budget, algorithm=algorithm, max_queries_per_user=2, allow_large_delta=True)
    design, n = ClickGraphDesign.of(params), effort.draws // 10
    log = InMemoryClickLog([[Search(f"{i} a"), Search(f"{i} b", 1.0)] for i in range(n)])
    chosen, _ = select_queries(log, design, randomness=SystemRandomness())
    named = len({query.split()[0] for query in chosen})
    claim = Claim(budget.epsilon, math.fsum(step.delta for step in design.rounds), ADD_REMOVE)
    quiet = math.prod(
        1 - named_in_two_rounds(step, step.first_round, 2, 1) if step.first_round else (1 - _named_in(step)) ** 2
        for step in design.rounds
    )
    return [judge_boundary(f"selection of {algorithm}: queries of one user", named, n, 1 - quiet, claim, effort)]


def named_in_two_rounds(step: StepDesign, first: FirstRound, items: int, accounts: int) -> float:
    """P(adaptive selection names something that accounts alone have, which search the same); m of the items run on."""
    held, z = accounts * weight(first.units, items), np.arange(first.lower, first.upper)
    tails = normal_tail((np.append(z, first.upper) - 0.5 - held) / first.noise.scale)
    missing = np.ceil((step.threshold or 0) - first.carried * z / PARTS)
    silent = 0.0
    for m in range(items + 1):
        added = accounts * weight(step.units, max(m, 1))
        quiet = (tails[:-1] - tails[1:]) @ (1 - normal_tail((missing - 0.5 - added) / step.noise.scale))
        silent += math.comb(items, m) * quiet**m * (1 - tails[0]) ** (items - m)
    return float(1 - silent)


def _named_in(step: StepDesign) -> float:
    """P(a query of a user with two queries is published), no one else having it."""
    weight = 1 if step.units == 1 else math.isqrt(step.units**2 // 2)
    return step.noise.at_least((step.threshold or 0) - weight)


def edges(effort: Effort) -> list[Finding]:
    """Private clicks and typed reformulations that one user alone has, on queries that everyone has."""
    findings = []
    n = effort.draws // 20
    for algorithm in ("gaussian", "kkmn2009"):
        params = ClickGraphParams(
            Budget(4.0, 0.2),
            algorithm=algorithm,
            max_queries_per_user=2,
            max_clicks_per_user=1,
            max_reformulations_per_user=1,
            urls="private",
            reformulations="typed",
            allow_large_delta=True,
        )
        release = release_data(InMemoryClickLog(_clickers(n)), params)
        clicks, typed = release.design.click_counts, release.design.reformulations
        if clicks is None or typed is None:
            raise AssertionError("expected steps for clicks and reformulations")
        rate = clicks.noise.at_least((clicks.threshold or 0) - 1)
        claim = Claim(params.budget.epsilon, clicks.delta, ADD_REMOVE)
        named = sum(row.url.startswith("own ") for row in release.clicks)
        findings.append(
            judge_boundary(f"private clicks ({algorithm}): pairs of one user", named, n, rate, claim, effort)
        )
        findings.append(_typed_pairs(algorithm, params, n, effort))
    return findings


def _clickers(n: int) -> Sequence[Sequence[Search]]:
    return [[Search("everyone", 0.0, (f"own {i}",))] for i in range(n)]


def _typed_pairs(algorithm: str, params: ClickGraphParams, n: int, effort: Effort) -> Finding:
    """Common queries 0…k−1; each ordered pair of them is typed in a row by one user."""
    side = math.isqrt(n)
    pairs = [(i, j) for i in range(side) for j in range(side) if i != j]
    log = InMemoryClickLog([[Search(f"q{i}", 0.0), Search(f"q{j}", 60.0)] for i, j in pairs])
    release = release_data(log, params)
    step = release.design.reformulations
    if step is None:
        raise AssertionError("expected a step for reformulations")
    published = {row.query for row in release.queries}
    able = sum(f"q{i}" in published and f"q{j}" in published for i, j in pairs)
    rate = step.noise.at_least((step.threshold or 0) - 1)
    claim = Claim(params.budget.epsilon, step.delta, ADD_REMOVE)
    name = f"typed reformulations ({algorithm}): pairs of one user"
    return judge_boundary(name, len(release.reformulations), able, rate, claim, effort)


def judge_boundary(subject: str, named: int, n: int, expected: float, claim: Claim | None, effort: Effort) -> Finding:
    """Two-sided against what the design states, and one-sided against the budget's δ."""
    p = two_sided(named, n, expected)
    within = claim is None or (
        expected <= claim.delta * (1 + 1e-9) and lower_bound(named, n, effort.level) <= claim.delta
    )
    detail = f"{named:,} of {n:,} published, {expected * n:,.1f} expected: p = {p:.2g}"
    return Finding(subject, judged(holds=p > effort.level and within), detail, claim, trials=n)
