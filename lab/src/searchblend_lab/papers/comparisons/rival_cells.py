"""One mechanism on the people of one run, queries alone, one of each: what it names and how far off it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from searchblend.blender.groups import Weights
from searchblend.blender.paper.blend import project_onto_simplex
from searchblend.blender.pipeline import run_blender
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.tally import InMemoryTally, Ints, ListedRecords
from searchblend.mechanisms.threshold import Threshold, noisy_counts
from searchblend.synthetic.count_group import CountGroup
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.wire.report import ReportShape
from searchblend.wire.sealed import BUCKETS, OVERHEAD
from searchblend_lab.papers.blender.count_reports import CountedDevices
from searchblend_lab.papers.comparisons.rival_mechanisms import (
    LocalOracle,
    SampledThreshold,
    TrieHH,
    add_remove_threshold,
    detected,
    halves,
    replace_one_threshold,
)
from searchblend_lab.papers.people import generator, people_named, seed_of

TOPS: Final = (50, 200)
KNOWN: Final = 200
"""the list that the local oracle is given: the truly most frequent queries"""
USERS_NEEDED: Final = 30
LEVELS: Final = 20
"""letters of a query that TrieHH asks for, its end mark among them; 90 % of the 200 most frequent have fewer"""
OURS_LIST: Final = 200
"""M"""
_SEALED: Final = OVERHEAD + BUCKETS[0]
"""what an opt-in device of ours sends"""
_SHARES: Final = 32 + 32 + 2 * 32 + 16
"""of a message to be opened by K of its kind: a group element to the randomness server, a tag, a share (a point), and
the seal of the query itself, whose bytes come on top"""
Scores = dict[str, Any]


@dataclass(frozen=True)
class Crowd:
    """How many people hold each query, most frequent first; the others hold one that the profile does not name."""

    queries: tuple[str, ...]
    counts: Ints
    n_users: int

    def scores(self, named: Ints, shares: Any) -> Scores:
        """Queries found, and the L1 over the true tops; what is not named counts as 0."""
        estimated = np.zeros(len(self.counts))
        estimated[named] = shares
        errors = np.abs(estimated - self.counts / self.n_users)
        return {"queries": len(named), **{f"l1_{top}": float(errors[:top].sum()) for top in TOPS}}


@lru_cache(maxsize=2)
def crowd(people: str, users: int | None, run: int, seed: int) -> Crowd:
    """The people of a run, as every mechanism has them."""
    everyone = people_named(people).everyone(seed, run, users)
    by_count = everyone.weighted_queries(Weights(1, 1)).at_least(1)
    pairs = [(count, str(record.query)) for count, records in by_count.items() for record in records]
    pairs.sort(key=lambda pair: (-pair[0], pair[1].encode()))
    counts = np.array([count for count, _ in pairs], dtype=np.int64)
    return Crowd(tuple(query for _, query in pairs), counts, everyone.n_users)


def compute(settings: Mapping[str, Any], run: int, seed: int) -> Scores:
    """The scores of one mechanism, and the bytes that a person uploads on average."""
    people = crowd(settings["people"], settings["users"], run, seed)
    budget = Budget(settings["epsilon"], settings["delta"])
    own = seed_of(seed, run, sorted(settings.items(), key=str))
    return RIVALS[settings["rival"]](people, budget, own, settings["optin"])


def _mean_length(people: Crowd) -> float:
    return float(np.average([len(query.encode()) for query in people.queries], weights=people.counts))


def _histogram(people: Crowd, threshold: Threshold, own: int) -> Scores:
    listed = ListedRecords([Record(query, WILDCARD) for query in people.queries])
    tally = InMemoryTally(listed, np.arange(len(people.queries)), people.counts)
    noisy = noisy_counts(tally, threshold, randomness=SeededRandomness(own))
    number = {query: i for i, query in enumerate(people.queries)}
    named = np.array([number[str(record.query)] for record in noisy], dtype=np.int64)
    shares = np.array(list(noisy.values()), dtype=np.float64) / people.n_users
    return people.scores(named, shares) | {"bytes": _SEALED, "users_needed": threshold.integer}


def _central(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    return _histogram(people, replace_one_threshold(budget), own)


def _central_add_remove(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    return _histogram(people, add_remove_threshold(budget), own)


def _sampled(people: Crowd, mechanism: SampledThreshold, own: int) -> Scores:
    named, counts = mechanism.release(people.counts, generator(own))
    sent = _SHARES + _mean_length(people)  # whoever is not sampled sends as much, about nothing
    return people.scores(named, counts / people.n_users) | {"bytes": sent, "users_needed": mechanism.k / mechanism.p}


def _deployed(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    return _sampled(people, SampledThreshold.deployed(budget), own)


def _tuned(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    return _sampled(people, SampledThreshold.tuned(budget), own)


def _tuned_replace_one(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    return _sampled(people, SampledThreshold.tuned(halves(budget)), own)


def _trie(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    """It names queries and estimates nothing, so it has no L1."""
    mechanism = TrieHH.of(budget, LEVELS)
    named = mechanism.release(people.queries, people.counts, generator(own))
    votes = mechanism.q * LEVELS
    return {"queries": len(named), "bytes": votes * (LEVELS + 1) / 2, "users_needed": mechanism.theta / mechanism.q}


def _local(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    known = people.counts[:KNOWN]
    oracle = LocalOracle.of(budget.epsilon, len(known), 1 - float(known.sum()) / people.n_users)
    shares, deviation = oracle.release(known, people.n_users, generator(own))
    projected = project_onto_simplex(np.append(shares, 1 - shares.sum()))[:-1]  # as our blend is
    measured = people.scores(np.arange(len(known)), projected)
    return measured | {"queries": len(detected(shares, deviation)), "bytes": oracle.bytes()}


def _exact(people: Crowd, budget: Budget, own: int, _: float | None) -> Scores:
    named = np.flatnonzero(people.counts >= USERS_NEEDED)
    measured = people.scores(named, people.counts[named] / people.n_users)
    return measured | {"bytes": _mean_length(people), "users_needed": USERS_NEEDED}


def _ours(people: Crowd, budget: Budget, own: int, optin: float | None) -> Scores:
    assert optin is not None
    listed = ListedRecords([Record(query, WILDCARD) for query in people.queries])
    everyone = CountGroup(listed, people.counts, people.n_users, generator(own))
    optin_users, clients = everyone.split(optin)
    params = BlenderParams(budget, max_head_queries=OURS_LIST)
    try:
        release = run_blender(
            optin_users, clients, params, devices=CountedDevices(), randomness=SeededRandomness(seed_of(own, "noise"))
        )
    except EmptyHeadList:
        return people.scores(np.array([], dtype=np.int64), 0.0) | {"bytes": optin * _SEALED}
    number = {query: i for i, query in enumerate(people.queries)}
    named = np.array([number[query] for query in release.head.queries], dtype=np.int64)
    shape = ReportShape.of(bytes(16), 1, release.head, release.params, release.design)
    sent = optin * _SEALED + (1 - optin) * shape.size
    return people.scores(named, release.queries.probability[:-1]) | {"bytes": sent}


RIVALS: Final = {
    "central": _central,
    "central, add-or-remove": _central_add_remove,
    "sampled, as published": _deployed,
    "sampled, tuned": _tuned,
    "sampled, tuned for replace-one": _tuned_replace_one,
    "TrieHH": _trie,
    "local": _local,
    "30 users": _exact,
    "ours": _ours,
}
