"""Counts from files of binary reports, for sites where one database is not enough: same decoder, same counts.

A file is reports of one round, one after another. An id counts once, in whichever files it is. On
a Spark cluster executors decode them as this machine would, and the driver gets one row for each counter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from searchblend.core.documents import JsonObject, Natural, decode, encode
from searchblend.core.errors import InputError, InvalidParameter, MessageError
from searchblend.logs.spark.session import SparkRunner, our_words
from searchblend.mechanisms.tally import Ints
from searchblend.wire.report import ReportShape
from searchblend.wire.report_batch import decode_reports

FORMAT: Final = "searchblend-counts"
VERSION: Final = 1
_REPORTS_AT_ONCE: Final = 20_000
_LARGEST_FILE: Final = 2**31 - 1
_SCHEMA: Final = "id BINARY, reason STRING, counters ARRAY<BIGINT>"
OnProgress = Callable[[int, int], None]
"""bytes done, bytes in all"""


@dataclass(frozen=True)
class CountsDocument:
    """A round's counters from files, as ``searchblend aggregate`` writes them."""

    format: str
    version: int
    task: str
    round: int
    digest: str
    counts_per_report: int
    reports: Natural
    repeated: Natural
    refused: Mapping[str, int]
    counts: list[Natural]

    def is_of(self, shape: ReportShape) -> bool:
        own = (self.format, self.version, self.task, self.round, self.digest, self.counts_per_report)
        return own == (FORMAT, VERSION, *_round_of(shape))


def _round_of(shape: ReportShape) -> tuple[str, int, str, int]:
    return shape.task.hex(), shape.round, shape.digest.hex(), shape.counts_per_report


@dataclass(frozen=True)
class Aggregate:
    """A round's counters from files."""

    shape: ReportShape
    counts: Ints
    reports: int
    """different ids"""
    repeated: int
    """reports whose id was there already"""
    refused: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        refused, counts = dict(sorted(self.refused.items())), self.counts.tolist()
        document: JsonObject = encode(
            CountsDocument(FORMAT, VERSION, *_round_of(self.shape), self.reports, self.repeated, refused, counts)
        )
        return document


def read_counts(document: object, shape: ReportShape) -> tuple[Ints, int]:
    """Counters and number of reports of a counts document for this round, if the conservation law holds in it."""
    try:
        given = decode(CountsDocument, document)
    except InvalidParameter as error:
        raise MessageError(f"counts: {error}") from None
    if not given.is_of(shape):
        raise MessageError("counts: not those of this round")
    if len(given.counts) != shape.n_counters:
        raise MessageError(f"counts: expected {shape.n_counters} whole numbers")
    if sum(given.counts) != shape.counts_per_report * given.reports:
        raise MessageError("counts: their sum is not that of the reports")
    return np.array(given.counts, dtype=np.int64), given.reports


def aggregate_files(
    paths: Sequence[Path], shape: ReportShape, *, on_progress: OnProgress = lambda done, total: None
) -> Aggregate:
    """Read the files here, one after another. The seen ids are kept in memory."""
    known_ids: set[bytes] = set()
    counts = np.zeros(shape.n_counters, dtype=np.int64)
    refused: Counter[str] = Counter()
    repeated, done, total = 0, 0, sum(_file_size(path, shape) for path in paths)
    for path in paths:
        for chunk in _chunks(path, shape):
            batch = decode_reports(chunk, shape)
            refused.update(batch.refused.values())
            new = [i for i, report_id in enumerate(batch.ids) if _add(known_ids, report_id)]
            repeated += len(batch.ids) - len(new)
            counts += np.bincount(batch.counters[new].ravel(), minlength=shape.n_counters)
            done += len(chunk)
            on_progress(done, total)
    return Aggregate(shape, counts, len(known_ids), repeated, refused)


def _chunks(path: Path, shape: ReportShape) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(_REPORTS_AT_ONCE * shape.size):
                yield chunk
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error


def _add(known_ids: set[bytes], report_id: bytes) -> bool:
    before = len(known_ids)
    known_ids.add(report_id)
    return len(known_ids) > before


def _file_size(path: Path, shape: ReportShape) -> int:
    """The length of a file of whole reports."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    if size % shape.size:
        raise InputError(path, f"expected reports of {shape.size} bytes; the last one is not whole")
    return size


def aggregate_on_spark(paths: Sequence[Path], shape: ReportShape, runner: SparkRunner) -> Aggregate:
    """The same as ``aggregate_files``, in parallel. A file is at most 2 GiB, since one task reads it."""
    for path in paths:
        if _file_size(path, shape) > _LARGEST_FILE:
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
    step = _REPORTS_AT_ONCE * shape.size
    for (content,) in files:
        for start in range(0, len(content), step):
            batch = decode_reports(bytes(content[start : start + step]), shape)
            yield from ((None, reason, None) for reason in batch.refused.values())
            for report_id, counters in zip(batch.ids, batch.counters.tolist(), strict=True):
                yield report_id, None, counters
