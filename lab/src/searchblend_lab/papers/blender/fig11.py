"""[BLJ] Fig. 11: the default parameters."""

from __future__ import annotations

from matplotlib.figure import Figure

from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.pages.plots import new_figure
from searchblend.synthetic.population import AOL, YANDEX, Profile
from searchblend_lab.papers.blender.published import FIGURE_11, OPTIN_BL17
from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.experiment import Finding, Outcome, Request, Table, holds, hybrid
from searchblend_lab.papers.people import PROFILES
from searchblend_lab.papers.prose import prose

_PROFILES = (AOL, YANDEX)


class Figure11:
    """The program's defaults beside the printed ones; nothing is run."""

    name = "fig11"
    title = "Default parameters"
    source = "[BLJ] Fig. 11"
    about = "What the experiments use for both logs where a figure says nothing else, read from the program."

    def cells(self, request: Request) -> list[Cell]:
        return []

    def conclude(self, request: Request, results: Results) -> Outcome:
        ours = [_defaults(profile) for profile in _PROFILES]
        rows: list[dict[str, Scalar]] = [
            {"parameter": name, "people": profile.name, "published": FIGURE_11[name][i], "ours": ours[i][name]}
            for name in FIGURE_11
            for i, profile in enumerate(_PROFILES)
        ]
        findings = [
            Finding(
                f"the eight parameters for {PROFILES[profile.name].label}",
                ", ".join(f"{name} {FIGURE_11[name][i]:g}" for name in FIGURE_11),
                ", ".join(f"{name} {ours[i][name]:g}" for name in FIGURE_11),
                "–",
                holds(all(ours[i][name] == FIGURE_11[name][i] for name in FIGURE_11)),
            )
            for i, profile in enumerate(_PROFILES)
        ]
        table = Table(
            "Defaults",
            ("", *(f"{profile.name}, {edition}" for profile in _PROFILES for edition in ("[BLJ]", "[BL17]", "ours"))),
            tuple((name, *_values(name, [each[name] for each in ours])) for name in FIGURE_11),
        )
        earlier = OPTIN_BL17[1]
        text = prose("fig11", earlier=earlier, later=FIGURE_11["opt-in share"][1])
        return Outcome(rows, _draw(table), text, findings, [table])


def _defaults(profile: Profile) -> dict[str, float]:
    """What the program has, by the paper's letters; ε is the experiments' own."""
    epsilon = float(dict(hybrid(PROFILES[profile.name], "paper", 0).settings)["epsilon"] or 0)
    params = BlenderParams(Budget(epsilon, profile.delta), max_head_queries=profile.max_head_queries)
    params = params.for_printed_method()
    return {
        "ε": params.budget.epsilon,
        "δ": params.budget.delta,
        "opt-in share": profile.optin_fraction,
        "m_O": params.counted_records_per_optin,
        "m_C": params.records_per_client,
        "f_O": params.head_fraction,
        "f_C": params.query_budget_fraction,
        "M": params.max_head_queries,
    }


def _values(name: str, ours: list[float]) -> list[str]:
    """[BLJ], [BL17] and ours, for both logs."""
    values = []
    for i, own in enumerate(ours):
        earlier = OPTIN_BL17[i] if name == "opt-in share" else FIGURE_11[name][i]
        values += [f"{value:g}" for value in (FIGURE_11[name][i], earlier, own)]
    return values


def _draw(table: Table) -> Figure:
    figure, (axis,) = new_figure(1)
    shown = axis.table([list(row) for row in table.rows], colLabels=list(table.columns), loc="center")
    shown.auto_set_font_size(False)
    shown.set_fontsize(7)
    axis.set_axis_off()
    return figure


EXPERIMENT = Figure11()
