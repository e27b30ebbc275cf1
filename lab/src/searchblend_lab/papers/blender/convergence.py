"""More and more people, up to 100 million clients."""

from __future__ import annotations

import math

from searchblend_lab.papers.cells import Results
from searchblend_lab.papers.experiment import Agreement, Finding, Request, hybrid
from searchblend_lab.papers.panels import SIZE_COLORS, Curve, Curves, Panel, PanelExperiment
from searchblend_lab.papers.people import People
from searchblend_lab.papers.prose import prose

CLIENTS = 100_000_000


def users_of(people: People) -> tuple[int, ...]:
    """From ten thousand to 100 million clients, and the paper's own number."""
    most = round(CLIENTS / (1 - people.optin))
    grid = [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, people.n_users, most]
    return tuple(sorted(grid))


def panels(request: Request) -> list[Panel]:
    drawn = []
    for i, people in enumerate(request.people_of("aol", "yandex")):
        size = people.sizes[-1]
        settings = {"size": size}
        curves = [
            Curve(label, method, quantity, color, settings, needs_list=False)
            for label, quantity, color in (
                ("true top M, missing = 0", "top_l1", SIZE_COLORS[10]),
                ("own list", "query_l1", SIZE_COLORS[25]),
            )
            for method in request.methods
        ]
        drawn.append(
            Panel(
                f"({'ab'[i]}) {people.label}, M = {size}, {100 * people.optin:g} % opt-in, ε = 4",
                people,
                "users",
                tuple(float(n) for n in users_of(people)),
                tuple(curves),
                "L1 distance of the queries' shares",
                yscale="log",
                xscale="log",
            )
        )
    return drawn


def slope(means: dict[float, float]) -> float:
    """d log L1 / d log n over the last two decades."""
    far = max(means)
    near = min(means, key=lambda n: abs(math.log(n) - math.log(far / 100)))
    return (math.log(means[far]) - math.log(means[near])) / (math.log(far) - math.log(near))


def conclude(request: Request, curves: Curves) -> tuple[str, list[Finding]]:
    sentences, findings = [], []
    for i, panel in enumerate(curves.panels):
        means = {m: curves.means(i, m, "top_l1") for m in ("paper", "best")}
        far = max(means["paper"])
        shown = {m: f"{v[far]:.5f} (slope {slope(v):.2f})" for m, v in means.items()}
        sentences.append(
            f"{panel.people.label}: with {far:,.0f} users the L1 over the true top {panel.people.sizes[-1]} is "
            f"{shown['paper']} with method paper and {shown['best']} with best, "
            f"{means['paper'][far] / means['best'][far]:.1f} times less."
        )
        what = f"L1 over the true top {panel.people.sizes[-1]}, {CLIENTS:,} clients ({panel.people.label})"
        findings.append(Finding(what, "–", shown["paper"], shown["best"], Agreement.OURS))
    text = prose("convergence", sentences=sentences)
    return text, findings


def printed(request: Request, results: Results) -> list[str]:
    """How long the largest runs took; not the same every time, so in no file."""
    lines = []
    for people in request.people_of("aol", "yandex"):
        for users in (people.n_users, users_of(people)[-1]):
            cells = {m: hybrid(people, m, 0, users=users, size=people.sizes[-1]) for m in ("paper", "best")}
            times = ", ".join(f"{m} {results[cell]['seconds']:.2f} s" for m, cell in cells.items())
            clients = round(users * (1 - people.optin))
            lines.append(f"{people.label}, {users:,} users ({clients:,} clients), whole hybrid run: {times}")
    return lines


EXPERIMENT = PanelExperiment(
    name="convergence",
    title="From ten thousand users to 100 million clients",
    source="ours",
    about="The number of users grows, everything else is the paper's default; L1 over the list and over the true "
    "top M.",
    full_runs=8,
    quick_runs=2,
    panels=panels,
    conclusion=conclude,
    printed=printed,
)
