"""The documents of a release: ⋆, order, missing values, and no NaN in JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from hashlib import sha256

import pytest

from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.result import result_of
from searchblend.core.csv_cells import read_cell
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.wire.head_list import decode_head_list, encode_head_list
from searchblend.wire.release import (
    decode_result,
    decode_statement,
    encode_result,
    encode_statement,
    make_statement,
    result_table,
)

PARAMS = BlenderParams(Budget(4.0, 1e-5), max_head_queries=5, records_per_optin=1)


def people(n, *, urls=True):
    def record(i):
        name = f"query {i % 7}"
        return Record(name, f"http://{i % 3}.example") if urls else Record(name)

    return InMemoryGroup.from_users([[record(i)] for i in range(n)])


@pytest.fixture(
    scope="module",
    params=[(urls, method) for urls in (True, False) for method in ("paper", "best")],
    ids=lambda value: f"{'urls' if value[0] else 'query only'}, {value[1]}",
)
def release(request):
    urls, method = request.param
    optin, clients = people(20_000, urls=urls).split(0.5)
    return run_blender(optin, clients, PARAMS, method=method)


def test_the_result_is_strict_json_with_the_documented_keys(release):
    document = json.loads(json.dumps(encode_result(result_of(release)), allow_nan=False))
    assert {"guarantee", "groups", "head", "mechanism", "records", "trends"} <= set(document)
    assert document["head"]["queries"] == 5
    assert {"name", "threshold", "integer_threshold", "selection_delta", "noise_scale"} <= set(
        document["mechanism"]["optin"]
    )
    assert {"name", "cells_per_report", "keep_query"} <= set(document["mechanism"]["client"])
    assert document["mechanism"]["optin"]["integer_threshold"] == 7
    assert {"query", "url", "probability", "variance", "interval", "optin", "client", "optin_weight"} <= set(
        document["records"][0]
    )


def test_the_star_comes_last_and_is_null(release):
    trends, records = result_of(release).trends, result_of(release).records
    assert trends[-1].query is None
    assert trends[-1].kind == "rest"
    assert records[-1].query is None
    assert records[-1].url is None
    assert records[-1].kind == "rest"
    assert all(row.query is not None for row in trends[:-1])


def test_rows_are_ordered_by_probability_and_sum_to_one(release):
    trends = result_of(release).trends
    shares = [row.probability for row in trends[:-1]]
    assert shares == sorted(shares, reverse=True)
    assert math.isclose(sum(row.probability for row in trends), 1)
    assert math.isclose(sum(row.probability for row in result_of(release).records), 1)


def test_each_cell_appears_once(release):
    assert len(result_of(release).records) == release.head.n_cells
    assert len({(row.query, row.url) for row in result_of(release).records}) == release.head.n_cells


def test_query_rest_has_no_optin_estimate(release):
    if release.method == "best":
        assert all(row.optin is not None for row in result_of(release).records)
        return
    for row in result_of(release).records:
        assert (row.optin is None) == (row.kind == "query_rest")
        if row.kind == "query_rest":
            assert row.optin_weight == 0


def test_csv_tells_the_star_from_an_empty_text(release):
    table = list(csv.DictReader(io.StringIO(result_table(result_of(release).records, ["query", "url"]))))
    assert table[-1]["query"] == ""
    assert table[-1]["kind"] == "rest"
    assert {row["kind"] for row in table} <= {"record", "query_rest", "rest"}
    assert float(table[0]["low"]) <= float(table[0]["raw_probability"]) <= float(table[0]["high"])


def test_spreadsheets_compute_no_query_or_url_of_a_release(release):
    first, *others = result_of(release).records
    first = replace(first, query="=cmd|' /c calc'!a0", url="@sum(1;1)", raw_probability=-0.5)
    rows = [first, *others]
    table = list(csv.DictReader(io.StringIO(result_table(rows, ["query", "url"]))))
    assert table[0]["query"] == "'=cmd|' /c calc'!a0"
    assert table[0]["url"] == "'@sum(1;1)"
    assert table[0]["raw_probability"] == "-0.5"
    assert read_cell(table[0]["query"]) == first.query


def test_the_head_list_survives_the_wire(release):
    document = json.loads(json.dumps(encode_head_list(release.head, release.params, release.design)))
    message = decode_head_list(document)
    head, params = message.head, message.params
    assert head == release.head
    assert message.design == release.design
    assert params.budget == PARAMS.budget
    assert params.query_budget_fraction == (0.85 if head.has_urls else 1.0)


def test_a_result_comes_back_from_its_document(release):
    result = result_of(release)
    result = result.with_influence(dict.fromkeys([row.query for row in result.trends], 0.25))
    document = json.loads(json.dumps(encode_result(result)))
    assert decode_result(document) == result
    assert json.loads(json.dumps(encode_result(decode_result(document)))) == document


def test_a_statement_names_versions_files_and_privacy(release):
    statement = make_statement(
        {"a.csv": b"1"}, kind="blender", method="paper", created="2026-01-01T00:00:00+00:00", parameters={},
        guarantee=release.guarantee.stated(), public=["x"], caveats=["y"],
    )  # fmt: skip
    document = json.loads(json.dumps(encode_statement(statement)))
    assert document["release"]["private"] is True
    assert "numpy" in document["software"]
    assert document["files"] == {"a.csv": {"sha256": sha256(b"1").hexdigest(), "bytes": 1}}
    assert decode_statement(document) == statement
