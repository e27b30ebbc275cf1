"""[BLJ] Fig. 10: how a client's budget is split between query and URL."""

from __future__ import annotations

from itertools import pairwise

from searchblend_lab.papers.blender.published import BUDGET_SPLITS, SPLIT_POINT
from searchblend_lab.papers.experiment import Finding, Request, number
from searchblend_lab.papers.panels import Y_LABELS, Curves, Panel, PanelExperiment, by_group
from searchblend_lab.papers.prose import prose


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("aol")
    size, splits = people.sizes[-1], request.thinned(BUDGET_SPLITS)
    published = (("published, BLENDER [BLJ]", (SPLIT_POINT,)),)
    return [
        Panel(
            f"(a) L1, {people.label}, head size {size}",
            people,
            "query_fraction",
            splits,
            by_group(request, "query_l1", size),
            Y_LABELS["query_l1"],
        ),
        Panel(
            f"(b) NDCG, {people.label}, head size {size}",
            people,
            "query_fraction",
            splits,
            by_group(request, "ndcg", size),
            Y_LABELS["ndcg"],
            published=published,
        ),
    ]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    l1, client_l1 = (curves.means(0, "paper", key) for key in ("query_l1", "client_query_l1"))
    ndcg, client = (curves.means(1, "paper", key) for key in ("ndcg", "client_ndcg"))
    optin, best = curves.means(1, "paper", "optin_ndcg"), curves.means(1, "best", "ndcg")
    if not (l1 and client and best):
        return "The head size was not reached, so there is nothing to compare.", []
    peak, blended_peak = max(client, key=lambda x: client[x]), max(ndcg, key=lambda x: ndcg[x])
    falls = all(client_l1[b] < client_l1[a] for a, b in pairwise(client_l1))
    spread = max(optin.values()) - min(optin.values())
    at = min(ndcg, key=lambda x: abs(x - SPLIT_POINT[0]))
    text = prose(
        "fig10",
        at=at,
        best=best,
        blended_peak=blended_peak,
        client=client,
        client_l1=client_l1,
        falls=falls,
        l1=l1,
        ndcg=ndcg,
        peak=peak,
        spread=spread,
    )
    return text, [
        Finding(
            f"clients' NDCG peaks at this split (head size {curves.panels[0].people.sizes[-1]})",
            "0.85",
            f"{peak:g} ({client[peak]:.3f})",
            "no split",
            abs(peak - 0.85) <= 0.051,
            ""
            if abs(peak - 0.85) <= 0.051
            else f"to rank our synthetic URLs takes more of the budget; the blend peaks at {blended_peak:g}",
        ),
        Finding(
            "NDCG at f_C = 0.85 (the labelled point)",
            number(SPLIT_POINT[1]),
            f"blended {ndcg[at]:.4f}, clients {client[at]:.4f}",
            number(best[at]),
            abs(ndcg[at] - SPLIT_POINT[1]) <= 0.03,
        ),
        Finding(
            "clients' L1 falls as the query gets more",
            "yes",
            f"{client_l1[min(client_l1)]:.4f} → {client_l1[max(client_l1)]:.4f}",
            "no split",
            falls,
        ),
    ]


EXPERIMENT = PanelExperiment(
    name="fig10",
    title="Splitting a client's budget between query and URL",
    source="[BLJ] Fig. 10",
    about="The share f_C of a client's ε that protects the query goes from 0.55 to 0.95; L1 and NDCG of the blend, of "
    "the clients and of the opt-in users, each scored alone.",
    full_runs=40,
    quick_runs=6,
    panels=panels,
    conclusion=conclude,
)
