"""A report's bytes from the user's records: drawn once, with what was true and what is said beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from searchblend.blender.best.subset_report import SubsetReport, subset_report_with_records
from searchblend.blender.paper.local_report import local_report_with_records
from searchblend.blender.report_odds import report_odds
from searchblend.core.documents import absent
from searchblend.core.randomness import Randomness, uniform_below
from searchblend.core.records import HeadList, Record
from searchblend.wire.consent import odds_words
from searchblend.wire.head_list import HeadListMessage
from searchblend.wire.manifest import Manifest
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report
from searchblend.wire.sealed import SealingContext, fits_sealed, seal_records

Pair = list[str | None]


@dataclass(frozen=True)
class ReportedPart:
    """One part of what a message says: the queries, cells or records that it names; no item at all is the sink."""

    about: str
    items: list[Pair]
    odds: str | None = absent()
    """in a randomized report: what it gives away, in words"""


@dataclass(frozen=True)
class Message:
    """What goes out, and what the user is shown of it. ``held`` never leaves the device."""

    content: bytes
    mechanism: str
    held: list[Pair]
    said: list[ReportedPart]

    def __repr__(self) -> str:
        return f"Message({len(self.content)} bytes)"


def make_report(
    records: Sequence[Record], message: HeadListMessage, shape: ReportShape, randomness: Randomness
) -> Message:
    """m_C records chosen at random, randomized over the head list. Call it once in a round and keep the bytes."""
    head, params, design = message.head, message.params, message.design
    if design is None:
        cells = local_report_with_records(records, head, params, randomness=randomness)
        held, parts = [record for record, _ in cells], cells_as_parts([cell for _, cell in cells])
    else:
        sets = subset_report_with_records(records, head, design, params, randomness=randomness)
        held, parts = [record for record, _ in sets], tuple(part for _, part in sets)
    odds = odds_words(report_odds(head, params, design))
    return Message(
        content=encode_report(parts, shape, randomness=randomness),
        mechanism=design.mechanism if design else "two-stage",
        held=[pair_of(record) for record in held],
        said=[_reported_part(part, head, odds) for part in parts],
    )


def make_contribution(records: Sequence[Record], manifest: Manifest, code: str, randomness: Randomness) -> Message:
    """Up to m_O distinct records chosen at random, sealed to the curator of this round for the holder of this code.

    A record for which the message has no room left is passed over. Give only ``sealable`` ones: then there is at least
    one that fits.
    """
    optin = manifest.optin
    assert optin is not None
    pool = list(records)
    chosen: list[Record] = []
    while pool and len(chosen) < manifest.records_per_optin:
        record = pool.pop(uniform_below(len(pool), randomness))
        if fits_sealed([*chosen, record]):
            chosen.append(record)
    context = SealingContext(bytes.fromhex(manifest.task), manifest.round, bytes.fromhex(optin.consent))
    held = [pair_of(record) for record in chosen]
    return Message(
        content=seal_records(chosen, context, context.tag_of(code), bytes.fromhex(optin.public_key)),
        mechanism="sealed to the curator",
        held=held,
        said=[ReportedPart("records", held)],
    )


def sealable(records: Sequence[Record]) -> list[Record]:
    """Those that fit a message; admission counts code points, and a message bytes."""
    return [record for record in records if fits_sealed([record])]


def pair_of(record: Record) -> Pair:
    return [part if isinstance(part, str) else None for part in record]


def _reported_part(part: SubsetReport, head: HeadList, odds: str) -> ReportedPart:
    """One part in words; ⋆ is null."""
    if part.about_queries:
        names: list[str | None] = [*head.queries, None]
        return ReportedPart("queries", [[names[item]] for item in part.items], odds)
    cells = list(head.cells())
    return ReportedPart("cells", [pair_of(cells[item]) for item in part.items], odds)
