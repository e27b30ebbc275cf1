"""Every sentence of [BLJ] §4.2 and §4.3 that claims something, checked."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from searchblend.pages.plots import new_figure
from searchblend_lab.papers.blender import claim_checks as check
from searchblend_lab.papers.blender import fig09, records_per_client
from searchblend_lab.papers.blender.claim_checks import HEAD_FRACTIONS, PANELS, Evidence, Verdict, head_fraction_cells
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import Agreement, Finding, Outcome, Request, holds
from searchblend_lab.papers.panels import PanelExperiment
from searchblend_lab.papers.prose import prose


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what judges it, and where the same fact has a row already."""

    section: str
    text: str
    judge: Callable[[Evidence], Verdict]
    counted_in: str = ""
    why: str = ""
    """if it does not hold"""
    fitted: str = ""
    """to which parameter of the synthetic users it owes that it holds"""

    def finding(self, verdict: Verdict) -> Finding:
        fitted = verdict.holds and bool(self.fitted)
        return Finding(
            f"§{self.section}: {self.text}",
            "claimed",
            verdict.numbers,
            "–",
            Agreement.FITTED if fitted else holds(verdict.holds),
            self.fitted if fitted else self.why,
            self.counted_in,
        )


YANDEX_WHY = "of the Yandex log only sizes are published, so its shares are a fit"
TAIL = "the exponent of the profile's tail was chosen for it"
CLAIMS: tuple[Claim, ...] = (
    Claim(
        "4.2",
        "The blend has only one regression",
        check.one_regression,
        "fig9",
        "the shares of neighbouring ranks differ by less than the noise",
    ),
    Claim(
        "4.3.1",
        "m_C = 1: one record per client yields the greatest utility",
        lambda e: e.records_per_client,
        "records-per-client",
    ),
    Claim("4.3.1", "The larger f_C, the better the L1 of clients and blend", check.split_l1, "fig10"),
    Claim(
        "4.3.1",
        "f_C = 0.85: the clients' NDCG peaks there",
        check.splits,
        "fig10",
        "to rank our synthetic URLs takes more of the budget",
    ),
    Claim(
        "4.3.1",
        "A split above 0.85 makes the blended NDCG drop significantly",
        check.split_drop,
        why="the clients' does; the blend weighs them down in time",
    ),
    Claim("4.3.1", "The opt-in line does not depend on f_C", check.split_optin),
    Claim("4.3.1", "f_O = 0.95: a long list needs most of the opt-in users", check.head_fraction),
    Claim("4.2.1 of [BL17]", "f_O past 0.95 gives diminishing returns, and costs utility", check.beyond_head_fraction),
    Claim("4.3.1", "Accuracy drops as the head list grows", check.sizes),
    Claim("4.3.2", "NDCG above 95 % for ε from 1 to 5, CCS'16 in the 30 % range at best", check.ccs, "fig12"),
    Claim(
        "4.3.3",
        "AOL: 50 head queries are first reached at 5 % opt-in",
        check.start("fig13", 0, 50, 0.05),
        "fig13",
        TAIL,
        fitted=TAIL,
    ),
    Claim(
        "4.3.3",
        "Yandex: 500 head queries are reached at 3 %",
        check.start("fig13", 1, 500, 0.03),
        "fig13",
        YANDEX_WHY,
    ),
    Claim("4.3.3", "Once the list is reached, L1 is small", check.reached_is_good),
    Claim("4.3.3", "AOL: a slight decline in L1 towards 10 % for the largest list", check.ten_percent),
    Claim("4.3.3", "L1 falls steadily with ε, for both logs", check.l1_falls, "fig14"),
    Claim("4.3.3", "Yandex: L1 under 0.1 for ε ≥ 1", check.under_a_tenth, "fig14"),
    Claim(
        "4.3.3",
        "AOL: about 5 % opt-in are needed for an NDCG above 95 %",
        check.aol_five,
        "fig15",
        "the lists begin elsewhere",
        fitted=TAIL,
    ),
    Claim("4.3.3", "Yandex: above 95 % at 1 % opt-in for all but the largest list", check.yandex_one, "fig15"),
    Claim("4.3.3", "NDCG is higher for Yandex than for AOL", check.yandex_higher, "fig16", YANDEX_WHY),
    Claim(
        "4.3.3",
        "Yandex: 95 % and above at ε = 1 for all but the two largest lists",
        check.yandex_epsilon_one,
        "fig16",
        YANDEX_WHY,
    ),
    Claim("4.3.3", "The blend is better than the worse of the two groups, always", check.better_than_worse, "fig17"),
    Claim(
        "4.3.3",
        "For L1 the blend is better than both groups",
        check.better_than_both,
        "fig17",
        "plug-in variances give rare queries of a small group too much weight",
    ),
    Claim("4.3.3", "More opt-in users: their results improve, the clients' deteriorate", check.optin_grows),
    Claim("4.3.3", "The clients' L1 deteriorates slowly, their NDCG faster", check.slow_and_fast),
    Claim(
        "4.3.3",
        "The blended NDCG tracks the opt-in users', even from 1 to 3 % where clients are better",
        check.tracks_optin,
        why="here the blend follows the better group",
    ),
    Claim("4.3.3", "With ε the blend improves with the clients; opt-in L1 is nearly constant", check.epsilon_groups),
    Claim("4.3.3", "No single group dominates", check.nobody_dominates),
    Claim("4.3.3", "Tiny opt-in group: once a list is reached, utility is high", check.tiny_reached, "fig18"),
    Claim("4.3.3", "Tiny opt-in group: its own estimates are much worse than the clients'", check.tiny_optin, "fig19"),
    Claim("4.3.3", "Tiny opt-in group: the blend leans heavily towards the clients", check.tiny_weights, "fig19"),
)


class Claims:
    """holds / does not hold, with the numbers."""

    name = "claims"
    title = "The claims of [BLJ] §4.2 and §4.3, one by one"
    source = "[BLJ] §4.2, §4.3"
    about = (
        "Each sentence of the paper's evaluation that claims something, checked for method paper on synthetic logs. "
        "Where a figure's page has a row for the same fact, it is counted there."
    )

    def cells(self, request: Request) -> list[Cell]:
        own = _of_the_paper(request)
        experiments: list[PanelExperiment] = list(PANELS.values())
        cells = [cell for experiment in experiments for cell in experiment.cells(own)]
        cells += records_per_client.EXPERIMENT.cells(own) + fig09.EXPERIMENT.cells(own)
        return cells + [cell for fraction in HEAD_FRACTIONS for cell in head_fraction_cells(own, fraction)]

    def conclude(self, request: Request, results: Results) -> Outcome:
        evidence = Evidence(_of_the_paper(request), results)
        verdicts = [(claim, claim.judge(evidence)) for claim in CLAIMS]
        rows: list[dict[str, Scalar]] = [
            {"section": claim.section, "claim": claim.text, "holds": verdict.holds, "numbers": verdict.numbers}
            for claim, verdict in verdicts
        ]
        findings = [claim.finding(verdict) for claim, verdict in verdicts]
        failed = [(claim.text, verdict.numbers, claim.why) for claim, verdict in verdicts if not verdict.holds]
        fitted = [claim.text for claim, verdict in verdicts if verdict.holds and claim.fitted]
        text = prose("claims", verdicts=verdicts, failed=failed, fitted=fitted)
        printed = [
            f"{'holds' if verdict.holds else 'DOES NOT HOLD':14}§{claim.section} {claim.text}: {verdict.numbers}"
            for claim, verdict in verdicts
        ]
        return Outcome(rows, _draw(verdicts), text, findings, printed=printed)


def _of_the_paper(request: Request) -> Request:
    """The claims are about the paper's two logs, whatever people were asked for."""
    return Request(request.seed, request.quick, request.runs)


def _draw(verdicts: list[tuple[Claim, Verdict]]) -> Figure:
    figure, (axis,) = new_figure(1)
    figure.set_size_inches(12, 0.42 * len(verdicts) + 0.8)
    for row, (claim, verdict) in enumerate(verdicts):
        color = "#2f7d4f" if verdict.holds else "#b3261e"
        axis.text(0.0, row, "holds" if verdict.holds else "does not hold", color=color, va="center", fontsize=8)
        axis.text(0.085, row, f"§{claim.section}", va="center", fontsize=8, color="#666666")
        axis.text(0.125, row, "\n".join(textwrap.wrap(claim.text, 66)), va="center", fontsize=8)
        axis.text(0.47, row, "\n".join(textwrap.wrap(verdict.numbers, 104)), va="center", fontsize=7, color="#333333")
    axis.set(xlim=(0, 1), ylim=(len(verdicts) - 0.5, -0.8))
    axis.set_axis_off()
    return figure


EXPERIMENT = Claims()
