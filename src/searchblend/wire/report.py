"""The report as bytes: one size for all of a round, and a decoder that takes nothing else.

All numbers are big-endian. A report is ``payload ‖ nonce ‖ id``:

    offset  bytes  field
    0       1      version, 1
    1       1      suite: 1 one cell, 2 sets with a sink, 3 sets without
    2       16     task
    18      4      round
    22      8      the first 8 bytes of the head list's digest
    30      …      m_C parts, each: 1 byte kind (0 about cells, 1 about queries), then ``items`` numbers of ``width``
                   bytes, ascending; unused places hold the largest number (FFFF or FFFFFFFF) and come last
    …       16     nonce, random
    …       16     id: the first 16 bytes of SHA-256(nonce ‖ payload)

``items`` is the largest set that the round's mechanism makes, ``width`` 2 bytes unless an item's number needs 4: both
follow from the head list, so that the size says nothing about what is reported. The sink is a part without items. The
server recomputes the id and forgets the nonce: equal bytes have equal ids, and an id says nothing about its payload.

Standard library only: this runs on devices.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from searchblend.blender.best.subset_report import PLAIN_SETS, TWO_STAGE, ReportDesign, SubsetReport
from searchblend.core.errors import MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import HeadList

REPORT_MEDIA_TYPE: Final = "application/vnd.searchblend.report"
REPORTS_MEDIA_TYPE: Final = "application/vnd.searchblend.reports"
"""of several reports, one after another"""
REPORT_VERSION: Final = 1
ONE_CELL: Final = 1
SETS_WITH_SINK: Final = 2
SETS: Final = 3
HEADER_BYTES: Final = 30
NONCE_BYTES: Final = 16
ID_BYTES: Final = 16
DIGEST_BYTES: Final = 8
ABOUT_CELLS: Final = 0
ABOUT_QUERIES: Final = 1


class ReportRefused(MessageError):
    """Bytes that are not a report of this round; ``reason`` is one of ``problems.REASONS``."""

    def __init__(self, reason: str, problem: str) -> None:
        self.reason = reason
        super().__init__(f"report: {problem}")


@dataclass(frozen=True)
class ReportShape:
    """What fixes the bytes of every report of a round; public.

    The server counts *counters*: each part of a report adds exactly ``items`` to them, so that their sum is
    ``counts_per_report`` times the number of reports whatever people say. In order: query items, cell items, the sink
    of the query reports, the sink of the cell reports, and the places that stayed empty.
    """

    task: bytes
    round: int
    digest: bytes
    suite: int
    records: int
    """m_C"""
    query_items: int
    """how many numbers a part about queries may name; 0 if the round does not ask about queries"""
    query_subset: int
    cell_items: int
    cell_subset: int

    @classmethod
    def of(
        cls, task: bytes, round_number: int, head: HeadList, params: BlenderParams, design: ReportDesign | None
    ) -> ReportShape:
        """The shape of the reports on this head list; without a design it is LocalAlg's."""
        prefix = bytes.fromhex(head.digest)[:DIGEST_BYTES]
        m = params.records_per_client
        if design is None or design.mechanism == TWO_STAGE:
            return cls(task, round_number, prefix, ONE_CELL, m, 0, 0, head.n_cells, 1)
        plain = design.mechanism == PLAIN_SETS
        queries, cells = design.about_queries(head, params), design.about_cells(head, params)
        return cls(
            task=task,
            round=round_number,
            digest=prefix,
            suite=SETS if plain else SETS_WITH_SINK,
            records=m,
            query_items=queries.n_items + plain if queries else 0,
            query_subset=queries.subset_size if queries else 0,
            cell_items=cells.n_items + plain if cells else 0,
            cell_subset=cells.subset_size if cells else 0,
        )

    @property
    def items(self) -> int:
        return max(self.query_subset, self.cell_subset)

    @property
    def width(self) -> int:
        return 2 if max(self.query_items, self.cell_items) <= 0xFFFF else 4

    @property
    def empty(self) -> int:
        """The number that marks an unused place."""
        return (1 << (8 * self.width)) - 1

    @property
    def part_bytes(self) -> int:
        return 1 + self.items * self.width

    @property
    def payload_bytes(self) -> int:
        return HEADER_BYTES + self.records * self.part_bytes

    @property
    def size(self) -> int:
        """The length of every report of the round."""
        return self.payload_bytes + NONCE_BYTES + ID_BYTES

    @property
    def header(self) -> bytes:
        return bytes([REPORT_VERSION, self.suite]) + self.task + self.round.to_bytes(4, "big") + self.digest

    @property
    def n_counters(self) -> int:
        return self.query_items + self.cell_items + 3

    @property
    def query_sink(self) -> int:
        """The counter of the sink of reports about queries; that of cells and the empty places follow."""
        return self.query_items + self.cell_items

    @property
    def counts_per_report(self) -> int:
        return self.records * self.items

    def about(self, kind: int) -> tuple[int, int]:
        """How many numbers there are for a part of this kind, and how many of them it names."""
        return (self.query_items, self.query_subset) if kind == ABOUT_QUERIES else (self.cell_items, self.cell_subset)


def encode_report(said: Sequence[SubsetReport], shape: ReportShape, *, randomness: Randomness | None = None) -> bytes:
    """The bytes to send. Make them once, keep them, and send the same again if the answer was lost."""
    if len(said) != shape.records:
        raise MessageError(f"report: expected {shape.records} parts")
    payload = shape.header + b"".join(_encode_part(part, shape) for part in said)
    nonce = (randomness or SystemRandomness()).take(NONCE_BYTES)
    return payload + nonce + report_id(nonce, payload)


def cells_as_parts(cells: Sequence[int]) -> tuple[SubsetReport, ...]:
    """What ``local_report`` says, in the form that the wire carries."""
    return tuple(SubsetReport(False, (cell,)) for cell in cells)


def report_id(nonce: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(nonce + payload).digest()[:ID_BYTES]


def decode_report(message: bytes, shape: ReportShape) -> tuple[bytes, tuple[SubsetReport, ...]]:
    """The id and the parts, or ``ReportRefused`` for anything that ``encode_report`` cannot have made."""
    if len(message) != shape.size:
        raise ReportRefused("malformed", f"expected {shape.size} bytes")
    check_header(message[:HEADER_BYTES], shape)
    payload, rest = message[: shape.payload_bytes], message[shape.payload_bytes :]
    nonce, stated_id = rest[:NONCE_BYTES], rest[NONCE_BYTES:]
    if report_id(nonce, payload) != stated_id:
        raise ReportRefused("id-mismatch", "the id is not that of these bytes")
    starts = range(HEADER_BYTES, shape.payload_bytes, shape.part_bytes)
    return stated_id, tuple(_decode_part(payload[start : start + shape.part_bytes], shape) for start in starts)


def check_header(header: bytes, shape: ReportShape) -> None:
    """Say which part of the header is another round's."""
    if header == shape.header:
        return
    if header[:2] != shape.header[:2]:
        raise ReportRefused("malformed", f"expected version {REPORT_VERSION} and suite {shape.suite}")
    if header[2:22] != shape.header[2:22]:
        raise ReportRefused("wrong-round", "made for another task or round")
    raise ReportRefused("wrong-head-list", "made for another head list")


def counters_of(parts: Sequence[SubsetReport], shape: ReportShape) -> list[int]:
    """The counters that this report adds one to, ``counts_per_report`` of them (some may repeat)."""
    counters: list[int] = []
    for about_queries, items in parts:
        first = 0 if about_queries else shape.query_items
        named = [first + item for item in items] or [shape.query_sink + (not about_queries)]
        counters += named + [shape.query_sink + 2] * (shape.items - len(named))
    return counters


def _encode_part(part: SubsetReport, shape: ReportShape) -> bytes:
    kind = ABOUT_QUERIES if part.about_queries else ABOUT_CELLS
    _check_items(kind, part.items, shape)
    numbers = [*part.items, *[shape.empty] * (shape.items - len(part.items))]
    return bytes([kind]) + b"".join(number.to_bytes(shape.width, "big") for number in numbers)


def _decode_part(part: bytes, shape: ReportShape) -> SubsetReport:
    kind, width = part[0], shape.width
    if kind not in (ABOUT_CELLS, ABOUT_QUERIES):
        raise ReportRefused("malformed", "a part is about cells (0) or about queries (1)")
    numbers = [int.from_bytes(part[i : i + width], "big") for i in range(1, len(part), width)]
    n_items = next((i for i, number in enumerate(numbers) if number == shape.empty), len(numbers))
    if any(number != shape.empty for number in numbers[n_items:]):
        raise ReportRefused("malformed", "an item after an unused place")
    items = tuple(numbers[:n_items])
    _check_items(kind, items, shape)
    return SubsetReport(kind == ABOUT_QUERIES, items)


def _check_items(kind: int, items: Sequence[int], shape: ReportShape) -> None:
    n_numbers, subset = shape.about(kind)
    if not n_numbers:
        raise ReportRefused("malformed", "the round does not ask about this")
    if not items and shape.suite == SETS_WITH_SINK:
        return
    if len(items) != subset:
        raise ReportRefused("malformed", f"expected {subset} items")
    if any(later <= earlier for earlier, later in itertools.pairwise(items)):
        raise ReportRefused("malformed", "expected items in ascending order")
    if not 0 <= items[0] <= items[-1] < n_numbers:
        raise ReportRefused("malformed", f"expected items from 0 to {n_numbers - 1}")
