"""Both methods and the click graph over real logs, side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.figure import Figure

from searchblend.core.errors import UsageError
from searchblend.pages.plots import COLORS, new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.comparisons.real_cells import CLICK_GRAPH, METHODS, TOP
from searchblend_lab.papers.comparisons.real_logs import RealLog
from searchblend_lab.papers.experiment import Agreement, Finding, Outcome, Request, Table, number
from searchblend_lab.papers.prose import prose

QUANTITIES: Final = {
    "queries": ("queries listed", 1),
    "common_l1": ("L1, queries both list", 4),
    "top_l1": (f"L1, true top {TOP}", 4),
    "ndcg": ("NDCG", 4),
    "coverage": ("95 % intervals that hold", 3),
    "spurious": ("spurious", 3),
    "dropped": ("dropped", 3),
    "missing": ("missing mass", 3),
}
"""heading and digits"""
_SHOWN: Final = ("queries", "common_l1", "ndcg", "coverage", "missing")
_COLORS: Final = COLORS | {CLICK_GRAPH: "#1b6ca8"}
_STANDARD_ERRORS: Final = 2
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Mean:
    """Over runs, with its standard error where there are several."""

    value: float
    error: float | None
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean | None:
        if not values:
            return None
        n, value = len(values), sum(values) / len(values)
        spread = sum((one - value) ** 2 for one in values)
        return cls(value, math.sqrt(spread / (n - 1) / n) if n > 1 else None, n)

    def shown(self, digits: int) -> str:
        value = number(self.value, digits)
        return value if self.error is None else f"{value} ± {number(self.error, digits)}"


@dataclass(frozen=True)
class Situation:
    """All runs on one log at one ε."""

    log: RealLog
    epsilon: float
    runs: Sequence[Mapping[str, Row]]
    """by method"""

    def mean(self, method: str, quantity: str) -> Mean | None:
        return Mean.of([float(run[method][quantity]) for run in self.runs if run[method].get(quantity) is not None])

    def why(self, method: str) -> str:
        """Why runs gave no list."""
        reasons = [str(run[method]["why"]) for run in self.runs if "why" in run[method]]
        return f"{len(reasons)} of {len(self.runs)} runs: {reasons[0].split('. ')[0]}" if reasons else ""

    @property
    def difference(self) -> Mean | None:
        """L1 of ``best`` − L1 of ``paper`` over the queries that both list, run by run."""
        pairs = [[run[method].get("common_l1") for method in ("best", "paper")] for run in self.runs]
        return Mean.of([best - paper for best, paper in pairs if best is not None])

    @property
    def best_is_worse(self) -> bool | None:
        """Beyond two standard errors; ``None`` if fewer than two runs have a query in both lists."""
        gap = self.difference
        return None if gap is None or gap.error is None else gap.value > _STANDARD_ERRORS * gap.error


class RealLogs:
    """Reads every log anew in every run: users are split, records drawn and noise drawn again."""

    name = "real"
    title = "Real logs, side by side"
    source = "ours"
    about = (
        "Methods paper and best on the same split of the same people, and the click graph of all of them, on logs that "
        "are named with --logs."
    )

    def cells(self, request: Request) -> list[Cell]:
        return [cell for log in request.logs for cell in self._runs(request, log)]

    def _runs(self, request: Request, log: RealLog) -> list[Cell]:
        return [
            Cell.of(
                "real-log",
                run,
                cost=1.5 + log.lines / 5e4,
                people=log.label,
                reading=log.reading,
                content=log.content,
                optin=log.optin,
                epsilons=" ".join(f"{epsilon:g}" for epsilon in log.epsilons),
                delta=log.delta,
            )
            for run in range(request.n_runs(10, 2))
        ]

    def conclude(self, request: Request, results: Results) -> Outcome:
        if not request.logs:
            raise UsageError("real: --logs FILE…: expected the logs to compare on")
        situations = [one for log in request.logs for one in self._situations(request, log, results)]
        tables = [_logs_table(request.logs), _criterion_table(situations), _table(situations)]
        if too_small := _too_small(situations):
            tables.append(Table("Runs without a list", ("log", "ε", "method", "why"), too_small))
        text = prose(
            "real",
            source=request.source,
            logs=len(request.logs),
            runs=request.n_runs(10, 2),
            worse=sum(bool(one.best_is_worse) for one in situations),
            compared=sum(one.best_is_worse is not None for one in situations),
            situations=len(situations),
            longer=sum(_less(one, "queries", "paper", "best") for one in situations),
            top=TOP,
        )
        return Outcome(list(_rows(situations)), _draw(situations), text, _findings(situations), tables)

    def _situations(self, request: Request, log: RealLog, results: Results) -> Iterator[Situation]:
        runs = [results[cell]["rows"] for cell in self._runs(request, log)]
        for epsilon in log.epsilons:
            here = [{row["method"]: row for row in rows if row["epsilon"] == epsilon} for rows in runs]
            yield Situation(log, epsilon, here)


def _less(one: Situation, quantity: str, less: str, more: str) -> bool:
    a, b = one.mean(less, quantity), one.mean(more, quantity)
    return a is not None and b is not None and a.value < b.value


def _rows(situations: Sequence[Situation]) -> Iterator[dict[str, Scalar]]:
    for one in situations:
        where: dict[str, Scalar] = {"log": one.log.label, "epsilon": one.epsilon, "delta": one.log.delta}
        for method in (*METHODS, CLICK_GRAPH):
            for quantity in (*QUANTITIES, "query_l1", "common", "pairs"):
                yield {**where, "method": method, "quantity": quantity, **_figures(one.mean(method, quantity))}
        yield {**where, "method": "best − paper", "quantity": "common_l1", **_figures(one.difference)}


def _figures(mean: Mean | None) -> dict[str, Scalar]:
    if mean is None:
        return {"runs": 0, "mean": None, "standard_error": None}
    return {"runs": mean.runs, "mean": mean.value, "standard_error": mean.error}


def _logs_table(logs: Sequence[RealLog]) -> Table:
    rows = tuple(
        (
            log.label,
            f"{log.users:,}",
            f"{log.lines:,}",
            f"{log.delta:.2g}",
            "by column" if log.optin is None else f"{100 * log.optin:g} %",
        )
        for log in logs
    )
    return Table("The logs", ("log", "users", "lines", "δ", "opt in"), rows)


def _criterion_table(situations: Sequence[Situation]) -> Table:
    title = "L1 over the queries that both methods list: is best worse than paper beyond two standard errors?"
    columns = ("log", "ε", "runs", "queries", "`paper`", "`best`", "`best` − `paper`", "worse")
    return Table(title, columns, tuple(_criterion(one) for one in situations))


def _criterion(one: Situation) -> tuple[str, ...]:
    difference = one.difference
    where = (one.log.label, f"{one.epsilon:g}")
    if difference is None:
        return (*where, "0", "–", "–", "–", "–", "no query in both lists")
    verdict = {True: "yes ▲", False: "no", None: "one run says nothing"}[one.best_is_worse]
    shown = [_shown(one.mean(method, "common_l1"), 4) for method in METHODS]
    return (*where, str(difference.runs), _shown(one.mean("best", "common"), 1), *shown, difference.shown(4), verdict)


def _table(situations: Sequence[Situation]) -> Table:
    title = "Means over runs ± standard error"
    columns = ("log", "ε", "method", *(heading for heading, _ in QUANTITIES.values()))
    rows = tuple(
        (
            one.log.label,
            f"{one.epsilon:g}",
            method,
            *(_shown(one.mean(method, quantity), digits) for quantity, (_, digits) in QUANTITIES.items()),
        )
        for one in situations
        for method in (*METHODS, CLICK_GRAPH)
    )
    return Table(title, columns, rows)


def _too_small(situations: Sequence[Situation]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (one.log.label, f"{one.epsilon:g}", method, why)
        for one in situations
        for method in (*METHODS, CLICK_GRAPH)
        if (why := one.why(method))
    )


def _shown(mean: Mean | None, digits: int) -> str:
    return "–" if mean is None else mean.shown(digits)


def _findings(situations: Sequence[Situation]) -> list[Finding]:
    compared = [one for one in situations if one.best_is_worse is not None]
    if not compared:
        return []
    worse = [f"{one.log.label} at ε = {one.epsilon:g}" for one in compared if one.best_is_worse]
    said = f"worse in {len(worse)} of {len(compared)}" + (f" ({', '.join(worse)})" if worse else "")
    return [
        Finding("L1 over the queries both list, logs and ε, beyond two standard errors", "–", "–", said, Agreement.OURS)
    ]


def _draw(situations: Sequence[Situation]) -> Figure:
    figure, axes = new_figure(len(_SHOWN))
    figure.set_size_inches(3.1 * len(_SHOWN) + 1.5, 1.6 + 0.34 * len(situations))
    places = list(range(len(situations)))[::-1]
    for axis, quantity in zip(axes, _SHOWN, strict=True):
        for shift, method in zip((0.2, 0.0, -0.2), (*METHODS, CLICK_GRAPH), strict=True):
            means = [(y + shift, one.mean(method, quantity)) for y, one in zip(places, situations, strict=True)]
            drawn = [(y, mean) for y, mean in means if mean]
            axis.errorbar(
                [mean.value for _, mean in drawn],
                [y for y, _ in drawn],
                xerr=[_STANDARD_ERRORS * (mean.error or 0.0) for _, mean in drawn],
                fmt="o",
                markersize=3.5,
                linewidth=1,
                color=_COLORS[method],
                label=method,
            )
        axis.set(xlabel=QUANTITIES[quantity][0], ylabel="log and ε" if axis is axes[0] else " ")
        axis.set_ylim(-0.6, len(situations) - 0.4)
        names = [f"{one.log.label.split('.')[0]}, ε = {one.epsilon:g}" for one in situations]
        axis.set_yticks(places, names if axis is axes[0] else [""] * len(names), fontsize=8)
    axes[_SHOWN.index("coverage")].axvline(0.95, color="#999999", linewidth=0.8)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


EXPERIMENT = RealLogs()
