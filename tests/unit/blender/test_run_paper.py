"""The printed method as one call: what it needs, what it refuses, what it says."""

from __future__ import annotations

import numpy as np
import pytest
from made_groups import Quiet, people

from searchblend.blender.pipeline import run_blender
from searchblend.core.errors import EmptyHeadList, InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, Neighbors
from searchblend.core.records import Record
from searchblend.synthetic.seeded import SeededRandomness

PARAMS = BlenderParams(Budget(4, 1e-5))
OPTIN = {("weather", "u"): 500, ("weather", "v"): 200, ("news", "u"): 300, **{(f"rare {i}", "u"): 1 for i in range(90)}}
CLIENTS = {key: 10 * n for key, n in OPTIN.items()}


def run(optin=OPTIN, clients=CLIENTS, params: BlenderParams = PARAMS, **options):
    return run_blender(people(optin), people(clients), params, method="paper", **options)


def test_a_release_of_the_common_records():
    release = run(randomness=SeededRandomness(2))
    assert set(release.head.queries) == {"weather", "news"}
    assert [release.head.queries[i] for i in release.ranked_queries()] == ["weather", "news"]
    assert release.queries.probability.sum() == pytest.approx(1)
    assert release.records.probability.sum() == pytest.approx(1)
    weather = release.head.queries.index("weather")
    assert release.queries.probability[weather] == pytest.approx(700 / 1090, abs=0.12)


def test_groups_are_split_as_asked():
    sizes = run(params=BlenderParams(Budget(4, 1e-5), head_fraction=0.9)).sizes
    assert (sizes.head_users, sizes.estimate_users) == (981, 109)
    assert (sizes.optin_users, sizes.clients) == (1090, 10_900)


def test_projection_can_be_switched_off():
    release = run(project=False)
    assert not release.projected
    np.testing.assert_array_equal(release.queries.probability, release.queries.raw.probability)


def test_logs_without_urls_spend_all_on_the_query():
    release = run({"a": 500, "b": 200}, {"a": 5000, "b": 3000})
    assert release.params.query_budget_fraction == 1
    assert not release.head.has_urls
    assert release.queries.probability.tolist() == pytest.approx(release.records.probability.tolist())


def test_the_guarantee_is_stated():
    guarantee = run().guarantee
    assert guarantee.holds
    assert guarantee.neighbors is Neighbors.REPLACE_ONE
    assert (guarantee.epsilon, guarantee.delta) == (4.0, 1e-5)
    optin, clients = guarantee.groups
    assert optin.mechanism_delta == pytest.approx(5.41e-6, rel=1e-3)
    assert clients.mechanism_delta <= 1e-5
    assert any("ln 2" in condition.name for condition in guarantee.conditions)


def test_a_predictable_generator_is_no_guarantee():
    release = run(randomness=SeededRandomness(1))
    assert not release.guarantee.holds
    assert "nothing here is private" in str(release.guarantee)


def test_small_epsilon_says_why_it_is_covered():
    guarantee = run(params=BlenderParams(Budget(0.6, 0.01))).guarantee
    assert guarantee.holds
    assert any("π₁" in condition.name for condition in guarantee.conditions)


def test_the_same_seed_gives_the_same_release():
    one, two = (run(randomness=SeededRandomness(3)) for _ in range(2))
    assert one.head == two.head
    np.testing.assert_array_equal(one.records.probability, two.records.probability)


def test_steps_are_announced_in_order():
    steps: list[str] = []
    run(on_step=steps.append)
    assert steps == ["head list", "opt-in estimates", "client reports", "blend"]


def test_nothing_common_is_said_without_naming_anything():
    rare = {(f"a-secret {i}", "u"): 1 for i in range(100)}
    with pytest.raises(EmptyHeadList, match="7 of the 95") as refused:
        run(rare, CLIENTS, randomness=Quiet())
    assert "a-secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("optin", "clients", "field"),
    [
        ({("a-secret", "u"): 1}, CLIENTS, "opt-in users"),
        ({("a-secret", "u"): 20}, CLIENTS, "opt-in users"),
        (OPTIN, {("a-secret", "u"): 1}, "clients"),
        ({}, CLIENTS, "opt-in users"),
    ],
    ids=["one opt-in user", "nobody left to estimate", "one client", "no opt-in user"],
)
def test_too_few_people_are_refused(optin, clients, field: str):
    with pytest.raises(InvalidParameter) as refused:
        run(optin, clients)
    assert refused.value.field == field
    assert "a-secret" not in str(refused.value)


def test_parameters_without_a_proof_are_refused():
    with pytest.raises(InvalidParameter, match="records_per_optin"):
        run(params=BlenderParams(Budget(4, 1e-5), records_per_optin=2))
    with pytest.raises(InvalidParameter, match="ln 2"):
        run(params=BlenderParams(Budget(0.1, 0.5)))
    with pytest.raises(InvalidParameter, match="method"):
        run_blender(people(OPTIN), people(CLIENTS), PARAMS, method="other")


def test_repr_shows_no_record():
    release = run()
    assert "weather" not in repr(release)
    assert "weather" not in repr(Record("weather", "u"))
