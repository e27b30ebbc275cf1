"""A spend is what it says, and survives being written down."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.accounting.client_spends import randomized_response_spend
from searchblend.accounting.spend import (
    DiscreteLaplaceLaw,
    PairLaw,
    Spend,
    common_relation,
    decimal,
    law_of_json,
    under,
)
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget, Neighbors

REPLACE, ADD = Neighbors.REPLACE_ONE, Neighbors.ADD_REMOVE_ONE


def generic(epsilon=1.0, delta=0.0, neighbors=REPLACE):
    return Spend(epsilon, delta, neighbors, "any")


SPENDS = st.one_of(
    st.builds(generic, st.floats(0, 20), st.floats(0, 0.5), st.sampled_from(Neighbors)),
    st.builds(randomized_response_spend, st.floats(0.01, 5), st.integers(2, 500)),
    st.builds(
        lambda scale, shift, values: Spend(
            values * shift / scale, 1e-15, REPLACE, "noise", DiscreteLaplaceLaw(scale, shift, values)
        ),
        st.floats(0.3, 50),
        st.integers(1, 4),
        st.integers(1, 3),
    ),
)


@given(SPENDS)
def test_json_gives_back_the_same(spend):
    assert Spend.of_json(json.loads(json.dumps(spend.as_json()))) == spend


@given(SPENDS)
def test_every_step_is_a_distribution(spend):
    for step, times in spend.steps:
        assert times >= 1
        assert math.fsum([step.infinite, *(mass for _, mass in step.atoms)]) == pytest.approx(1, abs=1e-12)
        assert all(mass >= 0 for _, mass in step.atoms)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": -1.0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"law": PairLaw((0.9, 0.1), (0.1, 0.9))},
        {"law": DiscreteLaplaceLaw(0.5, 1)},
    ],
)
def test_a_spend_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        replace(generic(), **wrong)


def test_several_cells_are_several_steps():
    once, thrice = (PairLaw((0.9, 0.1), (0.1, 0.9), cells=cells) for cells in (1, 3))
    assert thrice.steps(3.0, 0.0) == ((once.step, 3),)
    assert once.step.atoms[0] == (pytest.approx(math.log(9)), 0.9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PairLaw((0.5, 0.5), (1.0,)),
        lambda: PairLaw((), ()),
        lambda: PairLaw((0.5, 0.4), (0.5, 0.5)),
        lambda: PairLaw((-0.5, 1.5), (0.5, 0.5)),
        lambda: PairLaw((1.0,), (1.0,), cells=0),
        lambda: DiscreteLaplaceLaw(0.0, 1),
        lambda: DiscreteLaplaceLaw(1.0, 0),
        lambda: law_of_json({"kind": "another"}),
    ],
)
def test_a_law_that_cannot_be_is_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_numbers_are_what_they_print():
    assert sum([decimal(0.1)] * 10) == 1


def test_one_relation_for_a_sum():
    assert common_relation([generic(neighbors=ADD), generic(neighbors=ADD)]) is ADD
    assert common_relation([generic(neighbors=ADD), generic()]) is REPLACE
    assert common_relation([]) is REPLACE


def test_replacing_is_removing_and_adding():
    stated = under(REPLACE, generic(1.0, 1e-6, ADD))
    assert stated.epsilon == 2.0
    assert stated.delta == pytest.approx((1 + math.e) * 1e-6)
    with pytest.raises(InvalidParameter):
        under(ADD, generic())


def test_a_budget_makes_a_generic_spend():
    assert Spend.generic(Budget(4.0, 1e-5), REPLACE, "any") == generic(4.0, 1e-5)
