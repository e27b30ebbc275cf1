"""Which records are named, and in which order."""

from __future__ import annotations

import pytest
from made_groups import Quiet, people

from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import WILDCARD, HeadList, Record

PARAMS = BlenderParams(Budget(4, 1e-5))


def test_records_of_seven_people_are_named_without_noise():
    """T = 7 at ε = 4, δ = 1e-5."""
    group = people({("a", "u"): 7, ("a", "v"): 6, ("b", "u"): 100, ("c", "w"): 1})
    assert create_head_list(group, PARAMS, randomness=Quiet()) == HeadList({"a": ["u"], "b": ["u"]})


def test_the_list_is_ordered_by_bytes_and_never_by_count():
    group = people({("é", "u"): 50, ("z", "b"): 30, ("z", "a"): 10, ("Z", "u"): 90, ("", "u"): 20, ("𝒳", "u"): 99})
    head = create_head_list(group, PARAMS, randomness=Quiet())
    assert head.queries == ("", "Z", "z", "é", "𝒳")
    assert head.urls("z") == ("a", "b")


def test_the_order_of_the_input_does_not_matter():
    counts = {(f"q{i}", f"u{i % 3}"): 10 + i for i in range(20)}
    backwards = dict(reversed(counts.items()))
    one, two = (create_head_list(people(c), PARAMS, randomness=Quiet()) for c in (counts, backwards))
    assert one == two


def test_logs_without_urls_give_queries_alone():
    head = create_head_list(people({"b": 9, "a": 8, "c": 2}), PARAMS, randomness=Quiet())
    assert head == HeadList({"a": [], "b": []})
    assert not head.has_urls


def test_the_text_star_is_a_query_like_any_other():
    head = create_head_list(people({("*", "*"): 9}), PARAMS, randomness=Quiet())
    assert head == HeadList({"*": ["*"]})
    assert head.cell_of(Record("*", "*")) == 0
    assert head.cell_of(Record(WILDCARD)) == 2


def test_nobody_gives_an_empty_list():
    assert len(create_head_list(people({}), PARAMS)) == 0
    assert len(create_head_list(people({("a", "u"): 1}), PARAMS, randomness=Quiet())) == 0


def test_noise_is_drawn_for_every_distinct_record_and_no_more():
    """Two bytes each, and the other six where the first two leave it open."""
    asked = []

    class Counting(Quiet):
        def take(self, n_bytes: int) -> bytes:
            asked.append(n_bytes)
            return super().take(n_bytes)

    group = people({("a", "u"): 7, ("a", "v"): 6, ("b", "u"): 100, ("c", "w"): 1, ("d", "w"): 1})
    create_head_list(group, PARAMS, randomness=Counting())
    assert 2 * 5 <= sum(asked) <= 8 * 5
    assert sum(n // 2 if n < 8 else n // 8 for n in asked if n) == 5


def test_more_than_one_record_per_user_is_refused():
    with pytest.raises(InvalidParameter, match="records_per_optin"):
        create_head_list(people({("a", "u"): 7}), BlenderParams(Budget(4, 1e-5), records_per_optin=2))
