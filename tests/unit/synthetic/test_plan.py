"""The planner advises what users want, and nothing that its own runs cannot show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from searchblend.blender.result import result_of
from searchblend.cli.commands.plan import _searches
from searchblend.cli.commands.run import one_record_hint
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.synthetic import count_group, plan
from searchblend.synthetic.count_group import RecordModel, Situation, Voices
from searchblend.synthetic.plan import Difference, MethodForecast, is_better, recommend, simulate

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
    assert not Difference.of([1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.1, 3.9]).shown()
    assert Difference.of([1.0, 2.0, 3.0, 4.0], [2.0, 3.1, 4.0, 5.0]).shown()
    assert not Difference.of([1.0], [9.0]).shown()


def test_what_few_runs_show_must_be_larger_and_so_must_one_of_many_differences():
    """Student's quantiles: 4.3 standard errors for three runs, 12.7 for two, 40 for the best of twenty of three."""
    change = Difference(0.0, 5.0, 1.0, 3)
    assert change.shown()
    assert not Difference(0.0, 5.0, 1.0, 2).shown()
    assert not change.shown(20)


def test_no_difference_is_shown_more_often_than_stated():
    """2,000 pairs of four runs of the same law: 5 % of them, within six standard errors."""
    chance = np.random.Generator(np.random.PCG64(1))
    runs = chance.standard_normal((2000, 2, 4))
    rate = np.mean([Difference.of(*pair).shown() for pair in runs])
    assert abs(rate - 0.05) < 6 * np.sqrt(0.05 * 0.95 / 2000)


def forecast(**means: float) -> MethodForecast:
    runs = {name: tuple(means.get(name, 1.0) + 0.001 * i for i in (-1, 0, 1, 0)) for name in plan.FIGURES}
    bands = {name: plan.Band.of(values) for name, values in runs.items()}
    return MethodForecast("best", **bands, ranks=(), runs=runs, example=None)


def test_advice_goes_by_what_users_want_and_takes_nothing_from_them():
    now = forecast()
    assert not is_better(now, now)
    assert is_better(now, forecast(head_queries=2))
    assert is_better(now, forecast(covered=2, plus_minus=0.5))
    assert not is_better(now, forecast(error=0.5)), "a short list is easy to be exact about"
    assert not is_better(now, forecast(plus_minus=0.5, head_queries=0.9))
    assert not is_better(now, forecast(plus_minus=0.5, error=2))


def test_fractions_are_advised_only_if_they_are_shown_to_be_better(monkeypatch):
    """Nothing may be said where runs differ by more than the fractions do."""
    monkeypatch.setattr(Difference, "shown", lambda self, compared: False)
    assert recommend(MODEL, situation(), runs=2, seed=1) == {}


def test_of_the_better_fractions_the_narrowest_intervals_are_advised(monkeypatch):
    """Here the smallest of the other values gives them."""
    defaults = {name: getattr(situation().params, name) for name in plan.FRACTIONS}

    def simulated(_, now, *__, **___):
        changed = [value for name in plan.FRACTIONS if (value := getattr(now.params, name)) != defaults[name]]
        return forecast(plus_minus=changed[0] if changed else 2.0)

    monkeypatch.setattr(plan, "simulate", simulated)
    wanted = {name: min({*values} - {defaults[name]}) for name, values in plan.FRACTIONS.items()}
    assert recommend(MODEL, situation(), runs=4, seed=1) == wanted


def test_a_crowd_too_large_to_draw_is_simulated_alike_throughout_and_said_so(monkeypatch):
    """One percent more opt-in users would be too many: all forecasts are of one search each."""
    monkeypatch.setattr(count_group, "MOST_SEARCHERS", 200)
    crowd = replace(situation(users=2_000, records_per_optin=100), optin_fraction=0.099)
    assert crowd.n_optin <= count_group.MOST_SEARCHERS
    seen = set()
    simulated = plan.simulate

    def noted(model, of, method, **options):
        seen.add(of.params_of(method).records_per_optin)
        return simulated(model, of, method, **options)

    monkeypatch.setattr(plan, "simulate", noted)
    document = plan.plan_document(MODEL, crowd, profile="aol", runs=2)
    assert (seen, document["records_per_optin"], document["records_of_run"]) == ({1}, 1, 100)
    assert "a run counts up to 100" in _searches(document)


def test_a_plan_forecasts_the_many_records_that_the_run_will_take():
    """The same people: with all of their searches more is listed; people with one search have no more to give."""
    one, many = (
        simulate(MODEL, situation(users=4_000, records_per_optin=records), "best", runs=2, seed=1)
        for records in (1, 100)
    )
    assert many.head_queries.mean > one.head_queries.mean + 3
    assert many.example.mechanism["optin"]["queries_per_user"] == 100
    of_one = Situation(4_000, 0.1, situation(records_per_optin=100).params, searches=1)
    single = simulate(MODEL, of_one, "best", runs=2, seed=1)
    assert single.head_queries.mean < many.head_queries.mean
    hints = [one_record_hint(result_of(forecast.example)) for forecast in (one, many, single)]
    assert hints[:2] == [None, None]
    assert "--records-per-optin 1" in hints[2]


def test_the_printed_method_and_a_crowd_are_simulated_with_one_record_each():
    many = situation(records_per_optin=100)
    assert many.params_of("best").records_per_optin == 100
    assert many.params_of("paper").records_per_optin == 1
    crowd = Situation(10**9, 0.1, many.params)
    assert crowd.params_of("best").records_per_optin == 1


def test_the_truth_of_people_with_many_searches_varies_less():
    """Their own shares: k searches each have a k-th of the variance of one, here over 60 draws of 2,000 people."""
    head = HeadList({"q000": ["u0"]})

    def variance(searches: int) -> float:
        one = replace(situation(users=2_000), searches=searches)
        drawn = [Voices.draw(MODEL, one, one.params, (7, run)).truth(head).queries[0] for run in range(60)]
        assert np.mean(drawn) == pytest.approx(0.1, abs=0.01)
        return float(np.var(drawn))

    assert variance(9) < 0.6 * variance(1)


def test_the_most_frequent_queries_of_a_model():
    assert list(MODEL.top_queries(3)) == ["q000", "q001", "q002"]
    assert MODEL.top_queries(1)["q000"] == pytest.approx(0.1)
