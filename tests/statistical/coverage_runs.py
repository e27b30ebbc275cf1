"""How often the printed method's 95 % intervals hold the truth, on people with the shape of the AOL log.

Each replicate draws new opt-in users, makes a new candidate list, estimates it, and adds the reports of new clients
(multinomial, from the exact law). The truth is the law that all of them are drawn from. Not every printed variance
is valid (SPEC: sums over URLs and the folded ⟨⋆,⋆⟩ hold more noises than the formula counts; opt-in users do not
see ⟨q,⋆⟩; plug-in variances mis-weigh rare records), so this is measured and not asserted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, lru_cache

import numpy as np

from searchblend.blender.estimates import Estimates, GroupEstimates
from searchblend.blender.paper.blend import blend_probabilities
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList, Record
from searchblend.synthetic.population import AOL, AOL_USERS, RankedRecords, aol_query_shares, url_shares
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.synthetic.world import rank_of_query
from searchblend_lab.evidence.laws.estimates import estimating_with, of_queries

BANDS = {0.02: (0.013, 0.03), 0.01: (0.008, 0.013), 0.005: (0.0033, 0.0075), 0.001: (0.0007, 0.0015)}
"""What counts as "p = .02" and so on. The most frequent query has p = .021, its first URL .0095."""
OPTIN_SHARE = 0.05


shares_of_queries = cache(aol_query_shares)
"""computed once: there are millions"""
optin_people = lru_cache(maxsize=128)(AOL.population)
"""the same people at every ε"""


def true_cells(head: HeadList) -> np.ndarray:
    """The exact share of every cell: listed records, what is left of their queries, and the rest."""
    universe, shares = RankedRecords(), shares_of_queries()
    cells = np.zeros(head.n_cells)
    for query in head.queries:
        rank = rank_of_query(query)
        for url, share in enumerate(url_shares(np.array([rank]))[0]):
            record: Record = universe[rank * 11 + url]
            assert record.query == query
            cells[head.cell_of(record)] += shares[rank] * share
    cells[-1] = 1 - cells.sum()
    return cells


def report_law(probabilities: ReportProbabilities, head: HeadList, truth: np.ndarray) -> np.ndarray:
    """p·channel without the table: A p_q + B (1 − p_q) for everybody, and the rest of t t_q for the truth."""
    query = np.array(head.query_of_cells())
    width, keep = np.array(probabilities.n_urls)[query], np.array(probabilities.keep_url)[query]
    t = probabilities.keep_query
    p_query = of_queries(head, truth)[query]
    lie_url = t * (1 - keep) / np.maximum(width - 1, 1)
    lie_query = (1 - t) / max(probabilities.n_queries - 1, 1) / width
    law: np.ndarray = lie_url * (p_query - truth) + lie_query * (1 - p_query) + t * keep * truth
    total: float = law.sum()
    return law / total


class Tally:
    """Covered and counted, by what was estimated and by band."""

    def __init__(self) -> None:
        self._hits: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])

    def add(self, kind: str, estimates: Estimates, truth: np.ndarray, positions: Iterable[int]) -> None:
        low, high = estimates.interval.T
        for i in positions:
            band = next((str(p) for p, (a, b) in BANDS.items() if a <= truth[i] <= b), None)
            self._count(kind, band or "other", bool(low[i] <= truth[i] <= high[i]))

    def add_one(self, kind: str, estimates: Estimates, truth: np.ndarray, position: int) -> None:
        low, high = estimates.interval[position]
        self._count(kind, "⋆", bool(low <= truth[position] <= high))

    def _count(self, kind: str, band: str, covered: bool) -> None:
        hits = self._hits[kind, band]
        hits[0] += covered
        hits[1] += 1

    def rates(self) -> dict[tuple[str, str], float]:
        return {key: covered / n for key, (covered, n) in self._hits.items() if key[1] != "other"}


def measure_coverage(params: BlenderParams, replicates: int, seed: int) -> dict[tuple[str, str], float]:
    """The share of intervals that hold the truth: {(what, p): coverage}."""
    tally, source = Tally(), SeededRandomness(seed)
    generator = np.random.Generator(np.random.PCG64(seed))
    n_optin = round(OPTIN_SHARE * AOL_USERS)
    for replicate in range(replicates):
        optin_users = optin_people(n_optin, seed=seed * 1_000_003 + replicate)
        head_users, estimate_users = optin_users.split(params.head_fraction, randomness=source)
        candidates = create_head_list(head_users, params, randomness=source)
        head, optin = estimate_optin_probabilities(estimate_users, candidates, params, randomness=source)
        truth = true_cells(head)
        probabilities = ReportProbabilities.of(head, params)
        reports = generator.multinomial(AOL_USERS - n_optin, report_law(probabilities, head, truth))
        with estimating_with(probabilities):
            client = estimate_client_probabilities(reports, head, params)
        _add_run(tally, head, truth, optin, client)
    return tally.rates()


def _add_run(tally: Tally, head: HeadList, truth: np.ndarray, optin: GroupEstimates, client: GroupEstimates) -> None:
    queries = of_queries(head, truth)
    stars = np.cumsum(head.n_urls) - 1
    listed, every_query = np.setdiff1d(np.arange(head.n_cells), stars), range(len(head))
    seen = of_queries(head, np.where(np.isin(np.arange(head.n_cells), stars), 0.0, truth))
    rest = 1 - seen[:-1].sum()
    for who, group in (("client", client), ("opt-in", optin)):
        tally.add(f"{who} records", group.records, truth, listed)
        tally.add(f"{who} trends", group.queries, queries, every_query)
    tally.add("opt-in trends, listed URLs only", optin.queries, seen, every_query)
    tally.add("blended records", blend_probabilities(optin.records, client.records).raw, truth, listed)
    tally.add("blended trends", blend_probabilities(optin.queries, client.queries).raw, queries, every_query)
    tally.add_one("client ⋆", client.records, truth, -1)
    tally.add_one("opt-in ⋆, folded", optin.records, np.append(truth[:-1], rest), -1)
    tally.add_one("blended ⋆", blend_probabilities(optin.records, client.records).raw, truth, -1)
