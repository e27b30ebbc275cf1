"""What Fig. 3 and 4 of [KKMN09] share: logs of a day to a year."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.clickgraph.cells import SPAN_LIMITS
from searchblend_lab.papers.clickgraph.published import DELTA, EPSILON, GROWTH, LEVEL, SPANS
from searchblend_lab.papers.experiment import (
    NOTHING_PUBLISHED,
    Band,
    Finding,
    Outcome,
    Request,
    holds,
    said_of_others,
    tidy,
)
from searchblend_lab.papers.prose import prose

_COLORS = ("#1b6ca8", "#c8553d", "#2f7d4f", "#7a4ea3", "#b8860b")
_WHOLE = {"published": "distinct", "published_impressions": "impressions"}
Bands = dict[tuple[str, int], Band]


@dataclass(frozen=True)
class SpanExperiment:
    """One of the two figures."""

    name: str
    title: str
    source: str
    about: str
    quantity: str
    ylabel: str

    def _cells(self, request: Request, span: str) -> list[Cell]:
        users, days = 8_000 if request.quick else 40_000, SPANS[span]
        whose: dict[str, Scalar] = {"users": users, "vocabulary": 1_000_000 if request.quick else 5_000_000}
        if request.log:
            whose = {"people": request.log.name}
        return [
            Cell.of("kkmn-span", run, cost=0.5 + users * days / 4e5, days=days, epsilon=EPSILON, delta=DELTA, **whose)
            for run in range(request.n_runs(2, 1))
        ]

    def spans(self, request: Request) -> list[str]:
        """All of them, or those that a log of one's own is long enough for."""
        longest = max(SPANS.values()) if request.log is None else math.ceil(request.log.searches.days)
        return [span for span, days in SPANS.items() if days <= longest]

    def cells(self, request: Request) -> list[Cell]:
        return [cell for span in self.spans(request) for cell in self._cells(request, span)]

    def conclude(self, request: Request, results: Results) -> Outcome:
        whole = _WHOLE[self.quantity]
        bands: Bands = {}
        for span in self.spans(request):
            entries = [results[cell] for cell in self._cells(request, span)]
            for d in SPAN_LIMITS:
                band = Band.of([100 * entry[f"{self.quantity}_{d}"] / entry[whole] for entry in entries])
                assert band is not None
                bands[span, d] = band
        rows: list[dict[str, Scalar]] = [
            tidy(band, self.quantity, method="paper", span=span, d=d) for (span, d), band in bands.items()
        ]
        if request.log:
            nothing = "" if any(band.mean for band in bands.values()) else NOTHING_PUBLISHED
            nothing = nothing if bands else "its searches have no times, so it has no days"
            return Outcome(rows, self._draw(bands), said_of_others(request.log, nothing=nothing))
        text, findings = self._text(bands, self._growth(request, results))
        return Outcome(rows, self._draw(bands), text, findings)

    def _growth(self, request: Request, results: Results) -> dict[str, float]:
        """How many times as much is published as of one day, at d = 20."""
        published = {}
        for span in SPANS:
            values = results.values(self._cells(request, span), f"{self.quantity}_20")
            published[span] = sum(values) / len(values)
        return {span: published[span] / max(published["one day"], 1) for span in GROWTH}

    def _text(self, bands: Bands, growth: dict[str, float]) -> tuple[str, list[Finding]]:
        which = 0 if self.quantity == "published" else 1
        factors = ", ".join(f"{span} {factor:.0f} (paper {GROWTH[span][which]})" for span, factor in growth.items())
        peaks = {span: max(SPAN_LIMITS, key=lambda d: bands[span, d].mean) for span in SPANS}
        at_20 = [bands[span, 20].mean for span in SPANS]
        steady = max(at_20) / max(min(at_20), 1e-9)
        inside = all(SPAN_LIMITS[0] < d < SPAN_LIMITS[-1] for d in peaks.values())
        grows = list(peaks.values()) == sorted(peaks.values()) and peaks["one year"] > peaks["one day"]
        if which == 0:
            word = "more or less independent of the span, as the paper says" if steady < 2 else "not independent of it"
            shape = (
                f"At d = 20 the percentage lies between {min(at_20):.3f} and {max(at_20):.3f} over all spans, within a "
                f"factor of {steady:.1f}: {word}."
            )
            agreement = Finding(
                "distinct percentage at d = 20, a day to a year",
                "more or less independent",
                f"{min(at_20):.3f} to {max(at_20):.3f} %",
                "–",
                holds(steady < 2),
                "a small log: few queries pass the threshold on a single day",
            )
        else:
            shape = "The d with the most impressions: " + ", ".join(f"{s} {d}" for s, d in peaks.items()) + "."
            agreement = Finding(
                "d with the most impressions, a day to a year",
                "inside the range, increases with the span",
                " → ".join(str(d) for d in peaks.values()),
                "–",
                holds(inside and grows),
            )
        text = prose("spans", factors=factors, shape=shape)
        what = "distinct queries" if which == 0 else "impressions"
        findings = [
            agreement,
            Finding(
                f"growth of the {what} over a day's: {', '.join(GROWTH)}, d = 20",
                "-, ".join(str(published[which]) for published in GROWTH.values()) + "-fold",
                "-, ".join(f"{growth[span]:.0f}" for span in GROWTH) + "-fold",
                "–",
                holds(all(abs(growth[span] / GROWTH[span][which] - 1) <= LEVEL for span in GROWTH)),
                "it rests on how long a user id lives, a free parameter of the synthetic log (ten days)",
            ),
        ]
        return text, findings

    def _draw(self, bands: Bands) -> Figure:
        figure, (axis,) = new_figure(1)
        for span, color in zip(SPANS, _COLORS, strict=True):
            if (span, SPAN_LIMITS[0]) not in bands:
                continue
            means = [bands[span, d].mean for d in SPAN_LIMITS]
            axis.plot(SPAN_LIMITS, means, marker="o", markersize=3, color=color, label=span)
            lows, highs = [bands[span, d].low for d in SPAN_LIMITS], [bands[span, d].high for d in SPAN_LIMITS]
            axis.fill_between(SPAN_LIMITS, lows, highs, color=color, alpha=0.13, linewidth=0)
        axis.set(xlabel="searches of each user that count, d", ylabel=self.ylabel, xscale="log", ylim=(0, None))
        axis.set_xticks(SPAN_LIMITS, [str(d) for d in SPAN_LIMITS])
        axis.minorticks_off()
        if bands:
            axis.legend(frameon=False, fontsize=9)
        return figure
