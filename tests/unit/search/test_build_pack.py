"""What of a release is certain enough for a pack."""

from __future__ import annotations

import copy
import json

import pytest

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.errors import MessageError
from searchblend.params import BlenderParams
from searchblend.privacy import Budget
from searchblend.records import Record
from searchblend.search.build_pack import build_pack
from searchblend.search.release_pack import pack_of_release
from searchblend.wire.release import result_document


def row(query, url, low, probability, kind="record"):
    return {"query": query, "url": url, "kind": kind, "interval": [low, 1.0], "probability": probability}


def trend(query, low, probability):
    return {"query": query, "kind": "query", "interval": [low, 1.0], "probability": probability}


def result(trends, records):
    rest = {"query": None, "kind": "rest", "interval": [0.1, 0.9], "probability": 0.5}
    return {
        "format": "searchblend-result",
        "version": 1,
        "method": "best",
        "guarantee": {"epsilon": 2.0, "delta": 1e-6},
        "trends": [*trends, rest],
        "records": [*records, {**rest, "url": None}],
    }


UNIT = 2.0**-24


def numbers(document):
    return {
        entry.query: (entry.lower, entry.probability, [tuple(url) for url in entry.urls])
        for entry in build_pack(document).pack.entries()
    }


def test_an_interval_that_includes_0_stays_out():
    document = result(
        [trend("a", 0.1, 0.2), trend("b", 0.1, 0.2), trend("c", 0.1, 0.2)],
        [
            row("a", "http://a.example", 0.05, 0.1),
            row("a", "http://none.example", 0.0, 0.1),
            row("a", "http://below.example", -0.1, 0.1),
            row("a", None, 0.05, 0.1, "query_rest"),
            row("b", "http://tiny.example", UNIT / 2, 0.1),
            row("c", "http://projected.example", 0.1, 0.0),
        ],
    )
    built = build_pack(document)
    assert (built.pairs_listed, built.pairs_kept) == (5, 1)
    assert numbers(document) == {
        "a": (int(0.1 / UNIT), int(0.2 / UNIT), [("http://a.example", int(0.05 / UNIT), int(0.1 / UNIT))])
    }


def test_a_query_is_at_least_as_likely_as_its_pairs_and_bounds_are_cut():
    document = result(
        [trend("a", -0.1, 0.05), trend("b", 0.01, 0.02)],
        [row("a", "http://a.example", 0.2, 0.125), row("b", "http://b.example", 0.5, 0.75)],
    )
    eighth, half, more = (int(value / UNIT) for value in (0.125, 0.5, 0.75))
    assert numbers(document) == {
        "a": (eighth, eighth, [("http://a.example", eighth, eighth)]),
        "b": (half, more, [("http://b.example", half, more)]),
    }


def test_without_urls_the_queries_themselves_are_kept():
    document = result([trend("a", 0.1, 0.2), trend("b", 0.0, 0.2)], [row("a", None, 0.1, 0.2), row("b", None, 0, 0.2)])
    assert numbers(document) == {"a": (int(0.1 / UNIT), int(0.2 / UNIT), [])}


def test_texts_that_no_device_could_ask_for_stay_out():
    document = result(
        [trend("Upper", 0.1, 0.2), trend("a", 0.1, 0.2), trend("x" * 3000, 0.1, 0.2)],
        [
            row("Upper", "http://a.example", 0.1, 0.2),
            row("a", "HTTP://B.example/", 0.1, 0.2),
            row("a", "http://a.example", 0.1, 0.2),
            row("x" * 3000, "http://a.example", 0.1, 0.2),
        ],
    )
    assert list(numbers(document)) == ["a"]


def test_nothing_certain_makes_an_empty_pack():
    document = result([trend("a", 0.0, 0.2)], [row("a", "http://a.example", 0.0, 0.2)])
    assert len(build_pack(document).pack) == 0


def test_a_release_and_its_document_make_the_same_pack():
    users = [[Record(f"query {i % 4}", f"http://{i % 3}.example")] for i in range(6000)]
    optin, clients = InMemoryGroup.from_users(users).split(0.5)
    for method in ("best", "paper"):
        release = run_blender(optin, clients, BlenderParams(Budget(6.0, 1e-5)), method=method)
        document = json.loads(json.dumps(result_document(release)))
        assert build_pack(document).content == pack_of_release(release).content


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other"}, "expected searchblend-result"),
        ({"notice": "NOT PRIVATE"}, "not private"),
        ({"trends": None}, "expected the fields"),
        ({"records": [{}]}, "expected the fields"),
        ({"guarantee": {}}, "expected the fields"),
        ({"method": "worst"}, "method"),
        ({"guarantee": {"epsilon": 0.0, "delta": 0.0}}, "epsilon"),
    ],
)
def test_other_documents_are_refused(change, says):
    document = {**copy.deepcopy(result([], [])), **change}
    with pytest.raises(MessageError, match=says):
        build_pack(document)
