"""The planner advises what users want, and nothing that its own runs cannot show."""

from __future__ import annotations

import pytest

from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.synthetic import plan
from searchblend.synthetic.count_group import RecordModel
from searchblend.synthetic.plan import Difference, Situation, recommend, simulate

MODEL = RecordModel.of_records(
    [Record(f"q{i:03}", f"u{i}") for i in range(300)], [0.1 / (i + 1) ** 1.1 for i in range(300)]
)


def situation(epsilon=4.0, users=20_000, **options):
    return Situation(users, 0.1, BlenderParams(Budget(epsilon, 1e-5), max_head_queries=40, **options))


@pytest.fixture(scope="module")
def low_and_high():
    return [simulate(MODEL, situation(epsilon), "best", runs=3, seed=1) for epsilon in (1.0, 6.0)]


def test_a_longer_list_is_not_worse(low_and_high):
    """L1 over the run's own list said that ε = 1 is best; over what people search it is not."""
    low, high = low_and_high
    assert low.head_queries.mean < high.head_queries.mean
    assert low.covered.mean < high.covered.mean
    assert low.error.mean > high.error.mean


def test_a_rank_is_followed_whether_it_is_listed_or_not(low_and_high):
    low, high = low_and_high
    assert [rank.rank for rank in high.ranks] == [1, 10, 50, 200]
    assert high.ranks[0].listed == 1
    assert high.ranks[-1].plus_minus is None
    assert high.ranks[0].plus_minus.mean < low.ranks[0].plus_minus.mean


def test_an_empty_list_misses_everything():
    found = simulate(MODEL, situation(0.05, users=200), "best", runs=2, seed=1)
    assert found.head_queries.mean == found.covered.mean == 0
    assert found.error.mean == pytest.approx(2 * sum(MODEL.top_queries(40).values()))
    assert found.example is None


def test_a_difference_below_the_error_of_the_runs_is_not_shown():
    assert Difference.of([1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.1, 3.9]).shown is False
    assert Difference.of([1.0, 2.0, 3.0, 4.0], [2.0, 3.1, 4.0, 5.0]).shown is True
    assert Difference.of([1.0], [9.0]).shown is False


def test_fractions_are_advised_only_if_they_are_shown_to_be_better(monkeypatch):
    """Nothing may be said where runs differ by more than the fractions do."""
    monkeypatch.setattr(plan, "_ERRORS", float("inf"))
    assert recommend(MODEL, situation(), runs=2, seed=1)["paper"] == {}


def test_advice_never_shortens_the_list():
    advice = recommend(MODEL, situation(), runs=3, seed=1)["paper"]
    default = simulate(MODEL, situation(), "paper", runs=3, seed=1).head_queries.mean
    for field, value in advice.items():
        found = simulate(MODEL, situation().with_fraction(field, value), "paper", runs=3, seed=1)
        assert found.head_queries.mean >= default


def test_the_most_frequent_queries_of_a_model():
    assert list(MODEL.top_queries(3)) == ["q000", "q001", "q002"]
    assert MODEL.top_queries(1)["q000"] == pytest.approx(0.1)
