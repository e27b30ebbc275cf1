"""People known only by how many hold each record: a simulation that costs the same for a thousand and for a billion.

The algorithms ask a group for tallies and cell counts and nothing else, and one record per user makes both functions of
the counts. Drawing the counts (multinomial) instead of the people is therefore the same experiment
(proofs/counted_people.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from searchblend.blender.estimates import Floats
from searchblend.blender.groups import OwnShares, Weights
from searchblend.core.randomness import Randomness
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import InMemoryTally, Ints, ListedRecords, QueriesOnly, RecordUniverse
from searchblend.synthetic.population import Profile, url_shares

_KEPT: Final = 32
"""groups that a model remembers: two for each of a forecast's runs, for both methods"""


class RecordModel:
    """Shares of single records; what they leave of 1 belongs to records so rare that no list names them."""

    def __init__(self, universe: RecordUniverse, shares: Floats, profile: Profile | None = None) -> None:
        self.universe, self.shares, self.profile = universe, shares, profile
        self._drawn: dict[tuple[int, str] | None, tuple[Ints, Any]] = {}

    @classmethod
    def of_profile(cls, profile: Profile, ranks: int = 20_000) -> RecordModel:
        shares = profile.shares()[:ranks, None] * url_shares(np.arange(ranks, dtype=np.int64))
        return cls(profile.records, shares.ravel(), profile)

    @classmethod
    def of_records(cls, records: Sequence[Record], shares: Sequence[float]) -> RecordModel:
        return cls(ListedRecords(records), np.array(shares, dtype=np.float64))

    def top_queries(self, n: int) -> dict[str, float]:
        """The n most frequent queries with their shares, most frequent first."""
        numbers, first, where = np.unique(
            self.universe.query_numbers(np.arange(len(self.shares))), return_index=True, return_inverse=True
        )
        totals = np.bincount(where, weights=self.shares, minlength=len(numbers))
        order = np.argsort(-totals, kind="stable")[:n]
        return {str(self.universe[int(first[i])].query): float(totals[i]) for i in order.tolist()}

    def draw(self, n_users: int, generator: np.random.Generator) -> CountGroup:
        """A group of this many people."""
        counts = self._counts(n_users, generator)
        return CountGroup(self.universe, counts, n_users, generator)

    def _counts(self, n_users: int, generator: np.random.Generator) -> Ints:
        """How many hold each record. A forecast meets the same people with every method and budget; they are kept."""
        source = generator.bit_generator
        before = (n_users, repr(source.state)) if isinstance(source, np.random.PCG64) else None
        if before in self._drawn:
            counts, source.state = self._drawn[before]
            return counts
        rest = max(1 - float(self.shares.sum()), 0.0)
        counts = generator.multinomial(n_users, np.append(self.shares, rest))[:-1]
        counts.setflags(write=False)
        if before:
            self._drawn[before] = counts, source.state
            if len(self._drawn) > _KEPT:
                del self._drawn[next(iter(self._drawn))]
        return counts


class CountGroup:
    """A ``UserGroup`` of counts; one record per user."""

    def __init__(self, universe: RecordUniverse, counts: Ints, n_users: int, generator: np.random.Generator) -> None:
        self._universe, self._counts, self._n_users, self._generator = universe, counts, n_users, generator
        self._held = np.flatnonzero(counts)

    @property
    def n_users(self) -> int:
        return self._n_users

    @property
    def has_urls(self) -> bool:
        return self._universe.has_urls

    def seeded(self, generator: np.random.Generator) -> CountGroup:
        """The same people; what is drawn from them next comes from this generator."""
        return CountGroup(self._universe, self._counts, self._n_users, generator)

    def split(self, fraction: float, *, randomness: Randomness | None = None) -> tuple[CountGroup, CountGroup]:
        cut = round(fraction * self._n_users)
        all_users = np.append(self._counts[self._held], self._n_users - int(self._counts.sum()))
        part = np.zeros_like(self._counts)
        part[self._held] = self._generator.multivariate_hypergeometric(all_users, cut, method="marginals")[:-1]
        return self._parts(part, cut)

    def tilted_split(self, fraction: float, tilt: float) -> tuple[CountGroup, CountGroup]:
        """Opt-in users unlike clients: the odds of opting in are multiplied by exp(N(0, tilt)), drawn for each query.

        People whose records the model does not name have queries of their own, and so odds of their own.
        """
        numbers, where = np.unique(self._universe.query_numbers(self._held), return_inverse=True)
        rest = self._n_users - int(self._counts.sum())
        odds = fraction / (1 - fraction) * np.exp(tilt * self._generator.standard_normal(len(numbers)))
        part = np.zeros_like(self._counts)
        part[self._held] = self._generator.binomial(self._counts[self._held], (odds / (1 + odds))[where])
        points, weights = np.polynomial.hermite_e.hermegauss(41)
        mean_odds = fraction / (1 - fraction) * np.exp(tilt * points)
        share = float(weights @ (mean_odds / (1 + mean_odds)) / weights.sum())
        return self._parts(part, int(part.sum()) + int(self._generator.binomial(rest, share)))

    def _parts(self, part: Ints, n_part: int) -> tuple[CountGroup, CountGroup]:
        return (
            CountGroup(self._universe, part, n_part, self._generator),
            CountGroup(self._universe, self._counts - part, self._n_users - n_part, self._generator),
        )

    def top_queries(self, n: int) -> dict[str, float]:
        """The n most frequent queries with their shares, most frequent first; ties by bytes."""
        numbers, first, where = np.unique(
            self._universe.query_numbers(self._held), return_index=True, return_inverse=True
        )
        totals = np.bincount(where, weights=self._counts[self._held], minlength=len(numbers))
        near = np.argsort(-totals, kind="stable")[: 2 * n]
        named = [(str(self._universe[int(self._held[first[i]])].query), float(totals[i])) for i in near.tolist()]
        named.sort(key=lambda pair: (-pair[1], pair[0].encode()))
        return {query: total / self._n_users for query, total in named[:n]}

    def tally(self) -> InMemoryTally:
        return InMemoryTally(self._universe, self._held, self._counts[self._held])

    def weighted_queries(self, weights: Weights, *, randomness: Randomness | None = None) -> InMemoryTally:
        numbers = self._universe.query_numbers(self._held)
        _, first, where = np.unique(numbers, return_index=True, return_inverse=True)
        totals = np.bincount(where, weights=self._counts[self._held]).astype(np.int64)
        return InMemoryTally(QueriesOnly(self._universe), self._held[first], totals * weights.table[1])

    def weighted_records(
        self, queries: Sequence[str], weights: Weights, *, randomness: Randomness | None = None
    ) -> InMemoryTally:
        wanted = HeadList((query, ()) for query in queries)
        held = self._held[self._universe.cells(wanted, self._held) < wanted.n_cells - 1]
        return InMemoryTally(self._universe, held, self._counts[held] * weights.table[1])

    def own_shares(self, head: HeadList, units: int, *, randomness: Randomness | None = None) -> OwnShares:
        counts = self.cell_counts(head) * units
        return OwnShares(counts, int(counts[:-1].sum()))

    def cell_counts(self, head: HeadList, draws: int = 1, *, randomness: Randomness | None = None) -> Ints:
        cells = self._universe.cells(head, self._held)
        counts = np.bincount(cells, weights=self._counts[self._held], minlength=head.n_cells).astype(np.int64)
        counts[-1] += self._n_users - int(self._counts.sum())
        return counts * draws
