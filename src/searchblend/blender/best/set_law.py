"""How sets and sinks follow from what people hold: the estimator that undoes it, and the covariance of its errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from searchblend.blender.best.subset_report import SetMechanism
from searchblend.blender.best.subset_report_bulk import SubsetCounts
from searchblend.blender.estimates import Floats
from searchblend.mechanisms.subset_selection import PlainSubsetSelection


@dataclass(frozen=True)
class SetLaw:
    """The probabilities of one report that estimates and their errors are made of."""

    own: float
    """p: the holder of an item names it"""
    other: float
    """q_w: the holder of another item names it"""
    star: float
    """q: the holder of ⋆ names it"""
    sink_of_holder: float
    sink_of_star: float
    pair_of_holder: float
    """the holder of an item names it and a given other one"""
    pair_of_other: float
    """the holder of a third item names two given ones"""
    pair_of_star: float
    named: int
    """d: items in a set"""
    star_is_item: bool
    """whether a set may name ⋆ (there is no sink then)"""

    @classmethod
    def of(cls, mechanism: SetMechanism) -> SetLaw:
        m, d = mechanism.n_items, mechanism.subset_size
        if isinstance(mechanism, PlainSubsetSelection):
            keep = mechanism.include
            other = (keep * (d - 1) + (1 - keep) * d) / m
            pair = (keep * (d - 1) * (d - 2) + (1 - keep) * d * (d - 1)) / max(m * (m - 1), 1)
            return cls(keep, other, other, 0.0, 0.0, keep * (d - 1) / m, pair, pair, d, True)
        include, sink = mechanism.include, mechanism.sink_of_holder
        without = 1 - include - sink
        other = (include * (d - 1) + without * d) / (m - 1) if m > 1 else 0.0
        return cls(
            include,
            other,
            (1 - include) * d / m,
            sink,
            include,
            pair_of_holder=include * (d - 1) / max(m - 1, 1),
            pair_of_other=(include * (d - 1) * (d - 2) + without * d * (d - 1)) / max((m - 1) * (m - 2), 1),
            pair_of_star=(1 - include) * d * (d - 1) / max(m * (m - 1), 1),
            named=d,
            star_is_item=False,
        )

    @property
    def gap(self) -> float:
        """p − q_w: undoing the randomization magnifies by 1/gap"""
        return self.own - self.other

    @property
    def _sink_weight(self) -> float:
        """κ: how much a sink moves an item's estimate, before the division by p − q_w"""
        if self.other == self.star:
            return 0.0
        return (self.other - self.star) / (self.sink_of_star - self.sink_of_holder)

    @property
    def one_report(self) -> tuple[float, float, float]:
        """The estimate of an item from a single report: one that names it, a set without it, the sink."""
        constant = self.star + self._sink_weight * self.sink_of_star
        return (1 - constant) / self.gap, -constant / self.gap, (self._sink_weight - constant) / self.gap

    @property
    def influence(self) -> float:
        """n times the most that one report can move an item's estimate"""
        return max(self.one_report) - min(self.one_report)

    def extremes(self, rows: Floats, named: Floats) -> tuple[Floats, Floats]:
        """The least and the largest Σ row·(estimate from a single report), over all reports, for every row.

        ``named`` has the rows' entries that a set may name, as many as there are items (0 for one that it may not).
        """
        hit, miss, sink = self.one_report
        total = rows.sum(axis=1)
        choices = np.concatenate([named, np.zeros((len(rows), 1))], axis=1) if self.star_is_item else named
        ordered = np.sort(choices, axis=1)
        low = miss * total + (hit - miss) * ordered[:, : self.named].sum(axis=1)
        high = miss * total + (hit - miss) * ordered[:, -self.named :].sum(axis=1)
        if self.star_is_item:
            return low, high
        return np.minimum(low, sink * total), np.maximum(high, sink * total)

    def estimate(self, counts: SubsetCounts) -> Floats:
        """Unbiased shares of all items: the sinks tell how many people hold any item at all."""
        fewer_sinks = self.sink_of_star - counts.sinks / counts.n
        estimate: Floats = counts.items / counts.n - self.star - self._sink_weight * fewer_sinks
        return estimate / self.gap

    def noise(self, share: Floats, holders: float) -> Floats:
        """n · Var of the randomization in the estimate of an item; sampling adds share·(1 − share)."""
        spread = (
            share * self._variance(self.own, self.sink_of_holder)
            + np.maximum(holders - share, 0.0) * self._variance(self.other, self.sink_of_holder)
            + max(1 - holders, 0.0) * self._variance(self.star, self.sink_of_star)
        )
        result: Floats = spread / self.gap**2
        return result

    def _variance(self, named: float, sink: float) -> float:
        kappa = self._sink_weight
        return named + kappa**2 * sink - (named + kappa * sink) ** 2

    def covariance(self, share: Floats, holders: float, repeated: float = 0.0) -> tuple[Floats, Floats]:
        """n · the covariance of all items' estimates: D and K of D + U K Uᵀ, where U has the columns 1 and ``share``.

        Two items are named together with a probability that is linear in their shares, and so are their means.
        ``repeated``: what one person's further reports add, in units of the covariance of one drawn record each.
        """
        sinks = self._sink_weight**2
        of_holder, of_star = self.pair_of_other + sinks * self.sink_of_holder, sinks * self.sink_of_star
        together = holders * of_holder + (1 - holders) * (self.pair_of_star + of_star)
        mean = self.other + self._sink_weight * self.sink_of_holder
        constant = (together - mean**2) / self.gap**2
        slope = (self.pair_of_holder - self.pair_of_other) / self.gap**2 - mean / self.gap
        strength = np.array([[constant, slope], [slope, -1.0]])
        own = self.noise(share, holders) + share * (1 - share) - (constant + 2 * slope * share - share**2)
        strength[1, 1] -= repeated
        return own + repeated * share, strength
