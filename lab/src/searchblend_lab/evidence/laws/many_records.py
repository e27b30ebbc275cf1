"""Is the curator over many records as private as it says? Its joint law, one user replaced, added up over all outputs.

What a user adds comes from the shipped group: weights of queries, weights of records, own shares. Thresholds and noises
are those of the shipped design. Given which queries and records are named, everything published is independent, so that
the law of the privacy loss is a convolution. Losses are rounded down to a grid: the δ found is never above the true
one, and off by little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, product
from typing import Any, Final

import numpy as np
from scipy.special import erfc

from searchblend.blender.best.many_records_design import ManyRecordsDesign, WeightThreshold, many_records_design
from searchblend.blender.groups import InMemoryGroup, UserGroup
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.rounded_gaussian import gaussian_at_least
from searchblend.mechanisms.tally import Tally

Rows = Sequence[Record]
Law = tuple[int, np.ndarray]
"""masses under P by privacy loss, from this grid point on"""
_STEP: Final = 2.0**-8
_NEGLIGIBLE: Final = 1e-14
_LARGEST_SIGMA: Final = 200
_OWN: Final = [Record(name, "u") for name in "abc"]


@dataclass(frozen=True)
class ManyRecordsCurator:
    """A curator under test: its design, and how a group answers its questions."""

    design: ManyRecordsDesign
    group_of: Callable[[Rows], UserGroup]


MakeCurator = Callable[[Budget, bool], ManyRecordsCurator]


def shipped_design(budget: Budget, has_urls: bool) -> ManyRecordsDesign:
    return many_records_design(budget, 3, has_urls=has_urls, largest_sigma=_LARGEST_SIGMA)


def shipped_group(rows: Rows) -> InMemoryGroup:
    return InMemoryGroup.from_users([rows], randomness=Tape(bytes(64)))


def shipped_curator(budget: Budget, has_urls: bool) -> ManyRecordsCurator:
    return ManyRecordsCurator(shipped_design(budget, has_urls), shipped_group)


def check_many_records(make: MakeCurator, setting: tuple[Budget, bool]) -> None:
    """No pair of users, whoever else is there, is told apart better than (ε, δ) allows."""
    budget, has_urls = setting
    stated = shipped_design(budget, has_urls).delta
    assert stated <= budget.delta
    curator = make(budget, has_urls)
    assert all(delta <= stated for delta in _deltas(curator, budget.epsilon, has_urls=has_urls))  # the first is enough


def _deltas(curator: ManyRecordsCurator, epsilon: float, *, has_urls: bool) -> Iterator[float]:
    for one, other in _replaced(has_urls):
        for held in _beside(curator.design):
            yield joint_delta(curator, one, other, held, epsilon, has_urls=has_urls)


def _replaced(has_urls: bool) -> Iterator[tuple[Rows, Rows]]:
    """One query against another, one against three, three against repeats; both ways."""
    a, b, c = (record if has_urls else Record(record.query) for record in _OWN)
    for one, other in product(([a], [a, b, c]), ([b], [c, c, b])):
        yield one, other
        yield other, one


def _beside(design: ManyRecordsDesign) -> Iterator[Mapping[Record, int]]:
    """What other people give to the items: nothing to any, enough to be named or not to some or to all."""
    queries, records = design.queries.integer, design.records.integer if design.records else 0
    for held in ("", "a", "abc"):
        yield {
            **{Record(name): queries for name in held},
            **{Record(name, "u"): records for name in held},
        }


def joint_delta(
    curator: ManyRecordsCurator, one: Rows, other: Rows, held: Mapping[Record, int], epsilon: float, *, has_urls: bool
) -> float:
    """Σ (P − e^ε P')₊ over everything that is published."""
    design, groups = curator.design, [curator.group_of(rows) for rows in (one, other)]
    weights = [_counted(group.weighted_queries(design.queries.weights, randomness=_zeros())) for group in groups]
    total = 0.0
    for queries, named in _namings(weights, held, design.queries):
        if design.records is None or not queries:
            total += _measured(curator, groups, HeadList((str(q.query), ()) for q in queries), [named], epsilon)
            continue
        names = [str(query.query) for query in queries]
        inner = [
            _counted(group.weighted_records(names, design.records.weights, randomness=_zeros())) for group in groups
        ]
        for records, found in _namings(inner, {r: n for r, n in held.items() if r.query in names}, design.records):
            head = HeadList((name, [str(r.url) for r in records if r.query == name]) for name in names)
            total += _measured(curator, groups, head, [named, found], epsilon)
    return total


@dataclass(frozen=True)
class _Naming:
    """What one step says: the losses of the weights, what is seen in one of both alone, and what is not named."""

    laws: tuple[Law, ...]
    impossible: bool
    """whether something is named that the neighbour does not have"""
    mass: float
    """P of an impossible output"""


def _namings(
    weights: Sequence[Mapping[Record, int]], held: Mapping[Record, int], step: WeightThreshold
) -> Iterator[tuple[list[Record], _Naming]]:
    """Every set of items that may be named, with the law of their weights; items without a URL are queries."""
    is_query = all(record.url is not None and not isinstance(record.url, str) for w in weights for record in w)
    kept = {record: n for record, n in held.items() if isinstance(record.url, str) is not is_query}
    before, after = ({r: w.get(r, 0) + kept.get(r, 0) for r in {*weights[0], *weights[1], *kept}} for w in weights)
    present = sorted((r for r in before if before[r]), key=str)
    for named in chain.from_iterable(combinations(present, size) for size in range(len(present) + 1)):
        laws = [_named_law(before[r], after[r], step) for r in named if after[r]]
        silent = [(_below(before[r], step), _below(after[r], step)) for r in sorted(before, key=str) if r not in named]
        alone = [r for r in named if not after[r]]
        mass = math.prod(gaussian_at_least(step.integer - before[r], step.noise.scale) for r in named)
        quiet = math.prod(p for p, _ in silent), math.prod(q for _, q in silent)
        yield list(named), _Naming((_scalar(*quiet), *laws), bool(alone), mass * quiet[0])


def _below(count: int, step: WeightThreshold) -> float:
    return 1 - gaussian_at_least(step.integer - count, step.noise.scale) if count else 1.0


def _measured(
    curator: ManyRecordsCurator,
    groups: Sequence[UserGroup],
    head: HeadList,
    named: Iterable[_Naming],
    epsilon: float,
) -> float:
    """What this naming adds to δ, the own shares of its cells measured."""
    steps = list(named)
    if any(step.impossible for step in steps):
        return math.prod(step.mass for step in steps)
    design = curator.design
    one, other = (group.own_shares(head, design.units, randomness=_zeros()) for group in groups)
    cells = (one.cells - other.cells).tolist()
    totals = np.bincount(head.query_of_cells(), weights=cells, minlength=len(head) + 1)[:-1]
    records = [cells[i] for i, cell in enumerate(list(head.cells())[:-1]) if isinstance(cell.url, str)]
    moved = [(int(d), design.noise.scale) for d in totals]
    moved += [(int(d), design.detail_noise.scale) for d in (*records, cells[-1], one.squares - other.squares)]
    laws = [law for step in steps for law in step.laws]
    laws += [_shift_law(abs(shift), sigma) for shift, sigma in moved if shift]
    start, mass = _together(laws)
    loss = (start + np.arange(len(mass))) * _STEP
    return float((mass * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


@lru_cache(maxsize=4096)
def _shift_law(shift: int, sigma: float) -> Law:
    """The loss of a rounded Gaussian against the same moved by a whole number."""
    reach = math.ceil(9 * sigma)
    values = np.arange(-reach - shift, reach + shift + 1)
    return _law(_mass(values, sigma), _mass(values + shift, sigma))


@lru_cache(maxsize=4096)
def _named_rule(count: int, other: int, threshold: int, sigma: float) -> Law:
    reach = math.ceil(9 * sigma)
    values = np.arange(threshold, max(count, other, threshold) + reach + 1)
    return _law(_mass(values - count, sigma), _mass(values - other, sigma))


def _named_law(count: int, other: int, step: WeightThreshold) -> Law:
    """The loss of a published weight, of those that reach the threshold."""
    return _named_rule(count, other, step.integer, step.noise.scale)


def _mass(values: np.ndarray, sigma: float) -> np.ndarray:
    """P(round(G) = value), from the nearer tail so that small ones keep their digits."""
    far = np.abs(values)
    tails: np.ndarray = erfc((np.arange(far.max() + 2) - 0.5) / (sigma * math.sqrt(2))) / 2
    masses: np.ndarray = (tails[:-1] - tails[1:])[far]
    return masses


def _scalar(p: float, q: float) -> Law:
    return _law(np.array([p]), np.array([q]))


def _law(p: np.ndarray, q: np.ndarray) -> Law:
    p, q = p[(p > 0) & (q > 0)], q[(p > 0) & (q > 0)]
    place = np.floor(np.log(p / q) / _STEP).astype(np.int64)
    start = int(place.min())
    return start, np.bincount(place - start, weights=p)


def _together(laws: Iterable[Law]) -> Law:
    start, mass = 0, np.ones(1)
    for first, other in laws:
        mass, start = np.convolve(mass, other), start + first
        kept = np.flatnonzero(mass > _NEGLIGIBLE)
        if len(kept):
            mass, start = mass[kept[0] : kept[-1] + 1], start + int(kept[0])
    return start, mass


def _counted(tally: Tally) -> dict[Record, int]:
    return {record: n for n, records in tally.at_least(1).items() for record in records}


def _zeros() -> Any:
    return Tape(bytes(1 << 10))
