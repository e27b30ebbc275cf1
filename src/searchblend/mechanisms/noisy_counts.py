"""Noise on every count of a tally, and what passes the threshold. [BLJ] Fig. 3, [KKMN09] Algorithm 1 step 3."""

from __future__ import annotations

from searchblend.mechanisms.tally import RecordTally
from searchblend.mechanisms.threshold import Threshold
from searchblend.randomness import Randomness
from searchblend.records import Record


def noisy_counts(tally: RecordTally, threshold: Threshold, *, randomness: Randomness) -> dict[Record, int]:
    """The records whose noisy count reaches T, with that count: one draw for each distinct record, however rare.

    Records with the same count are exchangeable, so the noises of all that share a count are drawn as one array. Of the
    many rare ones only those that pass are fetched: memory follows the head, not the log (proofs/tallies.md).
    """
    passed: dict[Record, int] = {}
    common = tally.at_least(threshold.integer)
    for count, how_many in sorted(tally.sizes().items()):
        ranks, noise = threshold.noise.reaching(threshold.integer - count, how_many, randomness)
        if not len(ranks):
            continue
        records = [common[count][rank] for rank in ranks.tolist()] if count in common else tally.pick(count, ranks)
        passed.update(zip(records, (count + noise).tolist(), strict=True))
    return passed
