"""Clients who send several cells, each with its part of the budget. [BLJ] §4.3.1, m_C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from searchblend.blender.estimates import Floats
from searchblend.blender.groups import InMemoryGroup
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints, RecordUniverse
from searchblend.synthetic.metrics import Truth, score
from searchblend.synthetic.population import profile_named
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.algorithms import algorithm_named
from searchblend_lab.papers.blender.count_reports import CountedDevices
from searchblend_lab.papers.blender.hybrid_cells import coverage
from searchblend_lab.papers.people import IndexedRecords, LogPeople, generator, people_named, seed_of

MOST_RECORDS: Final = 60
_MEDIAN, _BELOW, _ABOVE = 17, 1.785, 1.54


def compute(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """One run with m_C cells per client, on people with many records each."""
    people = people_named(settings["people"])
    optin_users, clients = _groups(settings["people"], settings["alike"], settings["users"], run, seed)
    params = BlenderParams(
        Budget(settings["epsilon"], people.delta),
        max_head_queries=settings["size"],
        records_per_client=settings["per_client"],
        records_per_optin=settings["per_optin"],
    )
    noise = SeededRandomness(seed_of(seed, run, "several records", settings["epsilon"]))
    try:
        release = algorithm_named(settings["method"]).run(
            optin_users, clients, params, devices=CountedDevices(), randomness=noise
        )
    except EmptyHeadList:
        return {"queries": 0}
    truth = Truth.of(release.head, optin_users.cell_counts(release.head) + clients.cell_counts(release.head))
    scored = score(release, truth)
    own = _people(settings["people"], settings["alike"], settings["users"], run, seed).own_shares(release.head)
    return {
        "queries": len(release.head),
        "query_l1": scored.query_l1,
        "record_l1": scored.record_l1,
        "ndcg": scored.ndcg,
        **coverage(release, own),
    }


@dataclass(frozen=True)
class _People:
    """Everyone's records, one person's next to each other."""

    universe: RecordUniverse
    rows: Ints
    lengths: Ints

    def own_shares(self, head: HeadList) -> Truth:
        """The mean over all people of each one's own shares: what an interval covers."""
        weights = np.repeat(1 / self.lengths, self.lengths)
        sums = np.bincount(self.universe.cells(head, self.rows), weights=weights, minlength=head.n_cells)
        cells: Floats = sums / len(self.lengths)
        return Truth(cells, np.add.reduceat(cells, head.first_cells()))


@lru_cache(maxsize=2)
def _people(people: str, alike: bool, users: int | None, run: int, seed: int) -> _People:
    """People with records of their own: independent of each other, or (``alike``) all the same.

    Of a log of one's own: the records that each has, or the one that was drawn. Of a profile, how many a person has
    follows the AOL log's lines per user (median 17, log-normal with unequal halves), at most 60.
    """
    log = people_named(people)
    if isinstance(log, LogPeople):
        rows = log.drawn if alike else log.rows
        return _People(IndexedRecords(rows.records), rows.numbers, rows.lengths)
    profile = profile_named(people)
    draw = generator(seed, "several records", people, alike, run)
    n = users or profile.n_users
    z = draw.standard_normal(n)
    lengths = np.clip(np.round(_MEDIAN * np.exp(np.where(z < 0, _BELOW, _ABOVE) * z)), 1, MOST_RECORDS).astype(np.int64)
    if alike:
        lengths = np.ones(n, dtype=np.int64)
    return _People(profile.records, profile.record_numbers(int(lengths.sum()), draw), lengths)


@lru_cache(maxsize=2)
def _groups(people: str, alike: bool, users: int | None, run: int, seed: int) -> tuple[InMemoryGroup, InMemoryGroup]:
    everyone = _people(people, alike, users, run, seed)
    noise = SeededRandomness(seed_of(seed, "several records", people, alike, run))
    starts = np.cumsum(everyone.lengths) - everyone.lengths
    group = InMemoryGroup(everyone.universe, everyone.rows, starts, everyone.lengths, randomness=noise)
    return group.split(people_named(people).optin, randomness=noise)
