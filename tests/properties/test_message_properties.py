"""Whatever bytes arrive: the two report decoders agree, and nothing but a refusal is ever raised."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.core.errors import MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.wire.canonical import canonical_json, parse_canonical
from searchblend.wire.manifest import decode_payload, decode_signed
from searchblend.wire.report import (
    ReportRefused,
    ReportShape,
    counters_of,
    decode_report,
    encode_report,
    report_id,
)
from searchblend.wire.report_batch import decode_reports
from searchblend.wire.sealed import Opener, SealingContext, new_round_key, seal_records

HEAD = HeadList({"google": ["a", "b", "c"], "yahoo": ["a"], "ebay": ["x", "y"]})
DESIGNS = [
    ReportDesign(0, 1, 1, TWO_STAGE),
    *(ReportDesign(steps, 2, 4, kind) for steps in (0, 10, 20) for kind in (SINK_SETS, PLAIN_SETS)),
]


@st.composite
def shapes(draw):
    params = BlenderParams(Budget(1.0, 1e-6), records_per_client=draw(st.integers(1, 3)))
    design = draw(st.sampled_from(DESIGNS))
    return design, params, ReportShape.of(b"t" * 16, 3, HEAD, params, design)


@given(shapes())
def test_what_a_device_says_arrives(drawn):
    design, params, shape = drawn
    parts = subset_report([Record("google", "a")], HEAD, design, params)
    message = encode_report(parts, shape)
    assert len(message) == shape.size
    assert decode_report(message, shape)[1] == parts
    assert sorted(counters_of(parts, shape)) == sorted(decode_reports(message, shape).counters[0].tolist())


@given(shapes(), st.data())
def test_both_decoders_decide_alike_on_changed_parts(drawn, data):
    """Random parts under a right header and a right id: only the strict reading of the parts can refuse them."""
    _, _, shape = drawn
    places = shape.records * shape.items
    number = st.one_of(st.integers(0, 12), st.just(shape.empty))
    numbers = data.draw(st.lists(number, min_size=places, max_size=places))
    kinds = data.draw(st.lists(st.integers(0, 2), min_size=shape.records, max_size=shape.records))
    payload = shape.header
    for i, kind in enumerate(kinds):
        row = numbers[i * shape.items : (i + 1) * shape.items]
        if data.draw(st.booleans()):
            row = sorted(row)
        payload += bytes([kind]) + b"".join(value.to_bytes(shape.width, "big") for value in row)
    message = payload + b"n" * 16 + report_id(b"n" * 16, payload)
    batch = decode_reports(message, shape)
    if batch.refused:
        with pytest.raises(ReportRefused) as refusal:
            decode_report(message, shape)
        assert batch.refused == {0: refusal.value.reason}
    else:
        _, parts = decode_report(message, shape)
        assert sorted(batch.counters[0].tolist()) == sorted(counters_of(parts, shape))


@given(shapes(), st.binary(max_size=300))
@example((DESIGNS[0], None, ReportShape.of(b"t" * 16, 3, HEAD, BlenderParams(Budget(1.0, 1e-6)), None)), b"\1" * 64)
def test_any_bytes_are_refused_and_nothing_else(drawn, message):
    shape = drawn[2]
    with pytest.raises(ReportRefused):
        decode_report(message, shape)


@given(st.binary(max_size=600))
def test_any_bytes_as_a_manifest_or_a_sealed_record_are_refused(message):
    for decode in (decode_signed, decode_payload):
        with pytest.raises(MessageError):
            decode(message)
    context = SealingContext(b"t" * 16, 1, b"c" * 32)
    with pytest.raises(MessageError):
        Opener(b"k" * 32, context, at_most=1).open(message, b"t" * 32)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcXYZ_", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_canonical_json_reads_back(document):
    content = canonical_json(document)
    assert parse_canonical(content, "x") == document
    assert json.loads(content) == document


@pytest.mark.parametrize("document", [0.5, 2**53, {"ü": 1}, "\ud800", Fraction(1, 2), {1: 2}])
def test_what_has_no_canonical_form_is_refused(document):
    with pytest.raises(MessageError):
        canonical_json(document)


@pytest.mark.parametrize("content", [b'{"a": 1}', b'{"b":1,"a":2}', b"1.0", b'"\\u0041"', b"1e3", b'{"a":1,"a":1}'])
def test_other_spellings_are_refused(content):
    with pytest.raises(MessageError):
        parse_canonical(content, "x")


def test_equal_records_give_unlike_sealed_messages_of_one_size():
    _, public = new_round_key()
    context = SealingContext(b"t" * 16, 1, b"c" * 32)
    first, second = (seal_records([Record("q", "u")], context, b"t" * 32, public) for _ in range(2))
    longer = seal_records([Record("a longer query", "http://elsewhere.example/path")], context, b"t" * 32, public)
    assert first != second
    assert len(first) == len(second) == len(longer)
