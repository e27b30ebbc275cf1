"""Every sentence of [BLJ] §4.3 that claims something, checked."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.blender import (
    fig10,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    fig18,
    fig19,
    records_per_client,
)
from searchblend_lab.papers.blender.by_group import compared
from searchblend_lab.papers.blender.published import CCS16_NDCG
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import Finding, Outcome, Request, hybrid
from searchblend_lab.papers.panels import Curves, PanelExperiment
from searchblend_lab.papers.people import PROFILES
from searchblend_lab.papers.prose import prose

HEAD_FRACTIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
_PANELS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (fig10, fig12, fig13, fig14, fig15, fig16, fig17, fig18, fig19)
}
Means = dict[float, float]


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds for method paper on our people, with the numbers."""

    holds: bool
    numbers: str


class Evidence:
    """The curves that claims are checked on."""

    def __init__(self, request: Request, results: Results) -> None:
        self._request, self._results = request, results
        self._curves: dict[str, Curves] = {}

    def __getitem__(self, name: str) -> Curves:
        if name not in self._curves:
            self._curves[name] = _PANELS[name].curves(self._request, self._results)
        return self._curves[name]

    def means(self, name: str, panel: int, quantity: str, **settings: Scalar) -> Means:
        return self[name].means(panel, "paper", quantity, **settings)

    @cached_property
    def records_per_client(self) -> Verdict:
        bands = records_per_client.EXPERIMENT.bands(self._request, self._results)
        holds, numbers = records_per_client.one_is_best(bands, "paper")
        return Verdict(holds, f"L1 for 1, 2, 5, 10: {numbers} (independent records; all the same)")

    @cached_property
    def list_lengths(self) -> dict[float, float]:
        """Queries in the list by f_O, AOL at 5 %."""
        found = {}
        for fraction in HEAD_FRACTIONS:
            values = self._results.values(head_fraction_cells(self._request, fraction), "queries")
            found[fraction] = sum(values) / len(values)
        return found


def head_fraction_cells(request: Request, fraction: float) -> list[Cell]:
    people = PROFILES["aol"]
    return [
        hybrid(people, "paper", run, head_fraction=fraction, size=people.sizes[-1])
        for run in range(request.n_runs(20, 4))
    ]


def falling(means: Means, slack: float = 0.0) -> bool:
    return all(means[b] < means[a] * (1 + slack) for a, b in pairwise(sorted(means)))


def ends(means: Means) -> str:
    return f"{means[min(means)]:.4f} → {means[max(means)]:.4f}" if means else "not reached"


def _splits(e: Evidence) -> Verdict:
    client = e.means("fig10", 1, "client_ndcg")
    peak = max(client, key=lambda x: client[x])
    near = min(client, key=lambda x: abs(x - 0.85))
    return Verdict(abs(peak - 0.85) <= 0.051, f"peak at {peak:g} ({client[peak]:.4f}), {client[near]:.4f} at 0.85")


def _split_l1(e: Evidence) -> Verdict:
    client, blended = e.means("fig10", 0, "client_query_l1"), e.means("fig10", 0, "query_l1")
    return Verdict(
        falling(client) and falling(blended, 0.03),
        f"clients {ends(client)}, blend {ends(blended)}, f_C from .55 to .95",
    )


def _split_drop(e: Evidence) -> Verdict:
    blended, client = e.means("fig10", 1, "ndcg"), e.means("fig10", 1, "client_ndcg")
    near = min(blended, key=lambda x: abs(x - 0.85))
    last = max(blended)
    numbers = (
        f"blend {blended[near]:.4f} at .85, {blended[last]:.4f} at .95 (clients {client[near]:.4f}, {client[last]:.4f})"
    )
    return Verdict(blended[last] < blended[near] - 0.005, numbers)


def _split_optin(e: Evidence) -> Verdict:
    optin = e.means("fig10", 1, "optin_ndcg")
    spread = max(optin.values()) - min(optin.values())
    return Verdict(spread < 1e-12, f"NDCG between {min(optin.values()):.4f} and {max(optin.values()):.4f}")


def _head_fraction(e: Evidence) -> Verdict:
    lengths = e.list_lengths
    numbers = ", ".join(f"f_O {f:g}: {n:.1f}" for f, n in lengths.items())
    longest = max(lengths.values())
    return Verdict(lengths[0.95] >= 0.98 * longest, f"queries in the list, {numbers}")


def _sizes(e: Evidence) -> Verdict:
    holds, parts = True, []
    for panel, sizes in ((0, (10, 25, 50)), (1, (10, 50, 100, 500))):
        found = [(s, m[max(m)]) for s in sizes if (m := e.means("fig14", panel, "query_l1", size=s))]
        holds &= all(b > a for (_, a), (_, b) in pairwise(found))
        parts.append(" < ".join(f"{value:.4f} ({size})" for size, value in found))
    return Verdict(holds, "L1 at ε = 6 by head size: AOL " + "; Yandex ".join(parts))


def _ccs(e: Evidence) -> Verdict:
    ndcg, rank = e.means("fig12", 0, "ndcg"), e.means("fig12", 1, "ndcg_rank")
    numbers = (
        f"lowest {min(ndcg.values()):.3f} (by rank {min(rank.values()):.3f}) against {max(CCS16_NDCG.values())} at best"
    )
    return Verdict(min(ndcg.values()) > 0.95 > max(CCS16_NDCG.values()), numbers)


def _start(name: str, panel: int, size: int, published: float) -> Callable[[Evidence], Verdict]:
    def check(e: Evidence) -> Verdict:
        means = e.means(name, panel, "query_l1", size=size)
        found = min(means, default=None)
        points = e[name].points(panel, "paper", "query_l1", size=size)
        near = min(points, key=lambda p: abs(p.x - published))
        numbers = f"first reached at {f'{100 * found:g} %' if found else 'no share'}; {near.queries:.0f} queries at "
        return Verdict(found is not None and abs(found - published) <= 0.0051, numbers + f"{100 * near.x:g} %")

    return check


def _reached_is_good(e: Evidence) -> Verdict:
    largest = {
        label: max(v for s in sizes for v in e.means("fig13", panel, "query_l1", size=s).values())
        for panel, label, sizes in ((0, "AOL", (10, 25, 50)), (1, "Yandex", (10, 50, 100, 500)))
    }
    numbers = ", ".join(f"{label} at most {value:.4f}" for label, value in largest.items())
    return Verdict(
        max(largest.values()) < 0.06, f"L1 where the list is reached: {numbers} (axes of Fig. 13 end at 0.06)"
    )


def _ten_percent(e: Evidence) -> Verdict:
    means = e.means("fig13", 0, "query_l1", size=50)
    return Verdict(means[max(means)] < means[min(means)], f"AOL, head size 50: {ends(means)}")


def _l1_falls(e: Evidence) -> Verdict:
    found = {
        f"{label} {size}": e.means("fig14", panel, "query_l1", size=size)
        for panel, label, sizes in ((0, "AOL", (10, 25, 50)), (1, "Yandex", (10, 50, 100, 500)))
        for size in sizes
    }
    numbers = "; ".join(f"{label}: {ends(means)}" for label, means in found.items() if means)
    return Verdict(all(falling(means) for means in found.values() if means), numbers)


def _under_a_tenth(e: Evidence) -> Verdict:
    largest = max(v for s in (10, 50, 100, 500) for v in e.means("fig14", 1, "query_l1", size=s).values())
    return Verdict(largest < 0.1, f"largest L1 {largest:.4f}")


def _aol_five(e: Evidence) -> Verdict:
    at_five = {s: e.means("fig15", 0, "ndcg", size=s).get(0.05) for s in (10, 25, 50)}
    below = e.means("fig15", 0, "ndcg", size=50)
    numbers = ", ".join(f"{s}: {v:.3f}" if v else f"{s}: not reached" for s, v in at_five.items())
    holds = all(v is not None and v > 0.95 for v in at_five.values()) and min(below) >= 0.045
    return Verdict(holds, f"NDCG at 5 %: {numbers}; with head size 50 first at {100 * min(below):g} %")


def _yandex_one(e: Evidence) -> Verdict:
    at_one = {s: e.means("fig15", 1, "ndcg", size=s).get(0.01) for s in (10, 50, 100, 500)}
    numbers = ", ".join(f"{s}: {v:.3f}" if v else f"{s}: not reached" for s, v in at_one.items())
    holds = all(at_one[s] is not None and (at_one[s] or 0) > 0.95 for s in (10, 50, 100)) and at_one[500] is None
    return Verdict(holds, f"NDCG at 1 %: {numbers}")


def _yandex_higher(e: Evidence) -> Verdict:
    parts, gaps = [], []
    for size in (10, 50):
        aol, yandex = (e.means("fig16", panel, "ndcg", size=size) for panel in (0, 1))
        for epsilon in aol:
            if epsilon in yandex:
                gaps.append(yandex[epsilon] - aol[epsilon])
                parts.append(f"{size}, ε {epsilon:g}: {yandex[epsilon]:.3f} : {aol[epsilon]:.3f}")
    return Verdict(sum(gaps) > 0, "Yandex : AOL at head size " + "; ".join(parts))


def _yandex_epsilon_one(e: Evidence) -> Verdict:
    at_one = {s: e.means("fig16", 1, "ndcg", size=s).get(1.0) for s in (10, 50, 100, 500)}
    numbers = ", ".join(f"{s}: {v:.3f}" if v else f"{s}: not reached" for s, v in at_one.items())
    return Verdict(all((at_one[s] or 0) >= 0.95 for s in (10, 50)), f"NDCG at ε = 1: {numbers}")


def _better_than_worse(e: Evidence) -> Verdict:
    counts = [compared(e["fig17"], i, "query_l1" if i % 2 == 0 else "ndcg") for i in range(4)]
    n, worse = sum(c[0] for c in counts), sum(c[1] for c in counts)
    return Verdict(worse == n, f"{worse} of {n} points of Fig. 17")


def _better_than_both(e: Evidence) -> Verdict:
    counts = [compared(e["fig17"], i, "query_l1") for i in (0, 2)]
    n, both = sum(c[0] for c in counts), sum(c[2] for c in counts)
    return Verdict(both == n, f"L1: {both} of {n} points of Fig. 17")


def _optin_grows(e: Evidence) -> Verdict:
    optin, client = e.means("fig17", 0, "optin_query_l1"), e.means("fig17", 1, "client_ndcg")
    holds = optin[max(optin)] < optin[min(optin)] and client[max(client)] < client[min(client)]
    return Verdict(holds, f"opt-in L1 {ends(optin)}, clients' NDCG {ends(client)}, 1 % to 10 %")


def _slow_and_fast(e: Evidence) -> Verdict:
    l1, ndcg = e.means("fig17", 0, "client_query_l1"), e.means("fig17", 1, "client_ndcg")
    slow = l1[max(l1)] / l1[min(l1)] - 1
    fast = (1 - ndcg[max(ndcg)]) / (1 - ndcg[min(ndcg)]) - 1
    return Verdict(slow < fast, f"clients, 1 % to 10 %: L1 {slow:+.0%}, 1 − NDCG {fast:+.0%}")


def _tracks_optin(e: Evidence) -> Verdict:
    blended, optin, client = (e.means("fig17", 1, key) for key in ("ndcg", "optin_ndcg", "client_ndcg"))
    low = [x for x in blended if x <= 0.0301 and x in optin and x in client]
    nearer = sum(abs(blended[x] - optin[x]) < abs(blended[x] - client[x]) for x in low)
    x = low[0]
    numbers = f"nearer to the opt-in users at {nearer} of {len(low)} shares up to 3 %; at {100 * x:g} %: blend "
    return Verdict(nearer > len(low) / 2, numbers + f"{blended[x]:.3f}, opt-in {optin[x]:.3f}, clients {client[x]:.3f}")


def _epsilon_groups(e: Evidence) -> Verdict:
    blended, optin, client = (e.means("fig17", 2, key) for key in ("query_l1", "optin_query_l1", "client_query_l1"))
    moved = {name: m[min(m)] / m[max(m)] for name, m in (("blend", blended), ("opt-in", optin), ("clients", client))}
    numbers = ", ".join(f"{name} {value:.1f} times" for name, value in moved.items())
    return Verdict(moved["opt-in"] < 3 < moved["blend"] < moved["clients"], f"L1 falls from ε = 1 to 6 by {numbers}")


def _no_one_dominates(e: Evidence) -> Verdict:
    optin, client = e.means("fig17", 2, "optin_query_l1"), e.means("fig17", 2, "client_query_l1")
    wins = [x for x in optin if x in client and optin[x] < client[x]]
    numbers = (
        f"opt-in users are the better group at ε = {', '.join(f'{x:g}' for x in wins) or 'none'}, clients at the others"
    )
    return Verdict(0 < len(wins) < len(optin), numbers)


def _tiny_reached(e: Evidence) -> Verdict:
    lowest = min(v for s in (10, 25, 50, 100) for v in e.means("fig18", 1, "ndcg", size=s).values())
    return Verdict(lowest >= 0.95, f"lowest NDCG of a reached list {lowest:.3f}")


def _tiny_optin(e: Evidence) -> Verdict:
    optin, client = e.means("fig19", 0, "optin_query_l1"), e.means("fig19", 0, "client_query_l1")
    ratios = [optin[x] / client[x] for x in optin if x in client]
    return Verdict(min(ratios) > 1, f"opt-in L1 is {min(ratios):.0f} to {max(ratios):.0f} times the clients'")


def _tiny_weights(e: Evidence) -> Verdict:
    weight = e.means("fig19", 2, "optin_weight")
    return Verdict(
        max(weight.values()) < 0.5,
        f"weight of the opt-in estimate {min(weight.values()):.3f} to {max(weight.values()):.3f}",
    )


YANDEX_WHY = "of the Yandex log only sizes are published, so its shares are a fit"
CLAIMS: tuple[tuple[str, str, Callable[[Evidence], Verdict], str], ...] = (
    ("4.3.1", "m_C = 1: one record per client yields the greatest utility", lambda e: e.records_per_client, ""),
    ("4.3.1", "The larger f_C, the better the L1 of clients and blend", _split_l1, ""),
    (
        "4.3.1",
        "f_C = 0.85: the clients' NDCG peaks there",
        _splits,
        "to rank our synthetic URLs takes more of the budget",
    ),
    (
        "4.3.1",
        "A split above 0.85 makes the blended NDCG drop significantly",
        _split_drop,
        "the clients' does; the blend weighs them down in time",
    ),
    ("4.3.1", "The opt-in line does not depend on f_C", _split_optin, ""),
    ("4.3.1", "f_O = 0.95 is needed for a long list", _head_fraction, ""),
    ("4.3.1", "Accuracy drops as the head list grows", _sizes, ""),
    ("4.3.2", "NDCG above 95 % for ε from 1 to 5, CCS'16 in the 30 % range at best", _ccs, ""),
    ("4.3.3", "AOL: 50 head queries are first reached at 5 % opt-in", _start("fig13", 0, 50, 0.05), ""),
    ("4.3.3", "Yandex: 500 head queries are reached at 3 %", _start("fig13", 1, 500, 0.03), YANDEX_WHY),
    ("4.3.3", "Once the list is reached, L1 is small", _reached_is_good, ""),
    ("4.3.3", "AOL: a slight decline in L1 towards 10 % for the largest list", _ten_percent, ""),
    ("4.3.3", "L1 falls steadily with ε, for both logs", _l1_falls, ""),
    ("4.3.3", "Yandex: L1 under 0.1 for ε ≥ 1", _under_a_tenth, ""),
    ("4.3.3", "AOL: about 5 % opt-in are needed for an NDCG above 95 %", _aol_five, ""),
    ("4.3.3", "Yandex: above 95 % at 1 % opt-in for all but the largest list", _yandex_one, ""),
    ("4.3.3", "NDCG is higher for Yandex than for AOL", _yandex_higher, YANDEX_WHY),
    ("4.3.3", "Yandex: 95 % and above at ε = 1 for all but the two largest lists", _yandex_epsilon_one, ""),
    ("4.3.3", "The blend is better than the worse of the two groups, always", _better_than_worse, ""),
    (
        "4.3.3",
        "For L1 the blend is better than both groups",
        _better_than_both,
        "plug-in variances give rare queries of a small group too much weight",
    ),
    ("4.3.3", "More opt-in users: their results improve, the clients' deteriorate", _optin_grows, ""),
    ("4.3.3", "The clients' L1 deteriorates slowly, their NDCG faster", _slow_and_fast, ""),
    (
        "4.3.3",
        "The blended NDCG tracks the opt-in users', even from 1 to 3 % where clients are better",
        _tracks_optin,
        "here the blend follows the better group",
    ),
    ("4.3.3", "With ε the blend improves with the clients; opt-in L1 is nearly constant", _epsilon_groups, ""),
    ("4.3.3", "No single group dominates", _no_one_dominates, ""),
    ("4.3.3", "Tiny opt-in group: once a list is reached, utility is high", _tiny_reached, ""),
    ("4.3.3", "Tiny opt-in group: its own estimates are much worse than the clients'", _tiny_optin, ""),
    ("4.3.3", "Tiny opt-in group: the blend leans heavily towards the clients", _tiny_weights, ""),
)


class Claims:
    """holds / does not hold, with the numbers."""

    name = "claims"
    title = "The claims of [BLJ] §4.3, one by one"
    source = "[BLJ] §4.3"
    about = (
        "Each sentence of the paper's evaluation that claims something, checked for method paper on the synthetic logs."
    )

    def cells(self, request: Request) -> list[Cell]:
        own = _of_the_paper(request)
        experiments: list[PanelExperiment] = list(_PANELS.values())
        cells = [cell for experiment in experiments for cell in experiment.cells(own)]
        cells += records_per_client.EXPERIMENT.cells(own)
        return cells + [cell for fraction in HEAD_FRACTIONS for cell in head_fraction_cells(own, fraction)]

    def conclude(self, request: Request, results: Results) -> Outcome:
        evidence = Evidence(_of_the_paper(request), results)
        verdicts = [(section, claim, check(evidence), why) for section, claim, check, why in CLAIMS]
        rows: list[dict[str, Scalar]] = [
            {"section": section, "claim": claim, "holds": verdict.holds, "numbers": verdict.numbers}
            for section, claim, verdict, _ in verdicts
        ]
        findings = [
            Finding(
                f"§{section}: {claim}", "claimed", verdict.numbers, "–", verdict.holds, "" if verdict.holds else why
            )
            for section, claim, verdict, why in verdicts
        ]
        failed = [(claim, verdict.numbers, why) for _, claim, verdict, why in verdicts if not verdict.holds]
        text = prose("claims", verdicts=verdicts, failed=failed)
        printed = [
            f"{'holds         ' if verdict.holds else 'DOES NOT HOLD '} §{section} {claim}: {verdict.numbers}"
            for section, claim, verdict, _ in verdicts
        ]
        return Outcome(rows, _draw(verdicts), text, findings, printed=printed)


def _of_the_paper(request: Request) -> Request:
    """The claims are about the paper's two logs, whatever people were asked for."""
    return Request(request.seed, request.quick, request.runs)


def _draw(verdicts: list[tuple[str, str, Verdict, str]]) -> Figure:
    figure, (axis,) = new_figure(1)
    figure.set_size_inches(12, 0.42 * len(verdicts) + 0.8)
    for row, (section, claim, verdict, _) in enumerate(verdicts):
        color = "#2f7d4f" if verdict.holds else "#b3261e"
        axis.text(0.0, row, "holds" if verdict.holds else "does not hold", color=color, va="center", fontsize=8)
        axis.text(0.085, row, f"§{section}", va="center", fontsize=8, color="#666666")
        axis.text(0.125, row, "\n".join(textwrap.wrap(claim, 66)), va="center", fontsize=8)
        axis.text(0.47, row, "\n".join(textwrap.wrap(verdict.numbers, 104)), va="center", fontsize=7, color="#333333")
    axis.set(xlim=(0, 1), ylim=(len(verdicts) - 0.5, -0.8))
    axis.set_axis_off()
    return figure


EXPERIMENT = Claims()
