"""Many reports at once: the same decisions as ``decode_report``, on arrays. Run by the server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchblend.wire.report import (
    ABOUT_QUERIES,
    HEADER_BYTES,
    ID_BYTES,
    NONCE_BYTES,
    SETS_WITH_SINK,
    ReportRefused,
    ReportShape,
    check_header,
)

Counters = NDArray[np.int64]


@dataclass(frozen=True)
class ReportBatch:
    """Decoded reports: an id and ``counts_per_report`` counters each, and why the others were refused."""

    ids: list[bytes]
    counters: Counters
    """one row per accepted report"""
    accepted: list[int]
    """the position of each in the message"""
    refused: dict[int, str]
    """position → reason"""


def decode_reports(message: bytes, shape: ReportShape) -> ReportBatch:
    """Reports one after another. Only a length that is not a multiple of the size refuses the whole message."""
    size = shape.size
    if not message or len(message) % size:
        raise ReportRefused("malformed", f"expected a multiple of {size} bytes")
    n = len(message) // size
    rows = np.frombuffer(message, dtype=np.uint8).reshape(n, size)
    refused = _refuse_headers(message, rows, shape)
    ids = _refuse_ids(message, n, shape, refused)
    valid, counters = _decode_parts(rows[:, HEADER_BYTES : shape.payload_bytes], shape)
    for position in np.flatnonzero(~valid).tolist():
        refused.setdefault(position, "malformed")
    accepted = [i for i in range(n) if i not in refused] if refused else list(range(n))
    chosen = counters if not refused else counters[accepted]
    return ReportBatch([ids[i] for i in accepted] if refused else ids, chosen, accepted, refused)


def _refuse_headers(message: bytes, rows: NDArray[np.uint8], shape: ReportShape) -> dict[int, str]:
    expected = np.frombuffer(shape.header, dtype=np.uint8)
    refused: dict[int, str] = {}
    for position in np.flatnonzero((rows[:, :HEADER_BYTES] != expected).any(axis=1)).tolist():
        start = position * shape.size
        try:
            check_header(message[start : start + HEADER_BYTES], shape)
        except ReportRefused as refusal:
            refused[position] = refusal.reason
    return refused


def _refuse_ids(message: bytes, n: int, shape: ReportShape, refused: dict[int, str]) -> list[bytes]:
    sha256, size, payload_bytes = hashlib.sha256, shape.size, shape.payload_bytes
    nonce_end = payload_bytes + NONCE_BYTES
    ids: list[bytes] = []
    for position, start in enumerate(range(0, n * size, size)):
        stated = message[start + nonce_end : start + size]
        nonce = message[start + payload_bytes : start + nonce_end]
        if sha256(nonce + message[start : start + payload_bytes]).digest()[:ID_BYTES] != stated:
            refused.setdefault(position, "id-mismatch")
        ids.append(stated)
    return ids


def _decode_parts(parts: NDArray[np.uint8], shape: ReportShape) -> tuple[NDArray[np.bool_], Counters]:
    """Which reports are well formed, and the counters of each (meaningless where it is not)."""
    n = len(parts)
    parts = parts.reshape(n, shape.records, shape.part_bytes)
    kind = parts[:, :, 0]
    numbers = np.ascontiguousarray(parts[:, :, 1:]).view(f">u{shape.width}").astype(np.int64)
    about_queries = kind == ABOUT_QUERIES
    n_numbers = np.where(about_queries, shape.query_items, shape.cell_items)
    subset = np.where(about_queries, shape.query_subset, shape.cell_subset)
    used = numbers != shape.empty
    n_used = used.sum(axis=2)
    place = np.arange(shape.items)
    right = (kind <= 1) & (n_numbers > 0)
    right &= (used == (place < n_used[:, :, None])).all(axis=2)
    is_sink = (n_used == 0) & (shape.suite == SETS_WITH_SINK)
    right &= is_sink | (n_used == subset)
    right &= (~used | (numbers < n_numbers[:, :, None])).all(axis=2)
    right &= ((np.diff(numbers, axis=2) > 0) | ~used[:, :, 1:]).all(axis=2)
    counters = np.where(used, numbers + np.where(about_queries, 0, shape.query_items)[:, :, None], shape.query_sink + 2)
    sinks = np.where(about_queries, shape.query_sink, shape.query_sink + 1)
    counters[:, :, 0] = np.where(is_sink, sinks, counters[:, :, 0])
    return np.asarray(right.all(axis=1), dtype=np.bool_), counters.reshape(n, shape.counts_per_report).astype(
        np.int64, copy=False
    )
