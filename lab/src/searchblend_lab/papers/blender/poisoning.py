"""Clients that lie: how far fake reports move an estimate."""

from __future__ import annotations

from searchblend_lab.papers.algorithms import UNCHECKED
from searchblend_lab.papers.experiment import Finding, Request
from searchblend_lab.papers.panels import Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose

SHARES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)
_EPSILONS = (1.0, 4.0)


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("aol")
    size, found = people.sizes[-1], []
    for i, epsilon in enumerate(_EPSILONS):
        settings = {"size": size, "epsilon": epsilon}
        curves = [
            Curve("shift of the blend", m, "shift", "#111111", settings, needs_list=False) for m in request.methods
        ]
        curves.append(Curve(UNCHECKED, UNCHECKED, "shift", "#c8553d", settings, needs_list=False))
        found.append(
            Panel(
                f"({'ab'[i]}) {people.label}, ε = {epsilon:g}",
                people,
                "fake",
                SHARES,
                tuple(curves),
                "shift of the promoted query's share",
                yscale="log",
                xscale="log",
                ylim=(2e-5, 0.2),
            )
        )
    flagged = tuple(
        Curve(
            f"named, ε = {epsilon:g}",
            "best",
            "target_flagged",
            color,
            {"size": size, "epsilon": epsilon},
            banded=False,
            needs_list=False,
        )
        for epsilon, color in zip(_EPSILONS, ("#7a4ea3", "#b8860b"), strict=True)
    )
    label = "share of runs that name the query"
    return [*found, Panel("(c) the group check", people, "fake", SHARES, flagged, label, xscale="log", ylim=(0, 1.02))]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    sentences, findings, worse = [], [], []
    for i, epsilon in enumerate(_EPSILONS):
        means = {m: curves.means(i, m, "shift") for m in ("paper", "best", UNCHECKED)}
        named = curves.means(2, "best", "target_flagged", epsilon=epsilon)
        one = 0.01
        worse.append(means["best"][one] / means[UNCHECKED][one])
        seen = min((x for x, value in named.items() if value >= 0.5), default=None)
        when = f"from {100 * seen:g} % of fakes on" if seen else "never here"
        sentences.append(
            f"At ε = {epsilon:g}, 1 % of fake clients lifts the query by "
            + ", ".join(f"{v[one]:.4f} ({m})" for m, v in means.items())
            + f"; in most runs the check names it {when}."
        )
        findings.append(
            Finding(
                f"1 % fake clients lift a query's share by, ε = {epsilon:g}",
                "–",
                f"{means['paper'][one]:.4f}",
                f"{means['best'][one]:.4f} (unheeded {means[UNCHECKED][one]:.4f})",
                None,
            )
        )
    if all(factor > 1 for factor in worse):
        verdict = prose("poisoning_verdict", worse=worse)
    else:
        verdict = f"Heeding the check changes the shift by factors of {worse[0]:.1f} and {worse[1]:.1f} at 1 %."
    text = prose("poisoning", sentences=sentences, verdict=verdict)
    return text, findings


EXPERIMENT = PanelExperiment(
    name="poisoning",
    title="Fake clients that promote a query",
    source="ours",
    about="A share of the clients reports one query, whatever it holds; shift of its estimate, with and without "
    "heeding the group check.",
    full_runs=20,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
    columns=3,
)
