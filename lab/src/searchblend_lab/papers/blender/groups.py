"""Opt-in users who search unlike the clients."""

from __future__ import annotations

from searchblend_lab.papers.experiment import Agreement, Finding, Request
from searchblend_lab.papers.panels import Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.prose import prose

TILTS = (0.0, 0.1, 0.3, 0.6)
_EPSILONS = (2.0, 4.0, 6.0)
_COLORS = ("#7a4ea3", "#b8860b", "#1b6ca8")


def panels(request: Request) -> list[Panel]:
    (people,) = request.people_of("aol")
    size, drawn = people.sizes[-1], []
    for i, epsilon in enumerate(_EPSILONS):
        settings = {"size": size, "epsilon": epsilon}
        curves = [Curve("blended", m, "query_l1", "#111111", settings, needs_list=False) for m in request.methods]
        curves.append(Curve("clients only", "best", "client_query_l1", "#1b6ca8", settings, needs_list=False))
        drawn.append(
            Panel(
                f"({'abc'[i]}) {people.label}, ε = {epsilon:g}",
                people,
                "tilt",
                TILTS,
                tuple(curves),
                "L1 distance of the queries' shares",
                ylim=(0, None),
            )
        )

    def by_epsilon(quantity: str, label: str) -> tuple[Curve, ...]:
        return tuple(
            Curve(
                f"{label}, ε = {epsilon:g}",
                "best",
                quantity,
                color,
                {"size": size, "epsilon": epsilon},
                banded=False,
                needs_list=False,
            )
            for epsilon, color in zip(_EPSILONS, _COLORS, strict=True)
        )

    return [
        *drawn,
        Panel(
            "(d) 95 % intervals of queries",
            people,
            "tilt",
            TILTS,
            by_epsilon("query_coverage", "hold"),
            "share that holds the truth",
            ylim=(0.85, 1.0),
        ),
        Panel(
            "(e) the group check",
            people,
            "tilt",
            TILTS,
            by_epsilon("groups_differ", "p < 0.05"),
            "share of runs",
            ylim=(0, 1.02),
        ),
        Panel(
            "(f) the alarm of fabricated reports, of which there are none",
            people,
            "tilt",
            TILTS,
            by_epsilon("alarm", "alarm"),
            "share of runs",
            ylim=(0, 0.1),
        ),
    ]


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    sentences, findings = [], []
    covered: list[float] = []
    alarms: list[float] = []
    for i, epsilon in enumerate(_EPSILONS):
        means = {m: curves.means(i, m, "query_l1") for m in ("paper", "best")}
        differ = curves.means(4, "best", "groups_differ", epsilon=epsilon)
        covered += curves.means(3, "best", "query_coverage", epsilon=epsilon).values()
        alarms += curves.means(5, "best", "alarm", epsilon=epsilon).values()
        far = max(means["best"])
        sentences.append(
            f"At ε = {epsilon:g}, from no difference to a tilt of {far:g}, the L1 goes "
            + ", ".join(f"from {v[0.0]:.4f} to {v[far]:.4f} with {m}" for m, v in means.items())
            + f"; the p-value is below .05 in {100 * differ[0.0]:.0f} % of the runs without and in "
            f"{100 * differ[far]:.0f} % with that difference."
        )
        findings.append(
            Finding(
                f"L1 when groups differ (tilt {far:g}), ε = {epsilon:g}",
                "may decrease accuracy (§3.4)",
                f"{means['paper'][0.0]:.4f} → {means['paper'][far]:.4f}",
                f"{means['best'][0.0]:.4f} → {means['best'][far]:.4f}",
                Agreement.NOT_COMPARABLE,
                "the paper has no number for it",
            )
        )
    text = prose("groups", sentences=sentences, covered=covered, alarms=alarms)
    return text, findings


EXPERIMENT = PanelExperiment(
    name="groups",
    title="Opt-in users who search unlike the clients",
    source="ours",
    about="How much the groups' shares differ goes up; L1 of both methods, how often intervals hold, the check of the "
    "groups and the alarm.",
    full_runs=40,
    quick_runs=4,
    panels=panels,
    conclusion=conclude,
    columns=3,
)
