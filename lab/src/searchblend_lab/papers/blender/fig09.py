"""[BLJ] Fig. 9: the ten most frequent queries, true and estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from searchblend.pages.plots import COLORS, new_figure
from searchblend.synthetic.world import written_queries
from searchblend_lab.papers.blender.published import FIGURE_9, FIGURE_9_BL17
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import (
    NO_LIST,
    Agreement,
    Band,
    Finding,
    Outcome,
    Request,
    Table,
    holds,
    hybrid,
    said_of_others,
)
from searchblend_lab.papers.prose import prose

EPSILON = 3.0
COLUMNS = ("true", "blended", "optin", "client_query", "client_records")
HEADINGS = ("query", "true share", "blended p̂", "opt-in Σ p̂_O", "clients p̂_C,q", "clients Σ p̂_C")
GROUPS = {"blended": "the blend", "optin": "the opt-in users", "client_query": "the clients"}
NEAR = 0.5
"""how far the mean number of regressions may be from the published one"""


class Figure9:
    """The table of run 1, and how typical it is."""

    name = "fig9"
    title = "The most frequent queries: true shares and estimates at ε = 3"
    source = "[BLJ] Fig. 9"
    about = (
        "The nine most frequent queries and ⋆: true share, the blend, the opt-in users' sum over URLs, the clients' "
        "query estimate and their sum over URLs. Regressions are estimates larger than the one above them."
    )

    def cells(self, request: Request) -> list[Cell]:
        (people,) = request.people_of("aol")
        return [
            hybrid(people, method, run, epsilon=EPSILON, detail=True)
            for method in request.methods
            for run in range(self.n_runs(request))
        ]

    def n_runs(self, request: Request) -> int:
        return request.n_runs(100, 12)

    def trends(self, request: Request, results: Results) -> dict[str, list[list[dict[str, Any]]]]:
        """The table of every run, by method."""
        (people,) = request.people_of("aol")
        return {
            method: [
                _as_published(results[hybrid(people, method, run, epsilon=EPSILON, detail=True)].get("trends", []))
                for run in range(self.n_runs(request))
            ]
            for method in request.methods
        }

    def summaries(self, request: Request, results: Results) -> dict[str, dict[str, float]]:
        return {method: summary(all_runs) for method, all_runs in self.trends(request, results).items()}

    def conclude(self, request: Request, results: Results) -> Outcome:
        (people,) = request.people_of("aol")
        runs, trends = range(self.n_runs(request)), self.trends(request, results)
        rows = [
            {"method": method, "run": run + 1, "place": place, "query": row["query"] or "⋆"}
            | {name: row[name] for name in COLUMNS}
            for method, all_runs in trends.items()
            for run, table in enumerate(all_runs)
            for place, row in enumerate(table)
        ]
        named = people.name == "aol"
        tables = [
            printed_table(f"Run 1 of method {method}, ▲ marks a regression", t[0]) for method, t in trends.items()
        ]
        if named:
            tables.append(printed_table("As published", as_table(FIGURE_9)))
            tables.append(printed_table("As published in [BL17], ε = 4", as_table(FIGURE_9_BL17)))
        figure = self._draw(trends, published=named)
        if not named:
            return Outcome(rows, figure, said_of_others(people, nothing="" if rows else NO_LIST), [], tables)
        return Outcome(
            rows,
            figure,
            self._text(self.summaries(request, results), people.label, len(runs)),
            findings_of(trends),
            tables,
        )

    def _text(self, summaries: Mapping[str, Mapping[str, float]], label: str, runs: int) -> str:
        ours = summary([as_table(FIGURE_9)])
        return prose(
            "fig09", best=summaries["best"], label=label, ours=ours, paper=summaries["paper"], runs=runs, names=GROUPS
        )

    def _draw(self, trends: Mapping[str, list[list[dict[str, Any]]]], *, published: bool) -> Figure:
        figure, (shares, errors) = new_figure(2)
        names = _names(trends["paper"])
        offsets = np.linspace(-0.2, 0.2, len(trends))
        for offset, (method, all_runs) in zip(offsets, trends.items(), strict=True):
            _draw_method(shares, errors, names, all_runs, method, float(offset))
        true = [np.mean([row["true"] for run in trends["paper"] for row in run if row["query"] == q]) for q in names]
        y = np.arange(len(names))
        shares.plot(100 * np.array(true), y, "|", color="black", markersize=16, label="true share (mean)")
        if published:
            table = {row[0]: row for row in FIGURE_9}
            shares.plot(
                [100 * table[q][2] for q in names if q in table],
                [i for i, q in enumerate(names) if q in table],
                linestyle="none",
                marker="D",
                markersize=5,
                markerfacecolor="none",
                markeredgecolor="#cc0066",
                label="published blend [BLJ]",
            )
        for axis in (shares, errors):
            axis.set_yticks(y, names)
            axis.invert_yaxis()
            axis.grid(axis="y", alpha=0)
            axis.grid(axis="x", alpha=0.25)
        shares.set(xlabel="share of users (%)", xscale="log")
        shares.set_xticks([0.2, 0.3, 0.5, 1, 2], ["0.2", "0.3", "0.5", "1", "2"])
        shares.minorticks_off()
        errors.set(xlabel="relative error of the blend (%)")
        errors.axvline(0, color="black", linewidth=0.8)
        errors.set_yticklabels([])
        shares.set_title("(a) estimates, middle 80 % of the runs", fontsize=10, loc="left")
        errors.set_title("(b) relative error, middle 80 % of the runs", fontsize=10, loc="left")
        handles, labels = shares.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
        return figure


def findings_of(trends: Mapping[str, list[list[dict[str, Any]]]]) -> list[Finding]:
    """The published table is one run: its error must be among the middle 80 % of ours, its regressions our mean."""
    published = summary([as_table(FIGURE_9)])
    runs = {m: [summary([table]) for table in tables if len(table) > 1] for m, tables in trends.items()}
    errors = {m: Band.of([run["error"] for run in of_method]) for m, of_method in runs.items()}
    findings = [
        Finding(
            "median relative error of the nine queries, ε = 3",
            f"{100 * published['error']:.1f} % (one run)",
            _spread(errors["paper"]),
            _spread(errors["best"]),
            _among(published["error"], errors["paper"], errors["best"]),
            "the published run is not among the middle 80 % of ours",
        )
    ]
    for column, whose in GROUPS.items():
        counts = {m: [run[column] for run in of_method] for m, of_method in runs.items()}
        means = {m: float(np.mean(of_method)) if of_method else float("nan") for m, of_method in counts.items()}
        lucky = sum(count <= published[column] for count in counts["paper"])
        findings.append(
            Finding(
                f"regressions of {whose}, mean over runs",
                f"{published[column]:.0f} (one run)",
                f"{means['paper']:.2f}",
                f"{means['best']:.2f}",
                holds(abs(means["paper"] - published[column]) <= NEAR),
                f"at most {published[column]:.0f} in {lucky} of {len(counts['paper'])} runs; the shares of "
                "neighbouring ranks differ by less than the noise",
            )
        )
    fewer = sum(run["blended"] < min(run["optin"], run["client_query"]) for run in runs["paper"])
    blend, clients = (np.mean([run[c] for run in runs["paper"]] or [0.0]) for c in ("blended", "client_query"))
    findings.append(
        Finding(
            "the blend compensates: fewer regressions than both groups",
            "claimed",
            f"in {fewer} of {len(runs['paper'])} runs",
            "–",
            holds(2 * fewer > len(runs["paper"])),
            f"on average {blend:.2f} against {clients:.2f} of the clients alone, as 1 against 1 in the published table",
        )
    )
    return findings


def _among(published: float, paper: Band | None, best: Band | None) -> Agreement:
    """Whether the published run could be one of ours; if it could be one of method best's too, nothing is said."""
    if paper is None or not paper.low <= published <= paper.high:
        return Agreement.DIFFERS
    return Agreement.NOT_COMPARABLE if best and best.low <= published <= best.high else Agreement.AGREES


def _spread(band: Band | None) -> str:
    return "–" if band is None else f"{100 * band.mean:.1f} % ({100 * band.low:.1f} to {100 * band.high:.1f})"


def as_table(rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(("query", *COLUMNS), row, strict=True)) for row in rows]


def _as_published(table: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The nine first queries of the profile stand for the nine published ones, whose shares they have."""
    names = dict(zip(written_queries(), (row[0] for row in FIGURE_9[1:]), strict=False))
    return [{**row, "query": names.get(row["query"], row["query"])} for row in table]


def _draw_method(
    shares: Axes,
    errors: Axes,
    names: Sequence[str],
    runs: Sequence[Sequence[Mapping[str, Any]]],
    method: str,
    offset: float,
) -> None:
    color = COLORS.get(method, "#444444")
    for axis, label in ((shares, f"{method}, blend"), (errors, "_")):
        middles, spans = [], []
        for query in names:
            of_query = [row for run in runs for row in run if row["query"] == query]
            values = np.array(
                [
                    100 * row["blended"] if axis is shares else 100 * (row["blended"] / row["true"] - 1)
                    for row in of_query
                ]
                or [np.nan]
            )
            low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
            middles.append(middle)
            spans.append((middle - low, high - middle))
        axis.errorbar(
            middles,
            np.arange(len(names)) + offset,
            xerr=np.array(spans).T,
            fmt="o",
            markersize=4,
            capsize=2,
            color=color,
            label=label,
        )


def _names(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[str]:
    """The queries that are most often among the nine, by mean true share."""
    shares: dict[str, list[float]] = {}
    for run in runs:
        for row in run:
            if row["query"] is not None:
                shares.setdefault(row["query"], []).append(row["true"])
    common = [query for query, values in shares.items() if len(values) >= len(runs) / 2]
    return sorted(common, key=lambda query: -float(np.mean(shares[query])))


def regressions(table: Sequence[Mapping[str, Any]], column: str) -> list[bool]:
    """For ⋆ and the queries in the true order: is this one larger than the one above? Counted as the paper does, so
    that of two equally frequent queries the second must not be larger either."""
    marks = [False] * len(table)
    for i in range(2, len(table)):
        own, above = table[i][column], table[i - 1][column]
        marks[i] = own is not None and above is not None and own > above
    return marks


def summary(runs: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    """Mean over runs of the median relative error of the queries, and of the number of regressions by column."""
    tables = [table for table in runs if len(table) > 1]
    if not tables:
        return {"error": float("nan"), **dict.fromkeys(GROUPS, 0.0)}
    errors = [np.median([abs(row["blended"] / row["true"] - 1) for row in table[1:]]) for table in tables]
    counts = {column: float(np.mean([sum(regressions(t, column)) for t in tables])) for column in GROUPS}
    return {"error": float(np.mean(errors)), **counts}


def printed_table(title: str, table: Sequence[Mapping[str, Any]]) -> Table:
    marks = {column: regressions(table, column) for column in COLUMNS[1:]}
    rows = []
    for i, row in enumerate(table):
        cells = [row["query"] or "⋆", f"{row['true']:.4f}"]
        for column in COLUMNS[1:]:
            value: Scalar = row[column]
            cells.append("–" if value is None else f"{value:.4f}{' ▲' if marks[column][i] else ''}")
        rows.append(tuple(cells))
    return Table(title, HEADINGS, tuple(rows))


EXPERIMENT = Figure9()
