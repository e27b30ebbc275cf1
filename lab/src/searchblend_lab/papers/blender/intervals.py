"""Do 95 % intervals hold the share of all people's searches, each person one voice?"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import (
    NO_LIST,
    Agreement,
    Band,
    Finding,
    Outcome,
    Request,
    Table,
    said_of_others,
    tidy,
)

EPSILONS = (1.0, 2.0, 4.0, 6.0)
QUANTITIES = ("coverage", "query_coverage", "record_coverage", "rest_coverage")


@dataclass(frozen=True)
class Situation:
    """Who is asked, and for how much."""

    label: str
    color: str
    alike: bool = False
    """one record each instead of up to 60"""
    per_optin: int = 1
    per_client: int = 1


SITUATIONS = (
    Situation("one record of each", "#1b6ca8"),
    Situation("one record of each, people have no other", "#7a4ea3", alike=True),
    Situation("up to 20 records of each opt-in user", "#c8553d", per_optin=20),
    Situation("three records of each client", "#b8860b", per_client=3),
)
Bands = dict[tuple[Situation, float, str], Band | None]


class Intervals:
    """How often the intervals of method ``best`` hold."""

    name = "intervals"
    title = "How often 95 % intervals hold"
    source = "ours"
    about = (
        "People have up to 60 records; the truth is the mean of all people's own shares. One record of each person is "
        "used, or several."
    )

    def cells(self, request: Request) -> list[Cell]:
        return [c for s in SITUATIONS for e in EPSILONS for c in self.runs_of(request, s, e)]

    def runs_of(self, request: Request, situation: Situation, epsilon: float) -> list[Cell]:
        return [
            Cell.of(
                "several-records",
                run,
                cost=0.4,
                people=request.log.name if request.log else "aol",
                users=None,
                method="best",
                alike=situation.alike,
                per_client=situation.per_client,
                per_optin=situation.per_optin,
                epsilon=epsilon,
                size=50,
            )
            for run in range(request.n_runs(10, 2))
        ]

    def conclude(self, request: Request, results: Results) -> Outcome:
        bands: Bands = {
            (situation, epsilon, quantity): Band.of(results.values(self.runs_of(request, situation, epsilon), quantity))
            for situation in SITUATIONS
            for epsilon in EPSILONS
            for quantity in QUANTITIES
        }
        rows: list[dict[str, Scalar]] = [
            tidy(band, quantity, situation=situation.label, epsilon=epsilon)
            for (situation, epsilon, quantity), band in bands.items()
        ]
        table = Table(
            "Share of the intervals (queries and records, pooled) that hold",
            ("asked", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)),
            tuple(
                (s.label, *("–" if (b := bands[s, e, "coverage"]) is None else f"{b.mean:.3f}" for e in EPSILONS))
                for s in SITUATIONS
            ),
        )
        means = [b.mean for (_, _, quantity), b in bands.items() if quantity == "coverage" and b]
        if request.log:
            text = said_of_others(request.log, nothing="" if means else NO_LIST)
            return Outcome(rows, _draw(bands), text, [], [table])
        text = (
            f"Between {100 * min(means):.1f} and {100 * max(means):.1f} % hold. Where one record of each is used, "
            "how unlike people are is not known, and nothing is subtracted for it: the more clients tell (large ε) and "
            "the more unlike people are, the more an interval is too wide."
        )
        finding = Finding("95 % intervals that hold", "–", "–", f"{min(means):.3f} to {max(means):.3f}", Agreement.OURS)
        return Outcome(rows, _draw(bands), text, [finding], [table])


def _draw(bands: Bands) -> Figure:
    figure, axes = new_figure(2)
    for axis, label in zip(axes, ("query", "record"), strict=True):
        for situation in SITUATIONS:
            covered = [(e, b.mean) for e in EPSILONS if (b := bands[situation, e, f"{label}_coverage"])]
            x, y = [e for e, _ in covered], [mean for _, mean in covered]
            axis.plot(x, y, marker="o", markersize=3, color=situation.color, label=situation.label)
        axis.axhline(0.95, color="#999999", linewidth=0.8)
        axis.set(xlabel="ε", ylabel=f"{label} intervals that hold", ylim=(0.85, 1.0))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


EXPERIMENT = Intervals()
