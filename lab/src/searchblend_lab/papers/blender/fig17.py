"""[BLJ] Fig. 17: what each group contributes."""

from __future__ import annotations

from searchblend_lab.papers.blender.by_group import compared, group_panels, moves, not_better_than_both
from searchblend_lab.papers.blender.published import EPSILONS, OPTIN_SHARES
from searchblend_lab.papers.experiment import Finding, Request, holds
from searchblend_lab.papers.panels import Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("yandex")
    size = 100 if 100 in people.sizes else people.sizes[-1]
    return [
        *group_panels(request, people, size, "optin", OPTIN_SHARES, 0),
        *group_panels(request, people, size, "epsilon", EPSILONS, 2),
    ]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    counts = [compared(curves, i, "query_l1" if i % 2 == 0 else "ndcg") for i in range(4)]
    n, worse = sum(count[0] for count in counts), sum(count[1] for count in counts)
    l1_points, l1_both = counts[0][0] + counts[2][0], counts[0][2] + counts[2][2]
    optin, client = (curves.means(0, "paper", key) for key in ("optin_query_l1", "client_query_l1"))
    wins = [x for x, value in curves.means(2, "paper", "optin_query_l1").items() if value < _client_l1(curves)[x]]
    alone = _client_l1(curves)
    text = prose(
        "fig17",
        moves=[moves(curves, i, "query_l1" if i % 2 == 0 else "ndcg") for i in range(4)],
        worse=worse,
        n=n,
        l1_both=l1_both,
        l1_points=l1_points,
        optin=_change(optin),
        client=_change(client),
        wins=", ".join(f"{x:g}" for x in wins),
        neither=0 < len(wins) < len(alone),
    )
    findings = [
        Finding("blend better than the worse group", "in all cases", f"{worse} of {n} points", "–", holds(worse == n)),
        Finding(
            "L1 of the blend better than both groups",
            "in all cases",
            f"{l1_both} of {l1_points} points{_where(curves)}",
            "–",
            holds(l1_both == l1_points),
            "plug-in variances give rare queries of a small group too much weight",
        ),
    ]
    return text, findings


def _where(curves: Curves) -> str:
    """The points at which the blend's L1 is not the least."""
    shares = [f"{100 * x:g} % opt-in" for x in not_better_than_both(curves, 0, "query_l1")]
    shares += [f"ε = {x:g}" for x in not_better_than_both(curves, 2, "query_l1")]
    return f", not at {', '.join(shares)}" if shares else ""


def _client_l1(curves: Curves) -> dict[float, float]:
    return curves.means(2, "paper", "client_query_l1")


def _change(means: dict[float, float]) -> str:
    return f"{means[max(means)] / means[min(means)] - 1:+.0%}"


EXPERIMENT = PanelExperiment(
    name="fig17",
    title="What each group contributes",
    source="[BLJ] Fig. 17",
    about="Opt-in users alone, clients alone and the blend at head size 100: over the opt-in share (ε = 4) and over ε "
    "(3 %).",
    full_runs=20,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
)
