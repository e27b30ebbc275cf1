"""Release-Data as a whole: what it asks of a log, what it publishes, and what it never shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from searchblend.clickgraph.release.click_log import Cap, InMemoryClickLog, Search
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget, Neighbors
from searchblend.core.records import Record
from searchblend.synthetic.seeded import SeededRandomness

BUDGET = Budget(4.0, 1e-4)
N = 400
USERS = [
    [
        Search("weather", 0, ("w.example", "suggestion:news")),
        Search("news", 60, ("n.example",)),
        Search("weather", 120, ("w.example", "x.example")),
        Search(f"own {i}", 180, (f"own{i}.example",)),
        Search("maps", 240, ("m.example",)),
    ]
    for i in range(N)
]
PUBLIC = [
    Record("weather", "w.example"),
    Record("weather", "never.example"),
    Record("weather", "suggestion:news"),
    Record("weather", "suggestion:not published"),
    Record("own 1", "own1.example"),
    Record("nobody", "w.example"),
    Record("weather", "w.example"),
]


class Spy(InMemoryClickLog):
    """A log that writes down how it was asked."""

    def __init__(self, users: Sequence[Sequence[Search]]) -> None:
        super().__init__(users)
        self.asked: list[tuple] = []

    def searches(self, cap):
        self.asked.append(("searches", cap))
        return super().searches(cap)

    def weighted_searches(self, first, units, without):
        self.asked.append(("weighted", first, units, set(without)))
        return super().weighted_searches(first, units, without)

    def searches_of(self, queries, cap):
        self.asked.append(("searches_of", set(queries), cap))
        return super().searches_of(queries, cap)

    def clicks(self, queries, cap, *, within):
        self.asked.append(("clicks", set(queries), cap, within))
        return super().clicks(queries, cap, within=within)

    def clicks_of(self, records, cap, *, within, restrict_first=True):
        self.asked.append(("clicks_of", set(records), cap, within, restrict_first))
        return super().clicks_of(records, cap, within=within, restrict_first=restrict_first)

    def reformulations(self, queries, cap):
        self.asked.append(("reformulations", set(queries), cap))
        return super().reformulations(queries, cap)


def run(seed: int = 1, **options):
    log = Spy(USERS)
    params = ClickGraphParams(BUDGET, max_queries_per_user=4, max_clicks_per_user=3, **options)
    public = PUBLIC if params.urls == "public" else None
    return release_data(log, params, public_records=public, randomness=SeededRandomness(seed)), log.asked


HEAD = {"weather", "news"}


def test_the_2009_algorithm_asks_what_the_paper_asks():
    """First d impressions; counts from the same limited log; first d_c clicks of those, restricted afterwards."""
    release, asked = run(algorithm="kkmn2009", urls="public", public_source="made up")
    assert {row.query for row in release.queries} == HEAD
    assert asked == [
        ("searches", Cap(4, distinct=False)),
        (
            "clicks_of",
            set(PUBLIC[:3]),
            Cap(3, distinct=False),
            Cap(4, distinct=False),
            False,
        ),
    ]
    counts = {row.query: row.count for row in release.queries}
    assert counts["weather"] == pytest.approx(2 * N, abs=100)


def test_the_default_counts_users_and_restricts_first():
    release, asked = run(urls="public", public_source="made up")
    assert asked == [
        ("searches", Cap(4)),
        ("clicks_of", set(PUBLIC[:3]), Cap(3), Cap(4), True),
    ]
    counts = {row.query: row.count for row in release.queries}
    assert counts.keys() == HEAD | {"maps"}
    assert counts["weather"] == pytest.approx(N, abs=60)


def test_fresh_counts_look_at_published_queries_alone():
    _, asked = run(query_noise="fresh")
    assert asked == [("searches", Cap(4)), ("searches_of", HEAD | {"maps"}, Cap(4))]


def test_private_pairs_and_typed_pairs_of_published_queries():
    release, asked = run(urls="private", reformulations="typed", max_reformulations_per_user=2)
    head = HEAD | {"maps"}
    assert asked[1:] == [("clicks", head, Cap(3), Cap(4)), ("reformulations", head, Cap(2))]
    assert {(row.query, row.url) for row in release.clicks} <= {
        ("weather", "w.example"),
        ("weather", "x.example"),
        ("news", "n.example"),
        ("maps", "m.example"),
    }
    kinds = {(row.query, row.next_query, row.kind) for row in release.reformulations}
    assert kinds == {("weather", "news", "suggestion"), ("weather", "news", "typed"), ("news", "weather", "typed")}
    graph = release.graph()
    assert len(graph.reformulations) == 2
    assert set(graph.noise) == {"queries", "clicks", "reformulations"}


@pytest.mark.thorough
def test_rounds_leave_out_what_is_published():
    release, asked = run(algorithm="dp_sips", max_counted_queries_per_user=2)
    weighted = [call for call in asked if call[0] == "weighted"]
    assert [call[1] for call in weighted] == [4, 4, 4]
    published = {row.query for row in release.queries}
    assert weighted[0][3] == set()
    assert weighted[0][3] <= weighted[1][3] <= weighted[2][3] <= published
    assert weighted[2][3] >= HEAD
    assert asked[-1] == ("searches_of", published, Cap(2))
    assert [call[2] for call in weighted] == [step.units for step in release.design.rounds]


def test_public_pairs_that_nobody_clicked_have_a_row():
    release, _ = run(urls="public", public_source="made up")
    rows = {(row.query, row.url): row for row in release.clicks}
    assert rows.keys() == {("weather", "w.example"), ("weather", "never.example")}
    never = rows["weather", "never.example"]
    assert abs(never.count) < 60
    assert never.count_clamped == max(never.count, 0)
    assert never.lo95 < never.count < never.hi95
    assert rows["weather", "w.example"].count == pytest.approx(N, abs=60)


def test_clicks_on_suggestions_lead_from_query_to_query():
    release, _ = run(urls="public", public_source="made up")
    assert [(row.query, row.next_query, row.kind) for row in release.reformulations] == [
        ("weather", "news", "suggestion")
    ]
    assert release.reformulations[0].count == pytest.approx(N, abs=60)


@pytest.mark.parametrize("algorithm", ["gaussian", "kkmn2009", "weighted_gaussian", "dp_sips", "adaptive_gaussian"])
def test_nothing_that_one_person_has_comes_out(algorithm):
    for seed in range(3):
        release, _ = run(seed, algorithm=algorithm, urls="private", reformulations="typed")
        texts = [row.query for row in release.queries] + [row.url for row in release.clicks]
        assert not [text for text in texts if text.startswith("own")]


def test_fresh_noise_is_not_the_noise_that_selected():
    """Fresh counts may fall below the threshold, re-used ones cannot."""
    users = [[Search(f"q{i}")] for i in range(400) for _ in range(12)]
    params = ClickGraphParams(Budget(2.0, 1e-3), max_queries_per_user=1, query_noise="fresh")
    fresh = release_data(InMemoryClickLog(users), params, randomness=SeededRandomness(2))
    threshold = fresh.design.rounds[0].threshold
    assert min(row.count for row in fresh.queries) < threshold
    assert all(row.debiased is None for row in fresh.queries)
    params = ClickGraphParams(Budget(2.0, 1e-3), max_queries_per_user=1)
    reused = release_data(InMemoryClickLog(users), params, randomness=SeededRandomness(2))
    threshold = reused.design.rounds[0].threshold
    assert min(row.count for row in reused.queries) >= threshold
    assert all(row.debiased is not None and row.debiased >= 1 for row in reused.queries)


def test_rows_are_ordered_by_what_is_published():
    release, _ = run(urls="private")
    for rows in (release.queries, release.clicks):
        assert [row.count for row in rows] == sorted((row.count for row in rows), reverse=True)


def test_the_promise():
    release, _ = run(urls="public", public_source="results of a public search engine")
    guarantee = release.guarantee
    assert not guarantee.holds
    assert guarantee.neighbors is Neighbors.ADD_REMOVE_ONE
    assert (guarantee.epsilon, guarantee.delta) == (BUDGET.epsilon, BUDGET.delta)
    assert guarantee.groups[0].mechanism_delta <= BUDGET.delta
    assert "results of a public search engine" in str(release.treated_as_public)
    private = release_data(InMemoryClickLog(USERS), ClickGraphParams(BUDGET))
    assert private.guarantee.holds


def test_a_release_says_nothing_of_the_size_of_the_log():
    """Twice the log, in which every query is published anyway: only noisy counts differ."""
    params = ClickGraphParams(BUDGET, population=1000)
    small = release_data(InMemoryClickLog(USERS), params)
    large = release_data(InMemoryClickLog([*USERS, *USERS]), params)
    assert small.design == large.design or small.design.as_json() == large.design.as_json()
    assert str(small.guarantee) == str(large.guarantee)
    assert small.treated_as_public == large.treated_as_public


def test_public_pairs_come_with_their_mode_alone():
    log = InMemoryClickLog(USERS)
    with pytest.raises(InvalidParameter, match="public_records"):
        release_data(log, ClickGraphParams(BUDGET), public_records=PUBLIC)
    with pytest.raises(InvalidParameter, match="public_records"):
        release_data(log, ClickGraphParams(BUDGET, urls="public", public_source="made up"))


def test_an_empty_log_gives_an_empty_release():
    for algorithm in ("gaussian", "kkmn2009", "dp_sips"):
        params = ClickGraphParams(BUDGET, algorithm=algorithm, urls="private", reformulations="typed")
        release = release_data(InMemoryClickLog([]), params)
        assert (release.queries, release.clicks, release.reformulations) == ([], [], [])
        assert "0 queries" in repr(release)
        assert release.graph().queries == ()


def test_steps_are_announced():
    seen: list[str] = []
    params = ClickGraphParams(BUDGET, algorithm="kkmn2009", urls="private", reformulations="typed")
    release_data(InMemoryClickLog(USERS), params, on_step=seen.append)
    assert seen == ["select queries", "query counts", "click counts", "reformulations"]


def test_intervals_and_cuts_of_a_release():
    release, _ = run(urls="public", public_source="made up", reformulations="typed")
    sigma = release.design.click_counts.noise.scale
    row = release.clicks[0]
    assert row.hi95 - row.lo95 == pytest.approx(2 * 1.96 * sigma, abs=2)
    cuts = release.cuts()
    assert cuts["clicks"] == pytest.approx(2.326 * sigma, abs=1.5)
    assert cuts["reformulations"] == release.design.reformulations.threshold
    assert math.isfinite(release.design.as_json()["steps"][0]["epsilon"])


class Flipped(InMemoryClickLog):
    """Restricts before the cap where it should after it, and the other way round."""

    def clicks_of(self, records, cap, *, within, restrict_first=True):
        return super().clicks_of(records, cap, within=within, restrict_first=not restrict_first)


class WholeActivity(InMemoryClickLog):
    """Takes clicks of searches beyond the first d."""

    def clicks_of(self, records, cap, *, within, restrict_first=True):
        return super().clicks_of(records, cap, within=Cap(1000, within.distinct), restrict_first=restrict_first)


def check_order(log_type: type[InMemoryClickLog], algorithm: str) -> None:
    """Two clicks, then the public one, then a search beyond the cap whose click is public too."""
    users = [[Search("q", 0, ("a", "b", "public")), Search("r", 1), Search("s", 2, ("late",))] for _ in range(500)]
    public = [Record("q", "public"), Record("s", "late"), Record("r", "x")]
    params = ClickGraphParams(
        Budget(12.0, 1e-4),
        algorithm=algorithm,
        max_queries_per_user=2,
        max_clicks_per_user=2,
        urls="public",
        public_source="made up",
    )
    more = [[Search("s", 0)]] * 500
    release = release_data(log_type([*users, *more]), params, public_records=public, randomness=SeededRandomness(4))
    counts = {row.url: row.count for row in release.clicks}
    assert counts.keys() == {"public", "late", "x"}
    assert counts["public"] == pytest.approx(0 if algorithm == "kkmn2009" else 500, abs=30)
    assert counts["late"] == pytest.approx(0, abs=30)


@pytest.mark.parametrize("algorithm", ["kkmn2009", "gaussian"])
def test_the_paper_caps_and_then_restricts_the_others_restrict_first(algorithm):
    check_order(InMemoryClickLog, algorithm)


@pytest.mark.parametrize(
    ("algorithm", "mutant"), [("kkmn2009", Flipped), ("gaussian", Flipped), ("gaussian", WholeActivity)]
)
def test_another_order_is_rejected(algorithm, mutant):
    with pytest.raises(AssertionError):
        check_order(mutant, algorithm)
