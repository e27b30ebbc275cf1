"""From one pack to the next: what changed, between two names.

A delta is tied to the SHA-256 of the pack it starts from and of the pack it makes. It speaks of queries and URLs, not
of bytes: a new query moves every later block, and a byte-wise difference would carry them all. The pack that comes out
is encoded the canonical way, so it is the same file that a full download gives, or it is refused.

Standard library only: this runs on devices.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Final

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.search.front_coding import Reader, read_texts, write_number, write_text
from searchblend.search.pack import (
    LARGEST,
    METHODS,
    Pack,
    PackEntry,
    PackInfo,
    PackUrl,
    best_first,
    encode_pack,
    read_numbers,
    write_numbers,
)

MAGIC: Final = b"SBPD"
DELTA_VERSION: Final = 1
DELTA_MEDIA_TYPE: Final = "application/vnd.searchblend.pack-delta"
_HEADER: Final = struct.Struct(">4sBBBx16sIIdd32s32sIII")
_KIND_BITS: Final = 3


class Step(IntEnum):
    """What happens to a run of queries."""

    KEEP = 0
    DROP = 1
    RENUMBER = 2
    """the same URLs with other numbers"""
    REWRITE = 3
    """other URLs"""
    INSERT = 4


@dataclass(frozen=True)
class DeltaInfo:
    """From which pack a delta leads to which."""

    base: str
    """SHA-256 of the pack that it starts from"""
    base_round: int
    result: str
    info: PackInfo
    """of the pack that it makes"""


def encode_delta(base: Pack, result: Pack) -> bytes:
    """What leads from one pack to another of the same task."""
    if base.info.task != result.info.task or base.info.fraction_bits != result.info.fraction_bits:
        raise InvalidParameter("packs", "must be of one task and have the same fraction bits")
    old, new = list(base.entries()), list(result.entries())
    base_urls, new_urls = _url_numbers(old), _url_numbers(new)
    added = sorted(url for url in new_urls if url not in base_urls)
    number_of = {**base_urls, **{url: len(base_urls) + place for place, url in enumerate(added)}}
    url_bytes = bytearray()
    for place, url in enumerate(added):
        write_text(url_bytes, url, added[place - 1] if place else b"")
    steps = _steps_bytes(old, new, number_of)
    info = result.info
    header = _HEADER.pack(
        *(MAGIC, DELTA_VERSION, info.fraction_bits, METHODS.index(info.method) + 1, info.task, base.info.round),
        *(info.round, info.epsilon, info.delta, bytes.fromhex(base.digest), bytes.fromhex(result.digest)),
        *(len(added), len(url_bytes), len(steps)),
    )
    return header + url_bytes + steps


def read_delta_info(delta: bytes) -> DeltaInfo:
    """The header of a delta."""
    return _read_header(delta)[0]


def apply_delta(base: Pack, delta: bytes) -> bytes:
    """The next pack's bytes; refused unless both are exactly the packs that the delta names."""
    about, (n_added, url_size, _) = _read_header(delta)
    if base.digest != about.base:
        raise MessageError("pack delta: it starts from another pack")
    if (base.info.task, base.info.round, base.info.fraction_bits) != (
        about.info.task,
        about.base_round,
        about.info.fraction_bits,
    ):
        raise MessageError("pack delta: its header does not fit the pack that it starts from")
    old = list(base.entries())
    urls = [*sorted(_url_numbers(old)), *_added_urls(delta, n_added, url_size)]
    reader = Reader(delta, _HEADER.size + url_size, len(delta), "pack delta: steps")
    entries = list(_replay(reader, old, urls, about.info.fraction_bits))
    content = encode_pack(about.info, entries)
    if hashlib.sha256(content).hexdigest() != about.result:
        raise MessageError("pack delta: what comes out is not the pack that it names")
    return content


def _read_header(delta: bytes) -> tuple[DeltaInfo, Sequence[int]]:
    if not _HEADER.size <= len(delta) <= LARGEST:
        raise MessageError(f"pack delta: expected {_HEADER.size} bytes to {LARGEST >> 20} MiB")
    magic, version, bits, method, task, base_round, number, epsilon, delta_bound, base, result, *sizes = (
        _HEADER.unpack_from(delta)
    )
    if magic != MAGIC or delta[7] != 0 or method not in (1, 2):
        raise MessageError("pack delta: expected a searchblend pack delta")
    if version != DELTA_VERSION:
        raise MessageError(f"pack delta: version {version}, expected {DELTA_VERSION}")
    if _HEADER.size + sizes[1] + sizes[2] != len(delta):
        raise MessageError(f"pack delta: {len(delta)} bytes, expected {_HEADER.size + sizes[1] + sizes[2]}")
    try:
        info = PackInfo(METHODS[method - 1], epsilon, delta_bound, task, number, bits)
    except InvalidParameter as error:
        raise MessageError(f"pack delta: {error}") from error
    return DeltaInfo(base.hex(), base_round, result.hex(), info), sizes


def _added_urls(delta: bytes, count: int, size: int) -> list[bytes]:
    reader = Reader(delta, _HEADER.size, _HEADER.size + size, "pack delta: URLs")
    added = list(read_texts(reader, count))
    if not reader.at_end:
        raise reader.refuse("expected the end of the URLs")
    return added


def _url_numbers(entries: Sequence[PackEntry]) -> dict[bytes, int]:
    """The URLs of a pack by their place in its table."""
    return {url: place for place, url in enumerate(sorted({url.url.encode() for e in entries for url in e.urls}))}


def _steps_bytes(old: Sequence[PackEntry], new: Sequence[PackEntry], number_of: Mapping[bytes, int]) -> bytes:
    out, before = bytearray(), b""
    for step, run in groupby(_steps(old, new), key=lambda pair: pair[0]):
        entries = [entry for _, entry in run]
        write_number(out, len(entries) << _KIND_BITS | step)
        for entry in entries:
            string = entry.query.encode()
            if step is Step.INSERT:
                write_text(out, string, before)
            if step in (Step.REWRITE, Step.INSERT):
                write_numbers(out, entry.lower, entry.probability)
                _write_urls(out, entry.urls, number_of)
            elif step is Step.RENUMBER:
                _write_renumbered(out, entry)
            if step is not Step.DROP:
                before = string
    return bytes(out)


def _steps(old: Sequence[PackEntry], new: Sequence[PackEntry]) -> Iterator[tuple[Step, PackEntry]]:
    """Both packs' queries in the order of their bytes, with what happens to each; the entry is the new one if any."""
    was = {entry.query: entry for entry in old}
    becomes = {entry.query: entry for entry in new}
    for query in sorted({*was, *becomes}, key=str.encode):
        before, after = was.get(query), becomes.get(query)
        if after is None:
            assert before is not None
            yield Step.DROP, before
        elif before is None:
            yield Step.INSERT, after
        elif before == after:
            yield Step.KEEP, after
        elif {url.url for url in before.urls} == {url.url for url in after.urls}:
            yield Step.RENUMBER, after
        else:
            yield Step.REWRITE, after


def _write_urls(out: bytearray, urls: Sequence[PackUrl], number_of: Mapping[bytes, int]) -> None:
    write_number(out, len(urls))
    for url in urls:
        write_number(out, number_of[url.url.encode()])
        write_numbers(out, url.lower, url.probability)


def _write_renumbered(out: bytearray, entry: PackEntry) -> None:
    """New numbers of the query, then of its URLs in the order of their bytes: the best first may be another now."""
    write_numbers(out, entry.lower, entry.probability)
    for url in sorted(entry.urls, key=lambda url: url.url.encode()):
        write_numbers(out, url.lower, url.probability)


def _replay(reader: Reader, old: Sequence[PackEntry], urls: Sequence[bytes], bits: int) -> Iterator[PackEntry]:
    place, before = 0, b""
    while not reader.at_end:
        head = reader.number()
        step, run = head & (1 << _KIND_BITS) - 1, head >> _KIND_BITS
        if step > Step.INSERT or not run or (step != Step.INSERT and place + run > len(old)):
            raise reader.refuse("expected a step over one query or more of the pack that it starts from")
        for _ in range(run):
            if step == Step.INSERT:
                before = reader.text(before)
                yield _new_entry(reader, _text(before), urls, bits)
                continue
            entry, place = old[place], place + 1
            if step == Step.DROP:
                continue
            before = entry.query.encode()
            if step == Step.RENUMBER:
                entry = _renumbered(reader, entry, bits)
            elif step == Step.REWRITE:
                entry = _new_entry(reader, entry.query, urls, bits)
            yield entry
    if place != len(old):
        raise reader.refuse("expected a step for every query of the pack that it starts from")


def _new_entry(reader: Reader, query: str, urls: Sequence[bytes], bits: int) -> PackEntry:
    lower, probability = read_numbers(reader, bits)
    answers = []
    for _ in range(reader.number()):
        number = reader.number()
        if number >= len(urls):
            raise reader.refuse("expected the number of a URL")
        answers.append(PackUrl(_text(urls[number]), *read_numbers(reader, bits)))
    return PackEntry(query, lower, probability, tuple(answers))


def _renumbered(reader: Reader, entry: PackEntry, bits: int) -> PackEntry:
    lower, probability = read_numbers(reader, bits)
    strings = sorted((url.url for url in entry.urls), key=str.encode)
    urls = [PackUrl(string, *read_numbers(reader, bits)) for string in strings]
    return entry._replace(lower=lower, probability=probability, urls=tuple(sorted(urls, key=best_first)))


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MessageError("pack delta: a text that is not UTF-8") from error
