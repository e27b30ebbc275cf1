"""What of a release is certain enough for a pack."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import pytest

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.result import result_of
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.search.build_pack import build_pack, pack_of_release
from searchblend.wire.release import decode_result, encode_result


def row(query, url, low, probability, kind="record"):
    return {**trend(query, low, probability), "url": url, "kind": kind}


def trend(query, low, probability):
    unused = {"variance": 0.1, "raw_probability": 0.1, "optin": None, "client": None, "optin_weight": 0.5}
    return {"query": query, "kind": "query", "interval": [low, 1.0], "probability": probability, **unused}


def result(trends, records):
    rest = {**trend(None, 0.1, 0.5), "kind": "rest"}
    return {
        "format": "searchblend-result",
        "version": 1,
        "method": "best",
        "guarantee": GUARANTEE,
        "groups": {"optin_users": 10, "head_users": 10, "estimate_users": 10, "clients": 10},
        "head": {"queries": len(trends), "records": len(records), "digest": ""},
        "parameters": {},
        "mechanism": {},
        "trends": [*trends, rest],
        "records": [*records, {**rest, "url": None}],
    }


GUARANTEE = {
    "epsilon": 2.0, "delta": 1e-6, "holds": True, "unit": "", "neighbors": "", "groups": [], "conditions": []
}  # fmt: skip
UNIT = 2.0**-24


def built_from(document, **arguments):
    return build_pack(decode_result(document), **arguments)


def numbers(document):
    return {
        entry.query: (entry.lower, entry.probability, [tuple(url) for url in entry.urls])
        for entry in built_from(document).pack.entries()
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
    built = built_from(document)
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
    assert len(built_from(document).pack) == 0


def test_a_release_and_its_document_make_the_same_pack():
    users = [[Record(f"query {i % 4}", f"http://{i % 3}.example")] for i in range(6000)]
    optin, clients = InMemoryGroup.from_users(users).split(0.5)
    for method in ("best", "paper"):
        release = run_blender(optin, clients, BlenderParams(Budget(6.0, 1e-5)), method=method)
        document = json.loads(json.dumps(encode_result(result_of(release))))
        assert built_from(document).content == pack_of_release(release).content


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": "other"}, "expected searchblend-result"),
        ({"notice": "NOT PRIVATE"}, "not private"),
        ({"trends": None}, "expected the fields"),
        ({"records": [{}]}, "expected the fields"),
        ({"guarantee": {}}, "expected the fields"),
        ({"method": "worst"}, "method"),
        ({"guarantee": {**GUARANTEE, "epsilon": 0.0, "delta": 0.0}}, "epsilon"),
        ({"guarantee": {**GUARANTEE, "epsilon": 10**400, "delta": 0.0}}, "guarantee.epsilon: expected a finite"),
        (
            {"guarantee": {**GUARANTEE, "epsilon": math.nan, "delta": 0.0}},
            "guarantee.epsilon: expected a finite",
        ),
        ({"guarantee": {**GUARANTEE, "epsilon": True, "delta": 0.0}}, "guarantee.epsilon: expected a finite"),
        ({"guarantee": {**GUARANTEE, "epsilon": 2.0, "delta": "0"}}, "guarantee.delta: expected a finite"),
        ({"version": True}, "version 1"),
    ],
)
def test_other_documents_are_refused(change, says):
    document = {**copy.deepcopy(result([], [])), **change}
    with pytest.raises(MessageError, match=says):
        built_from(document)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, "0.15", True, [0.15]])
@pytest.mark.parametrize("field", ["probability", "interval"])
@pytest.mark.parametrize("name", ["trends", "records"])
def test_numbers_are_finite_numbers(name, field, value):
    document = result([trend("a", 0.1, 0.2)], [row("a", "http://a.example", 0.1, 0.2)])
    document[name][0][field] = [value, 1.0] if field == "interval" else value
    with pytest.raises(MessageError, match=rf"result: {name}\[0\]\.{field}.*: expected a finite number"):
        built_from(document)


@pytest.mark.parametrize(
    ("field", "value"), [("query", ["a"]), ("query", None), ("query", 5), ("url", 5), ("url", ["u"])]
)
def test_texts_are_texts(field, value):
    document = result([trend("a", 0.1, 0.2)], [row("a", "http://a.example", 0.1, 0.2)])
    document["records"][0][field] = value
    with pytest.raises(MessageError, match=r"result: records\[0\]: expected a string"):
        built_from(document)


def test_an_estimate_that_is_not_known_stays_out():
    document = result(
        [trend("a", 0.1, 0.2)], [row("a", "http://a.example", None, 0.2), row("a", "http://b.example", 0.1, 0.2)]
    )
    assert [url for url, *_ in numbers(document)["a"][2]] == ["http://b.example"]
    known = decode_result(result([trend("a", 0.1, 0.2)], []))
    for unknown in (None, math.nan, math.inf, -math.inf):
        for changes in ({"interval": (unknown, 1.0)}, {"probability": unknown}):
            trends = (replace(known.trends[0], **changes), known.trends[1])
            assert len(build_pack(replace(known, trends=trends)).pack) == 0


def test_numbers_beyond_a_probability_are_cut():
    document = result([trend("a", -1e308, 1e308), trend("b", 1e308, 1e308)], [])
    assert numbers(document) == {"b": (1 << 24, 1 << 24, [])}


@pytest.mark.parametrize(
    ("arguments", "field"), [({"task": b"x"}, "task"), ({"task": bytes([1]) * 16, "round_number": 1 << 32}, "round")]
)
def test_what_the_caller_gave_is_not_the_documents_fault(arguments, field):
    with pytest.raises(InvalidParameter) as refusal:
        built_from(result([], []), **arguments)
    assert refusal.value.field == field
