"""Local search answers what was released, for what people type."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, encode_pack
from searchblend.search.pack_index import Rows, allowed_errors


def test_best_url_first_and_typed_forms_are_normalized():
    users = [[Record("weather", "http://often.example")]] * 6000 + [[Record("weather", "http://seldom.example")]] * 600
    optin, clients = InMemoryGroup.from_users(users).split(0.5)
    index = SearchIndex(run_blender(optin, clients, BlenderParams(Budget(6.0, 1e-5))))
    assert index.urls_for("  WEATHER ") == ["http://often.example", "http://seldom.example"]
    assert index.urls_for("weather", limit=1) == ["http://often.example"]
    assert index.urls_for("nobody asked") == []
    assert index.urls_for("\ud800") == []
    assert len(index) == 1


def index_of(numbers):
    entries = [
        PackEntry(query, lower, lower + gap, (PackUrl("http://u.example", lower, lower),))
        for query, (lower, gap) in numbers.items()
    ]
    return SearchIndex(Pack(encode_pack(PackInfo("best", 4.0, 0.0), entries)))


QUERIES = st.dictionaries(st.text("abw", min_size=1, max_size=9), st.tuples(st.integers(1, 3), st.integers(0, 2)))


@settings(max_examples=150, deadline=None)
@given(QUERIES, st.text("abw", min_size=1, max_size=9), st.integers(1, 6))
def test_the_order_is_that_of_the_protocol(numbers, typed, limit):
    """Every query of the pack, ranked the long way."""
    ranked = []
    for query, (lower, gap) in numbers.items():
        best = (-lower, -(lower + gap), query.encode())
        distance = Rows(typed, allowed_errors(typed)).distance(query)
        if query == typed:
            ranked.append((0, 0, *best))
        elif query.startswith(typed):
            ranked.append((1, 0, *best))
        elif allowed_errors(typed) and distance is not None:
            ranked.append((2, distance, *best))
    expected = [(("exact", "prefix", "typo")[kind], distance, query) for kind, distance, _, _, query in sorted(ranked)]
    index = index_of(numbers)
    found = [(item.kind, item.distance, item.entry.query.encode()) for item in index.search(typed, limit)]
    assert found == expected[:limit]
    plain = [item.kind for item in index.search(typed, limit, typos=False)]
    assert plain == [kind for kind, _, _ in expected if kind != "typo"][:limit]


def test_a_lucky_estimate_does_not_come_first():
    """By the lower bound: 5 ± 1 before 8 ± 6."""
    index = index_of({"aa": (4, 1), "ab": (2, 6)})
    assert [item.entry.query for item in index.search("a")] == ["aa", "ab"]


@pytest.mark.parametrize(("n", "errors"), [(3, 0), (4, 1), (7, 1), (8, 2), (64, 2), (65, 0)])
def test_how_much_is_forgiven(n, errors):
    assert allowed_errors("x" * n) == errors


def test_a_limit_below_one_is_misuse():
    with pytest.raises(InvalidParameter, match="limit"):
        index_of({}).search("a", 0)


def test_a_pack_that_nobody_checked_is_refused_while_searching():
    """Opened by its header alone, a damaged pack may fail later; then it says so."""
    entries = [PackEntry(f"weather {i:02}", 9, 9, (PackUrl("http://u.example", 9, 9),)) for i in range(40)]
    content = bytearray(encode_pack(PackInfo("best", 4.0, 0.0), entries))
    content[content.index(b"weather 16")] = 0xE2
    index = SearchIndex(Pack(bytes(content)))
    with pytest.raises(MessageError, match="UTF-8"):
        index.search("wether 16")
