"""[BLJ] Fig. 19: who carries the result when the opt-in group is tiny."""

from __future__ import annotations

from searchblend_lab.papers.blender.by_group import compared, group_panels, moves
from searchblend_lab.papers.blender.published import TINY_SHARES
from searchblend_lab.papers.experiment import Finding, Request, holds
from searchblend_lab.papers.panels import Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("yandex")
    weight = Panel(
        f"(c) {people.label}, head size 10",
        people,
        "optin",
        request.thinned(TINY_SHARES),
        tuple(Curve("blended", method, "optin_weight", "#111111", {"size": 10}) for method in request.methods),
        "weight of the opt-in estimate",
        ylim=(0, 1),
    )
    return [*group_panels(request, people, 10, "optin", TINY_SHARES, 0), weight]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    weight, best = (curves.means(2, method, "optin_weight") for method in ("paper", "best"))
    n, worse, both = compared(curves, 0, "query_l1")
    if not weight or not best:
        return "The head size was not reached, so there is nothing to compare.", []
    optin, client = curves.means(0, "paper", "optin_query_l1"), curves.means(0, "paper", "client_query_l1")
    lower = all(optin[x] > client[x] for x in optin if x in client)
    times = [optin[x] / client[x] for x in optin if x in client]
    text = prose(
        "fig19",
        l1=moves(curves, 0, "query_l1"),
        ndcg=moves(curves, 1, "ndcg"),
        times=times,
        weight=weight,
        best=best,
        worse=worse,
        both=both,
        n=n,
    )
    return text, [
        Finding(
            "weight of the opt-in estimate, 0.1 to 1 % opt-in",
            "much more towards the clients",
            f"{min(weight.values()):.3f} to {max(weight.values()):.3f}",
            f"{min(best.values()):.3f} to {max(best.values()):.3f}",
            holds(max(weight.values()) < 0.5),
        ),
        Finding(
            "opt-in users alone have a larger L1 than clients alone",
            "much lower utility",
            "at every point" if lower else "not everywhere",
            "–",
            holds(lower),
        ),
    ]


EXPERIMENT = PanelExperiment(
    name="fig19",
    title="Who carries the result when the opt-in group is tiny",
    source="[BLJ] Fig. 19",
    about="0.1 % to 1 % of the users opt in, head size 10, ε = 4: each group alone, the blend, and its weights.",
    full_runs=20,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
    columns=3,
)
