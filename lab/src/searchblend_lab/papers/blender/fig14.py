"""[BLJ] Fig. 14: L1 over ε."""

from __future__ import annotations

from itertools import pairwise

from searchblend_lab.papers.blender.by_size import epsilon, line_sentences, panels_by_size, start_findings
from searchblend_lab.papers.blender.published import EPSILONS, START_BL17
from searchblend_lab.papers.experiment import Finding, Request, holds
from searchblend_lab.papers.panels import Curves, PanelExperiment
from searchblend_lab.papers.prose import prose


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    findings = []
    for i, panel in enumerate(curves.panels):
        smallest = panel.people.sizes[0]
        means = {m: curves.means(i, m, "query_l1", size=smallest) for m in ("paper", "best")}
        if not means["paper"]:
            continue
        ends = {m: f"{v[min(v)]:.4f} → {v[max(v)]:.4f}" if v else "–" for m, v in means.items()}
        steps = list(means["paper"].values())
        findings.append(
            Finding(
                f"L1 falls as ε goes from {min(means['paper']):g} to 6 ({panel.people.label}, head size {smallest})",
                "steady decline",
                ends["paper"],
                ends["best"],
                holds(all(b < a for a, b in pairwise(steps))),
            )
        )
        largest_l1 = {
            m: max(max(curves.means(i, m, "query_l1", size=s).values(), default=0.0) for s in panel.people.sizes)
            for m in ("paper", "best")
        }
        if panel.people.name == "yandex":
            findings.append(
                Finding(
                    "largest L1 of any line, ε ≥ 1 (Yandex profile)",
                    "under 0.1",
                    f"{largest_l1['paper']:.4f}",
                    f"{largest_l1['best']:.4f}",
                    holds(largest_l1["paper"] < 0.1),
                )
            )
    starts = {("aol", 50): (START_BL17, "in [BLJ] the sentence is gone; ours is fitted to its 5 % at ε = 4")}
    findings += start_findings(curves, "query_l1", epsilon, starts)
    lines = " ".join(line_sentences(curves, "query_l1", epsilon))
    text = f"{lines} {_slopes(curves)}"
    return text, findings


def _slopes(curves: Curves) -> str:
    """Whether every line of method paper falls, and how steep both methods are at the smallest size."""
    means = {
        (i, size): curves.means(i, "paper", "query_l1", size=size)
        for i, panel in enumerate(curves.panels)
        for size in panel.people.sizes
    }
    lines = [list(line.values()) for line in means.values() if len(line) > 1]
    falling = sum(all(b < a for a, b in pairwise(line)) for line in lines)
    parts = []
    for i, panel in enumerate(curves.panels):
        ends = []
        for method in ("paper", "best"):
            line = curves.means(i, method, "query_l1", size=panel.people.sizes[0])
            ends.append(f"{line[min(line)] / line[max(line)]:.0f} times with {method}" if line else f"– with {method}")
        parts.append(f"{', '.join(ends)} ({panel.people.label})")
    return prose("fig14_slopes", falling=falling, lines=lines, parts=parts)


EXPERIMENT = PanelExperiment(
    name="fig14",
    title="L1 over ε",
    source="[BLJ] Fig. 14",
    about="ε from 1 to 6 with the paper's opt-in share (AOL 5 %, Yandex 3 %); L1 distance of the queries' shares.",
    full_runs=20,
    quick_runs=4,
    panels=panels_by_size("query_l1", "epsilon", EPSILONS, "aol", "yandex"),
    conclusion=conclude,
)
