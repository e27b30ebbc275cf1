"""[BLJ] Fig. 15: NDCG over the share of users that opt in."""

from __future__ import annotations

from searchblend_lab.papers.blender.by_size import line_sentences, panels_by_size, percent
from searchblend_lab.papers.blender.published import OPTIN_SHARES
from searchblend_lab.papers.experiment import Agreement, Finding, Request, holds
from searchblend_lab.papers.panels import Curves, PanelExperiment
from searchblend_lab.papers.prose import prose


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    findings, verdicts = [], []
    for i, panel in enumerate(curves.panels):
        people = panel.people
        lowest = {m: _lowest(curves, i, m, people.sizes) for m in ("paper", "best")}
        if not lowest["paper"] or not lowest["best"]:
            continue
        worst = min(lowest["paper"].values())
        verdicts.append(
            f"On the {people.label} the lowest point of method paper is {worst:.3f}, of method best "
            f"{min(lowest['best'].values()):.3f}."
        )
        if people.name == "aol":
            start = {m: _all_above(curves, i, m, people.sizes) for m in ("paper", "best")}
            shown = {m: percent(x) if x is not None else "not here" for m, x in start.items()}
            agrees = start["paper"] is not None and abs(start["paper"] - 0.05) <= 0.0051
            findings.append(
                Finding(
                    "all head sizes reached with NDCG above .95 (AOL profile)",
                    "≈ 5 %",
                    shown["paper"],
                    shown["best"],
                    Agreement.FITTED if agrees else Agreement.DIFFERS,
                    "it follows from where the list of 50 begins, to which the profile is fitted",
                )
            )
        if people.name == "yandex":
            smaller = {m: _lowest(curves, i, m, people.sizes[:-1]) for m in ("paper", "best")}
            shown = {m: f"{min(v.values()):.3f}" if v else "–" for m, v in smaller.items()}
            agrees = bool(smaller["paper"]) and min(smaller["paper"].values()) > 0.95
            findings.append(
                Finding(
                    "lowest NDCG from 1 % on, all but the largest size (Yandex profile)",
                    "above .95",
                    shown["paper"],
                    shown["best"],
                    holds(agrees),
                )
            )
    lines = " ".join(line_sentences(curves, "ndcg", percent))
    text = prose("fig15", lines=lines, verdicts=verdicts)
    return text, findings


def _lowest(curves: Curves, panel: int, method: str, sizes: tuple[int, ...]) -> dict[int, float]:
    by_size = {size: curves.means(panel, method, "ndcg", size=size) for size in sizes}
    return {size: min(means.values()) for size, means in by_size.items() if means}


def _all_above(curves: Curves, panel: int, method: str, sizes: tuple[int, ...]) -> float | None:
    """The least x from which on every size is reached and above .95."""
    means = [curves.means(panel, method, "ndcg", size=size) for size in sizes]
    values = curves.panels[panel].values
    good = [x for x in values if all(y in m and m[y] > 0.95 for y in values if y >= x for m in means)]
    return min(good, default=None)


EXPERIMENT = PanelExperiment(
    name="fig15",
    title="NDCG over the share of users that opt in",
    source="[BLJ] Fig. 15",
    about="1 % to 10 % of the users opt in, ε = 4; NDCG of queries and their URLs for every head size.",
    full_runs=20,
    quick_runs=4,
    panels=panels_by_size("ndcg", "optin", OPTIN_SHARES, "aol", "yandex"),
    conclusion=conclude,
)
