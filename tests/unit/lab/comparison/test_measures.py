"""Figures against the log itself, on logs that can be counted by hand."""

from __future__ import annotations

import pytest

from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.comparison.measures import Row, Yardstick, release_row, rule_row, where_rules_publish_more
from searchblend_lab.comparison.published import Published, TrueCounts, publish
from searchblend_lab.comparison.rules import rules_of

LOG = InMemoryClickLog(
    [[Search("a", 0, ("u", "v")), Search("a", 1, ("u",)), Search("b", 2)]]
    + [[Search("a", 0, ("u",))]] * 3
    + [[Search("c", 0, ("w",)), Search("d", 1)]]
)
"""five people, eight searches: a five times by four, b, c and d once each; six clicks"""


def test_the_truth_is_counted_by_users_and_by_searches():
    truth = TrueCounts.of(LOG)
    assert truth.users == {"a": 4, "b": 1, "c": 1, "d": 1}
    assert truth.searches == {"a": 5, "b": 1, "c": 1, "d": 1}
    assert truth.pair_users == {("a", "u"): 4, ("a", "v"): 1, ("c", "w"): 1}
    assert truth.clicks == {("a", "u"): 5, ("a", "v"): 1, ("c", "w"): 1}


def test_the_truth_shows_nothing_of_itself():
    assert "u" not in repr(TrueCounts.of(LOG)).split("TrueCounts")[-1]


def test_shares_are_of_the_whole_log():
    yardstick = Yardstick(TrueCounts.of(LOG))
    figures = yardstick.measure(Published({"a": 6, "b": 1}, {("a", "u"): 5}), yardstick.truth.users)
    assert figures["queries"] == 2
    assert figures["search_volume"] == 6 / 8
    assert figures["click_volume"] == 5 / 7
    assert figures["long_tail"] == 1 / 3, "a is the head: it alone makes up half of the searches"
    assert figures["count_error"] == (2 / 4 + 0) / 2
    assert figures["keywords_kept"] == 1 / 2, "c leads to w, which was not published"


def test_a_log_without_clicks_has_no_figures_about_clicks():
    truth = TrueCounts.of(InMemoryClickLog([[Search("a")], [Search("a")]]), urls=False)
    figures = Yardstick(truth).measure(Published({"a": 2}, {}), truth.users)
    assert [figures[name] for name in ("pairs", "click_volume", "keywords_kept", "long_tail")] == [None] * 4


@pytest.mark.parametrize("algorithm", ["gaussian", "weighted_gaussian", "dp_sips", "kkmn2009"])
def test_a_run_is_a_release(algorithm):
    """The same noise gives what ``release_data`` publishes, count by count."""
    params = ClickGraphParams(
        Budget(4.0, 1e-3), algorithm=algorithm, max_queries_per_user=2, max_clicks_per_user=2, urls="private"
    )
    log = InMemoryClickLog([[Search(f"q{i % 9}", 0, (f"u{i % 7}",)), Search("all", 1, ("v",))] for i in range(700)])
    released = release_data(log, params, randomness=SeededRandomness(5))
    run = publish(log, ClickGraphDesign.of(params), SeededRandomness(5))
    assert run.queries == {row.query: row.count for row in released.queries}
    assert run.pairs == {(row.query, row.url): row.count for row in released.clicks}
    assert len(run.pairs) > 1


def test_runs_are_summed_up_and_a_rule_is_always_the_same():
    log = InMemoryClickLog([[Search("common")], [Search("common")]] * 60 + [[Search("rarer")]] * 2)
    yardstick = Yardstick(TrueCounts.of(log, urls=False))
    params = ClickGraphParams(Budget(2.0, 0.05), max_queries_per_user=1)
    row = release_row("gaussian", ClickGraphDesign.of(params), log, yardstick, runs=20, seed=1)
    assert row.least["queries"] == 1 < row.mean["queries"] < row.most["queries"] == 2
    (rule,) = rules_of("threshold:7")
    assert rule_row(rule, yardstick).least == rule_row(rule, yardstick).most


def row(name: str, *, private: bool, **figures: float) -> Row:
    every = dict.fromkeys(
        ("queries", "search_volume", "pairs", "click_volume", "keywords_kept", "long_tail", "count_error")
    )
    return Row(name, "", private, every | figures, every | figures, every | figures)


def test_where_a_rule_is_ahead_is_said():
    release = row("release", private=True, queries=9.0, search_volume=0.5, count_error=0.1)
    ahead, behind = (row(name, private=False, queries=n, count_error=e) for name, n, e in (("x", 10, 0), ("y", 9, 0.2)))
    assert where_rules_publish_more([release, ahead, behind]) == [
        "queries: x (10) against 9 of release",
        "error: x (0.0 %) against 10.0 % of release",
    ]
    assert where_rules_publish_more([ahead]) == []
