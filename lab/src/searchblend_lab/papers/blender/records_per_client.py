"""[BLJ] §4.3.1: is one record per client best?"""

from __future__ import annotations

from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import (
    METHODS,
    NO_LIST,
    Band,
    Finding,
    Outcome,
    Request,
    holds,
    said_of_others,
    tidy,
)
from searchblend_lab.papers.panels import METHOD_STYLES, OTHER_STYLE, algorithm_label, plain_log_ticks
from searchblend_lab.papers.prose import prose

COUNTS = (1, 2, 5, 10)
_KINDS = {False: "a person's records independent", True: "a person's records all the same"}
_COLORS = {False: "#1b6ca8", True: "#c8553d"}
_SHOWN = (("query_l1", "L1 distance of the queries' shares"), ("ndcg", "NDCG"))


class RecordsPerClient:
    """m_C = 1, 2, 5, 10 at the two extremes of how alike one person's records are."""

    name = "records-per-client"
    title = "How many records each client reports"
    source = "[BLJ] §4.3.1"
    about = (
        "Each client sends m_C cells, each with ε/m_C; people have up to 60 records, either independent of each "
        "other (the best case for sending several) or all the same (the worst)."
    )

    def cells(self, request: Request) -> list[Cell]:
        return [
            cell
            for method in request.methods
            for alike in _KINDS
            for count in COUNTS
            for cell in self.runs_of(request, method, count, alike=alike)
        ]

    def runs_of(self, request: Request, method: str, count: int, *, alike: bool) -> list[Cell]:
        return [
            Cell.of(
                "several-records",
                run,
                cost=0.3 + 0.1 * count,
                people=request.log.name if request.log else "aol",
                users=None,
                method=method,
                alike=alike,
                per_client=count,
                per_optin=1,
                epsilon=4.0,
                size=50,
            )
            for run in range(request.n_runs(6, 2))
        ]

    def bands(self, request: Request, results: Results) -> dict[tuple[str, bool, int, str], Band | None]:
        return {
            (method, alike, count, quantity): Band.of(
                results.values(self.runs_of(request, method, count, alike=alike), quantity)
            )
            for method in request.methods
            for alike in _KINDS
            for count in COUNTS
            for quantity, _ in _SHOWN
        }

    def conclude(self, request: Request, results: Results) -> Outcome:
        bands = self.bands(request, results)
        rows: list[dict[str, Scalar]] = [
            tidy(band, quantity, method=method, records=_KINDS[alike], records_per_client=count)
            for (method, alike, count, quantity), band in bands.items()
        ]
        if request.log:
            is_drawn = any(bands.values())
            return Outcome(rows, self._draw(bands), said_of_others(request.log, nothing="" if is_drawn else NO_LIST))
        text, finding = conclude(bands)
        return Outcome(rows, self._draw(bands), text, [finding])

    def _draw(self, bands: dict[tuple[str, bool, int, str], Band | None]) -> Figure:
        figure, axes = new_figure(2)
        for axis, (quantity, label) in zip(axes, _SHOWN, strict=True):
            for method in dict.fromkeys(method for method, *_ in bands):
                for alike, what in _KINDS.items():
                    by_count = [(c, b) for c in COUNTS if (b := bands[method, alike, c, quantity])]
                    x = [count for count, _ in by_count]
                    name, color = f"{algorithm_label(method)}, {what}", _COLORS[alike]
                    style = METHOD_STYLES.get(method, OTHER_STYLE)
                    means = [b.mean for _, b in by_count]
                    axis.plot(x, means, marker="o", markersize=3, label=name, color=color, linestyle=style)
                    lows, highs = [b.low for _, b in by_count], [b.high for _, b in by_count]
                    axis.fill_between(x, lows, highs, color=_COLORS[alike], alpha=0.13, linewidth=0)
            axis.set(xlabel="cells per report, $m_C$", ylabel=label, xscale="log")
            axis.set_xticks(COUNTS, [str(count) for count in COUNTS])
            axis.minorticks_off()
        if any(bands.values()):
            axes[0].set_yscale("log")
            plain_log_ticks(axes[0].yaxis)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
        return figure


def one_is_best(bands: dict[tuple[str, bool, int, str], Band | None], method: str) -> tuple[bool, str]:
    """Whether m_C = 1 has the least L1 and the largest NDCG, and the numbers."""
    holds, parts = True, []
    for alike in _KINDS:
        l1 = {c: b.mean for c in COUNTS if (b := bands[method, alike, c, "query_l1"])}
        ndcg = {c: b.mean for c in COUNTS if (b := bands[method, alike, c, "ndcg"])}
        holds &= bool(l1) and min(l1, key=lambda c: l1[c]) == 1 and max(ndcg, key=lambda c: ndcg[c]) == 1
        parts.append(" / ".join(f"{value:.4f}" for value in l1.values()))
    return holds, "; ".join(parts)


def conclude(bands: dict[tuple[str, bool, int, str], Band | None]) -> tuple[str, Finding]:
    verdicts = {method: one_is_best(bands, method) for method in METHODS}
    text = prose("records_per_client", counts=", ".join(map(str, COUNTS)), verdicts=verdicts)
    return text, Finding(
        "one record per client gives the greatest utility (L1 for 1, 2, 5, 10)",
        "always",
        verdicts["paper"][1],
        verdicts["best"][1],
        holds(verdicts["paper"][0]),
    )


EXPERIMENT = RecordsPerClient()
