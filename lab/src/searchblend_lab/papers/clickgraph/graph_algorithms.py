"""Queries published by each algorithm for a click graph, and the noise on their counts, at one budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.graph_algorithm_cells import SETTINGS
from searchblend_lab.papers.experiment import (
    NOTHING_PUBLISHED,
    Agreement,
    Band,
    Finding,
    Outcome,
    Request,
    Table,
    said_of_others,
    tidy,
)
from searchblend_lab.papers.prose import prose

EXPONENTS = (1.0, 0.8)
Ratios = tuple[float, float, float, float]
"""exponent; queries against fresh and re-used noise; noise"""
FRESH, REUSED, DEFAULT = "kkmn2009, fresh noise", "kkmn2009, re-used noise", "gaussian (default)"


def _cell(request: Request, name: str, exponent: float, run: int) -> Cell:
    if request.log:
        return Cell.of("graph-algorithms", run, cost=1.0, algorithm=name, people=request.log.name)
    users, vocabulary = (60_000, 600_000) if request.quick else (500_000, 5_000_000)
    return Cell.of(
        "graph-algorithms", run, cost=users / 8e4, algorithm=name, exponent=exponent, users=users, vocabulary=vocabulary
    )


def _logs(request: Request) -> dict[float, str]:
    """By exponent of Zipf's law; of a log of one's own it is not known."""
    return {math.nan: request.log.label} if request.log else {e: f"Zipf {e:g}" for e in EXPONENTS}


@dataclass(frozen=True)
class GraphAlgorithms:
    name: str = "graph-algorithms"
    title: str = "What newer algorithms publish of the same log"
    source: str = "ours"
    about: str = (
        "Queries published and the noise of their counts, selection and counts together at e^ε = 10 and δ = 1e-5, on "
        "synthetic logs of 500,000 users with Zipf exponents 1.0 and 0.8."
    )

    def cells(self, request: Request) -> list[Cell]:
        runs = request.n_runs(3, 1)
        return [
            _cell(request, name, exponent, run)
            for run in range(runs)
            for exponent in _logs(request)
            for name in SETTINGS
        ]

    def conclude(self, request: Request, results: Results) -> Outcome:
        runs = request.n_runs(3, 1)

        def band(name: str, exponent: float, quantity: str) -> Band:
            of_runs = Band.of([results[_cell(request, name, exponent, run)][quantity] for run in range(runs)])
            assert of_runs is not None
            return of_runs

        rows: list[dict[str, Scalar]] = []
        lines: list[tuple[str, ...]] = []
        for exponent, label in _logs(request).items():
            printed = band(FRESH, exponent, "published").mean
            for name in SETTINGS:
                for quantity in ("published", "noise", "threshold", "coverage"):
                    rows.append(tidy(band(name, exponent, quantity), quantity, algorithm=name, log=label))
                published = band(name, exponent, "published").mean
                lines.append(
                    (
                        label,
                        name,
                        f"{published:,.0f}",
                        f"{published / printed:.1f}" if printed else "–",
                        f"{band(name, exponent, 'noise').mean:.1f}",
                        f"{100 * band(name, exponent, 'coverage').mean:.1f} %",
                    )
                )
        columns = ("log", "algorithm", "queries", "times kkmn2009", "sd of counts", "searches covered")
        table = Table("Selection and counts together, e^ε = 10, δ = 1e-5", columns, tuple(lines))
        figure = _figure(band, _logs(request))
        if request.log:
            nothing = "" if any(row["mean"] for row in rows if row["quantity"] == "published") else NOTHING_PUBLISHED
            return Outcome(rows, figure, said_of_others(request.log, nothing=nothing), [], [table])
        ratios = [
            (
                exponent,
                band(DEFAULT, exponent, "published").mean / band(FRESH, exponent, "published").mean,
                band(DEFAULT, exponent, "published").mean / band(REUSED, exponent, "published").mean,
                band(DEFAULT, exponent, "noise").mean / band(FRESH, exponent, "noise").mean,
            )
            for exponent in EXPONENTS
        ]
        return Outcome(rows, figure, _text(ratios), _findings(ratios), [table])


def _text(ratios: Sequence[Ratios]) -> str:
    parts = [
        prose("graph_algorithms_part", exponent=exponent, fresh=fresh, noise=noise, reused=reused)
        for exponent, fresh, reused, noise in ratios
    ]
    return prose("graph_algorithms", parts=parts)


def _findings(ratios: Sequence[Ratios]) -> list[Finding]:
    return [
        Finding(
            f"Queries against kkmn2009 with fresh and with re-used noise, Zipf {exponent:g}",
            "–",
            "1",
            f"{fresh:.1f} and {reused:.1f} times, noise {noise:.2f}",
            Agreement.OURS,
        )
        for exponent, fresh, reused, noise in ratios
    ]


def _figure(band: Callable[[str, float, str], Band], logs: Mapping[float, str]) -> Figure:
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    for place, (exponent, label) in enumerate(logs.items()):
        axes = figure.add_subplot(1, len(logs), place + 1)
        names = list(SETTINGS)[::-1]
        published = [band(name, exponent, "published") for name in names]
        colors = ["#1f5fa8" if name == DEFAULT else "#9db8d6" if "kkmn" not in name else "#c9c9c9" for name in names]
        axes.barh(range(len(names)), [one.mean for one in published], color=colors)
        for y, (name, one) in enumerate(zip(names, published, strict=True)):
            noise = band(name, exponent, "noise").mean
            axes.annotate(
                f" {one.mean:,.0f}  (sd {noise:.1f})", (one.mean, y), va="center", fontsize=8, annotation_clip=False
            )
        axes.set_yticks(range(len(names)), names if place == 0 else [""] * len(names), fontsize=8)
        axes.set_xlim(0, 1.45 * max(1.0, *(one.mean for one in published)))
        axes.set_xlabel("queries published")
        axes.set_title(f"({'ab'[place]}) {label}", loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


EXPERIMENT = GraphAlgorithms()
