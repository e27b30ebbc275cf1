"""Noise drawn by count and fetched by rank has the law of noise drawn record by record. proofs/tallies.md"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from searchblend.clickgraph.release.step import CountThreshold
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import Record
from searchblend.mechanisms.noisy_counts import noisy_counts
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.mechanisms.tally import InMemoryTally, ListedRecords
from searchblend_lab.evidence.laws.sampler import check_counts

RUNS = 12_000
COUNTS = {"a": 2, "b": 2, "c": 2, "d": 3, "e": 6}
NOISE = RoundedGaussian(Fraction(2))
THRESHOLD = CountThreshold(4, NOISE)
TALLY = InMemoryTally(
    ListedRecords([Record(query) for query in COUNTS]), np.arange(5), np.array(list(COUNTS.values()), dtype=np.int64)
)


def outcome(passed: dict[Record, int]) -> tuple[int, ...]:
    """For each record: not published, published at the threshold, or above."""
    found = {str(record.query): value for record, value in passed.items()}
    assert all(value >= THRESHOLD.integer for value in found.values())
    return tuple(0 if q not in found else 1 if found[q] == THRESHOLD.integer else 2 for q in COUNTS)


def expected() -> dict[tuple[int, ...], float]:
    """The product law: every record has noise of its own."""
    law = NOISE.sampled_probabilities()
    singles = []
    for count in COUNTS.values():
        at = float(law[THRESHOLD.integer - count])
        above = float(sum(p for y, p in law.items() if count + y > THRESHOLD.integer))
        singles.append((1 - at - above, at, above))
    return {
        key: float(np.prod([single[k] for single, k in zip(singles, key, strict=True)]))
        for key in product(range(3), repeat=len(COUNTS))
    }


def check_joint_law(publish) -> None:
    seen = Counter(outcome(publish()) for _ in range(RUNS))
    law = expected()
    common = [key for key, p in law.items() if RUNS * p >= 10]
    observed = [seen[key] for key in common]
    rare = 1 - sum(law[key] for key in common)
    assert RUNS * rare >= 10
    check_counts(
        np.array([*observed, RUNS - sum(observed)], dtype=float),
        RUNS * np.array([*(law[key] for key in common), rare]),
    )


def publish(noise=NOISE, tally=TALLY) -> dict[Record, int]:
    return noisy_counts(tally, SimpleNamespace(integer=4, noise=noise), randomness=SystemRandomness())


def test_the_joint_law_is_that_of_independent_noise():
    check_joint_law(publish)


class OneDrawForEachCount:
    """All records with the same count share one noise."""

    def reaching(self, floor, size, randomness):
        noise = np.repeat(NOISE.sample(1, randomness), size)
        positions = np.flatnonzero(noise >= floor)
        return positions, noise[positions]


class SomeValuesAgain:
    """The right records pass, but all of one count with the first one's value."""

    def reaching(self, floor, size, randomness):
        positions, values = NOISE.reaching(floor, size, randomness)
        return positions, np.repeat(values[:1], len(values))


class FirstOnes(InMemoryTally):
    """Fetches the first records of a count instead of those that passed."""

    def pick(self, count, ranks):
        return super().pick(count, np.arange(len(ranks)))


@pytest.mark.parametrize(
    "mutant",
    [
        lambda: publish(noise=OneDrawForEachCount()),
        lambda: publish(noise=SomeValuesAgain()),
        lambda: publish(tally=FirstOnes(TALLY._universe, TALLY._numbers, TALLY._counts)),
    ],
    ids=["one draw for each count", "values repeated", "first ranks fetched"],
)
def test_a_wrong_joint_law_is_rejected(mutant):
    with pytest.raises(AssertionError):
        check_joint_law(mutant)
