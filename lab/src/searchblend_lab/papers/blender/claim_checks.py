"""What checks the sentences of [BLJ] §4.2 and §4.3 that claim something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from searchblend_lab.papers.blender import (
    fig09,
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
from searchblend_lab.papers.experiment import Request, hybrid
from searchblend_lab.papers.panels import Curves
from searchblend_lab.papers.people import PROFILES

HEAD_FRACTIONS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""f_O = 1 leaves no one to estimate, and is refused"""
PRINTED_FRACTION = 0.95
AXES = {"AOL": 0.016, "Yandex": 0.06}
"""where the axes of [BLJ] Fig. 13 end"""
PANELS = {
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
            self._curves[name] = PANELS[name].curves(self._request, self._results)
        return self._curves[name]

    def means(self, name: str, panel: int, quantity: str, **settings: Scalar) -> Means:
        return self[name].means(panel, "paper", quantity, **settings)

    @cached_property
    def regressions(self) -> Mapping[str, float]:
        """Of Fig. 9, by column."""
        return fig09.EXPERIMENT.summaries(self._request, self._results)["paper"]

    @cached_property
    def records_per_client(self) -> Verdict:
        bands = records_per_client.EXPERIMENT.bands(self._request, self._results)
        does, numbers = records_per_client.one_is_best(bands, "paper")
        return Verdict(does, f"L1 for 1, 2, 5, 10: {numbers} (independent records; all the same)")

    def by_head_fraction(self, quantity: str) -> dict[float, float]:
        """Mean by f_O, AOL at 5 %."""
        mean_of = {}
        for fraction in HEAD_FRACTIONS:
            values = self._results.values(head_fraction_cells(self._request, fraction), quantity)
            mean_of[fraction] = sum(values) / len(values)
        return mean_of


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


def splits(e: Evidence) -> Verdict:
    client = e.means("fig10", 1, "client_ndcg")
    peak = max(client, key=lambda x: client[x])
    near = min(client, key=lambda x: abs(x - 0.85))
    return Verdict(abs(peak - 0.85) <= 0.051, f"peak at {peak:g} ({client[peak]:.4f}), {client[near]:.4f} at 0.85")


def split_l1(e: Evidence) -> Verdict:
    client, blended = e.means("fig10", 0, "client_query_l1"), e.means("fig10", 0, "query_l1")
    return Verdict(
        falling(client) and falling(blended, 0.03),
        f"clients {ends(client)}, blend {ends(blended)}, f_C from .55 to .95",
    )


def split_drop(e: Evidence) -> Verdict:
    blended, client = e.means("fig10", 1, "ndcg"), e.means("fig10", 1, "client_ndcg")
    near = min(blended, key=lambda x: abs(x - 0.85))
    last = max(blended)
    numbers = (
        f"blend {blended[near]:.4f} at .85, {blended[last]:.4f} at .95 (clients {client[near]:.4f}, {client[last]:.4f})"
    )
    return Verdict(blended[last] < blended[near] - 0.005, numbers)


def split_optin(e: Evidence) -> Verdict:
    optin = e.means("fig10", 1, "optin_ndcg")
    spread = max(optin.values()) - min(optin.values())
    return Verdict(spread < 1e-12, f"NDCG between {min(optin.values()):.4f} and {max(optin.values()):.4f}")


def head_fraction(e: Evidence) -> Verdict:
    """Every step up to .95 makes the list longer."""
    lengths = e.by_head_fraction("queries")
    steps = [lengths[f] for f in HEAD_FRACTIONS if f <= PRINTED_FRACTION]
    return Verdict(all(b > a for a, b in pairwise(steps)), f"queries in the list, {_by_fraction(lengths, '.1f')}")


def beyond_head_fraction(e: Evidence) -> Verdict:
    """Beyond .95 a percent more of the opt-in users buys fewer queries than before, and every query is worse."""
    lengths, l1 = e.by_head_fraction("queries"), e.by_head_fraction("query_l1")
    place, last = HEAD_FRACTIONS.index(PRINTED_FRACTION), HEAD_FRACTIONS[-1]
    before = HEAD_FRACTIONS[place - 1]
    up_to = (lengths[PRINTED_FRACTION] - lengths[before]) / (PRINTED_FRACTION - before)
    beyond = (lengths[last] - lengths[PRINTED_FRACTION]) / (last - PRINTED_FRACTION)
    each = {fraction: 1e4 * l1[fraction] / lengths[fraction] for fraction in (PRINTED_FRACTION, last)}
    numbers = f"queries for each percent of f_O: {up_to / 100:.2f} up to .95, {beyond / 100:.2f} beyond; "
    numbers += f"L1 of each query, in 1e-4: {_by_fraction(each, '.2f')}"
    return Verdict(beyond < up_to and each[last] > each[PRINTED_FRACTION], numbers)


def _by_fraction(values: Means, form: str) -> str:
    return ", ".join(f"f_O {fraction:g}: {value:{form}}" for fraction, value in values.items())


def sizes(e: Evidence) -> Verdict:
    does, parts = True, []
    for panel, sizes in ((0, (10, 25, 50)), (1, (10, 50, 100, 500))):
        largest = [(s, m[max(m)]) for s in sizes if (m := e.means("fig14", panel, "query_l1", size=s))]
        does &= all(b > a for (_, a), (_, b) in pairwise(largest))
        parts.append(" < ".join(f"{value:.4f} ({size})" for size, value in largest))
    return Verdict(does, "L1 at ε = 6 by head size: AOL " + "; Yandex ".join(parts))


def ccs(e: Evidence) -> Verdict:
    ndcg, rank = e.means("fig12", 0, "ndcg"), e.means("fig12", 1, "ndcg_rank")
    numbers = (
        f"lowest {min(ndcg.values()):.3f} (by rank {min(rank.values()):.3f}) against {max(CCS16_NDCG.values())} at best"
    )
    return Verdict(min(ndcg.values()) > 0.95 > max(CCS16_NDCG.values()), numbers)


def start(name: str, panel: int, size: int, published: float) -> Callable[[Evidence], Verdict]:
    def check(e: Evidence) -> Verdict:
        means = e.means(name, panel, "query_l1", size=size)
        first = min(means, default=None)
        points = e[name].points(panel, "paper", "query_l1", size=size)
        near = min(points, key=lambda p: abs(p.x - published))
        numbers = f"first reached at {f'{100 * first:g} %' if first else 'no share'}; {near.queries:.0f} queries at "
        return Verdict(first is not None and abs(first - published) <= 0.0051, numbers + f"{100 * near.x:g} %")

    return check


def reached_is_good(e: Evidence) -> Verdict:
    largest = {
        label: max(v for s in sizes for v in e.means("fig13", panel, "query_l1", size=s).values())
        for panel, label, sizes in ((0, "AOL", (10, 25, 50)), (1, "Yandex", (10, 50, 100, 500)))
    }
    numbers = ", ".join(f"{label} at most {value:.4f} ({AXES[label]:g})" for label, value in largest.items())
    return Verdict(
        all(value <= AXES[label] for label, value in largest.items()),
        f"L1 where the list is reached: {numbers}; in brackets where the axes of Fig. 13 end",
    )


def ten_percent(e: Evidence) -> Verdict:
    means = e.means("fig13", 0, "query_l1", size=50)
    return Verdict(means[max(means)] < means[min(means)], f"AOL, head size 50: {ends(means)}")


def l1_falls(e: Evidence) -> Verdict:
    curves = {
        f"{label} {size}": e.means("fig14", panel, "query_l1", size=size)
        for panel, label, sizes in ((0, "AOL", (10, 25, 50)), (1, "Yandex", (10, 50, 100, 500)))
        for size in sizes
    }
    numbers = "; ".join(f"{label}: {ends(means)}" for label, means in curves.items() if means)
    return Verdict(all(falling(means) for means in curves.values() if means), numbers)


def under_a_tenth(e: Evidence) -> Verdict:
    largest = max(v for s in (10, 50, 100, 500) for v in e.means("fig14", 1, "query_l1", size=s).values())
    return Verdict(largest < 0.1, f"largest L1 {largest:.4f}")


def aol_five(e: Evidence) -> Verdict:
    at_five = {s: e.means("fig15", 0, "ndcg", size=s).get(0.05) for s in (10, 25, 50)}
    below = e.means("fig15", 0, "ndcg", size=50)
    numbers = ", ".join(f"{s}: {v:.3f}" if v else f"{s}: not reached" for s, v in at_five.items())
    does = all(v is not None and v > 0.95 for v in at_five.values()) and min(below) >= 0.045
    return Verdict(does, f"NDCG at 5 %: {numbers}; with head size 50 first at {100 * min(below):g} %")


def yandex_one(e: Evidence) -> Verdict:
    at_one = {s: e.means("fig15", 1, "ndcg", size=s).get(0.01) for s in (10, 50, 100, 500)}
    numbers = ", ".join(f"{s}: {v:.3f}" if v else f"{s}: not reached" for s, v in at_one.items())
    does = all(at_one[s] is not None and (at_one[s] or 0) > 0.95 for s in (10, 50, 100)) and at_one[500] is None
    return Verdict(does, f"NDCG at 1 %: {numbers}")


def yandex_higher(e: Evidence) -> Verdict:
    parts, gaps = [], []
    for size in (10, 50):
        aol, yandex = (e.means("fig16", panel, "ndcg", size=size) for panel in (0, 1))
        for epsilon in aol:
            if epsilon in yandex:
                gaps.append(yandex[epsilon] - aol[epsilon])
                parts.append(f"{size}, ε {epsilon:g}: {yandex[epsilon]:.3f} : {aol[epsilon]:.3f}")
    return Verdict(sum(gaps) > 0, "Yandex : AOL at head size " + "; ".join(parts))


def yandex_epsilon_one(e: Evidence) -> Verdict:
    at_one = {s: e.means("fig16", 1, "ndcg", size=s).get(1.0) for s in (10, 50, 100, 500)}
    numbers = ", ".join(f"{s}: {v:.3f}" if v else f"{s}: not reached" for s, v in at_one.items())
    small = all((at_one[s] or 0) >= 0.95 for s in (10, 50))
    return Verdict(small and at_one[100] is None and at_one[500] is None, f"NDCG at ε = 1: {numbers}")


def better_than_worse(e: Evidence) -> Verdict:
    counts = [compared(e["fig17"], i, "query_l1" if i % 2 == 0 else "ndcg") for i in range(4)]
    n, worse = sum(c[0] for c in counts), sum(c[1] for c in counts)
    return Verdict(worse == n, f"{worse} of {n} points of Fig. 17")


def better_than_both(e: Evidence) -> Verdict:
    counts = [compared(e["fig17"], i, "query_l1") for i in (0, 2)]
    n, both = sum(c[0] for c in counts), sum(c[2] for c in counts)
    return Verdict(both == n, f"L1: {both} of {n} points of Fig. 17")


def optin_grows(e: Evidence) -> Verdict:
    optin, client = e.means("fig17", 0, "optin_query_l1"), e.means("fig17", 1, "client_ndcg")
    does = optin[max(optin)] < optin[min(optin)] and client[max(client)] < client[min(client)]
    return Verdict(does, f"opt-in L1 {ends(optin)}, clients' NDCG {ends(client)}, 1 % to 10 %")


def slow_and_fast(e: Evidence) -> Verdict:
    l1, ndcg = e.means("fig17", 0, "client_query_l1"), e.means("fig17", 1, "client_ndcg")
    slow = l1[max(l1)] / l1[min(l1)] - 1
    fast = (1 - ndcg[max(ndcg)]) / (1 - ndcg[min(ndcg)]) - 1
    return Verdict(slow < fast, f"clients, 1 % to 10 %: L1 {slow:+.0%}, 1 − NDCG {fast:+.0%}")


def tracks_optin(e: Evidence) -> Verdict:
    blended, optin, client = (e.means("fig17", 1, key) for key in ("ndcg", "optin_ndcg", "client_ndcg"))
    low = [x for x in blended if x <= 0.0301 and x in optin and x in client]
    nearer = sum(abs(blended[x] - optin[x]) < abs(blended[x] - client[x]) for x in low)
    x = low[0]
    numbers = f"nearer to the opt-in users at {nearer} of {len(low)} shares up to 3 %; at {100 * x:g} %: blend "
    return Verdict(nearer > len(low) / 2, numbers + f"{blended[x]:.3f}, opt-in {optin[x]:.3f}, clients {client[x]:.3f}")


def epsilon_groups(e: Evidence) -> Verdict:
    blended, optin, client = (e.means("fig17", 2, key) for key in ("query_l1", "optin_query_l1", "client_query_l1"))
    moved = {name: m[min(m)] / m[max(m)] for name, m in (("blend", blended), ("opt-in", optin), ("clients", client))}
    numbers = ", ".join(f"{name} {value:.1f} times" for name, value in moved.items())
    return Verdict(moved["opt-in"] < 3 < moved["blend"] < moved["clients"], f"L1 falls from ε = 1 to 6 by {numbers}")


def nobody_dominates(e: Evidence) -> Verdict:
    optin, client = e.means("fig17", 2, "optin_query_l1"), e.means("fig17", 2, "client_query_l1")
    wins = [x for x in optin if x in client and optin[x] < client[x]]
    numbers = (
        f"opt-in users are the better group at ε = {', '.join(f'{x:g}' for x in wins) or 'none'}, clients at the others"
    )
    return Verdict(0 < len(wins) < len(optin), numbers)


def tiny_reached(e: Evidence) -> Verdict:
    lowest = min(v for s in (10, 25, 50, 100) for v in e.means("fig18", 1, "ndcg", size=s).values())
    return Verdict(lowest >= 0.95, f"lowest NDCG of a reached list {lowest:.3f}")


def tiny_optin(e: Evidence) -> Verdict:
    optin, client = e.means("fig19", 0, "optin_query_l1"), e.means("fig19", 0, "client_query_l1")
    ratios = [optin[x] / client[x] for x in optin if x in client]
    return Verdict(min(ratios) > 1, f"opt-in L1 is {min(ratios):.0f} to {max(ratios):.0f} times the clients'")


def tiny_weights(e: Evidence) -> Verdict:
    weight = e.means("fig19", 2, "optin_weight")
    return Verdict(
        max(weight.values()) < 0.5,
        f"weight of the opt-in estimate {min(weight.values()):.3f} to {max(weight.values()):.3f}",
    )


def one_regression(e: Evidence) -> Verdict:
    means = e.regressions
    numbers = ", ".join(f"{whose} {means[column]:.2f}" for column, whose in fig09.GROUPS.items())
    return Verdict(abs(means["blended"] - 1) <= fig09.NEAR, f"regressions, mean over runs: {numbers}")
