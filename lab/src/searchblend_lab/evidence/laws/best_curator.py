"""Is the whole curator release of method ``best`` as private as it says? The shipped code, driven; exact laws.

Noise is replaced by chosen numbers, so that ``count_head_list`` itself shows which noisy counts it lists, what it
releases and what enters ⟨q,⋆⟩ in every case. The laws of the noises then give the law of the whole output: names, noisy
counts, residual counts and the wide list. Queries are independent, records of one query are tied by its residual count.

Two neighbours are compared as pairs (P, P') over all outputs; outputs with the same likelihood ratio are added up: the
hockey-stick is unchanged and the lists are short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from searchblend.blender.best.stability_histogram import CountedHeadList, CuratorDesign, count_head_list
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.tally import InMemoryTally, ListedRecords
from searchblend_lab.evidence.laws.selection import FixedNoise, Sampled, stand_in

Counts = tuple[int, ...]
"""of the records of one query"""
Listed = tuple[bool, ...]
Pairs = tuple[np.ndarray, np.ndarray]
"""P and P' of classes of outputs"""
CountHeadList = Callable[..., CountedHeadList]

HUGE = 10**7
WINDOW = 3
"""values on each side of a threshold that are tried"""
ROUNDING = 1e-13
"""of sums of doubles"""
EVERYTHING = BlenderParams(Budget(1, 0.5), max_head_queries=10**9)


@dataclass(frozen=True)
class Curator:
    """A curator under test: its public design, and the step that runs it."""

    design: CuratorDesign
    count: CountHeadList = count_head_list


@dataclass(frozen=True)
class TalliedGroup:
    """A group of which only the tally is known; it shares no contribution bound with the shipped groups."""

    counted: InMemoryTally
    n_users: int = 1000
    has_urls: bool = True

    def tally(self) -> InMemoryTally:
        return self.counted


class Queue(Sampled):
    """Noise that is known beforehand: one array for each time that it is asked for."""

    def __init__(self, draws: Iterable[np.ndarray]) -> None:
        self._draws = list(draws)

    def sample(self, size: int, randomness: Randomness) -> np.ndarray:
        assert self._draws, "noise was drawn more often than there are counts"
        assert len(self._draws[0]) == size, "one draw for each distinct record"
        return self._draws.pop(0)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the curator asked for {name} of the noise")


def chosen_noise(tally: InMemoryTally, noise_of: Callable[[Record], int]) -> Queue:
    """A noise of its own choice for each record; the curator asks count by count, the least first."""
    return Queue(
        np.array([noise_of(record) for record in tally.pick(count, np.arange(size))])
        for count, size in sorted(tally.sizes().items())
    )


def released(
    curator: Curator,
    counts: Mapping[Record, int],
    noise_of: Callable[[Record], int],
    residual_noise: int = 0,
    wide_noise: Queue | int = -HUGE,
) -> dict[Record, int]:
    """What the curator publishes for these counts and noises: cells with their figures, in the published order."""
    present = {record: n for record, n in counts.items() if n}
    tally = InMemoryTally(ListedRecords(list(present)), np.arange(len(present)), np.array(list(present.values())))
    design, wide = curator.design, curator.design.wide_threshold
    wide_draws = FixedNoise(wide_noise) if isinstance(wide_noise, int) else wide_noise
    chosen = replace(
        design,
        threshold=replace(design.threshold, noise=stand_in(chosen_noise(tally, noise_of))),
        residual_noise=stand_in(FixedNoise(residual_noise)),
        wide_threshold=wide and replace(wide, noise=stand_in(wide_draws)),
    )
    result = curator.count(TalliedGroup(tally), EVERYTHING, chosen, randomness=SystemRandomness())
    return dict(zip(list(result.head.cells())[:-1], result.counts.tolist(), strict=True))


# --- what the code does, learned from the code -----------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Which noisy values are listed, by exact count: tried around the threshold and far away, constant in between."""

    middle: int
    listed: Mapping[int, Mapping[int, bool]]

    def mask(self, count: int, values: np.ndarray) -> np.ndarray:
        seen = self.listed[count]
        near = np.array([seen[value] for value in range(self.middle - WINDOW, self.middle + WINDOW + 1)])
        place = values - (self.middle - WINDOW)
        is_near = (place >= 0) & (place < len(near))
        far = np.where(values < self.middle, seen[-HUGE], seen[HUGE])
        return np.where(is_near, near[np.where(is_near, place, 0)], far)

    @property
    def is_threshold(self) -> bool:
        """Whether exactly the values from ``middle`` on are listed, whatever the exact count."""
        return all(named == (value >= self.middle) for seen in self.listed.values() for value, named in seen.items())


def _tried(middle: int) -> list[int]:
    return [-HUGE, *range(middle - WINDOW, middle + WINDOW + 1), HUGE]


def record_rule(curator: Curator, max_count: int) -> Rule:
    """Every count 1..max_count, each in a query of its own, with noise that makes the noisy count a given value."""
    middle = curator.design.threshold.integer
    counts = {Record(f"{n:06}", "u"): n for n in range(1, max_count + 1)}
    listed: dict[int, dict[int, bool]] = {n: {} for n in counts.values()}
    for value in _tried(middle):
        said = released(curator, counts, partial(lambda record, value: value - counts[record], value=value))
        assert all(said[record] == value for record in counts if record in said), "what is released is N + Y"
        for record, n in counts.items():
            listed[n][value] = record in said
    return Rule(middle, listed)


def wide_rule(curator: Curator, max_sum: int) -> Rule | None:
    """The same for ⟨q,⋆⟩ of queries without a listed record; their sums 1..max_sum are made of unclipped records."""
    wide = curator.design.wide_threshold
    if wide is None:
        return None
    sums = range(1, max_sum + 1)
    parts = {Record(f"{s:06}", WILDCARD): _parts(s, max(curator.design.clip, 1)) for s in sums}
    counts = {Record(star.query, f"u{i}"): n for star, part in parts.items() for i, n in enumerate(part)}
    listed: dict[int, dict[int, bool]] = {s: {} for s in sums}
    for value in _tried(wide.integer):
        noise = Queue(np.array([value - s]) for s in sums)
        said = released(curator, counts, lambda _: -HUGE, wide_noise=noise)
        assert all(n == value for n in said.values()), "what is released is Z"
        for s, star in zip(sums, parts, strict=True):
            listed[s][value] = star in said
    return Rule(wide.integer, listed)


def _parts(total: int, largest: int) -> list[int]:
    return [largest] * (total // largest) + ([total % largest] if total % largest else [])


def residual_sums(curator: Curator, configs: Iterable[Counts]) -> dict[tuple[Counts, Listed], int]:
    """What enters ⟨q,⋆⟩ of a query with these counts when these of its records are listed; all queries in one run.

    A query of which nothing is listed shows its sum on the wide list, if there is one.
    """
    sums: dict[tuple[Counts, Listed], int] = {}
    by_length: dict[int, list[Counts]] = {}
    for config in sorted(set(configs)):
        by_length.setdefault(len(config), []).append(config)
    for length, all_configs in by_length.items():
        for listed in product((False, True), repeat=length):
            possible = [c for c in all_configs if all(n for n, named in zip(c, listed, strict=True) if named)]
            sums |= {(config, listed): s for config, s in _sums(curator, possible, listed).items()}
    return sums


def _sums(curator: Curator, configs: Sequence[Counts], listed: Listed) -> dict[Counts, int]:
    counts = {Record(f"{i:06}", f"u{j}"): n for i, config in enumerate(configs) for j, n in enumerate(config)}
    wanted = {record for record, n in counts.items() if n and listed[int(str(record.url)[1:])]}
    said = released(curator, counts, lambda r: HUGE if r in wanted else -HUGE, wide_noise=HUGE)
    named = {record for record in said if record.url is not WILDCARD}
    assert named == wanted, "other records are listed than those with enough noise"
    assert all(said[record] == counts[record] + HUGE for record in wanted)
    sums = {}
    for i, config in enumerate(configs):
        star = Record(f"{i:06}", WILDCARD)
        if any(listed):
            sums[config] = said[star]
        elif star in said:
            sums[config] = said[star] - HUGE
        else:
            assert curator.design.wide_threshold is None or not any(config), "the wide list names who is loud enough"
            sums[config] = 0
    return sums


# --- laws ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """P(Y = y) for y = −reach..reach."""

    probability: np.ndarray

    @property
    def reach(self) -> int:
        return len(self.probability) // 2

    @classmethod
    def ideal(cls, noise: DiscreteLaplace) -> Law:
        """The formula, up to where the tail is below 1e-17."""
        a = math.exp(-float(noise.rate))
        reach = math.ceil(40 / float(noise.rate))
        return cls((1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1)))

    @classmethod
    def sampled(cls, noise: DiscreteLaplace) -> Law:
        """The table sampler as it is shipped, exactly (to double precision)."""
        law = noise.sampled_probabilities()
        return cls(np.array([float(law[y]) for y in range(min(law), max(law) + 1)]))

    def at(self, values: np.ndarray) -> np.ndarray:
        index = values + self.reach
        inside = (index >= 0) & (index < len(self.probability))
        return np.where(inside, self.probability[np.clip(index, 0, len(self.probability) - 1)], 0.0)


def compressed(pairs: Pairs) -> Pairs:
    """Outputs with the same likelihood ratio added up."""
    p, q = pairs
    possible = (p > 0) | (q > 0)
    p, q = p[possible], q[possible]
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    _, where = np.unique(np.round(loss, 9), return_inverse=True)
    return np.bincount(where, weights=p), np.bincount(where, weights=q)


def together(*independent: Pairs) -> Pairs:
    """Outputs of independent parts."""
    (p, q), *others = independent
    for one, other in others:
        p, q = (p[:, None] * one).ravel(), (q[:, None] * other).ravel()
    return p, q


def hockey_stick(pairs: Pairs, growth: float) -> float:
    p, q = pairs
    return float(np.maximum(p - growth * q, 0).sum())


def scalar(p: float, q: float) -> Pairs:
    return np.array([p]), np.array([q])


class CuratorLaw:
    """The law of everything that a curator publishes about one query, for any counts of its records."""

    def __init__(
        self,
        curator: Curator,
        configs: Iterable[Counts],
        law_of: Callable[[DiscreteLaplace], Law] = Law.ideal,
    ) -> None:
        configs = set(configs)
        self._design = curator.design
        self._law, self._residual_law = law_of(curator.design.threshold.noise), law_of(curator.design.residual_noise)
        self._rule = record_rule(curator, max(max(config) for config in configs))
        self._sums = residual_sums(curator, configs)
        silent = {s for (_, listed), s in self._sums.items() if not any(listed)}
        self._wide_rule = wide_rule(curator, max(silent)) if max(silent, default=0) else None
        self._record_cache: dict[tuple[int, int], tuple[Pairs, Pairs]] = {}
        self.pairs = cache(self._pairs)
        self._residual = cache(self._residual_pairs)

    @property
    def rules_are_thresholds(self) -> bool:
        return self._rule.is_threshold and (self._wide_rule is None or self._wide_rule.is_threshold)

    def _pairs(self, before: Counts, after: Counts) -> Pairs:
        """All outputs about one query, (P, P')."""
        pieces = [self._of_pattern(before, after, listed) for listed in product((False, True), repeat=len(before))]
        return compressed(tuple(np.concatenate(side) for side in zip(*pieces, strict=True)))  # type: ignore[arg-type]

    def _of_pattern(self, before: Counts, after: Counts, listed: Listed) -> Pairs:
        records = [self._record(n, m)[named] for n, m, named in zip(before, after, listed, strict=True)]
        p, q = together(*records)
        if not p.any() or not q.any():
            return scalar(float(p.sum()), float(q.sum()))
        if any(listed):
            residual = self._residual(self._sums[before, listed] - self._sums[after, listed])
        else:
            residual = self._silent(before, after, listed)
        return together((p, q), residual)

    def _record(self, n: int, m: int) -> tuple[Pairs, Pairs]:
        """(not listed, listed) of one record with count n before and m after."""
        if (n, m) not in self._record_cache:
            values = np.arange(-self._law.reach, max(n, m, self._rule.middle) + self._law.reach + 1)
            (one, quiet), (other, still) = (_listed(self._law, self._rule, count, values) for count in (n, m))
            listed = compressed((one, other)) if n or m else scalar(0.0, 0.0)
            self._record_cache[n, m] = scalar(quiet, still), listed
        return self._record_cache[n, m]

    def _residual_pairs(self, difference: int) -> Pairs:
        """A released Z: only the difference of the exact sums matters."""
        reach = self._residual_law.reach + abs(difference)
        values = np.arange(-reach, reach + 1)
        return compressed((self._residual_law.at(values - difference), self._residual_law.at(values)))

    def _silent(self, before: Counts, after: Counts, listed: Listed) -> Pairs:
        """A query of which no record is listed: nothing, or what the wide list says."""
        if self._wide_rule is None:
            return scalar(1.0, 1.0)
        sums = [self._sums[config, listed] if any(config) else 0 for config in (before, after)]
        values = np.arange(-self._residual_law.reach, max(*sums, self._wide_rule.middle) + self._residual_law.reach + 1)
        (p, quiet), (q, still) = (_listed(self._residual_law, self._wide_rule, s, values) for s in sums)
        return compressed((np.append(p, quiet), np.append(q, still)))


def _listed(law: Law, rule: Rule, count: int, values: np.ndarray) -> tuple[np.ndarray, float]:
    """P(listed with each noisy value) and P(not listed); what is absent has no noise and is never listed."""
    if not count:
        return np.zeros(len(values)), 1.0
    named, probability = rule.mask(count, values), law.at(values - count)
    return np.where(named, probability, 0.0), float(probability[~named].sum())


# --- neighbours ------------------------------------------------------------------------------------------------------

Move = tuple[tuple[Counts, Counts], ...]
"""for each query that one person touches: its counts before and after"""


def one_record_moves(threshold: int, beside: Sequence[int]) -> list[Move]:
    """Every replace-one move of one record: within a query and between two, counts 0..T+3, beside a third record."""
    last = threshold + 3
    within = [(((n, m, c), (n - 1, m + 1, c)),) for n in range(1, last + 1) for m in range(last) for c in beside]
    leaving = [((n, c), (n - 1, c)) for n in range(1, last + 1) for c in beside]
    joining = [((m, c), (m + 1, c)) for m in range(last) for c in beside]
    return [*within, *((left, joined) for left in leaving for joined in joining)]


def check_moves(
    curator: Curator,
    moves: Sequence[Move],
    epsilon: float,
    delta: float,
    law_of: Callable[[DiscreteLaplace], Law] = Law.ideal,
) -> float:
    """No move is told apart by more than (ε, δ), in either direction. Returns the largest hockey-stick."""
    law = CuratorLaw(curator, (config for move in moves for pair in move for config in pair), law_of)
    growth = math.exp(epsilon)
    worst = 0.0
    for move in moves:
        p, q = together(*(law.pairs(before, after) for before, after in move))
        worst = max(worst, hockey_stick((p, q), growth), hockey_stick((q, p), growth))
    assert worst <= delta * (1 + 1e-9) + ROUNDING, f"{worst:.6g} > {delta:.6g}"
    return worst


def check_listing(curator: Curator, stated: CuratorDesign) -> None:
    """Listed is exactly what reaches the stated thresholds, each record by its own noise and in no telling order."""
    rule = record_rule(curator, stated.threshold.integer + 3)
    assert rule.is_threshold
    assert rule.middle == stated.threshold.integer
    if stated.wide_threshold:
        wide = wide_rule(curator, stated.threshold.integer)
        assert wide is None or (wide.is_threshold and wide.middle == stated.wide_threshold.integer)
    check_own_noise(curator)


def check_own_noise(curator: Curator) -> None:
    """Every record and every query has its own draw, and the order follows what is released, not what is hidden."""
    middle = curator.design.threshold.integer
    counts = {Record(f"q{i}", "u"): i + 1 for i in range(9)}
    noise = {record: 3 * middle + (7 * i) % 9 * 20 for i, record in enumerate(counts)}
    said = released(curator, counts, noise.__getitem__)
    assert {record: said[record] - counts[record] for record in counts} == noise
    totals = [said[record] + said[Record(record.query, WILDCARD)] for record in said if record.url is not WILDCARD]
    assert totals == sorted(totals, reverse=True)
