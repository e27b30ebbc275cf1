"""The curator of method ``best``: all opt-in users make the head list *and* measure it, at the same (ε, δ).

Releasing N + Y for the records with N + Y ≥ T is the stability histogram: the same ε, δ and T as releasing their names
alone. The printed method throws the counts away and estimates from a twentieth of the opt-in users. The count of ⟨q,⋆⟩,
clipped so that it fits into what the threshold leaves unused, is free as well (proofs/stability_histogram.md).
Run by the curator.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from searchblend.blender.groups import UserGroup
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.tally import Ints, RecordTally
from searchblend.mechanisms.threshold import Threshold, noisy_counts

_RESIDUAL_SHARE: Final = 0.85
_SLACK: Final = 1e-9
"""more than the floating-point error of a δ or an ε₂"""


@dataclass(frozen=True)
class CuratorDesign:
    """Thresholds and noises of one curator run; public, made from parameters alone."""

    threshold: Threshold
    """T, with the noise of the records' counts"""
    clip: int
    """T − 1 − j: how much of an unlisted record's count enters ⟨q,⋆⟩"""
    residual_noise: DiscreteLaplace
    """of rate ε₂/2"""
    wide_threshold: Threshold | None
    """T_q of the wide list: when ⟨q,⋆⟩ alone may be listed"""
    selection_delta: float
    """the largest probability that one user's own records alone are named"""
    sampler_delta: float

    @property
    def delta(self) -> float:
        return self.selection_delta + self.sampler_delta

    @property
    def contribution(self) -> str:
        """What bounds one user's part, in words."""
        return "each user counted by the curator has one random record"

    @property
    def figures(self) -> JsonObject:
        """For people who read the result."""
        return {
            "name": "stability histogram with residual counts",
            "threshold": self.threshold.printed,
            "integer_threshold": self.threshold.integer,
            "selection_delta": self.selection_delta,
            "noise_scale": self.threshold.noise.scale,
            "units_per_user": 1,
            "residual_clip": self.clip,
            "residual_noise_scale": self.residual_noise.scale,
            "wide_threshold": self.wide_threshold.integer if self.wide_threshold else None,
        }

    @classmethod
    def of(cls, budget: Budget, *, wide: bool = False) -> CuratorDesign:
        """The least threshold that the budget allows, then the least clip, then what is left of δ for the wide list."""
        noise = DiscreteLaplace(Fraction(budget.epsilon) / 2)
        sampler = _sampler_delta(noise, budget)
        threshold = _least_threshold(noise, budget.delta - sampler)
        excess, residual_noise = _residual_noise(threshold, budget)
        clip = max(threshold.integer - 1 - excess, 0)
        used = named_alone(noise, threshold.integer)
        wide_threshold = None
        if wide and clip and (left := budget.delta - used - sampler) > 0:
            wide_threshold = _least_threshold(residual_noise, left)
            used += named_alone(residual_noise, wide_threshold.integer)
        return cls(threshold, clip, residual_noise, wide_threshold, used, sampler)


def curator_design(params: BlenderParams, *, wide: bool = False) -> CuratorDesign:
    """The curator's thresholds and noises for these parameters; ``wide`` also lists queries without a common URL."""
    return CuratorDesign.of(params.budget, wide=wide)


def _sampler_delta(noise: DiscreteLaplace, budget: Budget) -> float:
    """What the samplers' distances add to δ: two records and two queries may differ, each with one noise.

    The residual's table is the longer one: K entries become at most K/0.85, rounded up.
    """
    distance = (noise.distance + 2.0**-64) / _RESIDUAL_SHARE
    return 4 * (1 + math.exp(budget.epsilon)) * distance


def named_alone(noise: DiscreteLaplace, threshold: int) -> float:
    """The probability that a record which one person alone holds is named: a^{T−1}/(1+a)."""
    return noise.at_least(threshold - 1)


def _least_threshold(noise: DiscreteLaplace, delta: float) -> Threshold:
    """The least T at which one person alone is named with probability δ at most."""
    if delta <= 0:
        raise InvalidParameter("delta", "too small at this ε: it must cover the noise sampler's own distance")

    def too_likely(threshold: int) -> bool:
        return named_alone(noise, threshold) > delta * (1 - _SLACK)

    low, high = 1, 2
    while too_likely(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_likely(middle) else (low, middle)
    return Threshold(float(high) - 1, high, noise)


def _residual_noise(threshold: Threshold, budget: Budget) -> tuple[int, DiscreteLaplace]:
    """The least j with ε₂ ≥ 0.85 ε, and the noise of rate ε₂/2."""
    epsilon, a = budget.epsilon, threshold.noise.decay
    for excess in range(threshold.integer):
        kept = 1 - a ** (excess + 1) / (1 + a)
        growth = (1 - a ** (excess + 2) / (1 + a)) / kept
        left = epsilon - 2 * math.log(growth)
        if left >= _RESIDUAL_SHARE * epsilon:
            return excess, DiscreteLaplace(Fraction(left * (1 - _SLACK)) / 2)
    return threshold.integer, DiscreteLaplace(Fraction(epsilon * _RESIDUAL_SHARE) / 2)


@dataclass(frozen=True)
class CountedHeadList:
    """The head list with the opt-in users' noisy counts of its cells."""

    head: HeadList
    counts: Ints
    """by cell, without ⟨⋆,⋆⟩: N + Y of a listed record, Z of ⟨q,⋆⟩"""
    n_users: int
    design: CuratorDesign

    @property
    def has_residuals(self) -> bool:
        """Whether the counts of ⟨q,⋆⟩ are residuals (a log with URLs) or the records' own."""
        return self.head.has_urls or self.design.wide_threshold is not None


def count_head_list(
    optin_users: UserGroup,
    params: BlenderParams,
    design: CuratorDesign,
    *,
    randomness: Randomness | None = None,
) -> CountedHeadList:
    """The M most common queries with their listed URLs and noisy counts; (ε, δ)-private under replace-one."""
    source = randomness or SystemRandomness()
    tally = optin_users.tally()
    listed = noisy_counts(tally, design.threshold, randomness=source)
    residuals = _noisy_residuals(tally, listed, design, source) if optin_users.has_urls else {}
    totals: dict[str, int] = defaultdict(int)
    for (query, _), count in [*listed.items(), *residuals.items()]:
        if isinstance(query, str):
            totals[query] += count
    kept = sorted(totals, key=lambda query: (-totals[query], query.encode()))[: params.max_head_queries]
    return _counted(kept, listed, residuals, optin_users, design)


def _noisy_residuals(
    tally: RecordTally, listed: Mapping[Record, int], design: CuratorDesign, randomness: Randomness
) -> dict[Record, int]:
    """Z of ⟨q,⋆⟩ for every query with a listed URL, and for those that the wide list adds."""
    queries = sorted({query for query, _ in listed if isinstance(query, str)}, key=str.encode)
    exact = dict.fromkeys(queries, 0)
    for record, count in tally.of_queries(queries).items():
        if record not in listed and isinstance(record.query, str):
            exact[record.query] += min(count, design.clip)
    noise = design.residual_noise.sample(len(queries), randomness).tolist()
    residuals = {Record(q, WILDCARD): exact[q] + y for q, y in zip(queries, noise, strict=True)}
    if design.wide_threshold:
        others = tally.by_query(design.clip, queries)
        residuals |= noisy_counts(others, design.wide_threshold, randomness=randomness)
    return residuals


def _counted(
    queries: list[str],
    listed: Mapping[Record, int],
    residuals: Mapping[Record, int],
    optin_users: UserGroup,
    design: CuratorDesign,
) -> CountedHeadList:
    urls: dict[str, list[tuple[int, bytes, str]]] = {query: [] for query in queries}
    for (query, url), count in listed.items():
        if isinstance(url, str) and query in urls:
            urls[query].append((-count, url.encode(), url))
    head = HeadList((query, [url for _, _, url in sorted(urls[query])]) for query in queries)
    counts = [listed.get(cell, residuals.get(cell, 0)) for cell in head.cells()][:-1]
    return CountedHeadList(head, np.array(counts, dtype=np.int64), optin_users.n_users, design)
