"""Laws of what one person alone has, and of a click graph's published counts, that are sampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any, Final

from scipy.stats import binomtest

from searchblend.blender.groups import InMemoryGroup
from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import (
    fresh_query_counts,
    private_click_counts,
    select_queries,
    typed_reformulations,
)
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.threshold import Threshold
from searchblend_lab.evidence.laws import click_graph_faults
from searchblend_lab.evidence.laws.click_graph import (
    CountsLog,
    check_law,
    check_lone_rate,
    lone_users,
    noise_law,
    select,
    tail,
)
from searchblend_lab.evidence.laws.sampler import (
    FALSE_ALARM,
)
from searchblend_lab.evidence.laws.selection import Select, check_boundary_rate, people_with


@cache
def singles() -> InMemoryGroup:
    return people_with([1] * 40_000)


def check_lone_records(selection: Select, setting: tuple[Fraction, int]) -> None:
    """Records of one person each are named at the stated rate, at budgets loose enough that it can be seen."""
    rate, integer = setting
    threshold = Threshold(integer - 0.5, integer, DiscreteLaplace(rate))
    a = threshold.noise.decay
    check_boundary_rate(
        lambda group: len(selection(group, threshold, randomness=SystemRandomness())),
        singles(),
        a ** (integer - 1) / (1 + a),
    )


@cache
def _lone_design(options: tuple[tuple[str, Any], ...]) -> ClickGraphDesign:
    return ClickGraphDesign.of(ClickGraphParams(Budget(2.0, 0.05), **dict(options)))


ChangeDesign = Callable[[ClickGraphDesign], ClickGraphDesign]
LoneUsers = tuple[Mapping[str, Any], tuple[int, int, int]]
"""parameters, and users, queries of each, and how often each is searched"""
LONE_USERS: Final[Mapping[str, LoneUsers]] = {
    "gaussian": ({"algorithm": "gaussian", "max_queries_per_user": 8}, (30_000, 8, 1)),
    "gaussian, one query": ({"algorithm": "gaussian", "max_queries_per_user": 1}, (30_000, 1, 1)),
    "kkmn2009, exact, own queries": (
        {"algorithm": "kkmn2009", "max_queries_per_user": 3, "accounting": "exact"},
        (30_000, 3, 1),
    ),
    "kkmn2009, exact, one query again and again": (
        {"algorithm": "kkmn2009", "max_queries_per_user": 3, "accounting": "exact"},
        (60_000, 1, 3),
    ),
    "kkmn2009, printed": ({"algorithm": "kkmn2009", "max_queries_per_user": 2}, (60_000, 1, 2)),
    "kkmn2009, users": (
        {"algorithm": "kkmn2009", "max_queries_per_user": 3, "accounting": "exact", "count_unit": "users"},
        (30_000, 3, 2),
    ),
    "weighted_gaussian": ({"algorithm": "weighted_gaussian", "max_queries_per_user": 4}, (30_000, 4, 1)),
    "dp_sips": ({"algorithm": "dp_sips", "max_queries_per_user": 4}, (30_000, 4, 1)),
}


def lone_design(setting: LoneUsers) -> ClickGraphDesign:
    return _lone_design(tuple(setting[0].items()))


def check_lone_queries(change: ChangeDesign, setting: LoneUsers) -> None:
    """What one person alone searched is published at the stated rate, which is within δ."""
    design = lone_design(setting)
    check_lone_rate(select, lone_users(*setting[1]), design, change(design), setting[1])


_OWN: Final = 3
_HEAD: Final = tuple(f"head {i}" for i in range(170))
EDGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "gaussian": {"algorithm": "gaussian"},
    "kkmn2009": {"algorithm": "kkmn2009", "count_unit": "users"},
}
EDGE_FAULTS: Final[Mapping[str, click_graph_faults.Change]] = {
    "threshold one lower": click_graph_faults.threshold_moved(-1),
    "noise halved": click_graph_faults.noise_scaled(0.5),
    "noise of one count for two": click_graph_faults.noise_scaled(1 / math.sqrt(2)),
    "noise a quarter too wide": click_graph_faults.noise_scaled(1.25),
}


CLICK_FAULTS: Final[Mapping[str, click_graph_faults.Change]] = {
    **EDGE_FAULTS,
    "a threshold for one click of many": lambda step: click_graph_faults.delta_not_divided(step, 0.05),
}


@cache
def edge_design(algorithm: str) -> ClickGraphDesign:
    params = ClickGraphParams(
        Budget(3.0, 0.2),
        max_queries_per_user=1,
        max_clicks_per_user=_OWN,
        max_reformulations_per_user=1,
        urls="private",
        reformulations="typed",
        **EDGES[algorithm],
    )
    return ClickGraphDesign.of(params)


@cache
def _lone_clicks() -> InMemoryClickLog:
    """All users search the same, and click URLs that no one else does."""
    return InMemoryClickLog([[Search("q", 0, tuple(f"{i}-{j}" for j in range(_OWN)))] for i in range(20_000)])


@cache
def _lone_rewrites() -> InMemoryClickLog:
    """Each ordered pair of 170 queries is typed by one user."""
    return InMemoryClickLog([[Search(one, 0), Search(other, 60)] for one, other in permutations(_HEAD, 2)])


def check_lone_clicks(change: Callable[[StepDesign], StepDesign], algorithm: str) -> None:
    design = edge_design(algorithm)
    step = design.click_counts
    assert step is not None
    rate = -math.expm1(_OWN * math.log1p(-tail(step, (step.threshold or 0) - 1)))
    assert rate <= step.delta * (1 + 1e-9)
    named = private_click_counts(_lone_clicks(), ["q"], change(step), design, randomness=SystemRandomness())
    users = {str(record.url).split("-")[0] for record in named}
    assert binomtest(len(users), 20_000, rate).pvalue >= FALSE_ALARM


def check_lone_rewrites(change: Callable[[StepDesign], StepDesign], algorithm: str) -> None:
    step = edge_design(algorithm).reformulations
    assert step is not None
    rate = tail(step, (step.threshold or 0) - 1)
    assert rate <= step.delta * (1 + 1e-9)
    named = typed_reformulations(_lone_rewrites(), _HEAD, change(step), randomness=SystemRandomness())
    assert binomtest(len(named), len(_HEAD) * (len(_HEAD) - 1), rate).pvalue >= FALSE_ALARM


def unchanged(design: Any) -> Any:
    return design


# --- published counts of a click graph -------------------------------------------------------------------------------

_COUNT_BUDGET: Final = Budget(2.0, 0.01)
_QUERIES: Final = 40_000
REUSED: Final = ({"algorithm": "gaussian"}, {"algorithm": "kkmn2009", "query_noise": "reuse"})
FRESH: Final = ({"algorithm": "gaussian", "query_noise": "fresh"}, {"algorithm": "kkmn2009"})
COUNT_FAULTS: Final = {
    f"noise scale {factor:.2g}": click_graph_faults.noise_scaled(factor) for factor in (0.5, 1 / math.sqrt(2), 0.9, 1.1)
}
CountSetting = tuple[Mapping[str, Any], int]
"""parameters, and how far below the threshold the counts are"""


def check_reused_counts(change: Callable[[StepDesign], StepDesign], setting: CountSetting) -> None:
    """Re-used noise is the noise that selected."""
    options, below = setting
    design = ClickGraphDesign.of(ClickGraphParams(_COUNT_BUDGET, max_queries_per_user=2, **options))
    step = design.query_counts
    count, least = (step.threshold or 0) - below, step.threshold
    wrong = replace(design, steps=tuple(change(each) for each in design.steps))
    chosen, _ = select_queries(CountsLog([count] * _QUERIES), wrong, randomness=SystemRandomness())
    check_law(list(chosen.values()), noise_law(step, count, at_least=least))


def check_fresh_counts(change: Callable[[StepDesign], StepDesign], setting: CountSetting) -> None:
    """Fresh noise does not know of the selection."""
    options, below = setting
    design = ClickGraphDesign.of(ClickGraphParams(_COUNT_BUDGET, max_queries_per_user=2, **options))
    select_step, counts = design.steps
    count = (design.rounds[0].threshold or 0) - below
    wrong = replace(design, steps=(select_step, change(counts)))
    log, source = CountsLog([count] * _QUERIES), SystemRandomness()
    chosen, tally = select_queries(log, wrong, randomness=source)
    values = fresh_query_counts(log, sorted(chosen), tally, wrong, randomness=source).values()
    check_law(list(values), noise_law(design.query_counts, count))
