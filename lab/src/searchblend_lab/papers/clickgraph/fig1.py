"""[KKMN09] Fig. 1: how likely a query is published."""

from __future__ import annotations

from matplotlib.figure import Figure

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import release_probability, step_release_probability
from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.cells import selection_params
from searchblend_lab.papers.clickgraph.published import DELTA, EPSILON
from searchblend_lab.papers.experiment import Finding, Outcome, Request, holds
from searchblend_lab.papers.panels import published_style
from searchblend_lab.papers.prose import prose

THRESHOLD, NOISE, LIMIT = 140.0, 8.69, 20


class Figure1:
    """Formulas alone: no run."""

    name = "kkmn-fig1"
    title = "How likely a query is published"
    source = "[KKMN09] Fig. 1"
    about = "The probability that a query is published over its frequency, d = 20, K = 140, b = 8.69."

    def cells(self, request: Request) -> list[Cell]:
        return []

    def conclude(self, request: Request, results: Results) -> Outcome:
        steps = {
            m: ClickGraphDesign.of(selection_params(m, LIMIT, EPSILON, DELTA)).rounds[-1] for m in ("paper", "best")
        }
        rows: list[dict[str, Scalar]] = [
            {
                "frequency": count,
                "formula": release_probability(count, THRESHOLD, NOISE),
                "paper": step_release_probability(steps["paper"], count),
                "best": step_release_probability(steps["best"], count),
            }
            for count in range(1, 201)
        ]
        low, high = (release_probability(count, THRESHOLD, NOISE) for count in (110, 170))
        gap = max(abs(float(row["formula"] or 0) - float(row["paper"] or 0)) for row in rows)
        half = next(int(row["frequency"] or 0) for row in rows if float(row["best"] or 0) >= 0.5)
        text = prose("kkmn_fig1", gap=gap, half=half, high=high, low=low)
        finding = Finding(
            "probability at frequency 110 / 140 / 170",
            "virtually guaranteed not / – / virtually guaranteed",
            f"{low:.3f} / {release_probability(140, THRESHOLD, NOISE):.3f} / {high:.3f}",
            f"one half at {half} users",
            holds(low < 0.02 and high > 0.98),
        )
        return Outcome(rows, _draw(rows), text, [finding])


def _draw(rows: list[dict[str, Scalar]]) -> Figure:
    figure, (axis,) = new_figure(1)
    x = [float(row["frequency"] or 0) for row in rows]
    for key, label, color, style in (
        ("formula", "K = 140, b = 8.69, the formula", "#111111", "-"),
        ("paper", "as run: whole numbers (paper)", "#c8553d", ":"),
        ("best", "method best, users", "#0b6e4f", "--"),
    ):
        axis.plot(x, [float(row[key] or 0) for row in rows], color=color, linestyle=style, label=label)
    axis.plot(
        [110, 170], [0, 1], linestyle="none", label="“virtually guaranteed” [KKMN09]", **published_style("BLENDER")
    )
    axis.set(xlabel="frequency of the query", ylabel="probability of being published", ylim=(-0.03, 1.03))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return figure


EXPERIMENT = Figure1()
