"""[KKMN09] Table 4: what people fear, from a log and from its release."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from searchblend.pages.plots import COLORS, new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.published import DELTA, EPSILON, GRID_LIMIT, SOCIAL_FEARS, SURVEY, TABLE_4
from searchblend_lab.papers.experiment import METHODS, Agreement, Band, Finding, Outcome, Request, Table, number
from searchblend_lab.papers.panels import published_style
from searchblend_lab.papers.prose import prose


class Table4:
    """Rankings of the synthetic log and of its release."""

    name = "kkmn-table4"
    title = "A study of fears, from the log and from the release"
    source = "[KKMN09] Table 4"
    about = (
        "Queries that contain “fear of” in a synthetic log, grouped and ranked before and after the release; "
        "selection with e^ε = 10, δ = 1e-5, d = 21, and as much ε again for the counts."
    )

    def _cells(self, request: Request, method: str) -> list[Cell]:
        return [
            Cell.of("kkmn-study", run, cost=0.03, method=method, searches=GRID_LIMIT, epsilon=EPSILON, delta=DELTA)
            for run in range(request.n_runs(200, 20))
        ]

    def cells(self, request: Request) -> list[Cell]:
        return [cell for method in METHODS for cell in self._cells(request, method)]

    def conclude(self, request: Request, results: Results) -> Outcome:
        rows: list[dict[str, Scalar]] = []
        tau: dict[str, Band | None] = {}
        same: dict[str, float] = {}
        social: dict[str, float] = {}
        ranks: dict[str, dict[str, list[int]]] = {}
        for method in METHODS:
            cells = self._cells(request, method)
            tau[method] = Band.of(results.values(cells, "tau"))
            overlap = results.values(cells, "overlap")
            same[method] = sum(value == 1 for value in overlap) / len(overlap)
            ranks[method] = {}
            social[method] = float(np.mean([_social(results[cell]["released"]) for cell in cells]))
            for cell in cells:
                figures = results[cell]
                rows += [
                    {"method": method, "run": cell.run + 1, "rank": i + 1, "original": a, "released": b}
                    for i, (a, b) in enumerate(zip(figures["original"], figures["released"], strict=False))
                ]
                for i, name in enumerate(figures["released"]):
                    ranks[method].setdefault(name, []).append(i + 1)
        return Outcome(
            rows,
            _draw(ranks),
            self._text(tau, same, social),
            self._findings(tau, same, social),
            [self._table(request, results)],
        )

    def _table(self, request: Request, results: Results) -> Table:
        first = {method: results[self._cells(request, method)[0]] for method in METHODS}
        columns = ["rank", "survey, published", "log, published", "release, published", "log, run 1"]
        rows = [
            (
                f"{i + 1}",
                SURVEY[i],
                *TABLE_4[i],
                first["paper"]["original"][i],
                *(_at(first[m]["released"], i) for m in METHODS),
            )
            for i in range(len(TABLE_4))
        ]
        rows.append(
            (
                "of them social",
                str(_social(SURVEY)),
                *(str(_social(column)) for column in zip(*TABLE_4, strict=True)),
                str(_social(first["paper"]["original"])),
                *(str(_social(first[m]["released"])) for m in METHODS),
            )
        )
        columns += ["release, paper", "release, best"]
        return Table("Most common fears", tuple(columns), tuple(rows))

    def _text(self, tau: dict[str, Band | None], same: dict[str, float], social: dict[str, float]) -> str:
        shown = {m: number(band.mean if band else None, 2) for m, band in tau.items()}
        return prose(
            "kkmn_table4", published=_published_tau(), same=same, shown=shown, social=social, survey=_social(SURVEY)
        )

    def _findings(self, tau: dict[str, Band | None], same: dict[str, float], social: dict[str, float]) -> list[Finding]:
        return [
            Finding(
                "the top nine fears are the same set in log and release",
                "yes",
                f"in {100 * same['paper']:.0f} % of the runs",
                f"in {100 * same['best']:.0f} % of the runs",
                _fitted(same["paper"] > 0.5),
                _OURS,
            ),
            Finding(
                "Kendall's tau of their order",
                f"{_published_tau():.2f} (one run)",
                number(tau["paper"].mean if tau["paper"] else None, 2),
                number(tau["best"].mean if tau["best"] else None, 2),
                _fitted(bool(tau["paper"] and tau["paper"].mean > 0.5)),
                _OURS,
            ),
            Finding(
                "social fears among the nine of the release (the survey has one)",
                str(_social([released for _, released in TABLE_4])),
                f"{social['paper']:.2f}",
                f"{social['best']:.2f}",
                _fitted(social["paper"] > 3.5),
                _OURS,
            ),
        ]


_OURS = "how often each fear is searched is ours, in the paper's order"


def _fitted(good: bool) -> Agreement:
    """What our own counts make likely is not evidence; against the odds it is a difference all the same."""
    return Agreement.FITTED if good else Agreement.DIFFERS


def _social(fears: Iterable[str]) -> int:
    return sum(fear in SOCIAL_FEARS for fear in fears)


def _at(names: list[str], i: int) -> str:
    return names[i] if i < len(names) else "–"


def _published_tau() -> float:
    order = {name: i for i, (name, _) in enumerate(TABLE_4)}
    ranks = [order[name] for _, name in TABLE_4]
    pairs = [(a, b) for i, a in enumerate(ranks) for b in ranks[i + 1 :]]
    return sum(1 if a < b else -1 for a, b in pairs) / len(pairs)


def _draw(ranks: dict[str, dict[str, list[int]]]) -> Figure:
    figure, (axis,) = new_figure(1)
    names = [name for name, _ in TABLE_4]
    for offset, method in ((-0.15, "paper"), (0.15, "best")):
        quantiles = [
            np.quantile(of_name, [0.1, 0.5, 0.9]) if (of_name := ranks[method].get(name)) else np.full(3, np.nan)
            for name in names
        ]
        low, middle, high = np.array(quantiles).T
        axis.errorbar(
            middle,
            np.arange(len(names)) + offset,
            xerr=[middle - low, high - middle],
            fmt="o",
            markersize=4,
            capsize=2,
            color=COLORS[method],
            label=f"release, {method}",
        )
    axis.plot(np.arange(1, 10), np.arange(9), "|", color="black", markersize=16, label="log (mean order)")
    published = [next(i + 1 for i, (_, released) in enumerate(TABLE_4) if released == name) for name in names]
    label = "release, published [KKMN09]"
    axis.plot(published, np.arange(9), linestyle="none", label=label, **published_style("BLENDER"))
    axis.set_yticks(np.arange(9), names)
    axis.invert_yaxis()
    axis.set(xlabel="rank in the release, middle 80 % of the runs")
    axis.set_ylabel("fear, by rank in the log")
    axis.legend(frameon=False, fontsize=8)
    return figure


EXPERIMENT = Table4()
