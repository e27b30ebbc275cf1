"""People known only by how many hold each record: a simulation that costs the same for a thousand and for a billion.

The algorithms ask a group for tallies and cell counts and nothing else, and one record per user makes both functions of
the counts. Drawing the counts (multinomial) instead of the people is therefore the same experiment
(proofs/counted_people.md). People all of whose searches count are drawn one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from searchblend.blender.estimates import Floats
from searchblend.blender.groups import InMemoryGroup, OwnShares, Weights
from searchblend.core.randomness import Randomness
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.mechanisms.tally import InMemoryTally, Ints, ListedRecords, QueriesOnly, RecordUniverse
from searchblend.synthetic.population import Profile, places, search_counts, url_shares


class RecordModel:
    """Shares of single records; what they leave of 1 belongs to records so rare that no list names them."""

    def __init__(self, universe: RecordUniverse, shares: Floats) -> None:
        self.universe, self.shares = universe, shares

    @classmethod
    def of_profile(cls, profile: Profile, ranks: int = 20_000) -> RecordModel:
        shares = profile.shares()[:ranks, None] * url_shares(np.arange(ranks, dtype=np.int64))
        return cls(profile.records, shares.ravel())

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
        rest = max(1 - float(self.shares.sum()), 0.0)
        drawn = generator.multinomial(n_users, np.append(self.shares, rest))
        return CountGroup(self.universe, drawn[:-1], n_users, generator)

    def searchers(
        self, n_users: int, median: int, generator: np.random.Generator, *, drawn: Ints | None = None
    ) -> InMemoryGroup:
        """People with all of their searches, half of them with ``median`` or fewer; all searches are drawn alike.

        A search that the model does not name is of a query that nobody else has. ``drawn`` is one search of each.
        """
        lengths = search_counts(n_users, median, generator)
        cumulative = np.cumsum(self.shares)
        rows = places(cumulative, generator.random(int(lengths.sum())) * max(float(cumulative[-1]), 1.0))
        rare = np.flatnonzero(rows == len(cumulative))
        rows[rare] += np.arange(len(rare))
        starts = np.cumsum(lengths) - lengths
        if drawn is not None:
            rows[starts] = drawn
        return InMemoryGroup(_WithRare(self.universe, len(cumulative)), rows, starts, lengths, rows[starts])


class _WithRare:
    """A universe whose numbers from ``named`` on are records that one search alone is of.

    Should noise list one (a chance of about δ), that search still counts as ⋆.
    """

    def __init__(self, universe: RecordUniverse, named: int) -> None:
        self._universe, self._named, self.has_urls = universe, named, universe.has_urls

    def __getitem__(self, number: int) -> Record:
        if number < self._named:
            return self._universe[number]
        return Record(f"rare query {number - self._named}", "rare.example" if self.has_urls else WILDCARD)

    def query_numbers(self, numbers: Ints) -> Ints:
        is_named = numbers < self._named
        found = numbers.copy()
        found[is_named] = self._universe.query_numbers(numbers[is_named])
        return found

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        is_named = numbers < self._named
        cells = np.full(len(numbers), head.n_cells - 1, dtype=np.int64)
        cells[is_named] = self._universe.cells(head, numbers[is_named])
        return cells


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
