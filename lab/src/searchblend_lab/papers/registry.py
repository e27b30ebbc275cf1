"""All experiments by name. A new one is a new file and a line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from searchblend.core.errors import UsageError
from searchblend_lab.papers.blender import (
    baselines,
    claims,
    convergence,
    fig08,
    fig09,
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    fig18,
    fig19,
    groups,
    intervals,
    local_search,
    poisoning,
    records_per_client,
)
from searchblend_lab.papers.clickgraph import (
    fig1,
    fig2,
    fig3,
    fig4,
    graph_algorithms,
    table1,
    table2,
    table3,
    table4,
    table5,
)
from searchblend_lab.papers.comparisons import real, rivals
from searchblend_lab.papers.experiment import Experiment

EXPERIMENTS: Final[dict[str, Experiment]] = {
    experiment.name: experiment
    for experiment in (
        fig08.EXPERIMENT,
        fig09.EXPERIMENT,
        fig10.EXPERIMENT,
        fig11.EXPERIMENT,
        fig12.EXPERIMENT,
        fig13.EXPERIMENT,
        fig14.EXPERIMENT,
        fig15.EXPERIMENT,
        fig16.EXPERIMENT,
        fig17.EXPERIMENT,
        fig18.EXPERIMENT,
        fig19.EXPERIMENT,
        records_per_client.EXPERIMENT,
        claims.EXPERIMENT,
        baselines.EXPERIMENT,
        groups.EXPERIMENT,
        intervals.EXPERIMENT,
        poisoning.EXPERIMENT,
        convergence.EXPERIMENT,
        local_search.EXPERIMENT,
        table1.EXPERIMENT,
        fig1.EXPERIMENT,
        fig2.EXPERIMENT,
        fig3.EXPERIMENT,
        fig4.EXPERIMENT,
        table2.EXPERIMENT,
        table3.EXPERIMENT,
        table4.EXPERIMENT,
        table5.EXPERIMENT,
        graph_algorithms.EXPERIMENT,
        rivals.EXPERIMENT,
        real.EXPERIMENT,
    )
}
ALL: Final = "all"


def experiments_named(names: Sequence[str]) -> list[Experiment]:
    """The experiments in the order of the registry; ``all`` is every one."""
    wrong = sorted(set(names) - set(EXPERIMENTS) - {ALL})
    if wrong:
        raise UsageError(f"{', '.join(wrong)}: no such experiment; `searchblend evaluate list` names them all")
    return [experiment for name, experiment in EXPERIMENTS.items() if name in names or ALL in names]
