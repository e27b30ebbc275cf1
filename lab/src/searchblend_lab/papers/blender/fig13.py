"""[BLJ] Fig. 13: L1 over the share of users that opt in."""

from __future__ import annotations

from searchblend_lab.papers.blender.by_size import line_sentences, panels_by_size, percent, start_findings
from searchblend_lab.papers.blender.published import OPTIN_SHARES
from searchblend_lab.papers.experiment import Finding, Request
from searchblend_lab.papers.panels import Curves, PanelExperiment
from searchblend_lab.papers.prose import prose

YANDEX_FIT = (
    "of the Yandex log only sizes are published; the shares of our profile are a fit with fewer queries in reach"
)
PUBLISHED_STARTS = {
    ("aol", 50): (0.05, "the exponent of the profile's tail was chosen for it"),
    ("yandex", 500): (0.03, YANDEX_FIT),
}


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    lines = " ".join(line_sentences(curves, "query_l1", percent))
    growth = _growth(curves)
    text = prose("fig13", growth=growth, lines=lines)
    return text, start_findings(curves, "query_l1", percent, PUBLISHED_STARTS, fitted=[("aol", 50)])


def _growth(curves: Curves) -> str:
    """How the L1 of the largest size changes over the opt-in share, for both methods."""
    parts = []
    for i, panel in enumerate(curves.panels):
        for method in ("paper", "best"):
            means = curves.means(i, method, "query_l1", size=panel.people.sizes[-1])
            if means:
                change = means[max(means)] / means[min(means)] - 1
                parts.append(f"changes by {100 * change:+.0f} % with {method} ({panel.people.label})")
    return ", ".join(parts) or "is not reached"


EXPERIMENT = PanelExperiment(
    name="fig13",
    title="L1 over the share of users that opt in",
    source="[BLJ] Fig. 13",
    about="1 % to 10 % of the users opt in, ε = 4; L1 distance of the queries' shares for every head size.",
    full_runs=20,
    quick_runs=4,
    panels=panels_by_size("query_l1", "optin", OPTIN_SHARES, "aol", "yandex"),
    conclusion=conclude,
)
