"""Budgets and what a guarantee says."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import pytest

from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, Condition, GroupGuarantee, Guarantee, Neighbors, TrustModel


@pytest.mark.parametrize("epsilon", [0, -1.0, math.inf, math.nan, "4", None, True])
def test_epsilon_is_a_positive_finite_number(epsilon: object):
    with pytest.raises(InvalidParameter, match="epsilon"):
        Budget(epsilon, 1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 1.5, math.nan, "1e-5", None, True])
def test_delta_lies_between_zero_and_one(delta: object):
    with pytest.raises(InvalidParameter, match="delta"):
        Budget(4, delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("digits", [400, 5000])
def test_whole_numbers_beyond_every_double(digits: int):
    """Python neither makes a double of the first nor writes the second down."""
    for field, values in (
        ("epsilon", (10**digits, 1e-5)),
        ("epsilon", (-(10**digits), 1e-5)),
        ("delta", (4, 10**digits)),
    ):
        with pytest.raises(InvalidParameter, match="found a whole number beyond") as refusal:
            Budget(*values)
        assert refusal.value.field == field


def test_an_absurd_epsilon_is_refused_at_once():
    """A device computes e^ε to 128 bits from what a server sends: the time must not grow without bound."""
    with pytest.raises(InvalidParameter, match="epsilon"):
        BlenderParams(Budget(1e300, 1e-5))


def test_numbers_become_floats():
    budget = Budget(4, 1e-5)
    assert isinstance(budget.epsilon, float)
    assert budget == Budget(4.0, 1e-5)


def guarantee(*holds: bool) -> Guarantee:
    return Guarantee(
        neighbors=Neighbors.REPLACE_ONE,
        groups=(
            GroupGuarantee("opt-in users", Budget(4, 1e-5), TrustModel.CURATOR, 5.4e-6),
            GroupGuarantee("clients", Budget(2, 1e-4), TrustModel.LOCAL, 0.0),
        ),
        conditions=[Condition(f"condition {i}", held, "because") for i, held in enumerate(holds)],
    )


def test_the_guarantee_is_the_weakest_of_its_groups():
    assert (guarantee(True).epsilon, guarantee(True).delta) == (4.0, 1e-4)


def test_one_condition_that_fails_is_enough():
    assert guarantee(True, True).holds
    assert not guarantee(True, False).holds
    assert "does NOT hold" in str(guarantee(True, False))
    assert "[ ] condition 1: because" in str(guarantee(True, False))


def test_the_guarantee_is_a_document():
    document = json.loads(json.dumps(asdict(guarantee(True, False).stated())))
    assert document["holds"] is False
    assert document["neighbors"].startswith("replace-one")
    assert [group["trust"].split(":")[0] for group in document["groups"]] == ["curator", "local"]
    assert [condition["holds"] for condition in document["conditions"]] == [True, False]
    assert document["groups"][0]["mechanism_delta"] == 5.4e-6
