"""Noise on every count of a tally, and what passes the threshold. [BLJ] Fig. 3, [KKMN09] Algorithm 1 step 3."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.noise_table import IntegerNoise
from searchblend.mechanisms.tally import Ints, Tally


class NoisyThreshold(Protocol):
    """Keep iff N + Y ≥ T."""

    @property
    def integer(self) -> int:
        """T"""
        ...

    @property
    def noise(self) -> IntegerNoise:
        """Y"""
        ...


@contextmanager
def _without_collector() -> Iterator[None]:
    """A head is some hundred thousand small objects that stay: looking for garbage among them takes a quarter of the
    time, and there is none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_collector()
def noisy_counts(tally: Tally, threshold: NoisyThreshold, *, randomness: Randomness) -> dict[Record, int]:
    """The records whose noisy count reaches T, with that count: one draw for each distinct record, however rare.

    Records with the same count are exchangeable, so the noises of all that share a count are drawn as one array. Of the
    many rare ones only those that pass are fetched: memory follows the head, not the log (proofs/tallies.md).
    """
    ranks: dict[int, Ints] = {}
    noisy: dict[int, list[int]] = {}
    for count, how_many in sorted(tally.sizes().items()):
        passing, noise = threshold.noise.reaching(threshold.integer - count, how_many, randomness)
        if len(passing):
            ranks[count], noisy[count] = passing, (count + noise).tolist()
    common = tally.at_least(threshold.integer)
    rare = tally.pick_each({count: passing for count, passing in ranks.items() if count < threshold.integer})
    passed: dict[Record, int] = {}
    for count, passing in ranks.items():
        records = rare[count] if count in rare else [common[count][rank] for rank in passing.tolist()]
        passed.update(zip(records, noisy[count], strict=True))
    return passed
