"""Every planted fault of method ``best``, by name. A check that accepts one of these is not a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from searchblend.blender.best import stability_histogram
from searchblend.blender.best.group_check import p_value_of
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.stability_histogram import CountedHeadList, CuratorDesign, count_head_list
from searchblend.blender.best.subset_report import ReportDesign, SubsetReport, subset_report
from searchblend.blender.best.subset_report_bulk import SubsetCounts, simulate_subsets
from searchblend.blender.groups import UserGroup
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness, word
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.subset_selection import (
    SINK,
    WORDS,
    PlainSubsetSelection,
    Subset,
    SubsetSelection,
    uniform_subset,
)
from searchblend.mechanisms.tally import Ints, RecordTally
from searchblend.mechanisms.threshold import Threshold, noisy_counts
from searchblend_lab.evidence.laws.best_curator import CountHeadList, Curator
from searchblend_lab.evidence.laws.best_reports import Report, SendReport, Simulate
from searchblend_lab.evidence.laws.selection import Sampled, stand_in

MakeCurator = Callable[[Budget, bool], Curator]

# --- the curator: (budget, wide) -> Curator --------------------------------------------------------------------------


def _design(bend: Callable[[CuratorDesign, Budget], CuratorDesign]) -> MakeCurator:
    """The shipped step with a wrong design."""
    return lambda budget, wide: Curator(bend(CuratorDesign.of(budget, wide=wide), budget))


def _step(**wrong: Any) -> MakeCurator:
    """The right design with a part of the step replaced."""

    def count(*arguments: Any, **options: Any) -> CountedHeadList:
        with patch.multiple(stability_histogram, **wrong):
            return count_head_list(*arguments, **options)

    return lambda budget, wide: Curator(CuratorDesign.of(budget, wide=wide), count)


def _with_count(wrong: CountHeadList) -> MakeCurator:
    return lambda budget, wide: Curator(CuratorDesign.of(budget, wide=wide), wrong)


def _threshold_moved(step: int) -> MakeCurator:
    return _design(
        lambda design, _: replace(design, threshold=replace(design.threshold, integer=design.threshold.integer + step))
    )


def _half_the_noise(design: CuratorDesign, budget: Budget) -> CuratorDesign:
    noise = DiscreteLaplace(2 * design.threshold.noise.rate)
    return replace(design, threshold=replace(design.threshold, noise=noise))


def _full_rate_residual(design: CuratorDesign, budget: Budget) -> CuratorDesign:
    return replace(design, residual_noise=design.threshold.noise)


def _listed_count_too(
    tally: RecordTally, listed: Mapping[Record, int], design: CuratorDesign, randomness: Randomness
) -> dict[Record, int]:
    """The residual also holds the (clipped) counts of the records that are listed anyway."""
    right = _NOISY_RESIDUALS(tally, listed, design, randomness)
    queries = sorted({str(query) for query, _ in listed})
    for record, count in tally.of_queries(queries).items():
        if record in listed:
            right[Record(record.query, WILDCARD)] += min(count, design.clip)
    return right


_NOISY_RESIDUALS = stability_histogram._noisy_residuals
_NOISY_COUNTS = noisy_counts


def _delta_again(design: CuratorDesign, budget: Budget) -> CuratorDesign:
    """The wide list takes the whole δ once more."""
    wide = stability_histogram._least_threshold(design.residual_noise, budget.delta)
    return replace(design, wide_threshold=wide)


def _every_query_named(design: CuratorDesign, budget: Budget) -> CuratorDesign:
    return replace(design, wide_threshold=Threshold(-1e6, -(10**6), design.residual_noise))


def _listed_by_the_exact_count(
    tally: RecordTally, threshold: Threshold, *, randomness: Randomness
) -> dict[Record, int]:
    noisy: dict[Record, int] = {}
    for count, how_many in sorted(tally.sizes().items()):
        values = count + threshold.noise.sample(how_many, randomness)
        if count >= threshold.integer:
            noisy.update(zip(tally.pick(count, np.arange(how_many)), values.tolist(), strict=True))
    return noisy


def _exact_counts_released(tally: RecordTally, threshold: Threshold, *, randomness: Randomness) -> dict[Record, int]:
    """Noise decides who is listed and is then left out of the figure."""
    noisy = _NOISY_COUNTS(tally, threshold, randomness=randomness)
    exact = {record: count for count, size in tally.sizes().items() for record in tally.pick(count, np.arange(size))}
    return {record: exact[record] for record in noisy}


def _drawn_twice(tally: RecordTally, threshold: Threshold, *, randomness: Randomness) -> dict[Record, int]:
    """One noise decides, another one is in the released count: two releases for the price of one."""
    _NOISY_COUNTS(tally, threshold, randomness=randomness)
    return _NOISY_COUNTS(tally, threshold, randomness=randomness)


class _OneDraw(Sampled):
    """Whatever is asked for, the first draw again."""

    def __init__(self, noise: Any) -> None:
        self._noise, self._drawn = noise, None

    def sample(self, size: int, randomness: Randomness) -> Ints:
        if self._drawn is None:
            self._drawn = self._noise.sample(size, randomness)[0]
        return np.full(size, self._drawn)


def _reused_noise(group: UserGroup, params: BlenderParams, design: CuratorDesign, **options: Any) -> CountedHeadList:
    reused = replace(design, threshold=replace(design.threshold, noise=stand_in(_OneDraw(design.threshold.noise))))
    return count_head_list(group, params, reused, **options)


def _ordered_by_exact_counts(
    group: UserGroup, params: BlenderParams, design: CuratorDesign, **options: Any
) -> CountedHeadList:
    result = count_head_list(group, params, design, **options)
    exact = group.tally().of_queries(result.head.queries)
    totals = {q: sum(n for record, n in exact.items() if record.query == q) for q in result.head.queries}
    said = dict(zip(result.head.cells(), result.counts.tolist(), strict=False))
    order = sorted(result.head.queries, key=lambda q: -totals[q])
    head = HeadList((query, result.head.urls(query)) for query in order)
    return replace(result, head=head, counts=np.array([said[cell] for cell in head.cells() if cell in said]))


CURATOR: dict[str, MakeCurator] = {
    "curator: noise scale halved": _design(_half_the_noise),
    "curator: T one lower": _threshold_moved(-1),
    "curator: residual not clipped": _design(lambda design, _: replace(design, clip=10**6)),
    "curator: clip one too high": _design(lambda design, _: replace(design, clip=design.clip + 1)),
    "curator: residual noise at full ε": _design(_full_rate_residual),
    "curator: residual counts listed records too": _step(_noisy_residuals=_listed_count_too),
    "curator: listed by the exact count": _step(noisy_counts=_listed_by_the_exact_count),
    "curator: exact counts released": _step(noisy_counts=_exact_counts_released),
    "curator: one noise to list, another to release": _step(noisy_counts=_drawn_twice),
    "curator: a residual of every query": _design(_every_query_named),
}
"""These lose privacy: enumeration of the release must reject them."""

WIDE = {"curator: the wide list spends δ again": _design(_delta_again)}

LISTING: dict[str, MakeCurator] = {
    "curator: > for >= at T": _threshold_moved(1),
    "curator: T one lower": _threshold_moved(-1),
    "curator: reused noise": _with_count(_reused_noise),
    "curator: ordered by exact counts": _with_count(_ordered_by_exact_counts),
    "curator: listed by the exact count": _step(noisy_counts=_listed_by_the_exact_count),
}
"""These list other records, or say more by the way: the check of the listing rule must reject them."""

# --- the device: (mechanism, item, randomness) -> set ----------------------------------------------------------------


def _lie_may_contain_the_item(mechanism: SubsetSelection, item: int | None, randomness: Randomness) -> Subset:
    decision = word(randomness)
    if item is None or decision < mechanism.sink_below:
        return mechanism.report(item, _With(decision, randomness))
    return uniform_subset(mechanism.n_items, mechanism.subset_size, randomness)


class _With:
    """A word put back."""

    cryptographic = False

    def __init__(self, first: int, rest: Randomness) -> None:
        self._first: int | None = first
        self._rest = rest

    def take(self, n_bytes: int) -> bytes:
        if self._first is None:
            return self._rest.take(n_bytes)
        first, self._first = self._first, None
        return first.to_bytes(8, "little")


def _no_sink_for_holders(mechanism: SubsetSelection, item: int | None, randomness: Randomness) -> Subset:
    """Who holds an item always sends a set: the sink then says "nothing listed" for sure."""
    said = mechanism.report(item, randomness)
    if said or item is None:
        return said
    return uniform_subset(mechanism.n_items, mechanism.subset_size, randomness)


def _sink_swapped(mechanism: SubsetSelection, item: int | None, randomness: Randomness) -> Subset:
    """Holders of ⋆ send a set where they should send the sink, and the sink where they should send a set."""
    if item is not None:
        return mechanism.report(item, randomness)
    said = mechanism.report(None, randomness)
    return SINK if said else uniform_subset(mechanism.n_items, mechanism.subset_size, randomness)


def _item_always_first(mechanism: SubsetSelection, item: int | None, randomness: Randomness) -> Subset:
    """The set is not sorted: the held item stands in front."""
    said = mechanism.report(item, randomness)
    return (item, *(other for other in said if other != item)) if item in said else said


def _neighbours_only(mechanism: SubsetSelection, item: int | None, randomness: Randomness) -> Subset:
    """The others are not uniform: they are the next ones."""
    said = mechanism.report(item, randomness)
    m = mechanism.n_items
    return tuple(sorted((item + i) % m for i in range(len(said)))) if item is not None and item in said else said


REPORT: dict[str, Report] = {
    "report: a lie may contain the own item": _lie_may_contain_the_item,
    "report: holders never send the sink": _no_sink_for_holders,
    "report: sink swapped for ⋆": _sink_swapped,
    "report: held item first": _item_always_first,
    "report: others are not uniform": _neighbours_only,
}
"""The driven law differs from the stated one."""

REPORT_THAT_LEAKS = set(REPORT) - {"report: sink swapped for ⋆"}
"""These besides exceed e^ε."""


def _thresholds(bend: Callable[[int, int], tuple[int, int]]) -> Callable[[Fraction, int, int], SubsetSelection]:
    def make(epsilon: Fraction, n_items: int, subset_size: int) -> SubsetSelection:
        right = SubsetSelection.of(epsilon, n_items, subset_size)
        include, sink = bend(right.include_below, right.sink_below - right.include_below)
        return replace(right, include_below=include, sink_below=min(include + sink, WORDS))

    return make


def _doubled(epsilon: Fraction, n_items: int, subset_size: int) -> SubsetSelection:
    return SubsetSelection.of(epsilon + Fraction(7, 10), n_items, subset_size)


MECHANISM: dict[str, Callable[[Fraction, int, int], SubsetSelection]] = {
    "mechanism: E doubled": _doubled,
    "mechanism: include rounded up by 3 words": _thresholds(lambda include, sink: (include + 3, sink)),
    "mechanism: include rounded up by a lot": _thresholds(lambda include, sink: (include + 2**48, sink)),
    "mechanism: sink rounded down": _thresholds(lambda include, sink: (include, sink - 1)),
    "mechanism: sink omitted": _thresholds(lambda include, sink: (include, 0)),
}
"""Thresholds that lose privacy: the exact columns must reject them."""

PLAIN_MECHANISM: dict[str, Callable[[Fraction, int, int], PlainSubsetSelection]] = {
    "plain sets: E doubled": lambda epsilon, m, d: PlainSubsetSelection.of(epsilon + Fraction(7, 10), m, d),
}

WRONG_MECHANISM: dict[str, Callable[[Fraction, int, int], SubsetSelection]] = {
    "mechanism: include and sink swapped": _thresholds(lambda include, sink: (sink, include)),
    "mechanism: e^(ε/2) for e^ε": lambda epsilon, m, d: SubsetSelection.of(epsilon / 2, m, d),
}
"""Private, but not what is printed."""

# --- the whole device: subset_report ---------------------------------------------------------------------------------


def _coin_looks_at_the_record(
    records: Sequence[Record], head: HeadList, design: ReportDesign, params: BlenderParams, *, randomness: Randomness
) -> tuple[SubsetReport, ...]:
    """Who holds a listed record rather talks about cells."""
    listed = head.cell_of(records[0]) < head.n_cells - 1
    bent = replace(design, query_steps=max(design.query_steps - 1, 1)) if listed else design
    return subset_report(records, head, bent, params, randomness=randomness)


def _unlisted_url_is_star(
    records: Sequence[Record], head: HeadList, design: ReportDesign, params: BlenderParams, *, randomness: Randomness
) -> tuple[SubsetReport, ...]:
    """Not a loss of privacy, but wrong: an unlisted URL of a listed query counts as nothing."""
    known = [r if r in set(head.cells()) else Record(WILDCARD, WILDCARD) for r in records]
    return subset_report(known, head, design, params, randomness=randomness)


def _whole_budget_per_cell(
    records: Sequence[Record], head: HeadList, design: ReportDesign, params: BlenderParams, *, randomness: Randomness
) -> tuple[SubsetReport, ...]:
    single = replace(params, records_per_client=1)
    return tuple(
        subset_report(records, head, design, single, randomness=randomness)[0] for _ in range(params.records_per_client)
    )


def _all_records_in_turn(
    records: Sequence[Record], head: HeadList, design: ReportDesign, params: BlenderParams, *, randomness: Randomness
) -> tuple[SubsetReport, ...]:
    """One cell for each record that the device has: the number of cells tells how many."""
    single = replace(params, records_per_client=1)
    return tuple(subset_report([r], head, design, single, randomness=randomness)[0] for r in records)


SEND: dict[str, SendReport] = {"device: the coin looks at the record": _coin_looks_at_the_record}
WRONG_SEND: dict[str, SendReport] = {"device: an unlisted URL is ⋆": _unlisted_url_is_star}
SEND_SEVERAL: dict[str, SendReport] = {
    "device: the whole budget for each cell": _whole_budget_per_cell,
    "device: a cell for every record": _all_records_in_turn,
}

# --- many clients at once --------------------------------------------------------------------------------------------


def _bulk(report: Report) -> Simulate:
    """A bulk simulation made of a wrong report."""

    def simulate(holders: Ints, mechanism: SubsetSelection, randomness: Randomness) -> SubsetCounts:
        items, sinks = np.zeros(mechanism.n_items, dtype=np.int64), 0
        for item, n in enumerate(holders.tolist()):
            for _ in range(n):
                said = report(mechanism, None if item == mechanism.n_items else item, randomness)
                items[list(said)] += 1
                sinks += not said
        return SubsetCounts(items, sinks, int(holders.sum()))

    return simulate


def _bulk_off_by_one(holders: Ints, mechanism: SubsetSelection, randomness: Randomness) -> SubsetCounts:
    counted = simulate_subsets(holders, mechanism, randomness)
    return replace(counted, items=np.roll(counted.items, 1))


def _bulk_sinks_lost(holders: Ints, mechanism: SubsetSelection, randomness: Randomness) -> SubsetCounts:
    """One report in a hundred is lost when it is a sink."""
    counted = simulate_subsets(holders, mechanism, randomness)
    lost = counted.sinks // 100
    return replace(counted, sinks=counted.sinks - lost, n=counted.n - lost)


BULK: dict[str, Simulate] = {
    "bulk: a lie may contain the own item": _bulk(_lie_may_contain_the_item),
    "bulk: items off by one": _bulk_off_by_one,
    "bulk: sinks lost": _bulk_sinks_lost,
}

# --- estimates: SetLaw -----------------------------------------------------------------------------------------------


class _SinksIgnored(SetLaw):
    def estimate(self, counts: SubsetCounts) -> Any:
        return (counts.items / counts.n - self.star) / (self.own - self.star)


class _OthersAsStar(SetLaw):
    """q for q_w: holders of other items treated as holders of ⋆."""

    def estimate(self, counts: SubsetCounts) -> Any:
        return SetLaw(**(asdict(self) | {"other": self.star})).estimate(counts)


class _NoCovariance(SetLaw):
    """Sinks and names of one report treated as independent."""

    def _variance(self, named: float, sink: float) -> float:
        return named * (1 - named) + self._sink_weight**2 * sink * (1 - sink)


class _AllHoldStar(SetLaw):
    """The noise of everyone taken as that of holders of ⋆."""

    def noise(self, share: Any, holders: float) -> Any:
        return super().noise(np.zeros_like(share), 0.0)


SET_ESTIMATE = {"estimate: sinks ignored": _SinksIgnored, "estimate: q for q_w": _OthersAsStar}
SET_NOISE = {"noise: no covariance with the sink": _NoCovariance, "noise: everyone holds ⋆": _AllHoldStar}


class _IndependentItems(SetLaw):
    """Items named independently: what one more item takes from the others is forgotten."""

    def covariance(self, share: Any, holders: float, repeated: float = 0.0) -> Any:
        return self.noise(share, holders) + share * (1 - share), np.zeros((2, 2))


class _SinksApart(SetLaw):
    """Two items that a sink moves together are taken to move apart."""

    def covariance(self, share: Any, holders: float, repeated: float = 0.0) -> Any:
        own, strength = super().covariance(share, holders, repeated)
        common = self._sink_weight**2 * (holders * self.sink_of_holder + (1 - holders) * self.sink_of_star)
        return own, strength - np.array([[common / self.gap**2, 0.0], [0.0, 0.0]])


SET_COVARIANCE = {
    "covariance: items independent": _IndependentItems,
    "covariance: sinks left out": _SinksApart,
}

# --- do the groups agree: p_value_of ---------------------------------------------------------------------------------


def _less_variance(z: Any, testable: Any) -> float:
    """As if one of the two groups were known exactly."""
    return p_value_of(np.sqrt(2) * z, testable)


def _always_agrees(z: Any, testable: Any) -> float:
    return 1.0


def _gap_averaged(z: Any, testable: Any) -> float:
    """Only the sum of all gaps is looked at: differences that cancel are not seen."""
    tested = max(int(testable.sum()), 1)
    return p_value_of(np.full_like(z, z[testable].sum() / tested), testable)


ALARMING_CHECK = {"check: half the variance": _less_variance}
BLIND_CHECK = {"check: always agrees": _always_agrees, "check: gaps averaged": _gap_averaged}
