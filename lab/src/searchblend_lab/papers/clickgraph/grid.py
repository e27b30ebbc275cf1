"""[KKMN09] Tables 2 and 3: how much is published over a grid of ε and δ."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.published import GRID
from searchblend_lab.papers.clickgraph.week import QUANTITIES, grid_bands, grid_cells, grid_table
from searchblend_lab.papers.experiment import METHODS, Band, Finding, Outcome, Request, said_of_a_log, tidy
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
            return Outcome(rows, self._draw(bands), said_of_a_log(request.log, found=True), [], tables)
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
        finding = Finding(
            f"{self.shape}, smallest to largest cell; grows with ε and δ",
            f"{min(self.published.values())} to {max(self.published.values())} %",
            shares,
            best,
            ordered,
        )
        return Outcome(rows, self._draw(bands), text, [finding], tables)

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
