"""Is blending worth it? Against opt-in users alone and clients alone."""

from __future__ import annotations

from searchblend_lab.papers.blender.published import EPSILONS, OPTIN_SHARES
from searchblend_lab.papers.experiment import Agreement, Finding, Request
from searchblend_lab.papers.panels import GROUP_COLORS, Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose

_GROUPS = (
    ("blended", "query_l1", "blended"),
    ("opt-in users only", "optin_query_l1", "opt-in"),
    ("clients only (list from opt-in users)", "client_query_l1", "clients"),
)


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("aol")
    size = people.sizes[-1]
    curves = tuple(
        Curve(label, method, quantity, GROUP_COLORS[group], {"size": size}, needs_list=False)
        for label, quantity, group in _GROUPS
        for method in request.methods
    )
    y = "L1 distance of the queries' shares"
    title = f"{people.label}, at most {size} queries"
    return [
        Panel(f"(a) {title}, ε = 4", people, "optin", request.thinned(OPTIN_SHARES), curves, y, yscale="log"),
        Panel(f"(b) {title}, {100 * people.optin:g} % opt-in", people, "epsilon", EPSILONS, curves, y, yscale="log"),
    ]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    parts, findings = [], []
    for method in ("paper", "best"):
        wins = total = 0
        gains = []
        for i in range(len(curves.panels)):
            blended, optin, client = (curves.means(i, method, key) for _, key, _ in _GROUPS)
            for x, value in blended.items():
                other = min(optin[x], client[x])
                wins, total = wins + (value < other), total + 1
                gains.append(other / value)
        parts.append(
            f"the blend of method {method} beats the better of its two groups at {wins} of {total} points, by a factor "
            f"of {min(gains):.2f} to {max(gains):.2f}"
        )
        shown = f"{wins} of {total} points, factor {min(gains):.2f} to {max(gains):.2f}"
        findings.append(shown)
    alone = {m: curves.means(0, m, "optin_query_l1") for m in ("paper", "best")}
    shared = [x for x in alone["paper"] if x in alone["best"]]
    ratio = sum(alone["paper"][x] for x in shared) / sum(alone["best"][x] for x in shared)
    text = prose("baselines", parts=parts, ratio=ratio)
    return text, [
        Finding("blend better than the better group (AOL profile, L1)", "–", findings[0], findings[1], Agreement.OURS)
    ]


EXPERIMENT = PanelExperiment(
    name="baselines",
    title="The blend against opt-in users only and clients only",
    source="ours",
    about="Each group alone on the same head list, both methods, over the opt-in share and over ε.",
    full_runs=20,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
)
