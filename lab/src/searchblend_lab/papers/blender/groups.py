"""Opt-in users who search unlike the clients."""

from __future__ import annotations

from searchblend_lab.papers.algorithms import UNCHECKED
from searchblend_lab.papers.experiment import Finding, Request
from searchblend_lab.papers.panels import Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose

TILTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6)
_EPSILONS = (1.0, 4.0)


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("aol")
    size, tilts = people.sizes[-1], request.thinned(TILTS)
    found = []
    for i, epsilon in enumerate(_EPSILONS):
        settings = {"size": size, "epsilon": epsilon}
        curves = [Curve("blended", m, "query_l1", "#111111", settings, needs_list=False) for m in request.methods]
        curves += [
            Curve(UNCHECKED, UNCHECKED, "query_l1", "#c8553d", settings, needs_list=False),
            Curve("clients only", "best", "client_query_l1", "#1b6ca8", settings, needs_list=False),
        ]
        found.append(
            Panel(
                f"({'ab'[i]}) {people.label}, ε = {epsilon:g}",
                people,
                "tilt",
                tilts,
                tuple(curves),
                "L1 distance of the queries' shares",
                ylim=(0, None),
            )
        )
    alarms = tuple(
        Curve(
            f"alarms, ε = {epsilon:g}",
            "best",
            "groups_differ",
            color,
            {"size": size, "epsilon": epsilon},
            banded=False,
            needs_list=False,
        )
        for epsilon, color in zip(_EPSILONS, ("#7a4ea3", "#b8860b"), strict=True)
    )
    label = "share of runs with an alarm"
    return [*found, Panel("(c) the group check", people, "tilt", tilts, alarms, label, ylim=(0, 1.02))]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    sentences, findings, saved = [], [], []
    for i, epsilon in enumerate(_EPSILONS):
        means = {m: curves.means(i, m, "query_l1") for m in ("paper", "best", UNCHECKED)}
        saved.append(1 - means["best"][max(means["best"])] / means[UNCHECKED][max(means["best"])])
        alarms = curves.means(2, "best", "groups_differ", epsilon=epsilon)
        far = max(means["best"])
        sentences.append(
            f"At ε = {epsilon:g}, from no difference to a tilt of {far:g}, the L1 goes "
            + ", ".join(f"from {v[0.0]:.4f} to {v[far]:.4f} with {m}" for m, v in means.items())
            + f"; the check raises {100 * alarms[0.0]:.0f} % false alarms and notices a tilt of {far:g} in "
            f"{100 * alarms[far]:.0f} % of the runs."
        )
        findings.append(
            Finding(
                f"L1 when groups differ (tilt {far:g}), ε = {epsilon:g}",
                "may decrease accuracy (§3.5)",
                f"{means['paper'][0.0]:.4f} → {means['paper'][far]:.4f}",
                f"{means['best'][0.0]:.4f} → {means['best'][far]:.4f} (unheeded {means[UNCHECKED][far]:.4f})",
                None,
            )
        )
    text = prose("groups", epsilons=_EPSILONS, saved=saved, sentences=sentences)
    return text, findings


EXPERIMENT = PanelExperiment(
    name="groups",
    title="Opt-in users who search unlike the clients",
    source="ours",
    about="How much the groups' shares differ goes up; L1 of both methods, of best without its check, and the check's "
    "alarms.",
    full_runs=20,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
    columns=3,
)
