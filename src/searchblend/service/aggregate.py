"""Counts from files of binary reports, for sites where one database is not enough: same decoder, same counts.

A file is reports of one round, one after another. An id counts once, in whichever files it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from searchblend.core.documents import JsonObject
from searchblend.core.errors import InputError, MessageError
from searchblend.mechanisms.tally import Ints
from searchblend.wire.report import ReportShape
from searchblend.wire.report_batch import decode_reports

FORMAT: Final = "searchblend-counts"
REPORTS_AT_ONCE: Final = 20_000
OnProgress = Callable[[int, int], None]
"""bytes done, bytes in all"""


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
        return {
            "format": FORMAT,
            "version": 1,
            "task": self.shape.task.hex(),
            "round": self.shape.round,
            "digest": self.shape.digest.hex(),
            "counts_per_report": self.shape.counts_per_report,
            "reports": self.reports,
            "repeated": self.repeated,
            "refused": dict(sorted(self.refused.items())),
            "counts": self.counts.tolist(),
        }


def read_counts(document: Any, shape: ReportShape) -> tuple[Ints, int]:
    """Counters and number of reports of a counts document for this round, if the conservation law holds in it."""
    expected = {
        "format": FORMAT,
        "version": 1,
        "task": shape.task.hex(),
        "round": shape.round,
        "digest": shape.digest.hex(),
        "counts_per_report": shape.counts_per_report,
    }
    if not isinstance(document, dict) or any(document.get(name) != value for name, value in expected.items()):
        raise MessageError("counts: not those of this round")
    counts, reports = document.get("counts"), document.get("reports")
    if not isinstance(counts, list) or len(counts) != shape.n_counters or not all(_is_count(n) for n in counts):
        raise MessageError(f"counts: expected {shape.n_counters} whole numbers")
    if not isinstance(reports, int) or not _is_count(reports) or sum(counts) != shape.counts_per_report * reports:
        raise MessageError("counts: their sum is not that of the reports")
    return np.array(counts, dtype=np.int64), reports


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def aggregate_files(
    paths: Sequence[Path], shape: ReportShape, *, on_progress: OnProgress = lambda done, total: None
) -> Aggregate:
    """Read the files here, one after another. The seen ids are kept in memory."""
    seen: set[bytes] = set()
    counts = np.zeros(shape.n_counters, dtype=np.int64)
    refused: Counter[str] = Counter()
    repeated, done, total = 0, 0, sum(file_size(path, shape) for path in paths)
    for path in paths:
        for chunk in _chunks(path, shape):
            batch = decode_reports(chunk, shape)
            refused.update(batch.refused.values())
            new = [i for i, report_id in enumerate(batch.ids) if _add(seen, report_id)]
            repeated += len(batch.ids) - len(new)
            counts += np.bincount(batch.counters[new].ravel(), minlength=shape.n_counters)
            done += len(chunk)
            on_progress(done, total)
    return Aggregate(shape, counts, len(seen), repeated, refused)


def _chunks(path: Path, shape: ReportShape) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(REPORTS_AT_ONCE * shape.size):
                yield chunk
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error


def _add(seen: set[bytes], report_id: bytes) -> bool:
    before = len(seen)
    seen.add(report_id)
    return len(seen) > before


def file_size(path: Path, shape: ReportShape) -> int:
    """The length of a file of whole reports."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    if size % shape.size:
        raise InputError(path, f"expected reports of {shape.size} bytes; the last one is not whole")
    return size
