"""Studies over released counts: groups, sums, intervals, and the probability of a wrong order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from made_click_graph import GAUSSIAN, LAPLACE, SEARCHES, made_graph, with_interval
from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.study import compare_rankings, run_study
from searchblend.core.errors import InvalidParameter, RunError
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.synthetic.seeded import SeededRandomness

FEARS = "^fear of (.+)$"


def test_the_fears_study():
    study = run_study(
        made_graph(), FEARS, stop=["clowns movie"], categories={"Spiders": "animals", "snakes": "animals"}
    )
    assert [(c.name, c.count, c.queries) for c in study.categories] == [
        ("animals", 240, 2),
        ("flying", 240, 1),
        ("heights", 236, 1),
        ("death", 170, 1),
    ]
    assert (study.matched, study.stopped) == (6, 1)
    animals, flying, heights, death = study.categories
    assert animals.swap_probability == pytest.approx(0.5, abs=1e-6)
    assert flying.swap_probability == pytest.approx(LAPLACE.swap_probability(4))
    assert heights.swap_probability is not None
    assert heights.swap_probability < 1e-6
    assert death.swap_probability is None
    assert animals.high - animals.low > flying.high - flying.low


def test_without_a_group_the_whole_match_is_the_term():
    assert run_study(made_graph(), "shoes").ranking == ["shoes"]
    assert run_study(made_graph(), "shoes").categories[0].count == 900 + 420 + 110


def test_the_stop_list_takes_whole_queries_too():
    study = run_study(made_graph(), FEARS, stop=["Fear of Clowns Movie", "death"])
    assert (study.matched, study.stopped) == (6, 2)
    assert "death" not in study.ranking


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_stated_swaps_happen_as_often(noise: NoiseLaw):
    """Release the same true counts many times; each time compare the stated doubt with what noise did."""
    true, runs = {"fear of a": 30, "fear of b": 26, "fear of c": 60, "fear of d": 1}, 20_000
    categories = {"a": "first", "b": "second", "c": "first", "d": "second"}
    if noise is LAPLACE:
        drawn = DiscreteLaplace(1 / Fraction(noise.scale)).sample(4 * runs, SeededRandomness(3)).reshape(runs, 4)
    else:
        drawn = np.rint(np.random.default_rng(3).normal(0, noise.scale, (runs, 4))).astype(int)
    counts = np.array(list(true.values())) + drawn
    gap = counts[:, [0, 2]].sum(axis=1) - counts[:, [1, 3]].sum(axis=1)
    happened = (gap < 0).mean() + (gap == 0).mean() / 2
    graph = ClickGraph.of(with_interval(true, noise), {}, noise={"queries": noise})
    stated = run_study(graph, FEARS, categories=categories).categories[0].swap_probability
    assert stated is not None
    assert abs(happened - stated) < 4.5 * np.sqrt(max(stated, 1e-4) / runs)


def test_a_wrong_pattern_is_refused():
    with pytest.raises(InvalidParameter, match="pattern: expected a regular expression"):
        run_study(made_graph(), "(")


def test_a_pattern_that_matches_nothing_ranks_nothing():
    assert run_study(made_graph(), "^zzz").categories == []


def test_swaps_need_the_law_of_noise():
    with pytest.raises(RunError, match="names no noise"):
        run_study(ClickGraph.of(with_interval(SEARCHES, LAPLACE), {}), FEARS)


@pytest.mark.parametrize(
    ("first", "second", "k", "overlap", "tau"),
    [
        ("abcd", "abcd", 4, 1.0, 1.0),
        ("abcd", "dcba", 4, 1.0, -1.0),
        ("abcd", "abxy", 4, 0.5, 1.0),
        ("abcd", "bacd", 4, 1.0, 2 / 3),
        ("abcd", "xyab", 2, 0.0, None),
        ("ab", "ab", 9, 1.0, 1.0),
        ("", "", 3, 0.0, None),
    ],
)
def test_rankings_are_compared(first: str, second: str, k: int, overlap: float, tau: float | None):
    found = compare_rankings(first, second, k)
    assert found.overlap == pytest.approx(overlap)
    assert found.kendall_tau == (None if tau is None else pytest.approx(tau))


@given(st.permutations(range(8)))
def test_kendalls_tau_is_scipys(places: list[int]):
    names = "abcdefgh"
    found = compare_rankings(names, [names[i] for i in places], 8)
    assert found.kendall_tau == pytest.approx(stats.kendalltau(range(8), places).statistic)


def test_a_comparison_needs_a_depth():
    with pytest.raises(InvalidParameter, match="k"):
        compare_rankings("a", "a", 0)
