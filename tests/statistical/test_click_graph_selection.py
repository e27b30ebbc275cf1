"""What one person alone searched is published at the stated rate, which is within δ; wrong selections are seen."""

from __future__ import annotations

import pytest

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend_lab.evidence.laws import click_graph_faults as mutants
from searchblend_lab.evidence.laws.click_graph import (
    FALSE_ALARM,
    check_lone_rate,
    lone_rate,
    lone_users,
    passes_unseen,
    select,
)

N = 30_000
BUDGET = Budget(2.0, 0.05)
CASES = {
    "gaussian": ({"algorithm": "gaussian", "max_queries_per_user": 8}, (N, 8, 1)),
    "gaussian, one query": ({"algorithm": "gaussian", "max_queries_per_user": 1}, (N, 1, 1)),
    "kkmn2009, exact, own queries": (
        {"algorithm": "kkmn2009", "max_queries_per_user": 3, "accounting": "exact"},
        (N, 3, 1),
    ),
    "kkmn2009, exact, one query again and again": (
        {"algorithm": "kkmn2009", "max_queries_per_user": 3, "accounting": "exact"},
        (2 * N, 1, 3),
    ),
    "kkmn2009, printed": ({"algorithm": "kkmn2009", "max_queries_per_user": 2}, (2 * N, 1, 2)),
    "kkmn2009, users": (
        {"algorithm": "kkmn2009", "max_queries_per_user": 3, "accounting": "exact", "count_unit": "users"},
        (N, 3, 2),
    ),
    "weighted_gaussian": ({"algorithm": "weighted_gaussian", "max_queries_per_user": 4}, (N, 4, 1)),
    "dp_sips": ({"algorithm": "dp_sips", "max_queries_per_user": 4}, (N, 4, 1)),
}
cases = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def designs() -> dict[str, ClickGraphDesign]:
    return {name: ClickGraphDesign.of(ClickGraphParams(BUDGET, **options)) for name, (options, _) in CASES.items()}


@cases
def test_lone_users_are_named_at_the_stated_rate(name, designs):
    shape = CASES[name][1]
    check_lone_rate(select, lone_users(*shape), designs[name], designs[name], shape)


@cases
def test_the_worst_lone_user_uses_most_of_delta(name, designs):
    """Nobody's queries are named with more than δ, and somebody's with what the threshold was allowed."""
    design = designs[name]
    assert sum(step.delta for step in design.rounds) <= BUDGET.delta
    assert sum(step.delta for step in design.rounds) >= 0.3 * BUDGET.delta


@cases
@pytest.mark.parametrize("mutant", mutants.EVERY)
def test_a_wrong_selection_is_rejected(name, mutant, designs):
    shape, design, wrong = CASES[name][1], designs[name], mutants.EVERY[mutant](designs[name])
    assert passes_unseen(shape[0], lone_rate(design, *shape[1:]), lone_rate(wrong, *shape[1:])) < FALSE_ALARM
    with pytest.raises(AssertionError):
        check_lone_rate(select, lone_users(*shape), design, wrong, shape)


@pytest.mark.parametrize("name", ["gaussian", "kkmn2009, users", "weighted_gaussian", "dp_sips"])
def test_a_threshold_for_one_query_of_many_is_rejected(name, designs):
    shape = CASES[name][1]
    wrong = mutants.every_round(mutants.delta_not_divided)(designs[name])
    with pytest.raises(AssertionError):
        check_lone_rate(select, lone_users(*shape), designs[name], wrong, shape)


def test_rounds_that_do_not_share_delta_are_rejected(designs):
    shape = CASES["dp_sips"][1]
    wrong = mutants.whole_delta_each_round(designs["dp_sips"])
    with pytest.raises(AssertionError):
        check_lone_rate(select, lone_users(*shape), designs["dp_sips"], wrong, shape)


@pytest.mark.parametrize("name", ["weighted_gaussian", "dp_sips"])
def test_weights_that_are_not_normalised_are_rejected(name, designs):
    shape = CASES[name][1]
    log = mutants.as_log(mutants.NotNormalised, lone_users(*shape))
    with pytest.raises(AssertionError):
        check_lone_rate(select, log, designs[name], designs[name], shape)


@pytest.mark.parametrize("name", ["gaussian", "kkmn2009, printed"])
def test_users_who_count_twice_are_rejected(name, designs):
    shape = CASES[name][1]
    log = mutants.as_log(mutants.CountedTwice, lone_users(*shape))
    with pytest.raises(AssertionError):
        check_lone_rate(select, log, designs[name], designs[name], shape)
