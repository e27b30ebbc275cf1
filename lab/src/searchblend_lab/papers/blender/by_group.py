"""What Fig. 17 and 19 of [BLJ] have in common: each group alone, and the blend."""

from __future__ import annotations

from collections.abc import Sequence

from searchblend_lab.papers.experiment import Request
from searchblend_lab.papers.panels import Y_LABELS, Curves, Panel, by_group
from searchblend_lab.papers.people import People


def group_panels(
    request: Request, people: People, size: int, x: str, values: Sequence[float], start: int
) -> list[Panel]:
    """L1 and NDCG over one setting."""
    return [
        Panel(
            f"({'abcdef'[start + i]}) {people.label}, head size {size}",
            people,
            x,
            request.thinned(values),
            by_group(request, quantity, size),
            Y_LABELS[quantity],
            yscale="log" if quantity == "query_l1" else "linear",
        )
        for i, quantity in enumerate(("query_l1", "ndcg"))
    ]


def compared(curves: Curves, panel: int, quantity: str) -> tuple[int, int, int]:
    """Points; points where the blend is better than the worse group; than both. Method paper."""
    blended = curves.means(panel, "paper", quantity)
    optin = curves.means(panel, "paper", f"optin_{quantity}")
    client = curves.means(panel, "paper", f"client_{quantity}")
    sign = 1 if quantity == "ndcg" else -1
    shared = [x for x in blended if x in optin and x in client]
    worse = sum(sign * blended[x] > min(sign * optin[x], sign * client[x]) for x in shared)
    both = sum(sign * blended[x] > max(sign * optin[x], sign * client[x]) for x in shared)
    return len(shared), worse, both


def not_better_than_both(curves: Curves, panel: int, quantity: str) -> list[float]:
    """Where the blend is worse than one of the groups. Method paper."""
    blended, optin, client = (
        curves.means(panel, "paper", key) for key in (quantity, f"optin_{quantity}", f"client_{quantity}")
    )
    sign = 1 if quantity == "ndcg" else -1
    shared = [x for x in blended if x in optin and x in client]
    return [x for x in shared if sign * blended[x] <= max(sign * optin[x], sign * client[x])]


def moves(curves: Curves, panel: int, quantity: str) -> str:
    """The two ends of the three curves."""
    parts = []
    for label, key in (("blend", quantity), ("opt-in", f"optin_{quantity}"), ("clients", f"client_{quantity}")):
        means = curves.means(panel, "paper", key)
        if means:
            parts.append(f"{label} {means[min(means)]:.4f} → {means[max(means)]:.4f}")
    return ", ".join(parts)
