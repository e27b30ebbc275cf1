"""[BLJ] Fig. 18: tiny opt-in groups."""

from __future__ import annotations

from searchblend_lab.papers.blender.by_size import first_reached, percent
from searchblend_lab.papers.blender.published import TINY_SHARES
from searchblend_lab.papers.experiment import Finding, Request, holds
from searchblend_lab.papers.panels import Y_LABELS, Curves, Panel, PanelExperiment, by_size
from searchblend_lab.papers.prose import prose

SIZES = (10, 25, 50, 100)


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("yandex")
    return [
        Panel(
            f"({'ab'[i]}) {people.label}",
            people,
            "optin",
            request.thinned(TINY_SHARES),
            by_size(request, people, quantity, SIZES),
            Y_LABELS[quantity],
            yscale="log" if quantity == "query_l1" else "linear",
        )
        for i, quantity in enumerate(("query_l1", "ndcg"))
    ]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    parts, lowest = [], {"paper": 1.0, "best": 1.0}
    for size in SIZES:
        starts = {m: first_reached(curves, 1, m, "ndcg", size) for m in ("paper", "best")}
        where = {m: percent(x) if x is not None else "never here" for m, x in starts.items()}
        parts.append(f"{size}: {where['paper']} (best: {where['best']})")
        for method in lowest:
            means = curves.means(1, method, "ndcg", size=size)
            lowest[method] = min([lowest[method], *means.values()])
    text = prose("fig18", lowest=lowest, parts=parts)
    agrees = lowest["paper"] >= 0.95
    return text, [
        Finding(
            "lowest NDCG of a reached list, 0.1 to 1 % opt-in (Yandex profile)",
            "high once the list is reached",
            f"{lowest['paper']:.3f}",
            f"{lowest['best']:.3f}",
            holds(agrees),
        )
    ]


EXPERIMENT = PanelExperiment(
    name="fig18",
    title="Tiny opt-in groups",
    source="[BLJ] Fig. 18",
    about="Only 0.1 % to 1 % of the users opt in, ε = 4; L1 and NDCG for small head sizes.",
    full_runs=20,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
)
