"""Which options mean something to an experiment, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from searchblend_lab.papers.experiment import Experiment, Request

_FORMULAS: Final = "it computes formulas of the paper and draws no one"
_PUBLISHED: Final = "it compares the program's defaults with those that are printed"
_PAPERS_LOGS: Final = "its claims are about the logs of the paper"
_FEARS: Final = "its log is the searches for fears alone; `searchblend graph study` studies a release of yours"
_SEEDS: Final = (
    "its seeds are topics of a synthetic click graph; `searchblend graph keywords` finds those of a release of yours"
)
_WEEK: Final = "its log is that of the click graph's paper, which no profile describes"
_MANY: Final = "only for the AOL profile it is known how many searches people have"
_GRAPH: Final = "it compares algorithms for a click graph, and this one is for hybrid runs"
_OF_ONES_OWN: Final = "its logs are those of --logs"
_METHODS: Final = "it compares the methods of `run` with each other and with a click graph"
_RIVALS: Final = "it compares ways to count that are named on its page"
_BEST: Final = "it is about method best"
_ONCE: Final = "it counts one log, once"
_SPANS: Final = ("kkmn-fig3", "kkmn-fig4")
_WEEKS: Final = ("kkmn-fig2", "kkmn-table2", "kkmn-table3", "graph-algorithms")
_FIXED: Final = {
    "kkmn-table1": _FORMULAS,
    "kkmn-fig1": _FORMULAS,
    "fig11": _PUBLISHED,
}
_OWN_LOGS: Final = {"kkmn-table4": _FEARS, "kkmn-table5": _SEEDS, "claims": _PAPERS_LOGS}
REASONS: Final[Mapping[str, Mapping[str, str]]] = {
    "--log": {
        **_FIXED,
        **_OWN_LOGS,
        "real": _OF_ONES_OWN,
        "fig8": "`searchblend stats` counts what a log of yours holds",
    },
    "--profile": {
        **_FIXED,
        **_OWN_LOGS,
        **dict.fromkeys((*_WEEKS, *_SPANS), _WEEK),
        **dict.fromkeys(("records-per-client", "intervals"), _MANY),
        "real": _OF_ONES_OWN,
    },
    "--algorithm": {
        **_FIXED,
        **dict.fromkeys((*_WEEKS, *_SPANS, "kkmn-table4", "kkmn-table5"), _GRAPH),
        **dict.fromkeys(("intervals", "local-search"), _BEST),
        "claims": "its claims are about method paper",
        "fig8": "it counts a log, without any algorithm",
        "real": _METHODS,
        "rivals": _RIVALS,
    },
    "--runs": {**_FIXED, "fig8": _ONCE},
    "--quick": _FIXED,
}
"""by option and experiment: why the option is refused"""
NO_EFFECT: Final = "has no effect on this experiment"
NOT_REAL: Final = "only real compares on logs of its own; --log puts the people of one log into an experiment"


def without_effect(experiment: Experiment, request: Request) -> dict[str, str]:
    """The options of a request that an experiment would not heed, with the reason.

    Found by trying: with another value it computes the very same.
    """
    others: dict[str, Request] = {}
    if request.people:
        instead = None if request.log else {"aol": "yandex", "yandex": "aol"}[request.people]
        others["--log" if request.log else "--profile"] = replace(request, people=instead)
    if request.logs:
        others["--logs"] = replace(request, logs=())
    if request.algorithm:
        others["--algorithm"] = replace(request, algorithm=None)
    if request.runs:
        others["--runs"] = replace(request, runs=request.runs + 1)
    if request.quick:
        others["--quick"] = replace(request, quick=False)
    cells = experiment.cells(request)
    ignored = [option for option, other in others.items() if experiment.cells(other) == cells]
    return {option: _reason(option, experiment.name) for option in ignored}


def _reason(option: str, name: str) -> str:
    return NOT_REAL if option == "--logs" else REASONS[option].get(name, NO_EFFECT)
