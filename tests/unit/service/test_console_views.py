"""What pages say: numbers for people, charts, significant changes, totals."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console_person import Person
from searchblend.core.errors import InvalidParameter
from searchblend.pages.charts import Chart, Series
from searchblend.service.console.overview import tick_names
from searchblend.service.console.planner_page import PlannerQuestion, asked_epsilons, planner_page, question_near
from searchblend.service.console.review_page import review_of_form
from searchblend.service.console.trends_page import LEVEL, compare
from searchblend.service.console.words import days, moment, number, percent, plain, plural, points, size, span
from searchblend.service.review import Position, Removal, Review
from searchblend.service.task_settings import TaskSettings
from searchblend.store.artifacts import TrendRow
from service_http import http_service


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (number(12345.4), "12,345"),
        (number(None), "–"),
        (percent(0.1234), "12.3 %"),
        (percent(0.000123), "0.0123 %"),
        (percent(0.0), "0 %"),
        (percent(1.0), "100 %"),
        (percent(-0.00234), "−0.234 %"),
        (percent(float("nan")), "–"),
        (points(0.0123), "+1.2 pp"),
        (points(-0.32), "−32 pp"),
        (plain(4.0), "4"),
        (plain(float("inf")), "∞"),
        (moment(1_800_000_000), "15 Jan 2027, 08:00 UTC"),
        (days((1_800_000_000, 1_800_000_060)), "15 Jan 2027"),
        (days((1_800_000_000, 1_800_300_000)), "15 to 18 Jan 2027"),
        (days((1_800_000_000, 1_802_000_000)), "15 Jan to 7 Feb 2027"),
        (days((1_798_000_000, 1_800_000_000)), "23 Dec 2026 to 15 Jan 2027"),
        (span(59), "59 s"),
        (span(3600), "1 h"),
        (span(4000), "1 h 6 min"),
        (span(3 * 86_400), "3 days"),
        (size(999), "999 B"),
        (size(1500), "1.5 kB"),
        (size(2_500_000), "2.5 MB"),
        (plural(1, "query", "queries"), "1 query"),
        (plural(1200, "round"), "1,200 rounds"),
    ],
)
def test_numbers_as_people_write_them(made, expected):
    assert made == expected


def chart(values, low=None, high=None) -> Chart:
    xs = [float(i) for i in range(len(values))]
    return Chart("t", "x", "y", xs, [str(int(x)) for x in xs], [Series("a", values, low, high)], percent, "percent")


shares = st.one_of(st.none(), st.floats(0, 1, allow_subnormal=False))


@given(st.lists(shares, min_size=1, max_size=60))
def test_a_drawing_stays_in_its_frame_and_breaks_where_values_are_missing(values):
    made = chart(values, values, values)
    assert made.is_empty == all(value is None for value in values)
    drawn = made.drawn[0]
    gaps = sum(a is None and b is not None for a, b in zip([None, *values], values, strict=False))
    assert len(drawn.lines) == len(drawn.bands) == gaps
    for path in drawn.lines:
        for pair in path[1:].split("L"):
            x, y = map(float, pair.split())
            assert made.plot["left"] - 0.1 <= x <= made.plot["right"] + 0.1
            assert made.plot["top"] - 0.1 <= y <= made.plot["bottom"] + 0.1
    assert made.top >= max((value for value in values if value is not None), default=0)


def test_higher_values_are_drawn_higher():
    drawn = chart([0.1, 0.4, 0.2]).drawn[0]
    heights = [y for _, y in drawn.dots]
    assert heights[1] < heights[2] < heights[0]


def rows(shares: dict[str, float], deviation: float) -> dict[str, TrendRow]:
    variance = deviation**2
    return {
        query: TrendRow(i, query, share, None, None, variance, None, None, None, None)
        for i, (query, share) in enumerate(shares.items())
    }


def test_noise_alone_is_rarely_called_a_change_and_a_change_is_found():
    """Holm keeps the chance of even one false alarm among all queries at 5 %; 400 draws leave it below 9 %."""
    generator = random.Random(1)
    names = [f"q{i}" for i in range(50)]
    alarms = found = unadjusted = 0
    for _ in range(400):
        first = rows({name: 0.02 + generator.gauss(0, 0.001) for name in names}, 0.001)
        second = rows({name: 0.02 + generator.gauss(0, 0.001) for name in names}, 0.001)
        changes = compare(first, second, 1, 2)
        alarms += bool(changes.rising or changes.falling)
        assert changes.compared == 50
        unadjusted += any(entry.p_value <= LEVEL for entry in changes.within_noise)
        moved = {**second, "q7": replace(second["q7"], probability=second["q7"].probability + 0.01)}
        found += [entry.query for entry in compare(first, moved, 1, 2).rising[:1]] == ["q7"]
    assert alarms / 400 < LEVEL + 0.04
    assert found > 380
    assert unadjusted > 200, "each query tested alone would cry wolf most of the time"


def test_what_is_new_or_gone_is_told_apart_from_what_changed():
    changes = compare(rows({"a": 0.1, "b": 0.2}, 0.001), rows({"b": 0.1, "c": 0.3}, 0.001), 3, 4)
    assert (changes.new, changes.gone, [entry.query for entry in changes.falling]) == (["c"], ["a"], ["b"])
    assert (changes.before, changes.after) == (3, 4)


def test_removals_are_places_with_one_reason():
    assert review_of_form({"remove": ["3", "4.1"], "keep": ["5.0"], "reason": ["other"]}) == Review(
        (Removal(3, None, "other"), Removal(4, 1, "other")), (Position(5, 0),)
    )
    assert review_of_form({"reason": [""]}) == Review()
    for wrong in ({"remove": ["1"]}, {"remove": ["-1"], "reason": ["other"]}, {"keep": ["a.b"]}, {"keep": ["1" * 20]}):
        with pytest.raises(InvalidParameter):
            review_of_form(wrong)


def test_ticks_of_a_timeline_never_say_the_same():
    noon = 1_794_830_400  # 16 Nov 2026, 12:00 UTC
    assert tick_names([noon + 600 * i for i in range(3)]) == ["16 Nov, 12:00 UTC", "12:10", "12:20"]
    assert tick_names([noon + 8 * 3600 * i for i in range(3)]) == ["16 Nov, 12:00 UTC", "20:00", "17 Nov, 04:00 UTC"]
    assert tick_names([noon, noon + 86_400]) == ["16 Nov 2026", "17 Nov 2026"]
    assert tick_names([noon + 30 * i for i in range(3)]) == ["16 Nov, 12:00:00 UTC", "12:00:30", "12:01:00"]


def test_the_planner_is_asked_for_a_round_like_the_task():
    assert question_near(TaskSettings(name="x")) == PlannerQuestion(users=10_000, optin_percent=5.0, epsilon=4.0)
    far = TaskSettings(name="x", epsilon=0.1, expected_clients=50_000_000, max_head_queries=2000)
    assert (question_near(far).users, question_near(far).epsilon, question_near(far).max_head_queries) == (
        2_000_000,
        0.5,
        500,
    )
    crowd = PlannerQuestion(users=2_000_000, optin_percent=30.0)
    assert crowd.simulated_records == 1, "more opt-in users than are drawn one by one"
    for records in (1, 7):
        assert question_near(TaskSettings(name="x", records_per_optin=records)).simulated_records == records


def test_a_question_keeps_to_its_sliders_and_the_forecast_is_of_the_epsilon_asked():
    for wrong in ({"users": "1"}, {"epsilon": "nan"}, {"delta_exponent": "99"}, {"users": "x"}, {"epsilon": "1e400"}):
        with pytest.raises(InvalidParameter):
            PlannerQuestion.of_form(wrong)
    question = PlannerQuestion.of_form({"epsilon": "2.5", "users": "20000"})
    epsilons = asked_epsilons(question)
    assert (2.5 in epsilons, epsilons) == (True, sorted(epsilons))
    band = {"mean": 1.0, "low": 0.5, "high": 2.0}
    curves = {
        method: {
            name: [None if e < 2 else {**band, "mean": e} for e in epsilons]
            for name in ("head_queries", "covered", "within_1", "within_10")
        }
        for method in ("best", "paper")
    }
    page = planner_page(question, {"curves": curves})
    assert page.chosen[1] == ("Share of all searches that they make up", ["250 % (50.0 % to 200 %)"] * 2)
    assert page.charts[0].series[0].values[0] is None


def test_a_task_that_cannot_be_read_is_an_alert_and_hides_no_other(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        broken, fine = http.parts.task(name="broken one"), http.parts.task(name="fine one")
        for task in (broken, fine):
            http.parts.open(task)
        for table in ("tasks", "rounds"):
            http.parts.store.database.execute(f"UPDATE {table} SET settings = '{{' WHERE task = ?", (broken.task,))
        person = Person(http, "operator")
        text = person.get("/console").text
        assert "A task cannot be read" in text
        for path in ("", "/trends", "/search", "/budget", "/refusals", f"/tasks/{broken.task}", f"/tasks/{fine.task}"):
            answer = person.get(f"/console{path}")
            assert (path, answer.status_code) == (path, 200)
        assert "cannot be read" in person.get(f"/console/tasks/{broken.task}").text
        assert "Stop the task for good?" in person.post(f"/console/tasks/{broken.task}/kill").text
        assert person.confirm(f"/console/tasks/{broken.task}/kill").status_code == 303
        assert http.parts.store.rounds.task(broken.task).killed


def test_overdue_shredding_is_an_alert_and_no_server_is_ready(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        http.parts.open(http.parts.task())
        assert http.health.get("/readyz").status_code == 200
        http.parts.clock.time += 1000 + 60
        answer = http.health.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "shredding is overdue in 1 rounds\n")
        assert "Shredding is overdue" in Person(http, "operator").get("/console").text
        assert "searchblend_shredding_overdue 1" in http.health.get("/metrics").text
        http.parts.work()
        assert http.health.get("/readyz").text == "ready\n"
