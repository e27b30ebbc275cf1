"""[BLJ] Fig. 8: what the logs hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.blender.published import FIGURE_8, FIGURE_8_DISK, FIGURE_9
from searchblend_lab.papers.blender.statistics_cells import FULL_SIZE
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import Agreement, Finding, Outcome, Request, Table
from searchblend_lab.papers.panels import SIZE_COLORS, plain_log_ticks, published_style
from searchblend_lab.papers.people import PROFILES, People
from searchblend_lab.papers.prose import prose

_LABELS = {"users": "users with clicks", "queries": "distinct clicked queries", "urls": "distinct clicked URLs"}
_QUICK_SHARE = 20
_RANKS = 1000


class Figure8:
    """Sizes of the synthetic logs against the published ones, and how common the most frequent queries are."""

    name = "fig8"
    title = "What the logs hold"
    source = "[BLJ] Fig. 8"
    about = (
        "Users, distinct queries and distinct URLs among the clicks of a synthetic log of full size, counted from its "
        "draws, and the shares of the most frequent queries with one record per user."
    )

    def cells(self, request: Request) -> list[Cell]:
        return [self._cell(people, request) for people in self._people(request)]

    def _people(self, request: Request) -> tuple[People, ...]:
        """Generated logs alone: what a log of one's own holds, ``searchblend stats`` counts."""
        return (replace(request, people=None) if request.log else request).people_of("aol", "yandex")

    def _cell(self, people: People, request: Request) -> Cell:
        users = FULL_SIZE[people.name] // (_QUICK_SHARE if request.quick else 1)
        return Cell.of("statistics", 0, cost=2.0 if request.quick else 50.0, people=people.name, users=users)

    def conclude(self, request: Request, results: Results) -> Outcome:
        counted = {people.name: results[self._cell(people, request)] for people in self._people(request)}
        rows: list[dict[str, Scalar]] = []
        findings, lines = [], []
        for people in self._people(request):
            for key, label in _LABELS.items():
                published, ours = FIGURE_8[people.name][key], counted[people.name][key]
                rows.append({"people": people.label, "quantity": key, "published": published, "ours": ours})
                lines.append((people.label, label, f"{published:,}", f"{ours:,}", f"{ours / published - 1:+.1%}"))
                findings.append(
                    Finding(
                        f"{label} ({people.label})",
                        f"{published:,}",
                        f"{ours:,}",
                        "same log",
                        Agreement.NOT_COMPARABLE if request.quick else Agreement.FITTED,
                        "a log of one twentieth of the users" if request.quick else "the generator was fitted to it",
                    )
                )
            findings.append(
                Finding(
                    f"size on disk ({people.label})",
                    FIGURE_8_DISK[people.name],
                    "measured in docs/how-to/generate-a-log.md",
                    "same log",
                    Agreement.NOT_COMPARABLE,
                    "which fields the paper's files have is not said",
                )
            )
        for people in self._people(request):
            shares = list(people.everyone(request.seed, 0).top_queries(_RANKS).values())
            rows += [
                {"people": people.label, "quantity": "share", "rank": rank, "ours": share}
                for rank, share in enumerate(shares, 1)
            ]
        table = Table("Sizes", ("log", "", "published", "synthetic", "difference"), tuple(lines))
        return Outcome(rows, self._draw(rows), self._text(request, rows), findings, [table] if lines else [])

    def _text(self, request: Request, rows: list[dict[str, Scalar]]) -> str:
        gaps = [
            float(row["ours"] or 0) / float(row["published"] or 1) - 1
            for row in rows
            if row.get("published") is not None
        ]
        if request.quick:
            size = "A quick look counts a log of one twentieth of the users, whose distinct counts are smaller."
        else:
            size = f"All six sizes are met within {max(map(abs, gaps)):.1%}, because the generator was fitted to them."
        return prose("fig08", size=size)

    def _draw(self, rows: list[dict[str, Scalar]]) -> Figure:
        figure, (axis,) = new_figure(1)
        labels = dict.fromkeys(str(row["people"]) for row in rows if row["quantity"] == "share")
        for label, color in zip(labels, SIZE_COLORS.values(), strict=False):
            of_people = [row for row in rows if row["quantity"] == "share" and row["people"] == label]
            ranks, shares = [row["rank"] for row in of_people], [100 * float(row["ours"] or 0) for row in of_people]
            axis.plot(np.array(ranks, dtype=float), shares, color=color, label=f"{label}, one run")
        if PROFILES["aol"].label in labels:
            published = [100 * row[1] for row in FIGURE_9[1:]]
            label = "published, AOL [BLJ] Fig. 9"
            axis.plot(range(1, 10), published, linestyle="none", label=label, **published_style("BLENDER"))
        axis.set(xlabel="rank of the query", ylabel="share of users (%)", xscale="log", yscale="log")
        plain_log_ticks(axis.yaxis)
        plain_log_ticks(axis.xaxis)
        axis.legend(frameon=False, fontsize=9)
        return figure


EXPERIMENT = Figure8()
