"""Counts from files of binary reports on a Spark cluster: the decoder of ``wire/report.py`` as SQL expressions.

Executors need no Python. The driver gets one row for each counter. ``tests/spark`` holds both decoders to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from searchblend.core.errors import InputError
from searchblend.logs.spark.session import SparkRunner, our_words
from searchblend.service.aggregate import Aggregate, file_size
from searchblend.wire.report import HEADER_BYTES, ID_BYTES, NONCE_BYTES, SETS_WITH_SINK, ReportShape

_LARGEST_FILE = 2**31 - 1


def aggregate_on_spark(paths: Sequence[Path], shape: ReportShape, runner: SparkRunner) -> Aggregate:
    """The same as ``aggregate_files``, in parallel. A file is at most 2 GiB, since one task reads it."""
    for path in paths:
        if file_size(path, shape) > _LARGEST_FILE:
            raise InputError(path, "larger than 2 GiB: split it into files of whole reports")
    with our_words():
        spark = runner.spark
        files = spark.read.format("binaryFile").load([str(path.absolute()) for path in paths])
        whole = files.where("length > 0").selectExpr(
            "content", f"explode(sequence(0, CAST(length DIV {shape.size} AS INT) - 1)) AS place"
        )
        reports = whole.selectExpr(f"substring(content, 1 + place * {shape.size}, {shape.size}) AS r")
        judged = runner.keep(
            reports.selectExpr(
                f"substring(r, {shape.size - ID_BYTES + 1}, {ID_BYTES}) AS id",
                f"{_reason(shape)} AS reason",
                f"{_counters(shape)} AS counters",
            )
        )
        refused = {row[0]: row[1] for row in judged.where("reason IS NOT NULL").groupBy("reason").count().collect()}
        good = judged.where("reason IS NULL")
        n_good = good.count()
        distinct = runner.keep(good.dropDuplicates(["id"]))
        n = distinct.count()
        rows = distinct.selectExpr("explode(counters) AS counter").groupBy("counter").count().collect()
        for frame in (judged, distinct):
            runner.forget(frame)
    counts = np.zeros(shape.n_counters, dtype=np.int64)
    for counter, count in rows:
        counts[counter] = count
    return Aggregate(shape, counts, n, n_good - n, refused)


def _reason(shape: ReportShape) -> str:
    """Why a report is refused, in the order of ``decode_report``; NULL if it is not."""
    header = shape.header.hex().upper()
    payload = f"substring(r, 1, {shape.payload_bytes})"
    nonce = f"substring(r, {shape.payload_bytes + 1}, {NONCE_BYTES})"
    said = f"substring(r, {shape.payload_bytes + NONCE_BYTES + 1}, {ID_BYTES})"
    right = " AND ".join(f"({_part_is_right(shape, part)})" for part in range(shape.records))
    return (
        f"CASE WHEN substring(r, 1, 2) <> X'{header[:4]}' THEN 'malformed' "
        f"WHEN substring(r, 3, 20) <> X'{header[4:44]}' THEN 'wrong-round' "
        f"WHEN substring(r, 23, 8) <> X'{header[44:60]}' THEN 'wrong-head-list' "
        f"WHEN substring(unhex(sha2(concat({nonce}, {payload}), 256)), 1, {ID_BYTES}) <> {said} THEN 'id-mismatch' "
        f"WHEN NOT ({right}) THEN 'malformed' END"
    )


def _kind(shape: ReportShape, part: int) -> str:
    return _number(HEADER_BYTES + part * shape.part_bytes + 1, 1)


def _number(start: str | int, width: int) -> str:
    return f"CAST(conv(hex(substring(r, {start}, {width})), 16, 10) AS BIGINT)"


def _items(shape: ReportShape, part: int) -> str:
    first = HEADER_BYTES + part * shape.part_bytes + 2
    number = _number(f"{first} + i * {shape.width}", shape.width)
    return f"transform(sequence(0, {shape.items - 1}), i -> {number})"


def _used(shape: ReportShape, part: int) -> str:
    return f"filter({_items(shape, part)}, x -> x <> {shape.empty})"


def _part_is_right(shape: ReportShape, part: int) -> str:
    items, used, kind = _items(shape, part), _used(shape, part), _kind(shape, part)
    n_numbers = f"IF({kind} = 1, {shape.query_items}, {shape.cell_items})"
    subset = f"IF({kind} = 1, {shape.query_subset}, {shape.cell_subset})"
    sink = f"size({used}) = 0" if shape.suite == SETS_WITH_SINK else "FALSE"
    return (
        f"{kind} <= 1 AND {n_numbers} > 0 "
        f"AND slice({items}, 1, size({used})) = {used} "  # what is not used comes last
        f"AND array_sort(array_distinct({used})) = {used} "  # ascending, each once
        f"AND ({sink} OR size({used}) = {subset}) "
        f"AND (size({used}) = 0 OR array_max({used}) < {n_numbers})"
    )


def _counters(shape: ReportShape) -> str:
    parts = ", ".join(_part_counters(shape, part) for part in range(shape.records))
    return f"concat({parts})"


def _part_counters(shape: ReportShape, part: int) -> str:
    used, kind = _used(shape, part), _kind(shape, part)
    offset = f"IF({kind} = 1, 0, {shape.query_items})"
    sink = f"array(CAST(IF({kind} = 1, {shape.query_sink}, {shape.query_sink + 1}) AS BIGINT))"
    said = f"IF(size({used}) = 0, {sink}, transform({used}, x -> x + {offset}))"
    padding = f"array_repeat(CAST({shape.query_sink + 2} AS BIGINT), {shape.items} - greatest(size({used}), 1))"
    return f"concat({said}, {padding})"
