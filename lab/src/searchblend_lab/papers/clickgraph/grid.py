"""[KKMN09] Tables 2 and 3: how much is published over a grid of ε and δ."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.published import GRID, LEVEL
from searchblend_lab.papers.clickgraph.week import QUANTITIES, grid_bands, grid_cells, grid_table
from searchblend_lab.papers.experiment import (
    METHODS,
    NOTHING_PUBLISHED,
    Band,
    Finding,
    Outcome,
    Request,
    holds,
    said_of_others,
    tidy,
)
from searchblend_lab.papers.panels import METHOD_STYLES, published_style
from searchblend_lab.papers.prose import prose

_COLORS = {1e-6: "#1b6ca8", 1e-5: "#2f7d4f", 1e-4: "#c8553d"}


@dataclass(frozen=True)
class GridExperiment:
    """One of the two tables."""

    name: str
    title: str
    source: str
    about: str
    quantity: str
    published: dict[tuple[float, float], float]
    digits: int
    shape: str

    def cells(self, request: Request) -> list[Cell]:
        return grid_cells(request)

    def conclude(self, request: Request, results: Results) -> Outcome:
        bands = grid_bands(request, results, self.quantity)
        rows: list[dict[str, Scalar]] = [
            tidy(band, self.quantity, method=method, epsilon=epsilon, delta=delta)
            for (method, epsilon, delta), band in bands.items()
        ]
        ours = {m: {(e, d): bands[m, e, d].mean for e, d in GRID} for m in METHODS}
        tables = [grid_table(f"Ours, {m}", ours[m], self.digits) for m in METHODS]
        if request.log:
            nothing = "" if any(band.mean for band in bands.values()) else NOTHING_PUBLISHED
            return Outcome(rows, self._draw(bands), said_of_others(request.log, nothing=nothing), [], tables)
        tables.append(grid_table("As published", self.published, 2))
        ordered = all(
            ours["paper"][e, 1e-6] <= ours["paper"][e, 1e-5] <= ours["paper"][e, 1e-4] for e, _ in GRID
        ) and all(ours["paper"][math.log(2), d] < ours["paper"][math.log(10), d] for _, d in GRID)
        low, high = min(ours["paper"].values()), max(ours["paper"].values())
        best = f"{min(ours['best'].values()):.{self.digits}f} to {max(ours['best'].values()):.{self.digits}f} %"
        shares = f"{low:.{self.digits}f} to {high:.{self.digits}f} %"
        text = prose(
            "grid", shares=shares, shape=self.shape, published=self.published.values(), ordered=ordered, best=best
        )
        level = f"{min(self.published.values())} to {max(self.published.values())} %"
        close = sum(abs(ours["paper"][at] / published - 1) <= LEVEL for at, published in self.published.items())
        findings = [
            Finding(
                f"{self.shape}: more with more ε and δ",
                "everywhere",
                "everywhere" if ordered else "not everywhere",
                "–",
                holds(ordered),
            ),
            Finding(
                f"{self.shape}, nine cells, smallest to largest",
                level,
                f"{shares}; {close} of {len(self.published)} cells within {LEVEL:.0%} of the published ones",
                best,
                holds(close == len(self.published)),
                "the logs are not of one size, and their people search differently",
            ),
        ]
        return Outcome(rows, self._draw(bands), text, findings, tables)

    def _draw(self, bands: dict[tuple[str, float, float], Band]) -> Figure:
        figure, (axis,) = new_figure(1)
        epsilons = list(dict.fromkeys(e for e, _ in GRID))
        for method in METHODS:
            for delta, color in _COLORS.items():
                values = [bands[method, e, delta].mean for e in epsilons]
                label = f"{method}, δ = {delta:g}"
                axis.plot(
                    epsilons,
                    values,
                    color=color,
                    linestyle=METHOD_STYLES[method],
                    marker="o",
                    markersize=3,
                    label=label,
                )
        published = [(e, value) for (e, _), value in self.published.items()]
        axis.plot(
            [e for e, _ in published],
            [value for _, value in published],
            linestyle="none",
            label="published [KKMN09], all δ",
            **published_style("BLENDER"),
        )
        axis.set_xticks(epsilons, ["ln 2", "ln 5", "ln 10"])
        axis.set(xlabel="ε of the selection", ylabel=QUANTITIES[self.quantity][0], ylim=(0, None))
        axis.legend(frameon=False, fontsize=8, ncols=2)
        return figure
