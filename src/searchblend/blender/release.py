"""What is published: first the head list with the opt-in users' figures, in the end everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from searchblend.blender.best.choose_design import Forecast
from searchblend.blender.best.group_check import GroupCheck
from searchblend.blender.best.many_records import Measurement
from searchblend.blender.best.many_records_design import ManyRecordsDesign
from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.estimates import Blended, Estimates, Floats, GroupEstimates
from searchblend.blender.paper.estimate_optin import optin_variance
from searchblend.core.documents import JsonObject
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Guarantee
from searchblend.core.records import HeadList
from searchblend.core.tables import ROWS_SHOWN, Column, ReleasedTables, chosen, html_table, short_promise
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import noise_for_one_record

TableName = Literal["queries", "records"]
Label = tuple[str | None, str | None, str]
"""query, URL and kind: ``record`` ⟨q,u⟩, ``query_rest`` ⟨q,⋆⟩, ``rest`` ⟨⋆,⋆⟩; of the queries ``query`` and ``rest``"""


@dataclass(frozen=True)
class GroupSizes:
    """How many people took part; public, since neighbours differ in values and not in participation."""

    optin_users: int
    clients: int
    head_users: int
    """opt-in users that make the head list (S)"""
    estimate_users: int
    """opt-in users that estimate it (T): others than S in the printed method, the same in ``best``"""


@dataclass(frozen=True)
class HeadFigures:
    """The curator's private output: a head list with what the opt-in users say about it. Safe to keep and to review."""

    head: HeadList
    n_users: int
    counts: Ints | None = None
    """method ``best``: noisy counts by cell, without ⟨⋆,⋆⟩; in units of own shares where ``measurement`` is set"""
    measurement: Measurement | None = None
    """method ``best`` over many records: what else its curator published"""
    merged: Ints | None = None
    """by cell: how many removed records' counts, each with noise of its own, are part of it; None: none"""
    optin: GroupEstimates | None = None
    """method ``paper``"""
    head_users: int = 0
    """method ``paper``: |S|"""
    cryptographic: bool | None = None
    """whether the noise came from a generator that no one can predict; None: not on record"""
    design: ReportDesign | None = None
    """how clients report, in method ``best``, once that is chosen"""
    compared: Sequence[Forecast] = field(default=(), compare=False)
    """the designs that were compared, where list and reports are made in one go"""
    curator: CuratorDesign | ManyRecordsDesign | None = field(default=None, compare=False)
    """method ``best``: thresholds and noises; they follow from the parameters, so they are not kept"""

    def without(self, removed: Sequence[tuple[int, int | None]], params: BlenderParams) -> HeadFigures:
        """The list without some queries (url None) or URLs, by position. Post-processing of a private output.

        What a removed entry counted goes where its holders' reports go: to ⟨q,⋆⟩ of its query in method ``best``,
        to ⟨⋆,⋆⟩ in method ``paper``, which has no opt-in figure for ⟨q,⋆⟩. Of a removed query nothing stays.
        """
        queries = {query for query, url in removed if url is None}
        urls = {(query, url) for query, url in removed if url is not None}
        first = self.head.first_cells()
        listed: list[tuple[str, list[str]]] = []
        cells: list[int] = []
        moved: dict[int, int] = {}
        for i, query in enumerate(self.head.queries):
            if i in queries:
                continue
            names = self.head.urls(query)
            kept = [j for j in range(len(names)) if (i, j) not in urls]
            listed.append((query, [names[j] for j in kept]))
            cells += [first[i] + j for j in kept] + [first[i] + len(names)]
            moved |= {first[i] + j: first[i] + len(names) for j in range(len(names)) if (i, j) in urls}
        head = HeadList(listed)
        if self.counts is not None:
            counts, merged = self.counts.copy(), np.zeros_like(self.counts)
            if self.merged is not None:
                merged += self.merged
            for cell, rest in moved.items():
                counts[rest] += counts[cell]
                merged[rest] += 1
            measurement = self.measurement and self.measurement.of_cells(
                cells,
                [i for i in range(len(self.head)) if i not in queries],
                removed=int(self.counts.sum()) - int(counts[cells].sum()),
            )
            return replace(self, head=head, counts=counts[cells], merged=merged[cells], measurement=measurement)
        assert self.optin is not None
        return replace(self, head=head, optin=_printed_without(self.optin, head, cells, params))


def _printed_without(
    optin: GroupEstimates, head: HeadList, cells: Sequence[int], params: BlenderParams
) -> GroupEstimates:
    """The estimates of the kept cells; everything else is ⟨⋆,⋆⟩, with the printed variances."""
    probability = optin.records.probability
    kept = probability[list(cells)]
    rest = float(np.nansum(probability)) - float(np.nansum(kept))
    cell_probability = np.append(kept, rest)
    query_probability = np.add.reduceat(np.nan_to_num(cell_probability), head.first_cells())
    noise = noise_for_one_record(params.budget).variance
    return GroupEstimates(
        optin.n,
        Estimates(cell_probability, optin_variance(cell_probability, optin.n, noise)),
        Estimates(query_probability, optin_variance(query_probability, optin.n, noise)),
    )


@dataclass(frozen=True, repr=False)
class BlenderRelease(ReleasedTables[TableName]):
    """Everything that one run publishes. ``repr`` and every field are safe to show."""

    method: str
    params: BlenderParams
    head: HeadList
    sizes: GroupSizes
    mechanism: JsonObject
    """names and public figures of both groups' mechanisms"""
    optin: GroupEstimates
    client: GroupEstimates
    records: Blended
    queries: Blended
    projected: bool
    guarantee: Guarantee
    design: ReportDesign | None = None
    """how clients report, in method ``best``"""
    check: GroupCheck | None = None
    """whether the groups search alike, in method ``best``"""

    def ranked_queries(self) -> list[int]:
        """The positions of the listed queries, most probable first; ties by bytes, never by input order."""
        return _by_probability(self.queries.probability[:-1], self.head.queries)

    def ranked_urls(self, query: int) -> list[int]:
        """The positions of one query's listed URLs, most probable first; ties by bytes."""
        first, urls = self.head.first_cells()[query], self.head.urls(self.head.queries[query])
        return _by_probability(self.records.probability[first : first + len(urls)], urls)

    def labels(self, table: TableName) -> list[tuple[int, Label]]:
        """Place and label of each row: queries by probability, a query's URLs likewise, what is not listed last."""
        queries, ranked = self.head.queries, self.ranked_queries()
        if table == "queries":
            return [*((i, (queries[i], None, "query")) for i in ranked), (len(queries), (None, None, "rest"))]
        first, labels = self.head.first_cells(), list[tuple[int, Label]]()
        for i in ranked:
            urls = self.head.urls(queries[i])
            labels += [(first[i] + j, (queries[i], urls[j], "record")) for j in self.ranked_urls(i)]
            labels.append((first[i] + len(urls), (queries[i], None, "query_rest" if self.head.has_urls else "record")))
        return [*labels, (len(labels), (None, None, "rest"))]

    def columns(self, table: TableName | None = None) -> dict[str, Column]:
        """``queries`` (the default) or ``records``: names, shares and the ends of their 95 % intervals.

        Rows and names are those of ``trends.csv`` and ``records.csv``.
        """
        name: TableName = chosen(table, "queries", "records")
        blended, labels = (self.queries if name == "queries" else self.records), self.labels(name)
        places = [place for place, _ in labels]
        names = {role: [label[k] for _, label in labels] for k, role in enumerate(("query", "url", "kind"))}
        if name == "queries":
            del names["url"]
        low, high = blended.raw.interval[places].T
        return {**names, "probability": blended.probability[places], "low": low, "high": high}

    def __repr__(self) -> str:
        return f"BlenderRelease({self.head!r}, {short_promise(self.guarantee)})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        listed = self.ranked_queries()
        intervals = self.queries.raw.interval
        rows = (
            (
                self.head.queries[i],
                f"{self.queries.probability[i]:.3%}",
                f"{intervals[i][0]:.3%} to {intervals[i][1]:.3%}",
            )
            for i in listed[:ROWS_SHOWN]
        )
        header = ("query", "share of searches", "95 % interval")
        return html_table("Released queries", header, rows, len(listed), self.guarantee)


def _by_probability(probability: Floats, names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=lambda i: (-probability[i], names[i].encode()))
