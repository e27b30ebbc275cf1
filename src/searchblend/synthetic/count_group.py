"""People known only by how many hold each record: a simulation that costs the same for a thousand and for a billion.

The algorithms ask a group for tallies and cell counts and nothing else, and one record per user makes both functions of
the counts. Drawing the counts (multinomial) instead of the people is therefore the same experiment
(proofs/counted_people.md). People all of whose searches count are drawn one by one. A plan simulates runs with them:
``Situation`` says who takes part, ``Voices`` are the people of one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from searchblend.blender.estimates import Floats
from searchblend.blender.groups import InMemoryGroup, OwnShares, UserGroup, Weights
from searchblend.blender.method import method_named
from searchblend.blender.result import Result
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import UNIT, Budget
from searchblend.core.randomness import Randomness
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.mechanisms.tally import InMemoryTally, Ints, ListedRecords, QueriesOnly, RecordUniverse
from searchblend.synthetic.metrics import Truth
from searchblend.synthetic.population import (
    MEDIAN_SEARCHES,
    Profile,
    places,
    search_counts,
    url_shares,
    usual_searches,
)

MOST_SEARCHERS: Final = 300_000
"""Opt-in users who are drawn one by one with all of their searches; of more, one search each is drawn."""
_UNITS: Final = 1_000
"""of a person's voice, for the truth"""
_KEPT: Final = 24
"""groups that are remembered: at most three for each of eight runs"""


class RecordModel:
    """Shares of single records; what they leave of 1 belongs to records so rare that no list names them."""

    def __init__(self, universe: RecordUniverse, shares: Floats) -> None:
        self.universe, self.shares = universe, shares
        self._drawn: dict[tuple[int, tuple[int, ...]], CountGroup] = {}

    @classmethod
    def of_profile(cls, profile: Profile, ranks: int = 20_000) -> RecordModel:
        shares = profile.shares()[:ranks, None] * url_shares(np.arange(ranks, dtype=np.int64))
        return cls(profile.records, shares.ravel())

    @classmethod
    def of_records(cls, records: Sequence[Record], shares: Sequence[float]) -> RecordModel:
        return cls(ListedRecords(records), np.array(shares, dtype=np.float64))

    @classmethod
    def of_result(cls, result: Result) -> RecordModel:
        """From an earlier result: its released shares. Lists longer than that one cannot be foreseen."""
        rows = [(row.query, row.url, row.probability or 0.0) for row in result.records]
        listed = [(query, url, share) for query, url, share in rows if query is not None and share > 0]
        records = [Record(query, WILDCARD if url is None else url) for query, url, _ in listed]
        return cls.of_records(records, [share for _, _, share in listed])

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

    def drawn(self, n_users: int, seed: tuple[int, ...]) -> CountGroup:
        """The group of this seed; the last ones are remembered, as a forecast meets the same people again and again."""
        if (n_users, seed) not in self._drawn:
            if len(self._drawn) == _KEPT:
                del self._drawn[next(iter(self._drawn))]
            self._drawn[n_users, seed] = self.draw(n_users, np.random.Generator(np.random.PCG64(seed)))
        return self._drawn[n_users, seed].again()

    def searchers(
        self, n_users: int, median: int, generator: np.random.Generator, *, drawn: Ints | None = None
    ) -> InMemoryGroup:
        """People with all of their searches, half of them with ``median`` or fewer; all searches are drawn alike.

        A search that the model does not name is of a query that no other user has. ``drawn`` is one search of each.
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
        translated = numbers.copy()
        translated[is_named] = self._universe.query_numbers(numbers[is_named])
        return translated

    def cells(self, head: HeadList, numbers: Ints) -> Ints:
        is_named = numbers < self._named
        cells = np.full(len(numbers), head.n_cells - 1, dtype=np.int64)
        cells[is_named] = self._universe.cells(head, numbers[is_named])
        return cells


class CountGroup:
    """A ``UserGroup`` of counts; one record per user."""

    unit = UNIT

    def __init__(self, universe: RecordUniverse, counts: Ints, n_users: int, generator: np.random.Generator) -> None:
        self._universe, self._counts, self._n_users, self._generator = universe, counts, n_users, generator
        self._held = np.flatnonzero(counts)

    @property
    def n_users(self) -> int:
        return self._n_users

    @property
    def has_urls(self) -> bool:
        return self._universe.has_urls

    @property
    def has_rows(self) -> bool:
        return False

    def seeded(self, generator: np.random.Generator) -> CountGroup:
        """The same people; what is drawn from them next comes from this generator."""
        return CountGroup(self._universe, self._counts, self._n_users, generator)

    def again(self) -> CountGroup:
        """The same people, from whom the same is drawn next."""
        return self.seeded(deepcopy(self._generator))

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


@dataclass(frozen=True)
class Situation:
    """Who takes part, and what they spend."""

    users: int
    optin_fraction: float
    params: BlenderParams
    searches: int = MEDIAN_SEARCHES
    """of a person, half of them having more; 1: everyone has one"""

    @property
    def n_optin(self) -> int:
        return max(round(self.users * self.optin_fraction), 2)

    @property
    def is_crowd(self) -> bool:
        """Whether the opt-in users are more than can be drawn one by one."""
        return self.n_optin > MOST_SEARCHERS

    def params_of(self, method: str) -> BlenderParams:
        """Those that are simulated: the printed method takes one record, and so do more people than can be drawn."""
        is_one = method == "paper" or self.is_crowd
        return replace(self.params, records_per_optin=1) if is_one else method_named(method).settled(self.params)

    def of_one_record(self) -> Situation:
        """The same people, with one record of each opt-in user taken."""
        return replace(self, params=replace(self.params, records_per_optin=1))

    def settled(self) -> Situation:
        """The same people, with the number of records settled as in a run of method ``best``."""
        return replace(self, params=method_named("best").settled(self.params))

    def with_budget(self, epsilon: float) -> Situation:
        return replace(self, params=replace(self.params, budget=Budget(epsilon, self.params.budget.delta)))

    def with_fraction(self, field: str, value: float) -> Situation:
        """Another ``head_fraction`` or ``query_budget_fraction`` of the printed method."""
        if field == "head_fraction":
            return replace(self, params=replace(self.params, head_fraction=value))
        return replace(self, params=replace(self.params, query_budget_fraction=value))


@dataclass(frozen=True)
class Voices:
    """Who takes part in one simulated run, and what all of them search."""

    optin: UserGroup
    clients: UserGroup
    unseen: CountGroup | None
    """the other searches of people of whom one search is drawn"""
    whole: bool
    """whether all searches of the opt-in users are in their group; else one is drawn of them, too"""

    @classmethod
    def draw(cls, model: RecordModel, situation: Situation, params: BlenderParams, seed: tuple[int, int]) -> Voices:
        """The same seed gives the same clients, whatever is asked of them and of the opt-in users."""
        whole = params.records_per_optin != 1
        clients = model.drawn(situation.users - situation.n_optin, (*seed, 0))
        optin: UserGroup = (
            model.searchers(situation.n_optin, situation.searches, np.random.Generator(np.random.PCG64([*seed, 1])))
            if whole
            else model.drawn(situation.n_optin, (*seed, 1))
        )
        drawn = clients.n_users + (0 if whole else optin.n_users)
        n_unseen = round((usual_searches(situation.searches) - 1) * drawn)
        return cls(optin, clients, model.drawn(n_unseen, (*seed, 2)) if n_unseen else None, whole)

    def truth(self, head: HeadList) -> Truth:
        """All users' own shares, each user with the same weight."""
        drawn = self.clients.cell_counts(head).astype(np.float64)
        known = np.zeros_like(drawn)
        if self.whole:
            known += self.optin.own_shares(head, _UNITS).cells / _UNITS
        else:
            drawn += self.optin.cell_counts(head)
        searched = drawn + (self.unseen.cell_counts(head) if self.unseen else 0)
        return Truth.of(head, known + searched * (drawn.sum() / searched.sum()))
