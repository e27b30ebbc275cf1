"""[BLJ] Fig. 16: NDCG over ε."""

from __future__ import annotations

from searchblend_lab.papers.blender.by_size import epsilon, line_sentences, panels_by_size
from searchblend_lab.papers.blender.published import EPSILONS
from searchblend_lab.papers.experiment import Finding, Request, holds
from searchblend_lab.papers.panels import Curves, PanelExperiment
from searchblend_lab.papers.prose import prose


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    findings = []
    for i, panel in enumerate(curves.panels):
        if panel.people.name != "yandex":
            continue
        for size in panel.people.sizes[:-2]:
            paper, best = (curves.means(i, method, "ndcg", size=size) for method in ("paper", "best"))
            if not paper or not best:
                continue
            findings.append(
                Finding(
                    f"NDCG at ε = {min(paper):g}, head size {size} (Yandex profile)",
                    ".95 and above from ε = 1 on",
                    f"{paper[min(paper)]:.3f}",
                    f"{best[min(best)]:.3f}",
                    holds(min(paper) == 1 and paper[min(paper)] >= 0.95),
                )
            )
        findings.append(_two_largest(curves, i, panel.people.sizes[-2:]))
    findings += _more_people(curves)
    lines = " ".join(line_sentences(curves, "ndcg", epsilon))
    text = f"{lines} {_gains(curves)}"
    return text, findings


def _two_largest(curves: Curves, panel: int, sizes: tuple[int, ...]) -> Finding:
    lengths = {m: [curves.points(panel, m, "ndcg", size=size)[0] for size in sizes] for m in ("paper", "best")}
    shown = {m: ", ".join(f"{p.queries:.0f} of {p.size} queries" for p in points) for m, points in lengths.items()}
    return Finding(
        f"the two largest lists, {sizes[0]} and {sizes[1]}, at ε = {lengths['paper'][0].x:g} (Yandex profile)",
        "not reached",
        shown["paper"],
        shown["best"],
        holds(not any(point.reached for point in lengths["paper"])),
        f"{' and '.join(str(p.size) for p in lengths['paper'] if p.reached)} is reached; the profile is a fit",
    )


def _gains(curves: Curves) -> str:
    """How much ε buys, by method, and which sizes wait for it."""
    parts, late = [], []
    for i, panel in enumerate(curves.panels):
        for size in panel.people.sizes:
            line = curves.means(i, "paper", "ndcg", size=size)
            if not line or min(line) > 1:
                late.append(f"{panel.people.label} {size}")
        gains = []
        for method in ("paper", "best"):
            line = curves.means(i, method, "ndcg", size=panel.people.sizes[0])
            if line:
                gains.append(f"{line[max(line)] - line[min(line)]:+.4f} with {method}")
        parts.append(f"{' and '.join(gains)} ({panel.people.label})")
    return prose("fig16_gains", late=late, parts=parts)


def _more_people(curves: Curves) -> list[Finding]:
    """Yandex, ten times as many people, against AOL at the head size they share."""
    names = [panel.people.name for panel in curves.panels]
    if names != ["aol", "yandex"]:
        return []
    both = {}
    for method in ("paper", "best"):
        aol, yandex = (curves.means(i, method, "ndcg", size=50) for i in (0, 1))
        shared = [e for e in aol if e in yandex]
        if not shared:
            return []
        both[method] = [(yandex[e], aol[e]) for e in shared]
    text = {m: "; ".join(f"{y:.3f} : {a:.3f}" for y, a in pairs) for m, pairs in both.items()}
    higher = sum(y - a for y, a in both["paper"]) > 0
    return [
        Finding(
            "NDCG of Yandex : AOL at head size 50, where both are reached",
            "higher for Yandex",
            text["paper"],
            text["best"],
            holds(higher),
            "our Yandex profile's head is flatter than AOL's, so that its queries are closer in rank",
        )
    ]


EXPERIMENT = PanelExperiment(
    name="fig16",
    title="NDCG over ε",
    source="[BLJ] Fig. 16",
    about="ε from 1 to 6 with the paper's opt-in share (AOL 5 %, Yandex 3 %); NDCG of queries and their URLs.",
    full_runs=20,
    quick_runs=4,
    panels=panels_by_size("ndcg", "epsilon", EPSILONS, "aol", "yandex"),
    conclusion=conclude,
)
