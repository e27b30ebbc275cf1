"""What Fig. 13 to 16 of [BLJ] have in common: a score over opt-in share or ε, a line for every head size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from searchblend_lab.papers.experiment import Agreement, Finding, Request, holds
from searchblend_lab.papers.panels import Y_LABELS, Curves, Panel, by_size


def panels_by_size(quantity: str, x: str, values: Sequence[float], *names: str) -> Callable[[Request], list[Panel]]:
    """A panel for each group of people."""

    def panels(request: Request) -> list[Panel]:
        return [
            Panel(
                f"({'abcd'[i]}) {people.label}",
                people,
                x,
                request.thinned(values),
                by_size(request, people, quantity),
                Y_LABELS[quantity],
                yscale="log" if quantity == "query_l1" else "linear",
            )
            for i, people in enumerate(request.people_of(*names))
        ]

    return panels


def first_reached(curves: Curves, panel: int, method: str, quantity: str, size: int) -> float | None:
    """The least x at which the head size was reached."""
    return min(curves.means(panel, method, quantity, size=size), default=None)


def ratio(curves: Curves, panel: int, quantity: str, size: int) -> float | None:
    """Mean over x of paper/best, where both reached the size; of 1 − NDCG for the NDCG."""
    paper, best = (curves.means(panel, method, quantity, size=size) for method in ("paper", "best"))
    shared = [x for x in paper if x in best]
    if not shared:
        return None

    def loss(value: float) -> float:
        return max(1 - value, 1e-6) if quantity == "ndcg" else value

    return sum(loss(paper[x]) for x in shared) / sum(loss(best[x]) for x in shared)


def line_sentences(curves: Curves, quantity: str, unit: Callable[[float], str]) -> list[str]:
    """For every group of people and head size: where the line starts, and its two ends."""
    sentences = []
    for i, panel in enumerate(curves.panels):
        parts = []
        for size in panel.people.sizes:
            means = curves.means(i, "paper", quantity, size=size)
            if not means:
                parts.append(f"{size} is never reached")
                continue
            start, end = min(means), max(means)
            gain = ratio(curves, i, quantity, size)
            more = f", best {gain:.1f} times less error" if gain else ""
            parts.append(
                f"{size} from {unit(start)} on ({means[start]:.4f} there, {means[end]:.4f} at {unit(end)}{more})"
            )
        sentences.append(f"{panel.people.label}, head sizes: {'; '.join(parts)}.")
    return sentences


def start_findings(
    curves: Curves,
    quantity: str,
    unit: Callable[[float], str],
    published: dict[tuple[str, int], tuple[float, str]],
    fitted: Collection[tuple[str, int]] = (),
) -> list[Finding]:
    """Where a line starts, against where the paper says it does. ``published``: start, and why ours may differ."""
    findings = []
    for i, panel in enumerate(curves.panels):
        for (people, size), (start, why) in published.items():
            if panel.people.name != people:
                continue
            ours = {m: first_reached(curves, i, m, quantity, size) for m in ("paper", "best")}
            reached = ours["paper"]
            agrees = reached is not None and abs(reached - start) <= (0.0051 if start < 1 else 0.51)
            findings.append(
                Finding(
                    f"head size {size} first reached ({panel.people.label})",
                    unit(start),
                    unit(reached) if reached is not None else "not reached",
                    unit(ours["best"]) if ours["best"] is not None else "not reached",
                    Agreement.FITTED if agrees and (people, size) in fitted else holds(agrees),
                    why,
                )
            )
    return findings


def percent(x: float) -> str:
    return f"{100 * x:g} %"


def epsilon(x: float) -> str:
    return f"ε = {x:g}"
