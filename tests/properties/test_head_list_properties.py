"""Cells, their numbers and the digest of a head list."""

from __future__ import annotations

import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st

from searchblend.core.records import WILDCARD, HeadList, Record
from strategies import TEXTS, head_lists


@given(head_lists())
def test_every_cell_is_where_it_says(head: HeadList):
    cells = list(head.cells())
    assert [head.cell_of(cell) for cell in cells] == list(range(head.n_cells))
    assert len(set(cells)) == head.n_cells
    assert cells[-1] == Record(WILDCARD, WILDCARD)


@given(head_lists())
def test_sizes_count_the_wildcard(head: HeadList):
    assert head.n_queries == len(head.n_urls) == len(head.queries) + 1
    assert sum(head.n_urls) == head.n_cells
    assert head.n_urls[-1] == 1
    assert [width - 1 for width in head.n_urls[:-1]] == [len(head.urls(query)) for query in head.queries]


@given(head_lists())
def test_first_cells_and_queries_of_cells_agree(head: HeadList):
    query_of = head.query_of_cells()
    first = head.first_cells()
    assert len(query_of) == head.n_cells
    assert [query_of[cell] for cell in first] == list(range(head.n_queries))
    for cell, record in enumerate(head.cells()):
        name = head.queries[query_of[cell]] if query_of[cell] < len(head) else WILDCARD
        assert record.query == name
        assert 0 <= cell - first[query_of[cell]] < head.n_urls[query_of[cell]]


@given(head_lists(), TEXTS, TEXTS)
def test_what_is_not_listed_is_a_wildcard(head: HeadList, query: str, url: str):
    cell = head.cell_of(Record(query, url))
    named = list(head.cells())[cell]
    if query not in head:
        assert named == Record(WILDCARD, WILDCARD)
    elif url not in head.urls(query):
        assert named == Record(query, WILDCARD)
    else:
        assert named == Record(query, url)
    assert head.cell_of(Record(WILDCARD, url)) == head.n_cells - 1


@given(head_lists())
def test_digest_is_that_of_the_content(head: HeadList):
    rebuilt = HeadList(head.as_json())
    assert rebuilt == head
    assert (rebuilt.digest, hash(rebuilt)) == (head.digest, hash(head))
    assert len(head.digest) == 64
    assert copy.deepcopy(head).digest == pickle.loads(pickle.dumps(head)).digest == head.digest


@given(head_lists(min_queries=1), st.data())
def test_digest_notices_any_change(head: HeadList, data: st.DataObject):
    lists = [(query, list(urls)) for query, urls in head.as_json()]
    position = data.draw(st.integers(0, len(lists) - 1))
    query, urls = lists[position]
    added = data.draw(TEXTS.filter(lambda url: url not in urls))
    changed = HeadList([*lists[:position], (query, [*urls, added]), *lists[position + 1 :]])
    shorter = HeadList(lists[:position] + lists[position + 1 :])
    assert len({head.digest, changed.digest, shorter.digest}) == 3
    assert head not in (changed, shorter)
    if len(lists) > 1:
        assert HeadList(lists[::-1]).digest != head.digest


def test_digest_is_the_same_for_ever():
    """SHA-256 of ``[["naïve",["u"]],["*",[]]]`` in UTF-8: devices in the field compare it."""
    head = HeadList({"naïve": ["u"], "*": []})
    assert head.digest == "8be779f15457d9602958b22df9a68fbd35b3795353388f1e9dc7aaea2fbce447"
