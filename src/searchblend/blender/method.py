"""A method, whole: list the head, design the reports, estimate, and say what it all guarantees.

There are two: ``best``, the default, and ``paper``, as printed. A run over a log (``pipeline.py``), the service's
curator and estimator, the planner and the evaluation call the same object, so that they cannot come to differ.

Who lists the head draws the noise. What it was drawn from is recorded with the list, and the guarantee states that
record: who estimates later, in another process, cannot know it otherwise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from searchblend.blender.best.blend import client_sources, estimate_best
from searchblend.blender.best.choose_design import choose_design
from searchblend.blender.best.influence import best_influence
from searchblend.blender.best.many_records import MeasuredHeadList, measure_head_list, measured_shares
from searchblend.blender.best.many_records_design import ManyRecordsDesign, default_records, design_of
from searchblend.blender.best.observations import OptinCounts, People
from searchblend.blender.best.stability_histogram import (
    CountedHeadList,
    CuratorDesign,
    count_head_list,
    curator_design,
)
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts
from searchblend.blender.devices import EACH_DEVICE, Devices
from searchblend.blender.estimates import Blended, Estimates, Floats, GroupEstimates
from searchblend.blender.groups import UserGroup
from searchblend.blender.guarantees import best_guarantee, paper_guarantee
from searchblend.blender.paper.blend import blend_probabilities, paper_influence
from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.blender.paper.estimate_client import estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.release import BlenderRelease, GroupSizes, HeadFigures
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Guarantee, TrustModel
from searchblend.core.randomness import Randomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import printed_threshold

OnStep = Callable[[str], None]
MechanismFigures = dict[str, JsonObject]


def _silent(step: str) -> None:
    """Progress that is shown to no one."""


class Method(ABC):
    """One way to the head of a log; stateless, so that any process can take up where another ended."""

    name: str

    @abstractmethod
    def settled(self, params: BlenderParams, *, has_rows: bool = True) -> BlenderParams:
        """These parameters with a number of records of an opt-in user (m_O): theirs, or the default if they have none.

        It is settled before a record is looked at: ``has_rows`` is how the log was read, not what is in it.
        """

    @abstractmethod
    def list_head(
        self, optin_users: UserGroup, params: BlenderParams, *, randomness: Randomness, on_step: OnStep = _silent
    ) -> HeadFigures:
        """The head list with its figures: the only step that draws noise for opt-in users. Run by the curator."""

    @abstractmethod
    def users_to_be_listed(self, params: BlenderParams) -> int:
        """About how many of the opt-in users that make the list must have a record for it to be named."""

    def design_reports(
        self, figures: HeadFigures, params: BlenderParams, n_clients: int, *, on_step: OnStep = _silent
    ) -> HeadFigures:
        """The figures with how clients are to report, chosen from the released list alone."""
        return figures

    @abstractmethod
    def simulate_reports(
        self,
        clients: UserGroup,
        figures: HeadFigures,
        params: BlenderParams,
        *,
        devices: Devices = EACH_DEVICE,
        randomness: Randomness,
    ) -> ReportCounts:
        """The counted reports of clients whose records a log holds."""

    @abstractmethod
    def estimate(
        self,
        figures: HeadFigures,
        reports: ReportCounts,
        params: BlenderParams,
        n_clients: int,
        *,
        trust: TrustModel,
        project: bool = True,
    ) -> BlenderRelease:
        """The release: both groups' figures of a list, blended. Post-processing, so it draws nothing.

        ``figures`` are the curator's, with the design that the clients were given; ``reports`` their counted reports;
        ``n_clients`` how many took part; ``trust`` whom they trust with a raw record; ``project`` makes shares of the
        estimates.
        """

    @abstractmethod
    def influence(self, figures: HeadFigures, reports: ReportCounts, params: BlenderParams, n_clients: int) -> Floats:
        """By query, ⋆ last: no single report moves the published share by more, whatever it and the others say."""

    @abstractmethod
    def guarantee(self, figures: HeadFigures, params: BlenderParams, trust: TrustModel) -> Guarantee:
        """What is promised to both groups, and whether its conditions hold."""


@dataclass(frozen=True)
class PaperMethod(Method):
    """The algorithm as printed: S names, T estimates, devices report in two stages, variances blend. [BLJ] Fig. 2.

    Each figure is a method of its own, which ``exchanged.PrintedSteps`` lets others override.
    """

    name = "paper"

    def create_head_list(self, head_users: UserGroup, params: BlenderParams, randomness: Randomness) -> HeadList:
        """Fig. 3: the candidate list from the opt-in users S."""
        return create_head_list(head_users, params, randomness=randomness)

    def estimate_optin(
        self, estimate_users: UserGroup, candidates: HeadList, params: BlenderParams, randomness: Randomness
    ) -> tuple[HeadList, GroupEstimates]:
        """Fig. 4: the final list and what the opt-in users T say about it."""
        return estimate_optin_probabilities(estimate_users, candidates, params, randomness=randomness)

    def collect_reports(
        self, clients: UserGroup, head: HeadList, params: BlenderParams, devices: Devices, randomness: Randomness
    ) -> Ints:
        """Fig. 6: how often each cell of the list is reported."""
        return simulate_clients(clients, head, params, randomness, devices)

    def estimate_clients(self, report_counts: Ints, head: HeadList, params: BlenderParams) -> GroupEstimates:
        """Fig. 5: what the counted reports say."""
        return estimate_client_probabilities(report_counts, head, params)

    def blend(self, optin: Estimates, client: Estimates) -> Blended:
        """Fig. 7: one estimate from two; called for the records and for the queries."""
        return blend_probabilities(optin, client)

    def figures(self, head: HeadList, params: BlenderParams) -> MechanismFigures:
        """Names and public figures of both groups' mechanisms."""
        return _paper_figures(head, params)

    def settled(self, params: BlenderParams, *, has_rows: bool = True) -> BlenderParams:
        return params.for_printed_method()

    def list_head(
        self, optin_users: UserGroup, params: BlenderParams, *, randomness: Randomness, on_step: OnStep = _silent
    ) -> HeadFigures:
        params = params.for_printed_method()
        head_users, estimate_users = split_optin(optin_users, params, randomness)
        on_step("head list")
        candidates = self.create_head_list(head_users, params, randomness)
        figures = HeadFigures(
            candidates, optin_users.n_users, head_users=head_users.n_users, cryptographic=randomness.cryptographic
        )
        if not len(candidates):
            return figures
        on_step("opt-in estimates")
        head, optin = self.estimate_optin(estimate_users, candidates, params, randomness)
        return replace(figures, head=head, optin=optin)

    def users_to_be_listed(self, params: BlenderParams) -> int:
        return printed_threshold(params.budget).integer

    def simulate_reports(
        self,
        clients: UserGroup,
        figures: HeadFigures,
        params: BlenderParams,
        *,
        devices: Devices = EACH_DEVICE,
        randomness: Randomness,
    ) -> ReportCounts:
        return ReportCounts(two_stage=self.collect_reports(clients, figures.head, params, devices, randomness))

    def estimate(
        self,
        figures: HeadFigures,
        reports: ReportCounts,
        params: BlenderParams,
        n_clients: int,
        *,
        trust: TrustModel,
        project: bool = True,
    ) -> BlenderRelease:
        assert figures.optin is not None
        assert reports.two_stage is not None
        client = self.estimate_clients(reports.two_stage, figures.head, params)
        records = self.blend(figures.optin.records, client.records)
        queries = self.blend(figures.optin.queries, client.queries)
        return BlenderRelease(
            method=self.name,
            params=self.settled(params),
            head=figures.head,
            sizes=GroupSizes(figures.n_users, n_clients, figures.head_users, figures.optin.n),
            mechanism=self.figures(figures.head, params),
            optin=figures.optin,
            client=client,
            records=records if project else replace(records, probability=records.raw.probability),
            queries=queries if project else replace(queries, probability=queries.raw.probability),
            projected=project,
            guarantee=self.guarantee(figures, params, trust),
        )

    def influence(self, figures: HeadFigures, reports: ReportCounts, params: BlenderParams, n_clients: int) -> Floats:
        assert figures.optin is not None
        assert reports.two_stage is not None
        return paper_influence(reports.two_stage, figures.head, figures.optin.queries, params)

    def guarantee(self, figures: HeadFigures, params: BlenderParams, trust: TrustModel) -> Guarantee:
        return paper_guarantee(params, trust, cryptographic=figures.cryptographic)


@dataclass(frozen=True)
class BestMethod(Method):
    """All opt-in users name and count, clients report in one step, one least squares blends."""

    name = "best"
    wide_list: bool = False
    """whether queries without a listed URL may be listed; only where records have URLs"""

    def settled(self, params: BlenderParams, *, has_rows: bool = True) -> BlenderParams:
        if params.records_per_optin is not None:
            return params
        return replace(params, records_per_optin=default_records(params.budget) if has_rows else 1)

    def list_head(
        self, optin_users: UserGroup, params: BlenderParams, *, randomness: Randomness, on_step: OnStep = _silent
    ) -> HeadFigures:
        on_step("head list")
        n, curator = optin_users.n_users, self._design(params)
        if isinstance(curator, ManyRecordsDesign):
            measured = measure_head_list(optin_users, params, curator, randomness=randomness)
            figures = HeadFigures(measured.head, n, counts=measured.counts, measurement=measured.measurement)
        else:
            counted = count_head_list(optin_users, params, curator, randomness=randomness)
            figures = HeadFigures(counted.head, n, counts=counted.counts)
        return replace(figures, head_users=n, cryptographic=randomness.cryptographic, curator=curator)

    def users_to_be_listed(self, params: BlenderParams) -> int:
        curator = self._design(params)
        if isinstance(curator, ManyRecordsDesign):
            return math.ceil(curator.queries.integer / curator.queries.weights.table[-1])
        return curator.threshold.integer

    def design_reports(
        self, figures: HeadFigures, params: BlenderParams, n_clients: int, *, on_step: OnStep = _silent
    ) -> HeadFigures:
        on_step("client design")
        optin = self._observed(figures, params)
        chosen, compared = choose_design(figures.head, optin, params, n_clients)
        return replace(figures, design=chosen.design, compared=compared)

    def simulate_reports(
        self,
        clients: UserGroup,
        figures: HeadFigures,
        params: BlenderParams,
        *,
        devices: Devices = EACH_DEVICE,
        randomness: Randomness,
    ) -> ReportCounts:
        held = clients.cell_counts(figures.head, params.records_per_client, randomness=randomness)
        return devices.sets_reported(held, figures.head, _design_of(figures), params, randomness)

    def estimate(
        self,
        figures: HeadFigures,
        reports: ReportCounts,
        params: BlenderParams,
        n_clients: int,
        *,
        trust: TrustModel,
        project: bool = True,
    ) -> BlenderRelease:
        curator, design = self._curator(figures, params), _design_of(figures)
        optin = self._observed(figures, params)
        estimates = estimate_best(figures.head, optin, reports, design, params, n_clients, project=project)
        return BlenderRelease(
            method=self.name,
            params=params,
            head=figures.head,
            sizes=GroupSizes(figures.n_users, n_clients, figures.n_users, figures.n_users),
            mechanism=_best_figures(curator, design, figures, params, optin.rho),
            optin=estimates.optin,
            client=estimates.client,
            records=estimates.records,
            queries=estimates.queries,
            projected=project,
            guarantee=self.guarantee(replace(figures, curator=curator), params, trust),
            design=design,
            check=estimates.check,
        )

    def influence(self, figures: HeadFigures, reports: ReportCounts, params: BlenderParams, n_clients: int) -> Floats:
        optin, design = self._observed(figures, params), _design_of(figures)
        clients = client_sources(figures.head, reports, design, params)
        if len(clients) < design.kinds:
            return np.ones(len(figures.head) + 1)  # the first report of a kind may decide everything
        return best_influence(figures.head, optin, clients, People.of(optin, params, n_clients))

    def guarantee(self, figures: HeadFigures, params: BlenderParams, trust: TrustModel) -> Guarantee:
        return best_guarantee(params, self._curator(figures, params), trust, cryptographic=figures.cryptographic)

    def _design(self, params: BlenderParams) -> CuratorDesign | ManyRecordsDesign:
        """One record of each user, or many: by the parameters, and so never by the data."""
        is_one = params.counted_records_per_optin == 1
        return curator_design(params, wide=self.wide_list) if is_one else design_of(params)

    def _curator(self, figures: HeadFigures, params: BlenderParams) -> CuratorDesign | ManyRecordsDesign:
        return figures.curator or self._design(params)

    def _observed(self, figures: HeadFigures, params: BlenderParams) -> OptinCounts:
        """What the opt-in users' figures say; whoever blends need not know which curator drew them."""
        assert figures.counts is not None
        curator = self._curator(figures, params)
        if isinstance(curator, ManyRecordsDesign):
            assert figures.measurement is not None, "expected the figures of a curator over many records"
            return OptinCounts.of_shares(
                measured_shares(
                    MeasuredHeadList(figures.head, figures.counts, figures.measurement, figures.n_users, curator)
                ),
                figures.n_users,
            )
        counted = CountedHeadList(figures.head, figures.counts, figures.n_users, curator)
        return OptinCounts.of(counted, figures.merged)


def _design_of(figures: HeadFigures) -> ReportDesign:
    assert figures.design is not None, "expected a list whose reports are designed"
    return figures.design


METHODS: Final[Mapping[str, Method]] = {"best": BestMethod(), "paper": PaperMethod()}


def method_named(name: str, *, wide_list: bool = False) -> Method:
    """One of ``METHODS``; the option is that of ``best``, and means nothing to ``paper``."""
    if name not in METHODS:
        raise InvalidParameter("method", f"expected one of {', '.join(METHODS)}")
    return BestMethod(wide_list) if name == "best" else METHODS[name]


def method_of(method: str | Method, *, wide_list: bool = False) -> Method:
    """The method of a name, or the one that is given."""
    return method if isinstance(method, Method) else method_named(method, wide_list=wide_list)


def split_optin(optin_users: UserGroup, params: BlenderParams, randomness: Randomness) -> tuple[UserGroup, UserGroup]:
    """S and T, |S| = f_O |O|; T needs 2 users for a variance."""
    head_users, estimate_users = optin_users.split(params.head_fraction, randomness=randomness)
    if head_users.n_users < 1 or estimate_users.n_users < 2:
        raise InvalidParameter(
            "opt-in users",
            f"{optin_users.n_users} are too few at head_fraction {params.head_fraction:g}: at least 1 is needed "
            "to make the head list and 2 to estimate it",
        )
    return head_users, estimate_users


def simulate_clients(
    clients: UserGroup, head: HeadList, params: BlenderParams, randomness: Randomness, devices: Devices = EACH_DEVICE
) -> Ints:
    """The reports of every client, counted by cell: LocalAlg run once for each drawn record."""
    held = clients.cell_counts(head, params.records_per_client, randomness=randomness)
    return devices.cells_reported(held, head, ReportProbabilities.of(head, params), randomness)


def _paper_figures(head: HeadList, params: BlenderParams) -> MechanismFigures:
    """Names and public figures of both groups' mechanisms; the variances assume one report a client."""
    threshold = printed_threshold(params.budget)
    return {
        "optin": {
            "name": "discrete Laplace threshold, then fresh counts of other users",
            "threshold": threshold.printed,
            "integer_threshold": threshold.integer,
            "selection_delta": threshold.single_person_rate,
            "noise_scale": threshold.noise.scale,
        },
        "client": {
            "name": "two-stage randomized response",
            "cells_per_report": params.records_per_client,
            "keep_query": ReportProbabilities.of(head, params).keep_query,
            "variances_valid": params.records_per_client == 1,
        },
    }


def _best_figures(
    curator: CuratorDesign | ManyRecordsDesign,
    design: ReportDesign,
    figures: HeadFigures,
    params: BlenderParams,
    rho: float | None,
) -> MechanismFigures:
    """``rho`` is what was measured of how unlike opt-in users are: 1 if each has one query."""
    queries, cells = design.about_queries(figures.head, params), design.about_cells(figures.head, params)
    measured: MechanismFigures = {"measured": {"rho": rho}} if isinstance(curator, ManyRecordsDesign) else {}
    return measured | {
        "optin": curator.figures,
        "client": {
            "name": design.mechanism,
            "cells_per_report": params.records_per_client,
            "query_share": design.query_share,
            "query_subset": design.query_subset if queries else None,
            "cell_subset": design.cell_subset if cells else None,
            "keep_query": queries.include if queries else None,
            "keep_cell": cells.include if cells else None,
            "variances_valid": True,
            "compared": [
                {
                    "name": entry.design.mechanism,
                    "query_share": entry.design.query_share,
                    "predicted_query_l1": entry.query_l1,
                    "predicted_record_l1": entry.record_l1,
                }
                for entry in figures.compared
            ],
        },
    }
