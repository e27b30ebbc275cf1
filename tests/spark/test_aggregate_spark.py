"""A Spark cluster decides and counts like one machine, and like the service."""

from __future__ import annotations

import random

import pytest

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, ReportDesign, subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList, Record
from searchblend.service.aggregate import aggregate_files, aggregate_on_spark
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report, report_id

HEAD = HeadList({"google": ["a", "b", "c"], "yahoo": ["a"], "ebay": ["x", "y"]})
WIDE = HeadList((f"query {i}", [f"u{j}" for j in range(34)]) for i in range(2000))
CASES = [
    (HEAD, None, 1),
    (HEAD, ReportDesign(10, 2, 4, SINK_SETS), 2),
    (HEAD, ReportDesign(10, 2, 4, PLAIN_SETS), 1),
    (WIDE, ReportDesign(0, 1, 2, SINK_SETS), 1),
]


def messages_of(head, design, m, n, generator):
    params = BlenderParams(Budget(1.0, 1e-6), records_per_client=m)
    shape = ReportShape.of(b"t" * 16, 3, head, params, design)
    made = []
    for _ in range(n):
        record = Record(generator.choice(head.queries), "a")
        if design is None:
            parts = cells_as_parts(local_report([record], head, params))
        else:
            parts = subset_report([record], head, design, params)
        made.append(encode_report(parts, shape))
    return shape, made


def spoiled(message, shape, generator):
    """A report with one changed byte, with its id made right again in half of the cases."""
    changed = bytearray(message)
    changed[generator.randrange(len(changed))] ^= generator.randrange(1, 256)
    if generator.random() < 0.5:
        payload, nonce = bytes(changed[: shape.payload_bytes]), bytes(changed[shape.payload_bytes : -16])
        return payload + nonce + report_id(nonce, payload)
    return bytes(changed)


@pytest.mark.parametrize(("head", "design", "m"), CASES)
def test_both_engines_count_alike(cluster, tmp_path, head, design, m):
    generator = random.Random(7)
    shape, messages = messages_of(head, design, m, 60, generator)
    messages += [spoiled(message, shape, generator) for message in messages for _ in range(3)]
    messages += messages[:20]
    for i in range(2):
        (tmp_path / f"{i}.bin").write_bytes(b"".join(messages[i::2]))
    (tmp_path / "empty.bin").write_bytes(b"")
    paths = sorted(tmp_path.iterdir())
    here, there = aggregate_files(paths, shape), aggregate_on_spark(paths, shape, cluster)
    assert there.as_json() == here.as_json()
    assert here.refused
    assert here.repeated >= 20
