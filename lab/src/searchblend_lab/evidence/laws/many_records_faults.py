"""Curators over many records that leak: each must be rejected by the enumeration of the joint law."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from searchblend.blender.best.many_records_design import ManyRecordsDesign, WeightThreshold
from searchblend.blender.groups import OwnShares, UserGroup, Weights
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian, on_sigma_grid
from searchblend_lab.evidence.laws.many_records import (
    MakeCurator,
    ManyRecordsCurator,
    Rows,
    shipped_curator,
    shipped_design,
    shipped_group,
)


def _changed(change: Callable[[ManyRecordsDesign], ManyRecordsDesign]) -> MakeCurator:
    def make(budget: Budget, has_urls: bool) -> ManyRecordsCurator:
        return ManyRecordsCurator(change(shipped_design(budget, has_urls)), shipped_group)

    return make


def _scaled(noise: RoundedGaussian, factor: float) -> RoundedGaussian:
    return RoundedGaussian(on_sigma_grid(noise.scale * factor))


def _of_steps(change: Callable[[WeightThreshold], WeightThreshold]) -> Callable[[ManyRecordsDesign], ManyRecordsDesign]:
    return lambda design: replace(
        design, queries=change(design.queries), records=change(design.records) if design.records else None
    )


def _without_root_two(design: ManyRecordsDesign) -> ManyRecordsDesign:
    """As if a user were added, and not replaced."""
    less = _of_steps(lambda step: replace(step, noise=_scaled(step.noise, math.sqrt(0.5))))(design)
    return replace(
        less, noise=_scaled(design.noise, math.sqrt(0.5)), detail_noise=_scaled(design.detail_noise, math.sqrt(0.5))
    )


class _Rising(Weights):
    """Weights 1/s^0.2: the norm grows with the number of queries."""

    @property
    def table(self) -> list[int]:
        return [0, *(math.floor(self.units / held**0.2) for held in range(1, self.items + 1))]


class _Full(Weights):
    """Every query has the whole weight."""

    @property
    def table(self) -> list[int]:
        return [0, *[self.units] * self.items]


def _weighing(kind: type[Weights]) -> Callable[[ManyRecordsDesign], ManyRecordsDesign]:
    return _of_steps(lambda step: replace(step, weights=kind(step.weights.items, step.weights.units)))


def _lower_threshold(step: WeightThreshold) -> WeightThreshold:
    """As if what one user alone holds had no weight of its own."""
    return replace(step, integer=step.integer - step.weights.units)


@dataclass(frozen=True)
class _Altered:
    """A group whose own shares are not what they should be."""

    group: UserGroup
    alter: Callable[[UserGroup, HeadList, int], OwnShares]

    def own_shares(self, head: HeadList, units: int, **options: Any) -> OwnShares:
        return self.alter(self.group, head, units)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.group, name)


def _sharing(alter: Callable[[Sequence[Any], HeadList, int, Any], OwnShares]) -> MakeCurator:
    def make(budget: Budget, has_urls: bool) -> ManyRecordsCurator:
        def group_of(rows: Rows) -> Any:
            return _Altered(shipped_group(rows), lambda group, head, units: alter(rows, head, units, group))

        return replace(shipped_curator(budget, has_urls), group_of=group_of)

    return make


def _row_in_full(rows: Rows, head: HeadList, units: int, group: Any) -> OwnShares:
    """Every row has all the units of its user."""
    cells = np.bincount([head.cell_of(row) for row in rows], minlength=head.n_cells) * units
    return OwnShares(cells, int(cells[:-1].sum()))


def _squares_undivided(rows: Rows, head: HeadList, units: int, group: Any) -> OwnShares:
    shares: OwnShares = group.own_shares(head, units)
    return replace(shares, squares=shares.squares * units)


FAULTS: Final[dict[str, MakeCurator]] = {
    "many records: weights 1/s^0.2": _changed(_weighing(_Rising)),
    "many records: every query in full": _changed(_weighing(_Full)),
    "many records: noise for a user who is added": _changed(_without_root_two),
    "many records: a quarter of the noise of totals": _changed(lambda d: replace(d, noise=_scaled(d.noise, 0.25))),
    "many records: a quarter of the noise of records": _changed(
        lambda d: replace(d, detail_noise=_scaled(d.detail_noise, 0.25))
    ),
    "many records: threshold lower by one user": _changed(_of_steps(_lower_threshold)),
    "many records: every row in full": _sharing(_row_in_full),
    "many records: squares not divided": _sharing(_squares_undivided),
}
