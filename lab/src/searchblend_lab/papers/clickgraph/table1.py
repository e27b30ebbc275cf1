"""[KKMN09] Table 1: threshold and noise over the number of searches that count."""

from __future__ import annotations

from matplotlib.figure import Figure

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.laplace_design import noise_scale, printed_threshold
from searchblend.core.privacy import Budget
from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.cells import selection_params
from searchblend_lab.papers.clickgraph.published import DELTA, EPSILON, TABLE_1
from searchblend_lab.papers.experiment import Finding, Outcome, Request, Table, holds
from searchblend_lab.papers.panels import plain_log_ticks, published_style
from searchblend_lab.papers.prose import prose


class Table1:
    """Formulas alone: no run."""

    name = "kkmn-table1"
    title = "Threshold K and noise b over d"
    source = "[KKMN09] Table 1"
    about = "The threshold and the noise that e^ε = 10 and δ = 1e-5 need when d searches of each user count."

    def cells(self, request: Request) -> list[Cell]:
        return []

    def conclude(self, request: Request, results: Results) -> Outcome:
        budget = Budget(EPSILON, DELTA)
        rows: list[dict[str, Scalar]] = []
        for d, (threshold, scale) in TABLE_1.items():
            best = ClickGraphDesign.of(selection_params("best", d, EPSILON, DELTA)).rounds[-1]
            rows.append(
                {
                    "d": d,
                    "published_threshold": threshold,
                    "published_noise": scale,
                    "threshold": printed_threshold(budget, d),
                    "noise": noise_scale(EPSILON, d),
                    "exact_threshold": printed_threshold(budget, d, accounting="exact"),
                    "best_threshold": best.threshold or 0,
                }
            )
        off = [_gap(row, "threshold") for row in rows] + [_gap(row, "noise") for row in rows]
        agrees = max(off) <= 0.0051
        last = rows[-1]
        text = prose("kkmn_table1", last=last, off=off, rows=rows)
        table = Table(
            "K and b",
            ("d", *(str(row["d"]) for row in rows)),
            tuple(
                (label, *(f"{float(row[key] or 0):.2f}" for row in rows))
                for label, key in (
                    ("K, published", "published_threshold"),
                    ("K, ours", "threshold"),
                    ("b, published", "published_noise"),
                    ("b, ours", "noise"),
                    ("K, exact accounting", "exact_threshold"),
                    ("T of method best, users", "best_threshold"),
                )
            ),
        )
        finding = Finding(
            "K and b of Table 1, largest difference",
            "two decimals",
            f"{max(off):.4f}",
            f"T = {rows[3]['best_threshold']} users at d = 20 (K = 140)",
            holds(agrees),
        )
        return Outcome(rows, _draw(rows), text, [finding], [table])


def _gap(row: dict[str, Scalar], name: str) -> float:
    return abs(float(row[name] or 0) - float(row[f"published_{name}"] or 0))


def _draw(rows: list[dict[str, Scalar]]) -> Figure:
    figure, (axis,) = new_figure(1)
    d = [float(row["d"] or 0) for row in rows]
    for key, label, color in (
        ("threshold", "K, as printed", "#111111"),
        ("exact_threshold", "K, exact accounting", "#2f7d4f"),
        ("best_threshold", "T of method best (users)", "#b8860b"),
        ("noise", "noise b", "#1b6ca8"),
    ):
        axis.plot(d, [float(row[key] or 0) for row in rows], marker="o", markersize=3, color=color, label=label)
    for key in ("published_threshold", "published_noise"):
        label = "published [KKMN09]" if key == "published_noise" else "_"
        values = [float(row[key] or 0) for row in rows]
        axis.plot(d, values, linestyle="none", label=label, **published_style("BLENDER"))
    axis.set(xlabel="searches of each user that count, d", ylabel="searches (of T: users)", xscale="log", yscale="log")
    axis.set_xticks(d, [f"{value:g}" for value in d])
    axis.minorticks_off()
    plain_log_ticks(axis.yaxis)
    axis.legend(frameon=False, fontsize=9)
    return figure


EXPERIMENT = Table1()
