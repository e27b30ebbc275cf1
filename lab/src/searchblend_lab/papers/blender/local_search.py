"""How many searches of new people the local-search pack answers without a network."""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import Band, Outcome, Request, Table, tidy
from searchblend_lab.papers.people import People
from searchblend_lab.papers.prose import prose

SIZES: Final = (10, 25, 50, 100, 250, 500)
EPSILONS: Final = (1.0, 2.0, 4.0, 6.0)
CROWD: Final = 10
"""how many times as many people the second population has"""
_COLORS: Final = dict(zip(EPSILONS, ("#b8860b", "#c8553d", "#1b6ca8", "#2f7d4f"), strict=True))
_QUANTITIES: Final = ("answered", "first", "any", "queries", "pairs", "bytes", "ideal")
_METHOD: Final = "best"

Bands = dict[tuple[int, float, int, str], Band | None]
"""by times as many people, ε, M and quantity"""


class LocalSearch:
    """M and ε go up; the share of a new population's searches that the pack answers."""

    name = "local-search"
    title = "Searches that the local pack answers"
    source = "ours"
    about = (
        "A pack is made of one population (method best, the profile's share of opt-in users); as many new people who "
        "search alike then ask it. M, ε and the number of people are varied."
    )

    def cells(self, request: Request) -> list[Cell]:
        return [
            cell
            for times in self.crowds(request)
            for epsilon in EPSILONS
            for size in self.sizes(request)
            for cell in self.runs_of(request, times, epsilon, size)
        ]

    def crowds(self, request: Request) -> tuple[int, ...]:
        return (1,) if request.quick else (1, CROWD)

    def sizes(self, request: Request) -> tuple[int, ...]:
        return tuple(int(size) for size in request.thinned(SIZES))

    def people(self, request: Request) -> People:
        return request.people_of("aol")[0]

    def runs_of(self, request: Request, times: int, epsilon: float, size: int) -> list[Cell]:
        people = self.people(request)
        return [
            Cell.of(
                "local-search",
                run,
                cost=0.1 + 0.001 * size,
                people=people.name,
                users=None if times == 1 else times * people.n_users,
                method=_METHOD,
                epsilon=epsilon,
                size=size,
            )
            for run in range(request.n_runs(5, 2))
        ]

    def bands(self, request: Request, results: Results) -> Bands:
        return {
            (times, epsilon, size, quantity): Band.of(
                results.values(self.runs_of(request, times, epsilon, size), quantity)
            )
            for times in self.crowds(request)
            for epsilon in EPSILONS
            for size in self.sizes(request)
            for quantity in _QUANTITIES
        }

    def conclude(self, request: Request, results: Results) -> Outcome:
        bands, people = self.bands(request, results), self.people(request)
        rows: list[dict[str, Scalar]] = [
            tidy(band, quantity, people=people.label, users=times * people.n_users, epsilon=epsilon, size=size)
            for (times, epsilon, size, quantity), band in bands.items()
        ]
        crowds, sizes = self.crowds(request), self.sizes(request)
        tables = [_table(bands, people, times, sizes) for times in crowds]
        return Outcome(rows, self._draw(request, bands), conclude(bands, people, crowds, sizes), tables=tables)

    def _draw(self, request: Request, bands: Bands) -> Figure:
        people, crowds, sizes = self.people(request), self.crowds(request), self.sizes(request)
        figure, axes = new_figure(len(crowds) + 1)
        for letter, axis, times in zip("ab", axes, crowds, strict=False):
            _draw_answers(axis, bands, times, sizes)
            axis.set_title(f"({letter}) {times * people.n_users:,} people", fontsize=10, loc="left")
        _draw_sizes(axes[-1], bands, crowds, sizes)
        dashed = " (dashed: as in b)" if len(crowds) > 1 else ""
        axes[-1].set_title(f"({'abc'[len(crowds)]}) what it weighs{dashed}", fontsize=10, loc="left")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
        return figure


def _draw_answers(axis: Axes, bands: Bands, times: int, sizes: tuple[int, ...]) -> None:
    for epsilon in EPSILONS:
        answered = [(size, band) for size in sizes if (band := bands[times, epsilon, size, "answered"])]
        x, color = [size for size, _ in answered], _COLORS[epsilon]
        means = [100 * band.mean for _, band in answered]
        axis.plot(x, means, color=color, marker="o", markersize=3, label=f"answered, ε = {epsilon:g}")
        lows, highs = [100 * band.low for _, band in answered], [100 * band.high for _, band in answered]
        axis.fill_between(x, lows, highs, color=color, alpha=0.13, linewidth=0)
        right = [100 * band.mean for size in sizes if (band := bands[times, epsilon, size, "first"])]
        axis.plot(x, right, color=color, linestyle=(0, (1, 1.2)), label=f"first URL is the one, ε = {epsilon:g}")
    ideal = [100 * band.mean for size in sizes if (band := bands[times, EPSILONS[-1], size, "ideal"])]
    axis.plot(sizes, ideal, color="#111111", linestyle=(0, (4, 1.6)), label="the true M most frequent")
    _log_sizes(axis, sizes)
    axis.set(ylabel="searches of new people (%)", ylim=(0, None))


def _draw_sizes(axis: Axes, bands: Bands, crowds: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    for times in crowds:
        for epsilon in EPSILONS:
            bytes_ = [band.mean / 1000 for size in sizes if (band := bands[times, epsilon, size, "bytes"])]
            style = "-" if times == 1 else (0, (4, 1.6))
            axis.plot(sizes, bytes_, color=_COLORS[epsilon], linestyle=style, marker="o", markersize=3)
    _log_sizes(axis, sizes)
    axis.set(ylabel="size of the pack (kB)", ylim=(0, None))


def _log_sizes(axis: Axes, sizes: tuple[int, ...]) -> None:
    axis.set(xscale="log", xlabel="queries that the list may hold, $M$")
    axis.set_xticks(sizes, [str(size) for size in sizes])
    axis.minorticks_off()


def _table(bands: Bands, people: People, times: int, sizes: tuple[int, ...]) -> Table:
    """Rows by M, columns by ε: answered (first URL right), queries in the pack."""
    rows = []
    for size in sizes:
        cells = [str(size), _percent(bands[times, EPSILONS[-1], size, "ideal"])]
        for epsilon in EPSILONS:
            answered, first = (bands[times, epsilon, size, name] for name in ("answered", "first"))
            queries = bands[times, epsilon, size, "queries"]
            cells.append(f"{_percent(answered)} ({_percent(first)}), {queries.mean if queries else 0:.0f}")
        rows.append(tuple(cells))
    title = f"{times * people.n_users:,} people: searches answered (with the right URL first), queries in the pack"
    return Table(title, ("M", "true M", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)), tuple(rows))


def _percent(band: Band | None) -> str:
    return "–" if band is None else f"{100 * band.mean:.1f} %"


def conclude(bands: Bands, people: People, crowds: tuple[int, ...], sizes: tuple[int, ...]) -> str:
    """What the curves show, in numbers."""
    sentences = []
    for times in crowds:
        parts = []
        for epsilon in EPSILONS:
            best = _least_size(bands, times, epsilon, sizes)
            answered, first, kept = (_mean(bands, times, epsilon, best, q) for q in ("answered", "first", "bytes"))
            parts.append(
                f"{100 * answered:.1f} % at ε = {epsilon:g} (right URL first {100 * first:.1f} %, "
                f"{kept / 1000:.1f} kB, M = {best})"
            )
        ideal = _mean(bands, times, EPSILONS[-1], sizes[-1], "ideal")
        sentences.append(
            f"With {times * people.n_users:,} people the pack answers up to {', '.join(parts)}; the true "
            f"{sizes[-1]} most frequent queries would answer {100 * ideal:.1f} %."
        )
    return prose("local_search", sentences=" ".join(sentences))


def _least_size(bands: Bands, times: int, epsilon: float, sizes: tuple[int, ...]) -> int:
    """The smallest M that answers all but a hundredth of what the best one does."""
    answered = {size: _mean(bands, times, epsilon, size, "answered") for size in sizes}
    return min(size for size in sizes if answered[size] >= 0.99 * max(answered.values()))


def _mean(bands: Bands, times: int, epsilon: float, size: int, quantity: str) -> float:
    band = bands[times, epsilon, size, quantity]
    return band.mean if band else 0.0


EXPERIMENT = LocalSearch()
