"""Clients that lie: how far fake reports move an estimate."""

from __future__ import annotations

from searchblend_lab.papers.experiment import Agreement, Finding, Request
from searchblend_lab.papers.panels import Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose

SHARES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)
_EPSILONS = (1.0, 4.0)


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("aol")
    size, drawn = people.sizes[-1], []
    for i, epsilon in enumerate(_EPSILONS):
        settings = {"size": size, "epsilon": epsilon}
        curves = [
            Curve("shift of the blend", m, "shift", "#111111", settings, needs_list=False) for m in request.methods
        ]
        drawn.append(
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
    return [*drawn, Panel("(c) the alarm", people, "fake", SHARES, flagged, label, xscale="log", ylim=(0, 1.02))]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    sentences, findings, one = [], [], 0.01
    for i, epsilon in enumerate(_EPSILONS):
        means = {m: curves.means(i, m, "shift") for m in ("paper", "best")}
        named = curves.means(2, "best", "target_flagged", epsilon=epsilon)
        seen = min((x for x, value in named.items() if value >= 0.5), default=None)
        when = f"from {100 * seen:g} % of fakes on" if seen else "never here"
        sentences.append(
            f"At ε = {epsilon:g}, 1 % of fake clients lifts the query by "
            + ", ".join(f"{v[one]:.4f} ({m})" for m, v in means.items())
            + f", no share of fakes by more than {max(means['best'].values()):.4f} (best); the alarm names the "
            f"query in most runs {when}."
        )
        findings.append(
            Finding(
                f"1 % fake clients lift a query's share by, ε = {epsilon:g}",
                "–",
                f"{means['paper'][one]:.4f}",
                f"{means['best'][one]:.4f}",
                Agreement.OURS,
            )
        )
    text = prose("poisoning", sentences=sentences)
    return text, findings


EXPERIMENT = PanelExperiment(
    name="poisoning",
    title="Fake clients that promote a query",
    source="ours",
    about="A share of the clients reports one query, whatever it holds; shift of its estimate, and the alarm.",
    full_runs=20,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
    columns=3,
)
