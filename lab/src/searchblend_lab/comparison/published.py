"""What a release or a rule shows of a log, and what the log really holds: both as plain counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from searchblend.clickgraph.release.click_log import Cap, ClickLog
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import (
    by_query,
    fresh_query_counts,
    private_click_counts,
    select_queries,
)
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.tally import Tally

Pair = tuple[str, str]
_WHOLE: Final = 2**40
"""a cap that no one reaches: the truth counts everything"""


@dataclass(frozen=True, repr=False)
class Published:
    """Queries and pairs with the counts that readers see."""

    queries: Mapping[str, int]
    pairs: Mapping[Pair, int]


@dataclass(frozen=True, repr=False)
class TrueCounts:
    """A whole log, counted exactly. NOT FOR RELEASE."""

    users: Mapping[str, int]
    """distinct users by query"""
    searches: Mapping[str, int]
    pair_users: Mapping[Pair, int]
    clicks: Mapping[Pair, int]

    @classmethod
    def of(cls, log: ClickLog, *, urls: bool = True) -> TrueCounts:
        """Every string of the log is held in memory at once."""
        each, every = Cap(_WHOLE), Cap(_WHOLE, distinct=False)
        users = by_query(_all(log.searches(each)))
        queries = list(users)
        clicked = [_pairs(_all(log.clicks(queries, cap, within=each))) for cap in (each, every)] if urls else [{}, {}]
        return cls(users, by_query(_all(log.searches(every))), *clicked)


def _all(tally: Tally) -> dict[Record, int]:
    return {record: count for count, records in tally.at_least(1).items() for record in records}


def _pairs(counts: Mapping[Record, int]) -> dict[Pair, int]:
    return {(str(record.query), str(record.url)): count for record, count in counts.items()}


def publish(log: ClickLog, design: ClickGraphDesign, randomness: Randomness) -> Published:
    """The steps of ``release_data`` with a design at hand: it draws the same noise in the same order (a test compares).

    Thousands of runs share one design, and a design with a planted fault can be run.
    """
    chosen, tally = select_queries(log, design, randomness=randomness)
    queries = sorted(chosen, key=str.encode)
    if not design.reuses_noise:
        chosen = fresh_query_counts(log, queries, tally, design, randomness=randomness)
    clicks: dict[Record, int] = {}
    if design.click_counts:
        clicks = private_click_counts(log, queries, design.click_counts, design, randomness=randomness)
    return Published(chosen, _pairs(clicks))
