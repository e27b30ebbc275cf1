"""[KKMN09] Table 5: keywords from the original and from the released click graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.cells import SEED_SETS, THRESHOLDS
from searchblend_lab.papers.clickgraph.published import (
    DELTA,
    EPSILON,
    GRID_LIMIT,
    KEPT,
    LEAST_OVERLAP,
    OVERLAP,
    TABLE_5,
)
from searchblend_lab.papers.experiment import METHODS, Agreement, Band, Finding, Outcome, Request, Table, holds, tidy
from searchblend_lab.papers.panels import METHOD_STYLES
from searchblend_lab.papers.prose import prose

_COLORS = {"colleges": "#1b6ca8", "shoes": "#c8553d", "suicide": "#2f7d4f"}
Bands = dict[tuple[str, str, float, str], float]


class Table5:
    """Three seed sets, four relevance thresholds, two graphs."""

    name = "kkmn-table5"
    title = "Keywords from the original and from the released click graph"
    source = "[KKMN09] Table 5"
    about = (
        "Keywords for three sets of seed URLs by an absorbing random walk, on a synthetic click graph and on its "
        "release: e^ε = 10, δ = 1e-5, d = 21, click noise b_c = 0.43, pairs below ten clicks pruned."
    )

    def _cells(self, request: Request, method: str) -> list[Cell]:
        return [
            Cell.of(
                "kkmn-keywords",
                run,
                cost=1.5,
                method=method,
                queries=40_000 if request.quick else 200_000,
                searches=GRID_LIMIT,
                epsilon=EPSILON,
                delta=DELTA,
                click_noise=0.43,
            )
            for run in range(request.n_runs(10, 3))
        ]

    def cells(self, request: Request) -> list[Cell]:
        return [cell for method in METHODS for cell in self._cells(request, method)]

    def conclude(self, request: Request, results: Results) -> Outcome:
        rows: list[dict[str, Scalar]] = []
        means: Bands = {}
        for method in METHODS:
            cells = self._cells(request, method)
            for name in SEED_SETS:
                for threshold in THRESHOLDS:
                    for what in ("original", "released", "shared"):
                        band = Band.of(results.values(cells, f"{name}_{threshold}_{what}"))
                        assert band is not None
                        means[method, name, threshold, what] = band.mean
                        rows.append(tidy(band, what, method=method, seeds=name, relevance=threshold))
        kept = {
            m: [float(np.mean(results.values(self._cells(request, m), key))) for key in ("queries_kept", "edges_kept")]
            for m in METHODS
        }
        text, findings = _text(means, kept)
        return Outcome(rows, _draw(means), text, findings, [_table(means), _overlaps(means)])


def _ratios(means: Bands, method: str, name: str) -> list[float]:
    return [means[method, name, t, "released"] / max(means[method, name, t, "original"], 1e-9) for t in THRESHOLDS]


def _published_ratios(name: str) -> list[float]:
    released, original = TABLE_5[name]
    return [a / b for a, b in zip(released, original, strict=True)]


def _text(means: Bands, kept: dict[str, list[float]]) -> tuple[str, list[Finding]]:
    ratios = {m: {name: _ratios(means, m, name) for name in SEED_SETS} for m in METHODS}
    shared = {m: {name: [means[m, name, t, "shared"] for t in THRESHOLDS] for name in SEED_SETS} for m in METHODS}
    published = {name: _published_ratios(name) for name in TABLE_5}
    text = prose("kkmn_table5", least_kept=KEPT, least_overlap=LEAST_OVERLAP, kept=kept, ratios=ratios, shared=shared)
    findings = [
        Finding(
            f"keywords on the released graph, of those on the original: {name}",
            _percents(published[name]),
            _percents(ratios["paper"][name]),
            _percents(ratios["best"][name]),
            holds(all(abs(a / b - 1) <= CLOSE for a, b in zip(ratios["paper"][name], published[name], strict=True))),
            _OURS,
        )
        for name in SEED_SETS
    ]
    for name in SEED_SETS:
        least, pooled = min(shared["paper"][name]), OVERLAP.get(name)
        findings.append(
            Finding(
                f"released keywords that the original has too: {name}",
                f"{pooled:.0%}" if pooled else f"more than {LEAST_OVERLAP:.0%}",
                _percents(shared["paper"][name]),
                _percents(shared["best"][name]),
                holds(least > LEAST_OVERLAP and (pooled is None or abs(shared["paper"][name][0] - pooled) <= 0.02)),
                _OURS,
            )
        )
    findings.append(
        Finding(
            "queries and edges of the released graph",
            f"{KEPT[0]:.2%}, {KEPT[1]:.2%}",
            f"{kept['paper'][0]:.1%}, {kept['paper'][1]:.1%}",
            f"{kept['best'][0]:.1%}, {kept['best'][1]:.1%}",
            Agreement.FITTED,
            "how searches are spread over queries was chosen for it",
        )
    )
    return text, findings


_OURS = "the graph is synthetic: how a topic's clicks are spread over queries and URLs is our choice"
CLOSE = 0.2
"""how far a ratio may be from the published one, as a share of it"""


def _percents(values: Sequence[float]) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values) + " %"


def _table(means: Bands) -> Table:
    rows = []
    for name in SEED_SETS:
        for method in METHODS:
            counts = (f"{means[method, name, t, 'released']:.0f}" for t in THRESHOLDS)
            rows.append((name, f"released, {method}", *counts))
        rows.append((name, "original", *(f"{means['paper', name, t, 'original']:.0f}" for t in THRESHOLDS)))
        rows.append((name, "published: released / original", *(f"{ratio:.1%}" for ratio in _published_ratios(name))))
    return Table("Keywords by relevance", ("seeds", "graph", *(str(t) for t in THRESHOLDS)), tuple(rows))


def _overlaps(means: Bands) -> Table:
    rows = tuple(
        (name, method, *(f"{means[method, name, t, 'shared']:.0%}" for t in THRESHOLDS))
        for name in SEED_SETS
        for method in METHODS
    )
    return Table("Released keywords that the original has too", ("seeds", "", *(str(t) for t in THRESHOLDS)), rows)


def _draw(means: Bands) -> Figure:
    figure, (axis, shared) = new_figure(2)
    for name, color in _COLORS.items():
        for method in METHODS:
            style = METHOD_STYLES[method]
            label = f"{name}, {method}"
            ratios = [100 * ratio for ratio in _ratios(means, method, name)]
            axis.plot(THRESHOLDS, ratios, color=color, linestyle=style, marker="o", markersize=3, label=label)
            overlap = [100 * means[method, name, t, "shared"] for t in THRESHOLDS]
            shared.plot(THRESHOLDS, overlap, color=color, linestyle=style, marker="o", markersize=3)
        published = [100 * ratio for ratio in _published_ratios(name)]
        label = f"{name}, published [KKMN09]"
        axis.plot(
            THRESHOLDS, published, linestyle="none", marker="D", markersize=5, color=color, mfc="none", label=label
        )
    shared.axhline(100 * LEAST_OVERLAP, color="#cc0066", linewidth=0.8, linestyle=":")
    shared.text(0.5, 100 * LEAST_OVERLAP + 0.6, "published: more than 78 %", color="#cc0066", fontsize=8)
    axis.set(xlabel="relevance threshold", ylabel="keywords, % of the original graph's", ylim=(0, None))
    shared.set(xlabel="relevance threshold", ylabel="keywords that the original has too (%)")
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


EXPERIMENT = Table5()
