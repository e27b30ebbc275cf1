"""What others do with the same people at the same (ε, δ): queries found, how far off, and whom each person trusts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from searchblend.core.privacy import Budget
from searchblend.pages.plots import new_figure
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.comparisons.rival_cells import KNOWN, LEVELS, OURS_LIST, TOPS
from searchblend_lab.papers.comparisons.rival_mechanisms import SampledThreshold, TrieHH, halves
from searchblend_lab.papers.experiment import Agreement, Band, Finding, Outcome, Request, Table, number, tidy
from searchblend_lab.papers.people import People
from searchblend_lab.papers.prose import prose

BUDGETS: Final = (Budget(1.0, 1e-8), Budget(4.0, 1e-5))
"""that of Nebula as deployed, and that of [BLJ]"""
OPTIN_SHARES: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_QUANTITIES: Final = ("queries", *(f"l1_{top}" for top in TOPS), "bytes", "users_needed")
_REPLACE, _ADD = "replace-one", "add-or-remove-one"


@dataclass(frozen=True)
class Rival:
    """One way to count, whom its people trust, and how its promise is known."""

    name: str
    what: str
    trust: str
    neighbors: str
    known: str
    color: str


RIVALS: Final = (
    Rival(
        "central",
        "stability histogram",
        "all people trust one curator with their raw query",
        _REPLACE,
        "proofs/stability_histogram.md",
        "#555555",
    ),
    Rival(
        "central, add-or-remove",
        "stability histogram, noise of rate ε",
        "all people trust one curator with their raw query",
        _ADD,
        "exact tail of the noise at a count of 1, searched for the least threshold",
        "#999999",
    ),
    Rival(
        "sampled, as published",
        "Nebula-type sampling and threshold, published formulas",
        "two servers that must not collude; one sees how many messages are alike, and what is above the threshold",
        _ADD,
        "exact δ of one count over all counts, far below the one stated",
        "#7a4ea3",
    ),
    Rival(
        "sampled, tuned",
        "the same with the least K/p that the exact δ allows",
        "as above",
        _ADD,
        "exact δ of one count over all counts",
        "#b08fd0",
    ),
    Rival(
        "sampled, tuned for replace-one",
        "the same at half the ε, for our neighbouring relation",
        "as above",
        _REPLACE,
        "exact δ at ε/2; a replacement is a removal and an addition",
        "#d0bfe6",
    ),
    Rival(
        "TrieHH",
        "votes on the next letter, prefixes above a threshold",
        "a server that sees raw votes of sampled people, or secure aggregation",
        _ADD,
        f"exact δ of each of {LEVELS} rounds at ε/{LEVELS}, summed",
        "#b8860b",
    ),
    Rival(
        "local",
        f"the better of two subset selections over a list of {KNOWN} that is given to it",
        "no one",
        "replace-one, δ = 0",
        "proofs/subset_selection.md",
        "#1b6ca8",
    ),
    Rival(
        "30 users",
        "queries of 30 people or more, exact counts",
        "all people trust one curator, and everyone who sees what is published",
        "none",
        "no guarantee",
        "#c8553d",
    ),
)
OURS: Final = Rival(
    "ours",
    f"method best, at most {OURS_LIST} queries",
    "opt-in users trust a curator; clients trust no one",
    _REPLACE,
    "proofs/stability_histogram.md, proofs/subset_selection.md",
    "#0b6e4f",
)


class Rivals:
    """The same people for all, drawn anew for each run, one query of each."""

    name = "rivals"
    title = "Other ways to count the same people"
    source = "ours"
    about = (
        "Central, local and distributed mechanisms and ours at the same (ε, δ), by trust model and neighbouring "
        "relation: queries found, L1 over the truly most frequent, bytes for each person."
    )

    def cells(self, request: Request) -> list[Cell]:
        return [
            cell
            for budget in BUDGETS
            for rival, optin in _columns()
            for cell in self._runs(request, budget, rival, optin)
        ]

    def _runs(self, request: Request, budget: Budget, rival: Rival, optin: float | None) -> list[Cell]:
        (people,) = request.people_of("aol")
        return [
            Cell.of(
                "rival",
                run,
                cost=0.6,
                people=people.name,
                users=None,
                rival=rival.name,
                optin=optin,
                epsilon=budget.epsilon,
                delta=budget.delta,
            )
            for run in range(request.n_runs(10, 2))
        ]

    def conclude(self, request: Request, results: Results) -> Outcome:
        (people,) = request.people_of("aol")
        bands = {
            (budget, rival, optin, quantity): Band.of(
                results.values(self._runs(request, budget, rival, optin), quantity)
            )
            for budget in BUDGETS
            for rival, optin in _columns()
            for quantity in _QUANTITIES
        }
        rows: list[dict[str, Scalar]] = [
            tidy(
                band,
                quantity,
                people=people.label,
                epsilon=budget.epsilon,
                delta=budget.delta,
                mechanism=rival.name,
                optin=optin,
                neighbors=rival.neighbors,
            )
            for (budget, rival, optin, quantity), band in bands.items()
        ]
        tables = [_trust_table(), *(_table(budget, bands) for budget in BUDGETS)]
        return Outcome(rows, _draw(bands), _text(people, bands, usual=request.people is None), _findings(bands), tables)


Bands = dict[tuple[Budget, Rival, float | None, str], Band | None]


def _columns() -> Iterator[tuple[Rival, float | None]]:
    yield from ((rival, None) for rival in RIVALS)
    yield from ((OURS, share) for share in OPTIN_SHARES)


def _mean(bands: Bands, budget: Budget, rival: Rival, optin: float | None, quantity: str) -> float | None:
    band = bands[budget, rival, optin, quantity]
    return band.mean if band else None


def _label(rival: Rival, optin: float | None) -> str:
    return rival.name if optin is None else f"{rival.name}, {100 * optin:g} % opt in"


def _trust_table() -> Table:
    columns = ("mechanism", "what it does", "whom people trust", "neighbours", "how its promise is known")
    rows = tuple((r.name, r.what, r.trust, r.neighbors, r.known) for r in (*RIVALS, OURS))
    return Table("Who is trusted, and what (ε, δ) is about", columns, rows)


def _table(budget: Budget, bands: Bands) -> Table:
    title = f"ε = {budget.epsilon:g}, δ = {budget.delta:g}"
    columns = (
        "mechanism",
        "neighbours",
        "people needed",
        "queries found",
        *(f"L1, true top {t}" for t in TOPS),
        "bytes",
    )
    return Table(title, columns, tuple(_row(budget, bands, rival, optin) for rival, optin in _columns()))


def _row(budget: Budget, bands: Bands, rival: Rival, optin: float | None) -> tuple[str, ...]:
    def shown(quantity: str, digits: int) -> str:
        return number(_mean(bands, budget, rival, optin, quantity), digits)

    l1 = (shown(f"l1_{top}", 4) for top in TOPS)
    figures = (shown("users_needed", 0), shown("queries", 1), *l1, shown("bytes", 1))
    return (_label(rival, optin), rival.neighbors, *figures)


def _named(name: str) -> Rival:
    return next(rival for rival in RIVALS if rival.name == name)


def _wins(bands: Bands, budget: Budget, rival: Rival, quantity: str = "l1_50") -> float | None:
    """The least opt-in share at which ours has the smaller L1; ``None`` if at none."""
    theirs = _mean(bands, budget, rival, None, quantity)
    ours = [(share, _mean(bands, budget, OURS, share, quantity)) for share in OPTIN_SHARES]
    return next((s for s, value in ours if theirs is not None and value is not None and value < theirs), None)


def _said(share: float | None) -> str:
    return "at no opt-in share up to 20 %" if share is None else f"from {100 * share:g} % opt-in on"


def _text(people: People, bands: Bands, *, usual: bool) -> str:
    parts = []
    for budget in BUDGETS:
        deployed, tuned = SampledThreshold.deployed(budget), SampledThreshold.tuned(budget)
        replaced, trie = SampledThreshold.tuned(halves(budget)), TrieHH.of(budget, LEVELS)
        parts.append(
            prose(
                "rivals_part",
                budget=budget,
                deployed=deployed,
                deployed_delta=deployed.exact_delta(budget.epsilon),
                tuned=tuned,
                replaced=replaced,
                trie=trie,
                trie_delta=trie.exact_delta(budget.epsilon),
                wins={rival.name: _said(_wins(bands, budget, rival)) for rival in RIVALS},
            )
        )
    tuned_wins = all(_wins(bands, budget, _named("sampled, tuned")) is None for budget in BUDGETS)
    return prose("rivals", people=people, usual=usual, parts=parts, levels=LEVELS, known=KNOWN, tuned_wins=tuned_wins)


def _findings(bands: Bands) -> list[Finding]:
    return [
        Finding(
            f"L1 over the true top 50 below {name}, ε = {budget.epsilon:g}, δ = {budget.delta:g}",
            "–",
            "–",
            _said(_wins(bands, budget, _named(name))),
            Agreement.OURS,
        )
        for budget in BUDGETS
        for name in ("sampled, as published", "local", "central")
    ]


def _draw(bands: Bands) -> Figure:
    figure, axes = new_figure(2, len(BUDGETS))
    panels = [(budget, quantity) for budget in BUDGETS for quantity in ("queries", "l1_50")]
    names = {"queries": "queries found", "l1_50": "L1 over the true top 50"}
    for axis, (budget, quantity) in zip(axes, panels, strict=True):
        axis.set(xlabel="users that opt in (%)", ylabel=names[quantity], xscale="log", yscale="log")
        _line(axis, bands, budget, quantity)
        for rival in RIVALS:
            value = _mean(bands, budget, rival, None, quantity)
            if value:
                axis.axhline(value, color=rival.color, linestyle=(0, (4, 1.6)), linewidth=1.2, label=rival.name)
        axis.set_xticks([100 * share for share in OPTIN_SHARES], [f"{100 * share:g}" for share in OPTIN_SHARES])
        axis.minorticks_off()
        columns = (_mean(bands, budget, rival, optin, quantity) for rival, optin in _columns())
        if values := [value for value in columns if value]:
            axis.set_ylim(min(values) / 2, 2 * max(values))
        axis.set_title(f"ε = {budget.epsilon:g}, δ = {budget.delta:g}", loc="left", fontsize=10)
    handles = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def _line(axis: Axes, bands: Bands, budget: Budget, quantity: str) -> None:
    """Ours over the opt-in share, where there is something to show on a logarithmic axis."""
    by_share = [(share, bands[budget, OURS, share, quantity]) for share in OPTIN_SHARES]
    shown = [(100 * share, band) for share, band in by_share if band and band.low > 0]
    x = [share for share, _ in shown]
    axis.plot(x, [band.mean for _, band in shown], marker="o", markersize=3, color=OURS.color, label=OURS.name)
    axis.fill_between(
        x, [band.low for _, band in shown], [band.high for _, band in shown], color=OURS.color, alpha=0.15, linewidth=0
    )


EXPERIMENT = Rivals()
