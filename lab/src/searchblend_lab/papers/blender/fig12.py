"""[BLJ] Fig. 12: NDCG over ε at head size 10, beside the published curves."""

from __future__ import annotations

from searchblend_lab.papers.blender.published import BLENDER_NDCG, CCS16_NDCG, NDCG_CLOSE
from searchblend_lab.papers.experiment import Finding, Request, near
from searchblend_lab.papers.panels import Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose

_COLORS = {"ndcg": "#111111", "ndcg_top": "#7a4ea3", "ndcg_rank": "#1b6ca8"}
_LABELS = {"ndcg": "NDCG", "ndcg_top": "against the true top 10", "ndcg_rank": "relevance by rank"}


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("aol")
    epsilons = tuple(BLENDER_NDCG)
    blender = ("published, BLENDER [BLJ]", tuple(BLENDER_NDCG.items()))
    ccs = ("published, CCS'16 (Qin et al.)", tuple(CCS16_NDCG.items()))
    settings = {"size": 10}
    nested = tuple(Curve(_LABELS["ndcg"], method, "ndcg", _COLORS["ndcg"], settings) for method in request.methods)
    strict = tuple(
        Curve(_LABELS[key], method, key, _COLORS[key], settings)
        for key in ("ndcg", "ndcg_top", "ndcg_rank")
        for method in request.methods
    )
    return [
        Panel(
            f"(a) as printed, {people.label}, head size 10",
            people,
            "epsilon",
            epsilons,
            nested,
            "NDCG",
            published=(blender, ccs),
            ylim=(0, 1.02),
        ),
        Panel(
            "(b) the upper end, and stricter scores", people, "epsilon", epsilons, strict, "NDCG", published=(blender,)
        ),
    ]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    paper, best = (curves.means(0, method, "ndcg") for method in ("paper", "best"))
    rank, top = curves.means(1, "paper", "ndcg_rank"), curves.means(1, "paper", "ndcg_top")
    gaps = {e: paper[e] - value for e, value in BLENDER_NDCG.items() if e in paper}
    findings = [
        Finding(
            f"NDCG at ε = {e:g}, head size 10",
            f"{value:.3f}",
            f"{paper[e]:.3f}",
            f"{best[e]:.3f}" if e in best else "–",
            near(value, paper[e], best.get(e), NDCG_CLOSE),
        )
        for e, value in BLENDER_NDCG.items()
        if e in paper
    ]
    if not gaps:
        return "The head size was not reached, so there is nothing to compare.", findings
    worst = max(gaps, key=lambda e: abs(gaps[e]))
    inside = sum(abs(gap) <= NDCG_CLOSE for gap in gaps.values())
    text = prose(
        "fig12",
        ccs16=CCS16_NDCG,
        close=NDCG_CLOSE,
        best=best,
        gaps=gaps,
        inside=inside,
        paper=paper,
        rank=rank,
        top=top,
        worst=worst,
    )
    return text, findings


EXPERIMENT = PanelExperiment(
    name="fig12",
    title="NDCG over ε at head size 10",
    source="[BLJ] Fig. 12",
    about="ε from 1 to 5 with a head list of ten queries: NDCG as the paper defines it, and two stricter scores.",
    full_runs=60,
    quick_runs=8,
    panels=panels,
    conclusion=conclude,
)
