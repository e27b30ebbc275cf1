"""One run of BLENDER on people known by their counts, with every score that some figure shows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts, SubsetCounts
from searchblend.blender.estimates import Estimates, Floats
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.release import BlenderRelease
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints
from searchblend.synthetic.count_group import CountGroup
from searchblend.synthetic.metrics import Truth, listed_cells, score
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.papers.algorithms import algorithm_named
from searchblend_lab.papers.blender.count_reports import CountedDevices, generator_of, uniform_sets
from searchblend_lab.papers.blender.top_scores import group_scores, ndcg_rank, ndcg_top, top_l1
from searchblend_lab.papers.people import generator, people_named, seed_of

NAMED_QUERIES = 9
TARGET_RANK = 10
"""whom fake clients promote: the query of this true rank, or the nearest below it that is listed"""


def compute(settings: Mapping[str, Any], run: int, seed: int) -> dict[str, Any]:
    """A run and its scores. ``queries`` = 0 means that the list was empty."""
    started = time.perf_counter()
    people, users, optin, tilt = settings["people"], settings["users"], settings["optin"], settings["tilt"]
    optin_users, clients = _groups(people, users, optin, tilt, run, seed)
    top = _top(people, users, settings["size"], run, seed)
    params = BlenderParams(
        Budget(settings["epsilon"], people_named(people).delta),
        max_head_queries=settings["size"],
        head_fraction=settings["head_fraction"],
        query_budget_fraction=settings["query_fraction"],
    )
    # The same coins for every method, split and attack: what the opt-in users say then stays the same.
    own = seed_of(
        seed, run, people, users, optin, tilt, settings["epsilon"], settings["size"], settings["head_fraction"]
    )
    devices = PoisonedDevices(settings["fake"], list(top)[TARGET_RANK - 1 :]) if settings["fake"] else CountedDevices()
    try:
        release = algorithm_named(settings["method"]).run(
            optin_users.seeded(generator(own)),
            clients.seeded(generator(own, "clients")),
            params,
            devices=devices,
            randomness=SeededRandomness(own),
        )
    except EmptyHeadList:
        return {"queries": 0, "seconds": time.perf_counter() - started}
    truth = Truth.of(release.head, optin_users.cell_counts(release.head) + clients.cell_counts(release.head))
    result = scores(release, truth, top)
    if settings["detail"]:
        result["trends"] = trends(release, truth, list(top)[:NAMED_QUERIES])
    if settings["fake"] is not None:
        result |= shift(release, truth, list(top)[TARGET_RANK - 1 :])
    return result | {"seconds": time.perf_counter() - started}


@lru_cache(maxsize=2)
def _everyone(people: str, users: int | None, run: int, seed: int) -> CountGroup:
    return people_named(people).everyone(seed, run, users)


@lru_cache(maxsize=4)
def _groups(
    people: str, users: int | None, optin: float, tilt: float, run: int, seed: int
) -> tuple[CountGroup, CountGroup]:
    everyone = _everyone(people, users, run, seed).seeded(generator(seed, "split", people, users, optin, tilt, run))
    return everyone.tilted_split(optin, tilt) if tilt else everyone.split(optin)


@lru_cache(maxsize=8)
def _top(people: str, users: int | None, size: int, run: int, seed: int) -> dict[str, float]:
    return _everyone(people, users, run, seed).top_queries(max(size, NAMED_QUERIES))


def scores(release: BlenderRelease, truth: Truth, top: Mapping[str, float]) -> dict[str, Any]:
    """Everything that is scored: the blend, each group alone, and against the true top M."""
    blended = score(release, truth)
    optin = group_scores(release.head, release.optin, truth)
    client = group_scores(release.head, release.client, truth)
    weight = release.queries.optin_weight[:-1]
    figures = {
        "queries": len(release.head),
        "records": release.head.n_records,
        "query_l1": blended.query_l1,
        "record_l1": blended.record_l1,
        "ndcg": blended.ndcg,
        "ndcg_top": ndcg_top(release, truth, top),
        "ndcg_rank": ndcg_rank(release, top),
        "top_l1": top_l1(release, top),
        "listed_of_top": sum(query in release.head for query in top) / len(top),
        "optin_query_l1": optin.query_l1,
        "optin_ndcg": optin.ndcg,
        "client_query_l1": client.query_l1,
        "client_ndcg": client.ndcg,
        "optin_weight": float(weight @ truth.queries[:-1] / max(truth.queries[:-1].sum(), 1e-300)),
    }
    if release.check is not None:
        figures |= {
            "groups_differ": float(not release.check.agrees),
            "alarm": float(bool(release.check.flagged)),
            "divergence": release.check.divergence,
        }
    return figures | coverage(release, truth)


def coverage(release: BlenderRelease, truth: Truth) -> dict[str, float]:
    """Shares of the 95 % intervals that hold the truth, and the error of ⋆."""
    listed = listed_cells(release.head)
    cells = held(release.records.raw, truth.cells)[listed]
    queries = held(release.queries.raw, truth.queries)
    return {
        "query_coverage": float(queries[:-1].mean()),
        "record_coverage": float(cells.mean()) if len(cells) else 1.0,
        "coverage": float(np.concatenate([queries[:-1], cells]).mean()),
        "rest_coverage": float(queries[-1]),
        "rest_error": abs(float(release.queries.raw.probability[-1] - truth.queries[-1])),
    }


def held(estimates: Estimates, truth: Floats) -> NDArray[np.bool_]:
    """Whether each interval has the truth in it."""
    low, high = estimates.interval.T
    inside: NDArray[np.bool_] = (low <= truth) & (truth <= high)
    return inside


def trends(release: BlenderRelease, truth: Truth, named: list[str]) -> list[dict[str, Any]]:
    """The five columns of [BLJ] Fig. 9 for ⋆ and the truly most frequent queries, in the true order."""
    head = release.head
    first = head.first_cells()
    rows = []
    for query in [None, *[query for query in named if query in head]]:
        i = len(head) if query is None else head.queries.index(query)
        cells = slice(first[i], head.n_cells if query is None else first[i + 1])
        rows.append(
            {
                "query": query,
                "true": float(truth.queries[i]),
                "blended": float(release.queries.probability[i]),
                "optin": _sum(release.optin.records.probability[cells]),
                "client_query": float(release.client.queries.probability[i]),
                "client_records": _sum(release.client.records.probability[cells]),
            }
        )
    return rows


def _sum(values: Floats) -> float | None:
    return None if np.isnan(values).all() else float(np.nansum(values))


def shift(release: BlenderRelease, truth: Truth, targets: list[str]) -> dict[str, Any]:
    """How far the promoted query's estimate lies above its true share, and whether the check points at it."""
    target = promoted(release.head, targets)
    if target is None:
        return {}
    figures: dict[str, Any] = {
        "target_true": float(truth.queries[target]),
        "shift": float(release.queries.raw.probability[target] - truth.queries[target]),
    }
    if release.check is not None:
        figures["target_flagged"] = float(target in release.check.flagged)
    return figures


def promoted(head: HeadList, targets: list[str]) -> int | None:
    """The first target that is listed."""
    return next((head.queries.index(query) for query in targets if query in head), None)


class PoisonedDevices:
    """A share of the clients is fake: each reports the promoted query, without the noise of an honest device."""

    def __init__(self, share: float, targets: list[str]) -> None:
        self._share, self._targets, self._honest = share, targets, CountedDevices()

    def cells_reported(
        self, held: Ints, head: HeadList, probabilities: ReportProbabilities, randomness: Randomness
    ) -> Ints:
        fakes, honest = self._replace(held, head, randomness)
        reported = self._honest.cells_reported(honest, head, probabilities, randomness)
        reported[self._target_cell(head)] += fakes
        return reported

    def sets_reported(
        self, held: Ints, head: HeadList, design: ReportDesign, params: BlenderParams, randomness: Randomness
    ) -> ReportCounts:
        fakes, honest = self._replace(held, head, randomness)
        reports = self._honest.sets_reported(honest, head, design, params, randomness)
        if reports.two_stage is not None:
            reports.two_stage[self._target_cell(head)] += fakes
            return reports
        draw = generator_of(randomness)
        about_queries = int(draw.binomial(fakes, design.query_share))
        target = promoted(head, self._targets) or 0
        return ReportCounts(
            queries=_with_fakes(reports.queries, target, about_queries, design.query_subset, draw),
            cells=_with_fakes(reports.cells, self._target_cell(head), fakes - about_queries, design.cell_subset, draw),
        )

    def _replace(self, held: Ints, head: HeadList, randomness: Randomness) -> tuple[int, Ints]:
        """How many fakes there are, and what the honest clients hold that are left."""
        if promoted(head, self._targets) is None:
            return 0, held
        fakes = round(self._share * int(held.sum()))
        replaced = generator_of(randomness).multivariate_hypergeometric(held, fakes, method="marginals")
        return fakes, held - replaced

    def _target_cell(self, head: HeadList) -> int:
        return head.first_cells()[promoted(head, self._targets) or 0]


def _with_fakes(
    counts: SubsetCounts | None, target: int, fakes: int, size: int, draw: np.random.Generator
) -> SubsetCounts | None:
    """Sets that all hold the target; what else is in them is uniform."""
    if counts is None:
        return None
    avoiding = np.zeros_like(counts.items)
    avoiding[target] = fakes
    return SubsetCounts(
        counts.items + avoiding + uniform_sets(avoiding, size - 1, draw), counts.sinks, counts.n + fakes
    )
