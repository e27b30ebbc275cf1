"""What one person alone searched is published at the stated rate: faults of some algorithms alone, and their power.

That the shipped selection keeps the rate, and that faults of every algorithm are rejected, is in the table of sampled
laws (``queries of one person``).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend_lab.evidence.laws import click_graph_faults as mutants
from searchblend_lab.evidence.laws.click_graph import check_lone_rate, lone_rate, lone_users, passes_unseen, select
from searchblend_lab.evidence.laws.sampled_graph import (
    LONE_USERS,
    check_lone_clicks,
    check_lone_queries,
    edge_design,
    lone_design,
)
from searchblend_lab.evidence.laws.sampler import FALSE_ALARM

cases = pytest.mark.parametrize("name", LONE_USERS)


@cases
def test_the_worst_lone_user_uses_most_of_delta(name):
    """No one's queries are named with more than δ, and some user's with what the threshold was allowed."""
    design = lone_design(LONE_USERS[name])
    delta = design.params.budget.delta
    assert 0.3 * delta <= sum(step.delta for step in design.rounds) <= delta


@cases
@pytest.mark.parametrize("mutant", mutants.EVERY)
def test_a_wrong_selection_is_hardly_ever_accepted(name, mutant):
    design, shape = lone_design(LONE_USERS[name]), LONE_USERS[name][1]
    wrong = mutants.EVERY[mutant](design)
    assert passes_unseen(shape[0], lone_rate(design, *shape[1:]), lone_rate(wrong, *shape[1:])) < FALSE_ALARM


@pytest.mark.parametrize("name", ["gaussian", "kkmn2009, users", "weighted_gaussian", "dp_sips"])
def test_a_threshold_for_one_query_of_many_is_rejected(name):
    with pytest.raises(AssertionError):
        check_lone_queries(mutants.every_round(mutants.delta_not_divided), LONE_USERS[name])


def test_rounds_that_do_not_share_delta_are_rejected():
    with pytest.raises(AssertionError):
        check_lone_queries(mutants.whole_delta_each_round, LONE_USERS["dp_sips"])


def check_log(mutant: type, name: str) -> None:
    design: ClickGraphDesign = lone_design(LONE_USERS[name])
    shape = LONE_USERS[name][1]
    check_lone_rate(select, mutants.as_log(mutant, lone_users(*shape)), design, design, shape)


@pytest.mark.parametrize("name", ["weighted_gaussian", "dp_sips"])
def test_weights_that_are_not_normalised_are_rejected(name):
    with pytest.raises(AssertionError):
        check_log(mutants.NotNormalised, name)


@pytest.mark.parametrize("name", ["gaussian", "kkmn2009, printed"])
def test_users_who_count_twice_are_rejected(name):
    with pytest.raises(AssertionError):
        check_log(mutants.CountedTwice, name)


def test_the_budget_of_the_queries_is_not_taken_for_the_pairs():
    """Pairs that pass the selection's threshold with the selection's noise, as if they were queries."""
    selection = edge_design("gaussian").rounds[0]
    with pytest.raises(AssertionError):
        check_lone_clicks(lambda step: replace(selection, cap=step.cap), "gaussian")
