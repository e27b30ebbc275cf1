"""The estimator of method ``best``: one least squares over both groups, averaged over how unlike they may be.

Run by the server. Post-processing of the curator's counts and the clients' reports: costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from searchblend.blender.best.group_check import GroupCheck, p_value_of
from searchblend.blender.best.joint_least_squares import Equations, Joint, Layout, LinearData, diagonal, one_each
from searchblend.blender.best.observations import (
    CellSets,
    ClientSource,
    OptinCounts,
    People,
    QuerySets,
    TwoStageReports,
)
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts
from searchblend.blender.best.trust import TILTS, Gaps, Trust, trust
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
) -> BestEstimates:
    """Blend the opt-in counts and the clients' reports of one head list. Post-processing."""
    people = People.of(optin, params, n_clients)
    sources = client_sources(head, reports, design, params)
    blend = Blend(head, optin, sources, people)
    says_cells = any(not isinstance(source, QuerySets) for source in sources)
    optin_group = _group(blend.layout, blend.optin_alone, optin.n_users)
    client_group = _group(blend.layout, blend.clients_alone, n_clients, says_cells=says_cells)
    records, queries = blend.against_people()
    testable, doubts = optin.testable(len(head)), blend.trust.weights @ blend.trust.doubts
    of_queries, of_cells = np.append(doubts, 0.0), np.append(np.repeat(doubts, blend.layout.widths), 0.0)
    return BestEstimates(
        optin=optin_group,
        client=client_group,
        records=_blended(records, optin_group.records, client_group.records, of_cells, project=project),
        queries=_blended(queries, optin_group.queries, client_group.queries, of_queries, project=project),
        check=GroupCheck(
            tested=int(testable.sum()),
            p_value=p_value_of(blend.gaps.standardized(0.0)[0], testable),
            divergence=blend.trust.divergence,
            flagged=blend.trust.alarms(testable),
        ),
    )


def client_sources(
    head: HeadList, reports: ReportCounts, design: ReportDesign, params: BlenderParams
) -> list[ClientSource]:
    """What the counted reports say, by kind."""
    if reports.two_stage is not None:
        n = int(reports.two_stage.sum())
        return [TwoStageReports(ReportProbabilities.exact(head, params), n, reports.two_stage[:-1] / n)]
    sources: list[ClientSource] = []
    queries, cells = design.about_queries(head, params), design.about_cells(head, params)
    if queries is not None and reports.queries and reports.queries.n:
        law = SetLaw.of(queries)
        sources.append(QuerySets(law, reports.queries.n, law.estimate(reports.queries)))
    if cells is not None and reports.cells and reports.cells.n:
        law = SetLaw.of(cells)
        sources.append(CellSets(law, reports.cells.n, law.estimate(reports.cells)))
    return sources


class Blend:
    """Both groups' figures of one list, solved at every tilt and averaged.

    At each tilt the estimate is linear in the reports, since all weights come from the opt-in users' figures.
    """

    def __init__(self, head: HeadList, optin: OptinCounts, clients: Sequence[ClientSource], people: People) -> None:
        self.layout, self.people, self.optin = Layout(head), people, optin
        self.shares = self.layout.padded(optin.shares)
        spoken = [source.data(self.layout, self.shares, people) for source in clients]
        counted = optin.data(self.layout, self.shares, people)
        nothing = np.zeros_like(self.shares)
        self.optin_alone = Equations(self.layout, [counted], nothing).solve()
        apart = _almost_nothing(self.layout, self.shares)
        self.clients_alone = Equations(self.layout, [*spoken, apart], nothing).solve()
        self.gaps = Gaps(
            self.optin_alone.totals,
            self.clients_alone.totals,
            optin.noise_of_totals(self.layout) + self.clients_alone.total_variance,
            optin.sampling_of_totals(self.layout),
        )
        self.trust: Trust = trust(self.gaps, optin.testable(len(head)))
        equations = Equations(self.layout, [counted, *spoken], self.shares)
        self.solved: list[Joint] = [equations.solve(tilt) for tilt in TILTS]

    @property
    def by_tilt(self) -> Floats:
        """Tilts × queries: the joint estimate, and as far as the clients are doubted the opt-in users' own."""
        joint, doubts = np.array([solution.totals for solution in self.solved]), self.trust.doubts
        result: Floats = (1 - doubts) * joint + doubts * self.gaps.optin
        return result

    def against_people(self) -> tuple[Estimates, Estimates]:
        """Records and queries, ⋆ last, with the variances of their errors against all people's own shares."""
        joint = np.array([solution.totals for solution in self.solved])
        spread = np.array([solution.total_variance for solution in self.solved])
        queries = self._averaged(joint, spread, self.gaps.optin, self.optin_alone.total_variance, self.trust.doubts)
        cells = self._averaged(
            np.array([solution.cells for solution in self.solved]),
            np.array([solution.cell_variance for solution in self.solved]),
            self.optin_alone.cells,
            self.optin_alone.cell_variance,
            self.trust.doubts[:, :, None],
        )
        totals, apart = self.shares.sum(axis=1), self.optin.apart_of_totals(self.layout)
        mean_apart = np.average(apart, weights=totals)
        rest_variance = self.people.against(np.array(self._sum_variance(queries)), totals.sum(), mean_apart)
        rest = 1 - queries.probability.sum()

        def with_rest(probability: Floats, variance: Floats) -> Estimates:
            return Estimates(np.append(probability, rest), np.append(variance, rest_variance))

        flat, by_cell = self.layout.flat, 0.0 if self.optin.apart is None else self.optin.apart
        return (
            with_rest(flat(cells.probability), self.people.against(flat(cells.variance), flat(self.shares), by_cell)),
            with_rest(queries.probability, self.people.against(queries.variance, totals, apart)),
        )

    def _averaged(
        self, joint: Floats, variance: Floats, alone: Floats, alone_variance: Floats, doubts: Floats
    ) -> Estimates:
        """Mean and variance over tilts, and over whether the clients are to be believed."""
        weights = self.trust.weights
        tilts = np.array(TILTS).reshape(-1, *[1] * alone.ndim)
        witness_variance = alone_variance + np.expm1(tilts**2) * alone**2
        mean = np.tensordot(weights, (1 - doubts) * joint + doubts * alone, 1)
        believed = (1 - doubts) * (variance + (joint - mean) ** 2)
        doubted = doubts * (witness_variance + (alone - mean) ** 2)
        return Estimates(mean, np.tensordot(weights, believed + doubted, 1))

    def _sum_variance(self, queries: Estimates) -> float:
        """Of all listed queries together: doubts are independent from query to query, everything else is joint."""
        weights, doubts, alone = self.trust.weights, self.trust.doubts, self.gaps.optin
        joint = np.array([solution.totals for solution in self.solved])
        own = np.array([solution.total_variance for solution in self.solved])
        tilts = np.array(TILTS)[:, None]
        more = np.maximum(self.optin_alone.total_variance + np.expm1(tilts**2) * alone**2 - own, 0.0)
        doubted = (doubts * (1 - doubts) * (joint - alone) ** 2 + doubts * more).sum(axis=1)
        sums = np.array([solution.sum_variance for solution in self.solved])
        shift = self.by_tilt.sum(axis=1) - queries.probability.sum()
        return float(weights @ (sums + shift**2 + doubted))


def _almost_nothing(layout: Layout, shares: Floats) -> LinearData:
    """Keeps a query's cells apart where the clients only saw its total."""
    variance = np.where(layout.present, 100 * np.maximum(shares, 1e-9), 1.0)
    none = np.zeros((*layout.shape, 1))
    return LinearData(one_each(layout), shares, diagonal(variance), none, np.zeros((1, 1)))


def _group(layout: Layout, alone: Joint, n: int, *, says_cells: bool = True) -> GroupEstimates:
    """One group's own estimates, with the variance against its own population; NaN for cells it was not asked about."""
    cells, variance = layout.flat(alone.cells), layout.flat(alone.cell_variance)
    if not says_cells:
        unknown = np.repeat(layout.widths > 1, layout.widths)
        cells, variance = np.where(unknown, np.nan, cells), np.where(unknown, np.nan, variance)
    rest = 1 - alone.totals.sum()
    return GroupEstimates(
        n,
        Estimates(np.append(cells, rest), np.append(variance, alone.sum_variance)),
        Estimates(np.append(alone.totals, rest), np.append(alone.total_variance, alone.sum_variance)),
    )


def _blended(together: Estimates, optin: Estimates, client: Estimates, doubts: Floats, *, project: bool) -> Blended:
    """The joint estimate with the weight that variances give the opt-in group, and more where clients are doubted."""
    silent = np.isnan(client.probability)
    total = optin.variance + client.variance
    weight = np.where(silent, 1.0, client.variance / np.where(silent, 1.0, total))
    weight += (1 - weight) * doubts
    return Blended(together, _clipped(together.probability) if project else together.probability, weight)


def _clipped(raw: Floats) -> Floats:
    """Shares at least 0; rescaled only if the listed ones exceed 1; the rest is what they leave."""
    listed = np.maximum(raw[:-1], 0.0)
    listed /= max(float(listed.sum()), 1.0)
    return np.append(listed, max(1 - listed.sum(), 0.0))
