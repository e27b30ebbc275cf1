"""Replays what a device reads and draws: good head lists, and a report of every mechanism of method ``best``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchblend.blender.best.subset_report import subset_report
from searchblend.core.errors import SearchblendError
from searchblend.core.randomness import Tape
from searchblend.core.records import WILDCARD, Record
from searchblend.wire.head_list import decode_head_list, encode_head_list
from searchblend.wire.report import ReportShape, decode_report, encode_report

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"
TASK = bytes(range(16))


def document(name):
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert found["version"] == 1
    return found["cases"]


def cases(name):
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in document(name)])


def record(pair):
    return Record(*(WILDCARD if part is None else part for part in pair))


@cases("head_list")
def test_head_list_is_read(case):
    message = decode_head_list(case["document"])
    head = message.head
    assert (head.digest, head.n_queries, head.n_cells) == (case["digest"], case["n_queries"], case["n_cells"])
    assert list(head.n_urls) == case["n_urls"]
    assert list(head.cells()) == [record(pair) for pair in case["cells"]]
    assert encode_head_list(head, message.params, message.design) == case["document"]
    assert ReportShape.of(TASK, 7, head, message.params, message.design).size == case["report_bytes"]


@cases("subset_report")
def test_subset_report(case):
    message = decode_head_list(case["head_list"])
    tape = Tape(bytes.fromhex(case["tape"]))
    records = [record(pair) for pair in case["records"]]
    parts = subset_report(records, message.head, message.design, message.params, randomness=tape)
    assert tape.left == 0
    assert [[part.about_queries, list(part.items)] for part in parts] == case["parts"]
    shape = ReportShape.of(bytes.fromhex(case["task"]), case["round"], message.head, message.params, message.design)
    sent = encode_report(parts, shape, randomness=Tape(bytes.fromhex(case["nonce"])))
    assert sent.hex() == case["message"]
    assert decode_report(sent, shape)[1] == parts


def test_another_tape_gives_another_report():
    """A replay that ignored the tape would pass nothing: most cases change when one byte of theirs does."""
    changed = 0
    found = document("subset_report")
    for case in found:
        message = decode_head_list(case["head_list"])
        tape = bytes(byte ^ 0xA5 for byte in bytes.fromhex(case["tape"])) + bytes(256)
        records = [record(pair) for pair in case["records"]]
        try:
            parts = subset_report(records, message.head, message.design, message.params, randomness=Tape(tape))
        except SearchblendError:
            changed += 1
            continue
        changed += [[part.about_queries, list(part.items)] for part in parts] != case["parts"]
    assert changed > len(found) / 2


def test_every_mechanism_has_good_vectors():
    said = {
        (case["head_list"]["design"]["mechanism"], case["head_list"]["records_per_client"] > 1)
        for case in document("subset_report")
    }
    assert {mechanism for mechanism, _ in said} == {
        "subset selection with a sink",
        "subset selection",
        "two-stage, exactly calibrated",
    }
    assert len(said) == 6
