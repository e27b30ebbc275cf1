"""The estimator of method ``best``: one least squares per query over both groups, after a check whether they agree.

Run by the server. Post-processing of the curator's counts and the clients' reports: costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from searchblend.blender.best.choose_design import pooled_shares
from searchblend.blender.best.group_check import GroupCheck, check_groups
from searchblend.blender.best.observations import (
    CellSets,
    OptinCounts,
    QuerySets,
    SetLaw,
    Solution,
    Source,
    TwoStageReports,
    query_slices,
    solve,
)
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts
from searchblend.blender.estimates import Blended, Estimates, Floats, GroupEstimates
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList


@dataclass(frozen=True)
class BestEstimates:
    """Everything that method ``best`` estimates for a head list."""

    optin: GroupEstimates
    client: GroupEstimates
    records: Blended
    queries: Blended
    check: GroupCheck


def estimate_best(
    head: HeadList,
    optin: OptinCounts,
    reports: ReportCounts,
    design: ReportDesign,
    params: BlenderParams,
    n_clients: int,
    *,
    project: bool = True,
    heed_check: bool = True,
) -> BestEstimates:
    """Blend the opt-in counts and the clients' reports of one head list. Post-processing.

    ``heed_check=False`` still tests whether the groups differ, but blends as if they did not.
    """
    clients = _client_sources(head, reports, design, params)
    start, floor, n = pooled_shares(optin), 0.5 / optin.n_users, optin.n_users + n_clients

    together = solve(head, [optin, *clients], start, floor, n)
    optin_alone = solve(head, [optin], start, floor, np.inf)
    clients_alone = _clients_alone(head, clients, start, floor)
    check = _check(head, optin, together, optin_alone, clients_alone)
    if check.tilt and heed_check:
        together = solve(head, [replace(optin, tilt=check.tilt), *clients], start, floor, n)
        together = _shrink_towards_population(head, together, optin, check.tilt, n)
    says_cells = any(isinstance(source, CellSets | TwoStageReports) for source in clients)
    optin_group = _group(head, optin_alone, optin.n_users)
    client_group = _group(head, clients_alone, n_clients, says_cells=says_cells)
    records, queries = _with_rest(together, together.cells), _with_rest(together, together.queries)
    return BestEstimates(
        optin=optin_group,
        client=client_group,
        records=_blended(records, optin_group.records, client_group.records, project=project),
        queries=_blended(queries, optin_group.queries, client_group.queries, project=project),
        check=check,
    )


def _client_sources(head: HeadList, reports: ReportCounts, design: ReportDesign, params: BlenderParams) -> list[Source]:
    numbers = np.array(head.query_of_cells())
    if reports.two_stage is not None:
        n = int(reports.two_stage.sum())
        return [TwoStageReports(ReportProbabilities.exact(head, params), n, reports.two_stage / n, numbers)]
    sources: list[Source] = []
    queries, cells = design.about_queries(head, params), design.about_cells(head, params)
    if queries is not None and reports.queries and reports.queries.n:
        law = SetLaw.of(queries)
        sources.append(QuerySets(law, reports.queries.n, law.estimate(reports.queries), numbers))
    if cells is not None and reports.cells and reports.cells.n:
        law = SetLaw.of(cells)
        sources.append(CellSets(law, reports.cells.n, law.estimate(reports.cells)))
    return sources


@dataclass(frozen=True)
class _Prior:
    """Almost nothing: keeps a query's cells apart where the clients only saw its total."""

    n_users: float
    start: Floats

    def information(self, query: slice, shares: Floats) -> tuple[Floats, Floats]:
        weight = 1e-6 / np.maximum(shares[query], 1e-12)
        return np.diag(weight), weight * self.start[query]


def _clients_alone(head: HeadList, clients: list[Source], start: Floats, floor: float) -> Solution:
    return solve(head, [*clients, _Prior(1, start)], start, floor, np.inf)


def _check(head: HeadList, observed: OptinCounts, together: Solution, optin: Solution, clients: Solution) -> GroupCheck:
    testable = np.ones(len(head), dtype=np.bool_) if observed.certain is None else observed.certain
    # The raw totals: the correction for selection is meant for estimates and would tilt the test.
    totals = np.add.reduceat(observed.observed, head.first_cells()[:-1])
    gap = (totals if observed.raw_totals is None else observed.raw_totals) - clients.queries.probability
    pooled = np.maximum(together.queries.probability, 0.5 / observed.n_users)
    return check_groups(gap, optin.queries.variance + clients.queries.variance, pooled, testable)


def _shrink_towards_population(
    head: HeadList, clients_like: Solution, optin: OptinCounts, tilt: float, n: float
) -> Solution:
    """The shares of *all* people, when the solution leans to the clients': opt-in users are part of the truth too."""
    fraction = optin.n_users / n
    cells = clients_like.cells.probability.copy()
    queries = clients_like.queries.probability.copy()
    for i, query in enumerate(query_slices(head)):
        total = max(queries[i], 0.5 / optin.n_users)
        noise = total / optin.n_users + float(optin.noise_variance[query].sum())
        trusted = tilt * total**2 / (tilt * total**2 + noise)
        move = fraction * trusted * (float(optin.observed[query].sum()) - queries[i])
        cells[query] *= 1 + move / total
        queries[i] += move
    return Solution(replace(clients_like.cells, probability=cells), replace(clients_like.queries, probability=queries))


def _with_rest(solution: Solution, estimates: Estimates) -> Estimates:
    """The estimates with ⟨⋆,⋆⟩ (or ⋆) appended: what the listed queries leave over."""
    rest = 1 - solution.queries.probability.sum()
    return Estimates(
        np.append(estimates.probability, rest), np.append(estimates.variance, solution.queries.variance.sum())
    )


def _group(head: HeadList, solution: Solution, n: int, *, says_cells: bool = True) -> GroupEstimates:
    """One group's own estimates; NaN for cells about which it was not asked."""
    records = _with_rest(solution, solution.cells)
    if not says_cells:
        unknown = np.repeat(np.array(head.n_urls) > 1, head.n_urls)
        records = Estimates(np.where(unknown, np.nan, records.probability), np.where(unknown, np.nan, records.variance))
    return GroupEstimates(n, records, _with_rest(solution, solution.queries))


def _blended(together: Estimates, optin: Estimates, client: Estimates, *, project: bool) -> Blended:
    """The joint estimate with the weight that the opt-in group's variance gives it."""
    silent = np.isnan(client.probability)
    total = optin.variance + client.variance
    weight = np.where(silent, 1.0, client.variance / np.where(silent, 1.0, total))
    return Blended(together, _clipped(together.probability) if project else together.probability, weight)


def _clipped(raw: Floats) -> Floats:
    """Shares at least 0; rescaled only if the listed ones exceed 1; the rest is what they leave."""
    listed = np.maximum(raw[:-1], 0.0)
    listed /= max(float(listed.sum()), 1.0)
    return np.append(listed, max(1 - listed.sum(), 0.0))
