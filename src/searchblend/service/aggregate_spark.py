"""Counts from files of binary reports on a Spark cluster, whose executors decode them as this machine would.

The driver gets one row for each counter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from searchblend.core.errors import InputError
from searchblend.logs.spark.session import SparkRunner, our_words
from searchblend.service.aggregate import REPORTS_AT_ONCE, Aggregate, file_size
from searchblend.wire.report import ReportShape
from searchblend.wire.report_batch import decode_reports

_LARGEST_FILE: Final = 2**31 - 1
_SCHEMA: Final = "id BINARY, reason STRING, counters ARRAY<BIGINT>"


def aggregate_on_spark(paths: Sequence[Path], shape: ReportShape, runner: SparkRunner) -> Aggregate:
    """The same as ``aggregate_files``, in parallel. A file is at most 2 GiB, since one task reads it."""
    for path in paths:
        if file_size(path, shape) > _LARGEST_FILE:
            raise InputError(path, "larger than 2 GiB: split it into files of whole reports")
    with our_words():
        files = runner.spark.read.format("binaryFile").load([str(path.absolute()) for path in paths])
        rows = files.select("content").rdd.mapPartitions(partial(_decoded, shape))
        judged = runner.keep(runner.spark.createDataFrame(rows, _SCHEMA, verifySchema=False))
        refused = {row[0]: row[1] for row in judged.where("reason IS NOT NULL").groupBy("reason").count().collect()}
        good = judged.where("reason IS NULL")
        n_good = good.count()
        distinct = runner.keep(good.dropDuplicates(["id"]))
        n = distinct.count()
        counted = distinct.selectExpr("explode(counters) AS counter").groupBy("counter").count().collect()
        for frame in (judged, distinct):
            runner.forget(frame)
    counts = np.zeros(shape.n_counters, dtype=np.int64)
    for counter, count in counted:
        counts[counter] = count
    return Aggregate(shape, counts, n, n_good - n, refused)


def _decoded(
    shape: ReportShape, files: Iterable[tuple[bytearray]]
) -> Iterator[tuple[bytes | None, str | None, list[int] | None]]:
    """A row for each report: its id and counters, or why it is refused."""
    step = REPORTS_AT_ONCE * shape.size
    for (content,) in files:
        for start in range(0, len(content), step):
            batch = decode_reports(bytes(content[start : start + step]), shape)
            yield from ((None, reason, None) for reason in batch.refused.values())
            for report_id, counters in zip(batch.ids, batch.counters.tolist(), strict=True):
                yield report_id, None, counters
