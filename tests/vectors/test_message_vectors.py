"""Replays the vectors of the binary messages: what every implementation must make, read and refuse."""

from __future__ import annotations

import base64
import json
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from searchblend.blender.best.subset_report import SubsetReport
from searchblend.core.documents import encode
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.randomness import Tape
from searchblend.core.records import WILDCARD, HeadList, Record
from searchblend.device.device_errors import DeviceRefused
from searchblend.device.policy import POLICY, check_budget, check_head_list, check_request
from searchblend.device.transparency import LastLog, Witnesses, check_log
from searchblend.wire.canonical import canonical_json
from searchblend.wire.enrolment import enrolment_link, read_enrolment
from searchblend.wire.head_list import decode_head_list
from searchblend.wire.manifest import decode_payload
from searchblend.wire.optin_result import DrawnBy, decode_optin_result, encode_optin_result
from searchblend.wire.report import ReportRefused, ReportShape, counters_of, decode_report, encode_report
from searchblend.wire.report_batch import decode_reports
from searchblend.wire.sealed import Opener, SealingContext, public_key_of
from searchblend.wire.signing import (
    RoundKey,
    SigningKey,
    is_drawn_by_curator,
    is_round_key_signed,
    read_public_point,
    verify_checkpoint,
    verify_manifest,
)
from searchblend.wire.transparency import encode_checkpoint

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"


def cases(name):
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert document["version"] == 1
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in document["cases"]])


def shape_of(case):
    fields = case["shape"]
    return ReportShape(**{**fields, "task": bytes.fromhex(fields["task"]), "digest": bytes.fromhex(fields["digest"])})


@cases("report_bytes")
def test_report_bytes(case):
    shape = shape_of(case)
    parts = tuple(SubsetReport(about, tuple(items)) for about, items in case["parts"])
    message = bytes.fromhex(case["message"])
    assert encode_report(parts, shape, randomness=Tape(bytes.fromhex(case["nonce"]))) == message
    report_id, said = decode_report(message, shape)
    assert said == parts
    assert len(message) == case["size"] == shape.size
    batch = decode_reports(message * 2, shape)
    assert batch.ids == [report_id] * 2
    assert not batch.refused
    expected = sorted(counters_of(parts, shape))
    assert len(expected) == case["counts_per_report"]
    assert [sorted(row) for row in batch.counters.tolist()] == [expected] * 2


@cases("report_shape")
def test_report_shape(case):
    message = decode_head_list(case["head_list"])
    shape = ReportShape.of(bytes.fromhex(case["task"]), case["round"], message.head, message.params, message.design)
    assert shape == shape_of(case)
    for name in ("items", "width", "size", "n_counters", "counts_per_report"):
        assert getattr(shape, name) == case[name]


@cases("bad_report_bytes")
def test_bad_report_bytes_are_refused(case):
    shape, message = shape_of(case), bytes.fromhex(case["message"])
    with pytest.raises(ReportRefused) as refusal:
        decode_report(message, shape)
    assert refusal.value.reason == case["reason"]
    if len(message) == shape.size:
        batch = decode_reports(message, shape)
        assert (batch.refused, batch.ids, len(batch.counters)) == ({0: case["reason"]}, [], 0)
    else:
        with pytest.raises(ReportRefused):
            decode_reports(message, shape)


def sealing_context(case):
    return SealingContext(bytes.fromhex(case["task"]), case["round"], bytes.fromhex(case["consent"]))


def opener(case):
    return Opener(bytes.fromhex(case["private_key"]), sealing_context(case), at_most=case["at_most"])


@cases("sealed_record")
def test_sealed_record_opens(case):
    assert public_key_of(bytes.fromhex(case["private_key"])).hex() == case["public_key"]
    records = [Record(query, WILDCARD if url is None else url) for query, url in case["records"]]
    assert sealing_context(case).tag_of(case["credential"]).hex() == case["tag"]
    assert opener(case).open(bytes.fromhex(case["message"]), bytes.fromhex(case["tag"])) == records


@cases("bad_sealed_record")
def test_bad_sealed_record_is_refused(case):
    with pytest.raises(MessageError) as refusal:
        opener(case).open(bytes.fromhex(case["message"]), bytes.fromhex(case["tag"]))
    assert case["says"] in str(refusal.value)


def pinned(case):
    return {key: bytes.fromhex(point) for key, point in case["pinned"].items()}


@cases("manifest")
def test_manifest_verifies(case):
    manifest = verify_manifest(case["message"].encode(), pinned(case))
    assert manifest.document == case["manifest"]
    known = {name: value for name, value in case["manifest"].items() if name != "later"}
    assert encode(manifest) == known


@cases("bad_manifest")
def test_bad_manifest_is_refused(case):
    with pytest.raises(MessageError) as refusal:
        verify_manifest(case["message"].encode(), pinned(case))
    assert case["says"] in str(refusal.value)


@cases("round_key")
def test_round_key_is_the_curators(case):
    manifest = decode_payload(canonical_json(case["manifest"]))
    assert RoundKey.of_manifest(manifest).signed_bytes.hex() == case["signed"]
    assert is_round_key_signed(manifest, pinned(case))
    assert not is_round_key_signed(manifest, {})


@cases("bad_round_key")
def test_bad_round_key_is_refused(case):
    manifest = decode_payload(canonical_json(case["manifest"]))  # refused for its signature, not for its form
    assert not is_round_key_signed(manifest, pinned(case))


def test_a_batch_keeps_the_good_and_names_the_bad():
    good = json.loads((FOLDER / "report_bytes.json").read_text())["cases"]
    case = next(case for case in good if case["name"].startswith("sets with a sink, both"))
    shape, message = shape_of(case), bytes.fromhex(case["message"])
    broken = message[:-1] + bytes([message[-1] ^ 1])
    batch = decode_reports(message + broken + message, shape)
    assert batch.refused == {1: "id-mismatch"}
    assert batch.accepted == [0, 2]
    assert len(batch.ids) == len(batch.counters) == 2
    assert np.bincount(batch.counters.ravel(), minlength=shape.n_counters).sum() == 2 * shape.counts_per_report


@cases("enrolment")
def test_enrolment(case):
    document = read_enrolment(case["text"])
    assert encode(document) == case["document"]
    assert read_enrolment(enrolment_link("https://lists.example/enrol/x", document)) == document


@cases("bad_enrolment")
def test_bad_enrolment(case):
    with pytest.raises(InvalidParameter, match=case["says"]):
        read_enrolment(case["text"])


def points(digits):
    return dict(read_public_point(each, "curators") for each in digits)


@cases("optin_result")
def test_optin_result_is_the_curators(case):
    result, head, round_ = decode_optin_result(case["result"]), HeadList(case["queries"]), DrawnBy(**case["drawn_by"])
    assert result.root(head) == case["root"]
    assert encode_optin_result(result) == case["result"]
    assert is_drawn_by_curator(result, head, round_, points(case["curators"]))
    assert not is_drawn_by_curator(result, head, round_, points([SigningKey.new().public_point.hex()]))


@cases("bad_optin_result")
def test_bad_optin_result_is_refused(case):
    if "says" in case:
        with pytest.raises(MessageError) as refusal:
            decode_optin_result(case["result"])
        assert case["says"] in str(refusal.value)
        return
    result, round_ = decode_optin_result(case["result"]), DrawnBy(**case["drawn_by"])
    assert not is_drawn_by_curator(result, HeadList(case["queries"]), round_, points(case["curators"]))


def asked_of_a_device(case):
    if case["ask"] == "budget":
        ever, own = ((Fraction(each["epsilon"]), Fraction(each["delta"])) for each in (case["ever"], case["own"]))
        check_budget(Fraction(case["recent"]), ever, own, POLICY)
        return
    manifest = decode_payload(canonical_json(case["manifest"]))
    check_request(manifest, POLICY)
    if case["ask"] == "list":
        is_drawn = partial(is_drawn_by_curator, curators=points(case["curators"]))
        check_head_list(case["list"].encode(), manifest, POLICY, is_drawn)


@cases("policy")
def test_what_devices_refuse_whoever_signed_it(case):
    if case["refused"] is None:
        asked_of_a_device(case)
        return
    with pytest.raises(DeviceRefused) as refusal:
        asked_of_a_device(case)
    assert refusal.value.reason == case["refused"]


@cases("checkpoint")
def test_checkpoint_verifies(case):
    checkpoint = verify_checkpoint(case["note"].encode(), pinned(case))
    assert encode_checkpoint(checkpoint) == case["note"].encode()


@cases("bad_checkpoint")
def test_bad_checkpoint_is_refused(case):
    with pytest.raises(MessageError) as refusal:
        verify_checkpoint(case["note"].encode(), pinned(case))
    assert case["says"] in str(refusal.value)


@cases("log")
def test_what_a_device_makes_of_a_log(case):
    files = {path: base64.b64decode(content) for path, content in case["files"].items()}
    manifest = decode_payload(canonical_json(case["manifest"]))
    last = LastLog(**case["last"]) if case["last"] else LastLog()
    asked = (manifest, last, lambda path, most: files[path], pinned(case), Witnesses({}, 0))
    if case["refused"] is None:
        assert vars(check_log(*asked)) == case["remembered"]
        return
    with pytest.raises(DeviceRefused) as refusal:
        check_log(*asked)
    assert refusal.value.reason == case["refused"]
