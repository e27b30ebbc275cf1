"""What each rule lets pass, and what it cannot be asked."""

from __future__ import annotations

import pytest

from searchblend.core.errors import UsageError
from searchblend_lab.comparison.published import TrueCounts
from searchblend_lab.comparison.rules import FILTERS, rules_of

TRUTH = TrueCounts(
    users={"weather": 30, "news": 29, "ada quillfeather": 1},
    searches={"weather": 50, "news": 90, "ada quillfeather": 4},
    pair_users={("weather", "w"): 5, ("weather", "x"): 4, ("news", "n"): 29},
    clicks={("weather", "w"): 7, ("weather", "x"): 40, ("news", "n"): 29},
)


@pytest.mark.parametrize(
    ("rule", "queries", "pairs"),
    [
        ("threshold:30/5", {"weather": 50}, {("weather", "w"): 7}),
        ("threshold:30/4", {"weather": 50}, {("weather", "w"): 7, ("weather", "x"): 40}),
        ("threshold:29/5", {"weather": 50, "news": 90}, {("weather", "w"): 7, ("news", "n"): 29}),
        ("threshold:30", {"weather": 50}, {("weather", "w"): 7, ("weather", "x"): 40}),
        ("threshold:31", {}, {}),
        ("filters:digits", dict(TRUTH.searches), dict(TRUTH.clicks)),
        ("filters:personal", dict(TRUTH.searches), {}),  # what is no public web address stays out
    ],
)
def test_a_rule_decides_by_users_and_publishes_exact_counts(rule, queries, pairs):
    (one,) = rules_of(rule)
    published = one.publish(TRUTH)
    assert (dict(published.queries), dict(published.pairs)) == (queries, pairs)


def test_an_allow_list_lets_pass_what_is_made_of_its_entities(tmp_path):
    names = tmp_path / "entities.txt"
    names.write_text("New  York\nhotel\n\nyork minster\n")
    (rule,) = rules_of(f"allow-list:{names}")
    asked = ["new york", "hotel new york", "new york hotel hotel", "york", "new york minster", "hotel new", ""]
    assert [rule.admits(query, None) for query in asked] == [True, True, True, False, False, False, True]
    assert rule.common == ("new york", "hotel")


def test_an_allow_list_of_one_still_has_two_queries_for_the_attacker(tmp_path):
    (tmp_path / "one.txt").write_text("paris\n")
    (rule,) = rules_of(f"allow-list:{tmp_path / 'one.txt'}")
    assert all(rule.admits(query, None) for query in rule.common)
    assert len(set(rule.common)) == 2


@pytest.mark.parametrize(
    ("name", "kept", "dropped"),
    [
        ("digits", "mill lane", "17 mill lane"),
        ("e-mail", "ada at home", "mail ada@quillfeather.example"),
        ("length", "one two three four five", "one two three four five six"),
        ("length", "x" * 40, "x" * 41),
        ("personal", "ada quillfeather", "call +44 20 7946 0958"),
    ],
)
def test_filters_look_at_the_string_alone(name, kept, dropped):
    admits, _ = FILTERS[name]
    assert admits(kept, None)
    assert not admits(dropped, None)


def test_filters_add_up():
    (rule,) = rules_of("filters:digits+length")
    assert rule.admits("weather", None)
    assert not rule.admits("weather 1", None)
    assert not rule.admits("x" * 41, None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected threshold:QUERY/PAIR"),
        ("median:3", "expected threshold:QUERY/PAIR"),
        ("threshold:many", "expected whole numbers of users"),
        ("threshold:0", "expected whole numbers of users"),
        ("threshold:30/", "expected whole numbers of users"),
        ("threshold:-30/5", "expected whole numbers of users"),
        ("threshold:30/5,threshold:30/5", "each rule once"),
        ("filters:nonsense", "there is no filter 'nonsense'; expected digits, e-mail, length, personal"),
        ("filters:digits+", "there is no filter ''"),
        ("allow-list:", "expected a text file"),
        ("allow-list:no/such/file", "expected a text file"),
    ],
)
def test_what_is_no_rule_is_refused(text, problem):
    with pytest.raises(UsageError) as refusal:
        rules_of(text)
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_allow_list_without_an_entity_is_refused(tmp_path):
    (tmp_path / "empty.txt").write_text("\n  \n")
    with pytest.raises(UsageError, match="names no entity"):
        rules_of(f"allow-list:{tmp_path / 'empty.txt'}")
