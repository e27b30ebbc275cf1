"""[BLJ] Fig. 10: how a client's budget is split between query and URL."""

from __future__ import annotations

from itertools import pairwise

from searchblend_lab.papers.blender.published import BUDGET_SPLITS, NDCG_AXIS, NDCG_CLOSE, SPLIT_POINT
from searchblend_lab.papers.experiment import Agreement, Finding, Request, holds, near, number
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
    point = SPLIT_POINT[1]
    agreements = {near(point, line[at], best[at], NDCG_CLOSE) for line in (ndcg, client)}
    return text, [
        Finding(
            f"clients' NDCG peaks at this split (head size {curves.panels[0].people.sizes[-1]})",
            "0.85",
            f"{peak:g} ({client[peak]:.3f})",
            "no split",
            holds(abs(peak - 0.85) <= 0.051),
            f"to rank the synthetic URLs takes more of the budget; the blend peaks at {blended_peak:g}",
        ),
        Finding(
            "NDCG at f_C = 0.85 (the labelled point)",
            number(point),
            f"blended {ndcg[at]:.4f}, clients {client[at]:.4f}",
            number(best[at]),
            agreements.pop() if len(agreements) == 1 else Agreement.DIFFERS,
            "the figure does not say whose point it is; the text names the clients, and ours are lower",
        ),
        Finding(
            "clients' NDCG between the splits of the figure's axis",
            f"within {NDCG_AXIS[0]:g} and {NDCG_AXIS[1]:g}",
            f"{min(client.values()):.4f} to {max(client.values()):.4f}",
            "no split",
            holds(NDCG_AXIS[0] <= min(client.values()) and max(client.values()) <= NDCG_AXIS[1]),
            f"it leaves the axis at {min(client, key=lambda x: client[x]):g}: little is left to rank the URLs with",
        ),
        Finding(
            "clients' L1 falls as the query gets more",
            "yes",
            f"{client_l1[min(client_l1)]:.4f} → {client_l1[max(client_l1)]:.4f}",
            "no split",
            holds(falls),
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
