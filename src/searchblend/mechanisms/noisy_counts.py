"""Noise on every count of a tally, and what passes the threshold. [BLJ] Fig. 3, [KKMN09] Algorithm 1 step 3."""

from __future__ import annotations

from collections.abc import Sequence
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
    listed: dict[Record, int] = {}
    for count, passing in ranks.items():
        records = rare[count] if count in rare else _at(common[count], passing)
        listed.update(zip(records, noisy[count], strict=True))
    return listed


def _at(records: Sequence[Record], ranks: Ints) -> Sequence[Record]:
    """The records at these ascending positions; far above the threshold that is nearly always all of them."""
    return records if len(ranks) == len(records) else [records[rank] for rank in ranks.tolist()]
