"""A release as the rows that people and programs read: trends and records, each with both groups' own estimates.

⋆ is None; ``kind`` tells the rows apart (``release.Label``). A number that is not known is None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from searchblend.blender.best.group_check import GroupCheck
from searchblend.blender.estimates import Blended, Estimates
from searchblend.blender.published_cost import with_published_cost
from searchblend.blender.release import BlenderRelease, GroupSizes, Label
from searchblend.core.documents import JsonObject
from searchblend.core.privacy import StatedGuarantee

NOT_PRIVATE: Final = "NOT PRIVATE: made by an evaluation that compares with the true data; do not release"
Number = float | None


@dataclass(frozen=True)
class GroupShare:
    """What one group alone says of a query or record."""

    probability: Number
    variance: Number
    interval: tuple[Number, Number]


@dataclass(frozen=True)
class ResultRow:
    """One query (in the trends) or record with everything that was released about it."""

    query: str | None
    url: str | None
    """None in the trends, too"""
    kind: str
    probability: Number
    variance: Number
    interval: tuple[Number, Number]
    raw_probability: Number
    """before it was projected"""
    optin: GroupShare | None
    client: GroupShare | None
    optin_weight: Number
    true_probability: Number = None
    """of an evaluation"""
    report_influence: Number = None
    """of a collected round: by how much one fabricated report can move the probability"""

    def __repr__(self) -> str:
        return f"ResultRow(<{self.kind}>)"


@dataclass(frozen=True)
class HeadSummary:
    queries: int
    records: int
    digest: str


@dataclass(frozen=True)
class StatedCheck:
    """Whether the groups search alike, for the reader; no estimate depends on the verdict."""

    agrees: bool
    p_value: float
    tested_queries: int
    divergence: float
    flagged_queries: tuple[str, ...]
    """the alarm: the clients' figure contradicts the opt-in users' by more than groups that differ explain"""

    @classmethod
    def of(cls, check: GroupCheck, names: Sequence[str]) -> StatedCheck:
        flagged = tuple(names[i] for i in check.flagged)
        return cls(check.agrees, check.p_value, check.tested, check.divergence, flagged)


@dataclass(frozen=True)
class Result:
    """``result.json``: everything that was released, with its guarantee."""

    method: str
    guarantee: StatedGuarantee
    groups: GroupSizes
    head: HeadSummary
    parameters: JsonObject
    mechanism: JsonObject
    """names and public figures of both groups' mechanisms, which the method decides"""
    group_check: StatedCheck | None
    records: tuple[ResultRow, ...]
    """query by query in the order of the trends; within a query by probability, ⟨q,⋆⟩ after its URLs"""
    trends: tuple[ResultRow, ...]
    """queries from the most to the least probable, ⋆ last"""
    notice: str | None = None
    """why this must not be released; only an evaluation has true probabilities and metrics"""
    metrics: Mapping[str, Number] | None = None
    has_influence: bool = False
    """whether trends have the influence of a report"""

    def evaluated(
        self,
        metrics: Mapping[str, Number],
        true_queries: Mapping[str | None, float],
        true_cells: Mapping[tuple[str | None, str | None], float],
    ) -> Result:
        """The result beside the truth, stamped: it is private no longer."""
        return replace(
            self,
            notice=NOT_PRIVATE,
            metrics=dict(metrics),
            trends=tuple(replace(row, true_probability=true_queries[row.query]) for row in self.trends),
            records=tuple(replace(row, true_probability=true_cells[row.query, row.url]) for row in self.records),
        )

    def with_influence(self, by_query: Mapping[str | None, Number]) -> Result:
        """The result of a collected round, with what one report can do to each trend."""
        trends = tuple(replace(row, report_influence=by_query[row.query]) for row in self.trends)
        return replace(self, trends=trends, has_influence=True)


def result_of(release: BlenderRelease) -> Result:
    """Everything that a run published, in rows."""
    return Result(
        method=release.method,
        guarantee=with_published_cost(release).stated(),
        groups=release.sizes,
        head=HeadSummary(len(release.head), release.head.n_records, release.head.digest),
        parameters=stated_parameters(release),
        mechanism=dict(release.mechanism),
        group_check=StatedCheck.of(release.check, release.head.queries) if release.check else None,
        records=_rows(release.labels("records"), release.records, release.optin.records, release.client.records),
        trends=_rows(release.labels("queries"), release.queries, release.optin.queries, release.client.queries),
    )


def stated_parameters(release: BlenderRelease) -> JsonObject:
    params = release.params
    return {
        "epsilon": params.budget.epsilon,
        "delta": params.budget.delta,
        "max_head_queries": params.max_head_queries,
        "head_fraction": params.head_fraction,
        "query_budget_fraction": params.query_budget_fraction,
        "records_per_optin": params.counted_records_per_optin,
        "records_per_client": params.records_per_client,
        "projected": release.projected,
    }


def _rows(
    labels: Sequence[tuple[int, Label]], blended: Blended, optin: Estimates, client: Estimates
) -> tuple[ResultRow, ...]:
    intervals = blended.raw.interval
    optin_shares, client_shares = _group_shares(optin), _group_shares(client)
    return tuple(
        ResultRow(
            query=query,
            url=url,
            kind=kind,
            probability=_number(blended.probability[i]),
            variance=_number(blended.raw.variance[i]),
            interval=(_number(intervals[i][0]), _number(intervals[i][1])),
            raw_probability=_number(blended.raw.probability[i]),
            optin=optin_shares[i],
            client=client_shares[i],
            optin_weight=_number(blended.optin_weight[i]),
        )
        for i, (query, url, kind) in labels
    )


def _group_shares(estimates: Estimates) -> list[GroupShare | None]:
    values = zip(estimates.probability, estimates.variance, estimates.interval, strict=True)
    return [
        None
        if np.isnan(probability)
        else GroupShare(_number(probability), _number(variance), (_number(low), _number(high)))
        for probability, variance, (low, high) in values
    ]


def _number(value: float) -> Number:
    return float(value) if math.isfinite(value) else None
