"""Support of released numbers: integers, or integers over a public denominator. No low-order bits.

Noise in floating point gives itself away: some doubles can only come from one of two neighbouring counts. The same test
must find such noise.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from searchblend.blender.best.stability_histogram import count_head_list, curator_design
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.params import ALGORITHMS, BlenderParams, ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness, word
from searchblend.core.records import HeadList, Record
from searchblend_lab.evidence.evidence import Effort, Finding, judged

_BUDGET: Final = Budget(1.0, 0.01)


def released_numbers(effort: Effort) -> list[Finding]:
    """Counts of every release are integers; shares are integers over the public number of users, to the last bit."""
    findings = [_shares(effort), _counted(effort)]
    findings += [_graph(algorithm) for algorithm in ALGORITHMS]
    off = sum(not value.is_integer() for value in _float_laplace(2000))
    control = f"the same test on noise made in floating point finds {off} of 2,000 values between the integers"
    findings.append(
        Finding("control: noise in floating point is found", judged(holds=True, has_power=off > 0), control)
    )
    return findings


def _shares(effort: Effort) -> Finding:
    """Each published share is the double nearest to an integer over the number of users: it says no more than that."""
    head = HeadList((f"q{i}", []) for i in range(200))
    group = InMemoryGroup.from_users([[Record(f"q{i % 250}")] for i in range(1003)])
    found = [
        estimate_optin_probabilities(group, head, BlenderParams(_BUDGET, max_head_queries=200))[1] for _ in range(5)
    ]
    shares = [float(p) for estimates in found for p in estimates.records.probability]
    off = sum(not on_grid(p, group.n_users) for p in shares)
    spoiled = sum(not on_grid(p + math.ulp(p), group.n_users) for p in shares)
    detail = f"{off} of {len(shares):,} shares off the grid of 1/{group.n_users}; one bit added to each: {spoiled}"
    verdict = judged(holds=not off, has_power=spoiled > 0.9 * len(shares))
    return Finding("opt-in shares (paper)", verdict, detail, trials=len(shares))


def on_grid(share: float, n: int) -> bool:
    return round(share * n) / n == share


def _counted(effort: Effort) -> Finding:
    params = BlenderParams(_BUDGET, max_head_queries=10**6)
    group = InMemoryGroup.from_users([[Record(f"q{i % 60}", f"u{i % 7}")] for i in range(3000)])
    found = count_head_list(group, params, curator_design(params))
    whole = _all_integers(found.counts.tolist())
    detail = f"{len(found.counts):,} counts of type {found.counts.dtype}"
    return Finding("stability histogram (best)", judged(holds=whole), detail, trials=len(found.counts))


def _graph(algorithm: str) -> Finding:
    params = ClickGraphParams(
        Budget(8.0, 0.01),
        algorithm=algorithm,
        max_queries_per_user=2,
        max_clicks_per_user=2,
        urls="private",
        reformulations="typed",
        allow_large_delta=True,
    )
    people = [[Search(f"a{i % 5}", 0.0, (f"u{i % 3}",)), Search(f"b{i % 5}", 1.0, ("u",))] for i in range(1500)]
    release = release_data(InMemoryClickLog(people), params)
    counts = [row.count for rows in (release.queries, release.clicks, release.reformulations) for row in rows]
    detail = f"{len(counts):,} counts of queries, clicks and reformulations"
    verdict = judged(holds=_all_integers(counts), has_power=len(counts) > 10)
    return Finding(f"click graph ({algorithm})", verdict, detail, trials=len(counts))


def _all_integers(counts: Iterable[object]) -> bool:
    return all(type(count) is int for count in counts)


def _float_laplace(n: int) -> Sequence[float]:
    """What textbooks do: a count and the logarithm of a uniform double."""
    source = SystemRandomness()
    uniform = [(word(source) >> 11) / (1 << 53) for _ in range(n)]
    return [3 + math.copysign(1, u - 0.5) * -math.log(1 - 2 * abs(u - 0.5) or 2**-53) for u in uniform]


def low_bits(effort: Effort) -> list[Finding]:
    """Whole numbers have no bits below one: the trailing bits of every released count, as doubles, are zero."""
    params = BlenderParams(_BUDGET, max_head_queries=10**6)
    group = InMemoryGroup.from_users([[Record(f"q{i % 60}")] for i in range(3000)])
    found = count_head_list(group, params, curator_design(params))
    fine = sum(bool(_bits(float(n)) & 0xFFFFFFFF) for n in found.counts)
    off = sum(bool(_bits(x) & 0xFFFFFFFF) for x in _float_laplace(1000))
    detail = (
        f"{fine} of {len(found.counts)} counts use the low 32 bits of a double; noise in floating point: {off} of 1,000"
    )
    return [Finding("low-order bits of counts", judged(holds=not fine, has_power=off > 900), detail)]


def _bits(value: float) -> int:
    return int(np.int64(struct.unpack("<q", struct.pack("<d", value))[0]))
