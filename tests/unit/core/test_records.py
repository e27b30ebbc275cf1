"""Records, the wildcard and the head list."""

from __future__ import annotations

import copy
import pickle

import pytest

from searchblend.core.errors import MessageError
from searchblend.core.records import WILDCARD, HeadList, Record, Wildcard

HEAD = HeadList({"b": ["u", "v"], "a": ["w"], "c": []})


def test_the_wildcard_is_one_value_and_no_text():
    assert Wildcard() is WILDCARD
    assert WILDCARD != "*"
    assert repr(WILDCARD) == "⋆"
    assert copy.deepcopy(WILDCARD) is WILDCARD
    assert pickle.loads(pickle.dumps(WILDCARD)) is WILDCARD


def test_a_record_shows_nothing_of_itself():
    record = Record("my disease", "http://clinic.example")
    for shown in (repr(record), str(record), f"{record}", f"{[record]}", repr({"r": record})):
        assert "disease" not in shown
        assert "clinic" not in shown


def test_a_record_without_url_has_the_wildcard():
    assert Record("q").url is WILDCARD
    assert Record("q") != Record("q", "*")


def test_cells_come_query_by_query_with_the_wildcard_last():
    assert [tuple(cell) for cell in HEAD.cells()] == [
        ("b", "u"),
        ("b", "v"),
        ("b", WILDCARD),
        ("a", "w"),
        ("a", WILDCARD),
        ("c", WILDCARD),
        (WILDCARD, WILDCARD),
    ]
    assert HEAD.n_cells == 7
    assert HEAD.n_urls == (3, 2, 1, 1)
    assert HEAD.n_queries == 4
    assert HEAD.n_records == 3
    assert HEAD.first_cells() == [0, 3, 5, 6]
    assert HEAD.query_of_cells() == [0, 0, 0, 1, 1, 2, 3]


@pytest.mark.parametrize(
    ("record", "cell"),
    [
        (Record("b", "v"), 1),
        (Record("b", "w"), 2),
        (Record("b"), 2),
        (Record("a", "w"), 3),
        (Record("c", "u"), 5),
        (Record("d", "u"), 6),
        (Record("*", "*"), 6),
        (Record(WILDCARD, "u"), 6),
    ],
)
def test_the_cell_of_a_record(record: Record, cell: int):
    assert HEAD.cell_of(record) == cell


def test_a_list_without_urls_counts_its_queries_as_records():
    queries = HeadList({"a": [], "b": []})
    assert not queries.has_urls
    assert (queries.n_records, queries.n_cells) == (2, 3)
    assert HEAD.has_urls


def test_the_empty_list_is_the_wildcard_alone():
    empty = HeadList({})
    assert (len(empty), empty.n_cells, empty.n_queries, empty.n_urls) == (0, 1, 1, (1,))
    assert empty.cell_of(Record("a", "u")) == 0


def test_lists_are_equal_in_content_and_order():
    assert HeadList([("a", ["u"]), ("b", [])]) == HeadList({"a": ["u"], "b": []})
    assert HeadList({"a": [], "b": []}) != HeadList({"b": [], "a": []})
    assert HeadList({}) != "HeadList"
    assert "a" in HEAD
    assert "d" not in HEAD
    assert WILDCARD not in HEAD


def test_a_list_shows_its_size_and_no_query():
    shown = repr(HeadList({"my disease": ["http://clinic.example"]}))
    assert shown.startswith("HeadList(1 queries, 1 records, ")
    assert "disease" not in shown


@pytest.mark.parametrize(
    "broken",
    [
        [("a-secret", []), ("a-secret", [])],
        [("q", ["a-secret", "a-secret"])],
        [(7, [])],
        [(WILDCARD, [])],
        [("q", [WILDCARD])],
        [("q", [None])],
        [("q", [["a-secret"]])],
        [("a-secret \ud800", [])],
        [("q", ["a-secret \udfff"])],
    ],
    ids=[
        "query twice",
        "URL twice",
        "number",
        "wildcard query",
        "wildcard URL",
        "null URL",
        "list for a URL",
        "no UTF-8",
        "URL no UTF-8",
    ],
)
def test_a_broken_list_is_refused_without_quoting_it(broken):
    with pytest.raises(MessageError) as refused:
        HeadList(broken)
    assert "a-secret" not in str(refused.value)
