"""[KKMN09] Fig. 2: how much of a week's log is published over d."""

from __future__ import annotations

from matplotlib.figure import Figure

from searchblend.pages.plots import COLORS, new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.cells import LIMITS
from searchblend_lab.papers.clickgraph.published import DELTA, DISTINCT, EPSILON, IMPRESSIONS, LEVEL
from searchblend_lab.papers.clickgraph.week import QUANTITIES, percent, week_cells
from searchblend_lab.papers.experiment import (
    METHODS,
    NOTHING_PUBLISHED,
    Band,
    Finding,
    Outcome,
    Request,
    holds,
    near,
    said_of_others,
    tidy,
)
from searchblend_lab.papers.panels import METHOD_STYLES, published_style
from searchblend_lab.papers.prose import prose


class Figure2:
    """Distinct queries, impressions and search volume over d."""

    name = "kkmn-fig2"
    title = "How much of a week's log is published, over d"
    source = "[KKMN09] Fig. 2"
    about = "The number d of searches of each user that count goes from 1 to 160; e^ε = 10, δ = 1e-5, one week."

    def cells(self, request: Request) -> list[Cell]:
        return [cell for m in METHODS for d in LIMITS for cell in week_cells(request, m, d, EPSILON, DELTA)]

    def conclude(self, request: Request, results: Results) -> Outcome:
        bands = {
            (method, d, quantity): percent(week_cells(request, method, d, EPSILON, DELTA), results, quantity)
            for method in METHODS
            for d in LIMITS
            for quantity in QUANTITIES
        }
        rows: list[dict[str, Scalar]] = [
            tidy(band, quantity, method=method, d=d) for (method, d, quantity), band in bands.items()
        ]
        if request.log:
            nothing = "" if any(band.mean for band in bands.values()) else NOTHING_PUBLISHED
            return Outcome(rows, _draw(bands), said_of_others(request.log, nothing=nothing))
        text, findings = _text(bands)
        return Outcome(rows, _draw(bands), text, findings)


Bands = dict[tuple[str, int, str], Band]


def _text(bands: Bands) -> tuple[str, list[Finding]]:
    distinct = {m: [bands[m, d, "published"].mean for d in LIMITS] for m in METHODS}
    shown = {m: [bands[m, d, "published_impressions"].mean for d in LIMITS] for m in METHODS}
    volume = {m: [bands[m, d, "volume"].mean for d in LIMITS] for m in METHODS}
    peak = LIMITS[max(range(len(LIMITS)), key=lambda i: shown["paper"][i])]
    falls = all(b < a for a, b in zip(distinct["paper"], distinct["paper"][1:], strict=False))
    wins = [d for d in LIMITS if bands["best", d, "published"].mean > bands["paper", d, "published"].mean]
    text = prose("kkmn_fig2", distinct=distinct, peak=peak, shown=shown, volume=volume, wins=", ".join(map(str, wins)))
    why = f"people of the synthetic log search more; from d = {peak} to 160 impressions change by "
    why += f"{shown['paper'][-1] / max(shown['paper']) - 1:+.1%}"
    findings = [
        Finding(
            "distinct queries published, d = 1",
            f"about {DISTINCT} %",
            f"{distinct['paper'][0]:.2f} %",
            f"{distinct['best'][0]:.2f} %",
            near(DISTINCT, distinct["paper"][0], distinct["best"][0], LEVEL * DISTINCT),
            "the exponent of its Zipf law, and so the share of rare queries, is our choice",
        ),
        Finding(
            "distinct queries published, d = 1 → 160",
            "falling",
            f"{distinct['paper'][0]:.2f} → {distinct['paper'][-1]:.3f} %",
            f"{distinct['best'][0]:.2f} → {distinct['best'][-1]:.3f} %",
            holds(falls),
        ),
        *(
            Finding(
                f"impressions published, {where}",
                f"about {published} %",
                f"{shown['paper'][i]:.1f} %",
                f"{shown['best'][i]:.1f} %",
                near(published, shown["paper"][i], shown["best"][i], LEVEL * published),
                "people of the synthetic log search more than those of the paper's",
            )
            for where, published, i in (("d = 1", IMPRESSIONS[1], 0), ("d = 20", IMPRESSIONS[20], LIMITS.index(20)))
        ),
        Finding(
            "d with the most impressions",
            "about 20, fewer beyond",
            f"{peak} ({max(shown['paper']):.1f} %), {shown['paper'][-1]:.1f} % at 160",
            f"{max(shown['best']):.1f} % at most, {shown['best'][-1]:.1f} % at 160",
            holds(10 <= peak <= 40),
            why,
        ),
    ]
    return text, findings


def _draw(bands: Bands) -> Figure:
    figure, axes = new_figure(3)
    for axis, (quantity, (label, _)) in zip(axes, QUANTITIES.items(), strict=True):
        for method in METHODS:
            curve = [bands[method, d, quantity] for d in LIMITS]
            axis.plot(
                LIMITS,
                [band.mean for band in curve],
                marker="o",
                markersize=3,
                color=COLORS[method],
                linestyle=METHOD_STYLES[method],
                label=method,
            )
            lows, highs = [band.low for band in curve], [band.high for band in curve]
            axis.fill_between(LIMITS, lows, highs, color=COLORS[method], alpha=0.15, linewidth=0)
        axis.set(xlabel="searches of each user that count, d", ylabel=label, xscale="log")
        axis.set_xticks(LIMITS, [str(d) for d in LIMITS])
        axis.minorticks_off()
    axes[0].plot([1], [DISTINCT], linestyle="none", **published_style("BLENDER"))
    axes[1].plot(
        list(IMPRESSIONS),
        list(IMPRESSIONS.values()),
        linestyle="none",
        label="published [KKMN09], about",
        **published_style("BLENDER"),
    )
    for axis in axes:
        axis.set_ylim(bottom=0)
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


EXPERIMENT = Figure2()
