"""How far one report can move a published share: a bound over all reports, not a derivative.

A report may be added, left out or say something else; a fabricated one says what no honest device would. At each tilt
the blend is linear in the reports, so its largest movement is found exactly, by naming the items that matter most. What
a report does to the weights of the tilts and to the doubts is bounded by monotone pieces (proofs/estimates.md §6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.blend import Blend
from searchblend.blender.best.joint_least_squares import Joint
from searchblend.blender.best.observations import ClientSource, OptinCounts, People
from searchblend.blender.best.trust import TILTS, Gaps, doubt, log_likelihood
from searchblend.blender.estimates import Floats
from searchblend.core.records import HeadList

_ROUNDING: Final = 1e-9
"""more than floating point adds, relative and in shares"""


@dataclass(frozen=True)
class _Change:
    """A report comes, goes or becomes another: how many of its parts of each kind are added and left out."""

    added: tuple[int, ...]
    left_out: tuple[int, ...]

    @property
    def people(self) -> int:
        return any(self.added) - any(self.left_out)


@dataclass(frozen=True)
class _Range:
    """Between what bounds something may lie, query by query."""

    low: Floats
    high: Floats

    def __add__(self, other: _Range) -> _Range:
        return _Range(self.low + other.low, self.high + other.high)

    @property
    def largest(self) -> Floats:
        return np.maximum(np.abs(self.low), np.abs(self.high))


def best_influence(head: HeadList, optin: OptinCounts, clients: Sequence[ClientSource], people: People) -> Floats:
    """By query, ⋆ last: no report moves the published share by more, whatever it says and whatever the others said."""
    now = Blend(head, optin, clients, people)
    testable = optin.testable(len(head))
    bounds = [np.zeros(len(head) + 1)]
    for change in _changes(len(clients), people.reports_each):
        sizes = [
            source.n + added - gone for source, added, gone in zip(clients, change.added, change.left_out, strict=True)
        ]
        if min(sizes) < 1 or people.n_clients + change.people < 1:
            return np.ones(len(head) + 1)
        others = [source.of_size(n) for source, n in zip(clients, sizes, strict=True)]
        then = Blend(head, optin, others, replace(people, n_clients=people.n_clients + change.people))
        bounds.append(_Step(now, then, others, change, testable).bound())
    return _published(now, np.max(bounds, axis=0) * (1 + _ROUNDING) + _ROUNDING / people.n)


def _changes(kinds: int, parts: int) -> Iterator[_Change]:
    nothing = (0,) * kinds
    reports = [
        tuple(chosen.count(kind) for kind in range(kinds))
        for chosen in combinations_with_replacement(range(kinds), parts)
    ]
    for added in [nothing, *reports]:
        for left_out in [nothing, *reports]:
            if added != nothing or left_out != nothing:
                yield _Change(added, left_out)


class _Step:
    """From one state of the round to all that differ from it by a report of given kinds."""

    def __init__(
        self, now: Blend, then: Blend, clients: Sequence[ClientSource], change: _Change, testable: NDArray[np.bool_]
    ) -> None:
        self._now, self._then, self._clients = now, then, clients
        self._change, self._testable = change, testable
        parts = zip(clients, change.added, change.left_out, strict=True)
        self._loud = sum((added + gone) * source.named for source, added, gone in parts)
        """how many queries the added and the left out reports can name"""

    def bound(self) -> Floats:
        """By query, ⋆ last: the largest movement of the blend before it is projected."""
        now = self._now
        share = self._reached(self._then.clients_alone, quiet=False)
        hushed = self._reached(self._then.clients_alone, quiet=True)
        ratio_low, ratio_high = self._weight_ratios(share, hushed)
        weights, by_tilt = now.trust.weights, now.by_tilt
        mean = weights @ by_tilt
        turned = weights * np.maximum(np.abs(ratio_low - 1), np.abs(ratio_high - 1))
        moved = turned @ np.abs(by_tilt - mean)
        moved_sum = turned @ np.abs(by_tilt.sum(axis=1) - mean.sum())
        for number, tilt in enumerate(TILTS):
            at_most = weights[number] * ratio_high[number]
            if at_most < 1e-300:
                continue
            joint = now.solved[number].totals
            reached, total = self._movement(number)
            doubts, change = _doubt_range(self._then.gaps, share, tilt, now.trust.doubts[number])
            shifted = change * np.abs(joint - now.gaps.optin)
            moved += at_most * (reached + shifted)
            moved_sum += at_most * (total + float((doubts * reached).sum() + shifted.sum()))
        return np.append(moved, moved_sum)

    def _reached(self, solution: Joint, *, quiet: bool, first: int = 0) -> _Range:
        """Where every query's total may lie; ``quiet``: where it may lie while no report names the query."""
        movement = _Range(solution.totals, solution.totals)
        for kind, source in enumerate(self._clients):
            rows, own = _rows(solution, first + kind)
            low, high = source.extremes(rows, np.where(own, 0.0, rows) if quiet else rows)
            movement = movement + self._of_parts(kind, low / source.n, high / source.n)
        return movement

    def _of_parts(self, kind: int, low: Floats, high: Floats) -> _Range:
        added, gone = self._change.added[kind], self._change.left_out[kind]
        return _Range(added * low - gone * high, added * high - gone * low)

    def _movement(self, number: int) -> tuple[Floats, float]:
        """The largest movement of each query's joint estimate at a tilt, and of their sum."""
        before, after = self._now.solved[number], self._then.solved[number]
        reached = self._reached(after, quiet=False, first=1)
        total = after.totals.sum() - before.totals.sum()
        whole = _Range(np.array([total]), np.array([total]))
        for kind, source in enumerate(self._clients):
            rows = _rows(after, 1 + kind)[0].sum(axis=0, keepdims=True)
            low, high = source.extremes(rows, rows)
            whole = whole + self._of_parts(kind, low / source.n, high / source.n)
        moved = _Range(reached.low - before.totals, reached.high - before.totals)
        return moved.largest, float(whole.largest[0])

    def _weight_ratios(self, share: _Range, hushed: _Range) -> tuple[Floats, Floats]:
        """By what factors each tilt's weight may change."""
        low, high = np.zeros((2, len(TILTS)))
        for number, tilt in enumerate(TILTS):
            z, slope = self._now.gaps.standardized(tilt)
            before = (log_likelihood(z) + slope)[self._testable]
            loud = _likelihood_range(self._then.gaps, share, tilt, self._testable)
            quiet = _likelihood_range(self._then.gaps, hushed, tilt, self._testable)
            high[number] = (quiet.high - before).sum() + _largest(loud.high - quiet.high, self._loud)
            low[number] = (quiet.low - before).sum() - _largest(quiet.low - loud.low, self._loud)
        # What all tilts have in common cancels.
        centre = float((self._now.trust.weights * (low + high) / 2).sum())
        low, high = np.exp(low - centre), np.exp(high - centre)
        weights = self._now.trust.weights
        return low / (weights @ high), high / (weights @ low)


def _rows(solution: Joint, source: int) -> tuple[Floats, NDArray[np.bool_]]:
    """How each total (row) follows each observation of a source, and which observations are the query's own."""
    gain = solution.gain(source)
    n, each = gain.own.shape
    rows = np.einsum("qj,poj->qpo", gain.reach, gain.spread)
    rows[np.arange(n), np.arange(n)] += gain.own
    own = np.zeros((n, n, each), dtype=np.bool_)
    own[np.arange(n), np.arange(n)] = True
    asked = solution.asked(source)
    return rows[:, asked], own[:, asked]


def _largest(values: Floats, n: int) -> float:
    return float(np.sort(np.maximum(values, 0.0))[::-1][:n].sum())


def _z_range(gaps: Gaps, share: _Range, tilt: float) -> tuple[_Range, _Range]:
    """z and ln dz/dx where the clients' share may lie; z rises with the share, the slope falls."""
    low, least = replace(gaps, client=share.low).standardized(tilt)
    high, most = replace(gaps, client=share.high).standardized(tilt)
    return _Range(low, high), _Range(most, least)


def _likelihood_range(gaps: Gaps, share: _Range, tilt: float, testable: NDArray[np.bool_]) -> _Range:
    """The likelihood falls with the distance of z from 0."""
    z, slope = _z_range(gaps, share, tilt)
    nearest = np.clip(0.0, z.low, z.high)
    low, high = log_likelihood(z.largest) + slope.low, log_likelihood(nearest) + slope.high
    return _Range(low[testable], high[testable])


def _doubt_range(gaps: Gaps, share: _Range, tilt: float, before: Floats) -> tuple[Floats, Floats]:
    """The largest doubt, and its largest change: doubt rises with z."""
    z, _ = _z_range(gaps, share, tilt)
    least, most = doubt(z.low), doubt(z.high)
    return most, np.maximum(np.abs(least - before), np.abs(most - before))


def _published(now: Blend, bound: Floats) -> Floats:
    """The bound after negative shares became 0 and, where the listed ones may exceed 1, all were rescaled."""
    shares = now.trust.weights @ now.by_tilt
    listed, every = np.maximum(shares, 0.0), float(bound[:-1].sum())
    rest = bound[-1] + float(bound[:-1][shares < bound[:-1]].sum())
    rescaled = every if listed.sum() + every > 1 else 0.0
    moved: Floats = np.append(bound[:-1] + listed / max(listed.sum(), 1.0) * rescaled, rest + rescaled)
    return np.minimum(moved, 1.0)
