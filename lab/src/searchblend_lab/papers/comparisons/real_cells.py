"""One run over a real log: both methods and the click graph, each beside what all people of the log search.

The truth of the two methods is the mean over all users of each one's own shares, which both of them estimate, whichever
records of a user they count. The truth of the click graph is how many users have a query among those that count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from searchblend.blender.groups import UserGroup, Weights
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.errors import EmptyHeadList, InvalidParameter
from searchblend.core.params import BlenderParams, ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import open_log
from searchblend.mechanisms.tally import Tally
from searchblend.synthetic.metrics import Truth, ndcg, score
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.blender.count_reports import CountedDevices
from searchblend_lab.papers.blender.hybrid_cells import coverage
from searchblend_lab.papers.people import seed_of

METHODS: Final = ("paper", "best")
CLICK_GRAPH: Final = "click graph"
TOP: Final = 50
"""how many truly most frequent queries a list is held against: as many as a list may have"""
_CANDIDATES: Final = 6
"""times as many are counted exactly as are wanted, chosen by a weight that is nearly their share"""
_UNITS: Final = 10_000
"""of one user's shares"""
Found = dict[str, Any]


@dataclass(frozen=True)
class TrueTop:
    """The most frequent queries with their true shares, more of them than any list holds."""

    shares: Mapping[str, float]
    """most frequent first"""

    def scores(self, listed: Mapping[str, float]) -> Found:
        """A list with its estimated shares: how far from the true top, what is listed wrongly, what is left out."""
        wanted = list(self.shares)[:TOP]
        ranked = list(self.shares.values())
        last = ranked[min(len(listed), len(ranked)) - 1]
        wrong = sum(self.shares.get(query, 0.0) < last for query in listed)
        return {
            "top_l1": sum(abs(listed.get(query, 0.0) - self.shares[query]) for query in wanted),
            "spurious": wrong / len(listed),
            "dropped": sum(query not in listed for query in wanted) / len(wanted),
        }


def compute(settings: Mapping[str, Any], run: int, seed: int) -> Found:
    """``rows``: one for each method and ε. A log that is too small for a method gives a row that says why."""
    own = seed_of(seed, run, settings["content"])
    options = ReadOptions(**json.loads(settings["reading"]))
    options = replace(options, key=own.to_bytes(16, "big"), threads=options.threads or 1)
    budgets = [Budget(float(epsilon), settings["delta"]) for epsilon in settings["epsilons"].split()]
    with open_log(replace(options, draws=1, rows=True)) as log:
        optin, clients = log.split(optin_fraction=settings["optin"])
        rows = hybrid_rows(optin, clients, budgets, own)
    with open_log(replace(options, draws=0)) as log:
        rows += graph_rows(log.activity(), budgets, own, users=log.summary.users, urls=log.has_urls)
    return {"rows": rows}


def hybrid_rows(optin: UserGroup, clients: UserGroup, budgets: Sequence[Budget], own: int) -> list[Found]:
    """Both methods on the same split and the same drawn records."""
    top = true_top([optin, clients])
    rows: list[Found] = []
    for budget in budgets:
        made: dict[str, BlenderRelease] = {}
        why: dict[str, str] = {}
        for method in METHODS:
            noise = SeededRandomness(seed_of(own, "hybrid", budget.epsilon))
            params, devices = BlenderParams(budget), CountedDevices()
            try:
                made[method] = run_blender(optin, clients, params, method=method, devices=devices, randomness=noise)
            except (EmptyHeadList, InvalidParameter) as error:
                why[method] = str(error)
        common = set.intersection(*(set(release.head.queries) for release in made.values())) if made else set()
        for method in METHODS:
            row: Found = {"method": method, "epsilon": budget.epsilon, "queries": 0}
            if method in made:
                shared = common if len(made) == len(METHODS) else set()
                row |= scored(made[method], true_shares([optin, clients], made[method].head), top, shared)
            rows.append(row | ({"why": why[method]} if method in why else {}))
    return rows


def scored(release: BlenderRelease, truth: Truth, top: TrueTop, common: set[str]) -> Found:
    queries = release.head.queries
    listed = dict(zip(queries, release.queries.probability.tolist(), strict=False))
    errors = np.abs(release.queries.probability - truth.queries)[:-1].tolist()
    figures = score(release, truth)
    both = sum(error for query, error in zip(queries, errors, strict=True) if query in common)
    return {
        "queries": len(queries),
        "query_l1": figures.query_l1,
        "ndcg": figures.ndcg,
        "coverage": coverage(release, truth)["coverage"],
        "missing": float(truth.queries[-1]),
        **({"common": len(common), "common_l1": both} if common else {}),
        **top.scores(listed),
    }


def true_shares(groups: Sequence[UserGroup], head: HeadList) -> Truth:
    return Truth.of(head, np.sum([group.own_shares(head, _UNITS).cells for group in groups], axis=0))


def true_top(groups: Sequence[UserGroup]) -> TrueTop:
    """The queries with the largest mean of own shares, among those of the largest weights in either group."""
    weights, named = Weights(100, 1000), set[str]()
    for group in groups:
        if group.n_users:
            named |= set(largest(group.weighted_queries(weights, randomness=SeededRandomness(1)), _CANDIDATES * TOP))
    head = HeadList((query, ()) for query in sorted(named, key=str.encode))
    shares = dict(zip(head.queries, true_shares(groups, head).queries.tolist(), strict=False))
    return TrueTop(dict(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0].encode()))))


def largest(tally: Tally, n: int) -> dict[str, int]:
    """The n queries with the largest counts, and those that are tied with the last of them; largest first."""
    left, least = n, 1
    for count, how_many in sorted(tally.sizes().items(), reverse=True):
        left, least = left - how_many, count
        if left <= 0:
            break
    common = tally.at_least(max(least, 1))
    return {str(record.query): count for count in sorted(common, reverse=True) for record in common[count]}


def graph_rows(log: ClickLog, budgets: Sequence[Budget], own: int, *, users: int, urls: bool) -> list[Found]:
    """The click graph that ``searchblend release run`` makes, with the log's own pairs if it has URLs."""
    return [_graph_row(log, budget, own, users=users, urls=urls) for budget in budgets]


def _graph_row(log: ClickLog, budget: Budget, own: int, *, users: int, urls: bool) -> Found:
    row: Found = {"method": CLICK_GRAPH, "epsilon": budget.epsilon, "queries": 0}
    try:
        params = ClickGraphParams(budget, urls="private" if urls else "none")
        release = release_data(log, params, randomness=SeededRandomness(seed_of(own, "graph", budget.epsilon)))
    except InvalidParameter as error:
        return row | {"why": str(error)}
    if not release.queries:
        least = release.design.rounds[-1].threshold
        return row | {"why": f"no query reached the threshold of {least} users"}
    tally = log.searches(release.design.rounds[-1].cap)
    published = [figures.query for figures in release.queries]
    counts = tally.of_queries(published)
    true = np.array([counts.get(Record(query, WILDCARD), 0) for query in published], dtype=np.float64)
    low, high, count = np.array([(r.lo95, r.hi95, r.count) for r in release.queries], dtype=np.float64).T
    top = largest(tally, max(TOP, len(published)))
    shares = TrueTop({query: n / users for query, n in top.items()})
    return row | {
        "queries": len(published),
        "pairs": len(release.clicks),
        "query_l1": float(np.abs(count - true).sum() / users),
        "ndcg": ndcg(true / users),
        "coverage": float(((low <= true) & (true <= high)).mean()),
        "missing": float(1 - true.sum() / sum(n * how_many for n, how_many in tally.sizes().items())),
        **shares.scores(dict(zip(published, (count / users).tolist(), strict=True))),
    }
