"""Noise on every count of a tally, and what passes the threshold. [BLJ] Fig. 3, [KKMN09] Algorithm 1 step 3."""

from __future__ import annotations

import numpy as np

from searchblend.mechanisms.tally import RecordTally
from searchblend.mechanisms.threshold import Threshold
from searchblend.randomness import Randomness
from searchblend.records import Record


def noisy_counts(tally: RecordTally, threshold: Threshold, *, randomness: Randomness) -> dict[Record, int]:
    """The records whose noisy count reaches T, with that count: one draw for each distinct record, however rare.

    Records with the same count are exchangeable, so the noises of all that share a count are drawn as one array and
    only those that pass are fetched: memory follows the head, not the log.
    """
    passed: dict[Record, int] = {}
    for count, how_many in sorted(tally.sizes().items()):
        noisy = count + threshold.noise.sample(how_many, randomness)
        ranks = np.flatnonzero(noisy >= threshold.integer)
        if len(ranks):
            passed.update(zip(tally.pick(count, ranks), noisy[ranks].tolist(), strict=True))
    return passed
