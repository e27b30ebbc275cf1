"""Replays ``vectors/v1``: what every implementation of the protocol must reproduce, and what it must refuse."""

from __future__ import annotations

import json
from decimal import ROUND_FLOOR, Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

from searchblend.blender.estimates import Estimates
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.paper.blend import blend_probabilities, project_onto_simplex
from searchblend.blender.paper.estimate_client import count_reports, estimate_client_probabilities
from searchblend.blender.paper.estimate_optin import estimate_optin_probabilities
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.wire.head_list import decode_head_list

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"


def cases(name):
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert document["version"] == 1
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in document["cases"]])


def params_of(case):
    p = case["params"]
    return BlenderParams(
        Budget(p["epsilon"], p["delta"]),
        query_budget_fraction=p["query_budget_fraction"],
        records_per_client=p["records_per_client"],
    )


def floats(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def check_same(found, expected):
    np.testing.assert_allclose(found, floats(expected), rtol=1e-12, atol=1e-15)


@cases("report_probabilities")
def test_report_probabilities(case):
    probabilities = ReportProbabilities.of(HeadList(case["queries"]), params_of(case))
    assert str(probabilities.keep_query_below) == case["keep_query_below"]
    assert [str(below) for below in probabilities.keep_record_below] == case["keep_record_below"]


@cases("report_probabilities")
def test_thresholds_agree_with_decimal_arithmetic(case):
    """The same thresholds from the printed formulas, by another arithmetic: 60-digit decimals."""
    p, widths = case["params"], [len(urls) + 1 for _, urls in case["queries"]] + [1]
    with localcontext() as context:
        context.prec = 60
        epsilon, delta = (Decimal(p[name]) / p["records_per_client"] for name in ("epsilon", "delta"))
        fraction = Decimal(p["query_budget_fraction"])

        def keep(share, k):
            e = (share * epsilon).exp()
            return (e + share * delta / 2 * (k - 1)) / (e + k - 1)

        def floor(x):
            return x.to_integral_value(ROUND_FLOOR)

        below = floor(2**64 * keep(fraction, len(widths)))
        assert str(below) == case["keep_query_below"]
        assert [str(floor(below * keep(1 - fraction, k))) for k in widths] == case["keep_record_below"]


@cases("local_report")
def test_local_report(case):
    tape = Tape(bytes.fromhex(case["tape"]))
    records = [Record(*pair) for pair in case["records"]]
    report = local_report(records, HeadList(case["queries"]), params_of(case), randomness=tape)
    assert list(report) == case["report"]
    assert tape.left == 0


@cases("estimate_client")
def test_estimate_client(case):
    counts = np.array(case["report_counts"])
    found = estimate_client_probabilities(counts, HeadList(case["queries"]), params_of(case))
    check_same(found.records.probability, case["cell_probability"])
    check_same(found.records.variance, case["cell_variance"])
    check_same(found.queries.probability, case["query_probability"])
    check_same(found.queries.variance, case["query_variance"])


@cases("estimate_optin")
def test_estimate_optin(case):
    users = [[Record(query, WILDCARD if url is None else url)] for query, url in case["records"]]
    group = InMemoryGroup.from_users(users)
    params = BlenderParams(Budget(case["epsilon"], 1e-5), max_head_queries=case["max_head_queries"])
    tape = Tape(bytes.fromhex(case["tape"]))
    head, found = estimate_optin_probabilities(group, HeadList(case["candidates"]), params, randomness=tape)
    assert head.as_json() == case["queries"]
    check_same(found.records.probability, case["cell_probability"])
    check_same(found.records.variance, case["cell_variance"])
    check_same(found.queries.probability, case["query_probability"])
    check_same(found.queries.variance, case["query_variance"])


@cases("blend")
def test_blend(case):
    groups = [
        Estimates(floats(case[name]["probability"]), floats(case[name]["variance"])) for name in ("optin", "client")
    ]
    blended = blend_probabilities(*groups)
    check_same(blended.optin_weight, case["optin_weight"])
    check_same(blended.raw.probability, case["raw_probability"])
    check_same(blended.raw.variance, case["variance"])
    check_same(blended.probability, case["probability"])


@cases("projection")
def test_projection(case):
    check_same(project_onto_simplex(np.array(case["in"])), case["out"])


@cases("bad_head_list")
def test_bad_head_list_is_refused(case):
    assert case["refused_by"] == "decode_head_list"
    with pytest.raises(MessageError) as refusal:
        decode_head_list(case["document"])
    assert case["says"] in str(refusal.value)


@cases("bad_report_probabilities")
def test_bad_report_probabilities_are_refused(case):
    assert case["refused_by"] == "ReportProbabilities"
    with pytest.raises(InvalidParameter) as refusal:
        ReportProbabilities.of(HeadList(case["queries"]), params_of(case))
    assert refusal.value.field == case["says"]


@cases("bad_report")
def test_bad_report_is_refused(case):
    assert case["refused_by"] == "count_reports"
    with pytest.raises(MessageError):
        count_reports(np.array(case["cells"]), HeadList(case["queries"]))
