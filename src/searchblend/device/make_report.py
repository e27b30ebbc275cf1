"""A report's bytes from the user's records: drawn once, with what was true and what is said beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

from searchblend.blender.best.subset_report import SubsetReport, subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.core.randomness import Randomness, uniform_below
from searchblend.core.records import HeadList, Record
from searchblend.device.manifest_checks import Manifest
from searchblend.wire.head_list import HeadListMessage
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report
from searchblend.wire.sealed import SealingContext, fits_sealed, seal_records

Pair = list[str | None]


@dataclass(frozen=True)
class Made:
    """What goes out, and what the user is shown of it. ``held`` never leaves the device."""

    message: bytes
    mechanism: str
    held: list[Pair]
    said: list[dict[str, Any]]

    def __repr__(self) -> str:
        return f"Made({len(self.message)} bytes)"


class _Noted(Sequence[Record]):
    """Records that note which of them were drawn; the draw itself stays the algorithm's."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self.drawn: list[Record] = []

    @overload
    def __getitem__(self, position: int) -> Record: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Record]: ...
    def __getitem__(self, position: int | slice) -> Record | Sequence[Record]:
        if isinstance(position, slice):
            raise TypeError("one record at a time")
        self.drawn.append(self._records[position])
        return self.drawn[-1]

    def __len__(self) -> int:
        return len(self._records)


def make_report(
    records: Sequence[Record], message: HeadListMessage, shape: ReportShape, randomness: Randomness
) -> Made:
    """m_C records chosen at random, randomized over the head list. Call it once in a round and keep the bytes."""
    noted = _Noted(records)
    if message.design is None:
        parts = cells_as_parts(local_report(noted, message.head, message.params, randomness=randomness))
    else:
        parts = subset_report(noted, message.head, message.design, message.params, randomness=randomness)
    return Made(
        message=encode_report(parts, shape, randomness=randomness),
        mechanism=message.design.mechanism if message.design else "two-stage",
        held=[pair_of(record) for record in noted.drawn],
        said=[_said(part, message.head) for part in parts],
    )


def make_contribution(records: Sequence[Record], manifest: Manifest, code: str, randomness: Randomness) -> Made:
    """Up to m_O distinct records chosen at random, sealed to the curator of this round for the holder of this code.

    A record for which the message has no room left is passed over. Give only ``sealable`` ones: then there is at least
    one that fits.
    """
    optin = manifest["optin"]
    pool = list(records)
    chosen: list[Record] = []
    while pool and len(chosen) < manifest["records_per_optin"]:
        record = pool.pop(uniform_below(len(pool), randomness))
        if fits_sealed([*chosen, record]):
            chosen.append(record)
    context = SealingContext(bytes.fromhex(manifest["task"]), manifest["round"], bytes.fromhex(optin["consent"]))
    held = [pair_of(record) for record in chosen]
    return Made(
        message=seal_records(chosen, context, context.tag_of(code), bytes.fromhex(optin["public_key"])),
        mechanism="sealed to the curator",
        held=held,
        said=[{"about": "records", "items": held}],
    )


def sealable(records: Sequence[Record]) -> list[Record]:
    """Those that fit a message; admission counts code points, and a message bytes."""
    return [record for record in records if fits_sealed([record])]


def pair_of(record: Record) -> Pair:
    return [part if isinstance(part, str) else None for part in record]


def _said(part: SubsetReport, head: HeadList) -> dict[str, Any]:
    """One part in words: the queries or cells that it names; ⋆ is null, and no item at all is the sink."""
    if part.about_queries:
        names: list[str | None] = [*head.queries, None]
        return {"about": "queries", "items": [[names[item]] for item in part.items]}
    cells = list(head.cells())
    return {"about": "cells", "items": [pair_of(cells[item]) for item in part.items]}
