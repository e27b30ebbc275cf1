"""The local-search pack: the answers of one published round in one file, read in place.

A header, two tables of block offsets, the queries and the URLs, both sorted by bytes and front-coded in blocks of 16
(docs/reference/protocol.md has every byte). Looking something up reads a few blocks and parses nothing before, so a
pack works from a memory map as from an array. One content has one encoding: whatever is not it is refused.

Standard library only: this runs on devices.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.normalization import normalize, normalize_url
from searchblend.search.front_coding import (
    BLOCK,
    LONGEST_TEXT,
    Reader,
    read_texts,
    write_blocks,
    write_number,
    write_text,
)

MAGIC: Final = b"SBPK"
PACK_VERSION: Final = 1
PACK_MEDIA_TYPE: Final = "application/vnd.searchblend.pack"
LARGEST: Final = 64 << 20
METHODS: Final = ("paper", "best")
DEFAULT_FRACTION_BITS: Final = 24
FEWEST_BITS, MOST_BITS = 16, 30
NO_TASK: Final = bytes(16)
_HEADER: Final = struct.Struct(">4sBBBx16sIddIIIII")


class PackUrl(NamedTuple):
    """One answer: a URL, its probability and the lower bound of that, in units of 2^-fraction_bits."""

    url: str
    lower: int
    probability: int

    def __repr__(self) -> str:
        return "PackUrl(<redacted>)"


class PackEntry(NamedTuple):
    """One query of a pack and its URLs, best first; none in a pack of queries alone."""

    query: str
    lower: int
    probability: int
    urls: tuple[PackUrl, ...] = ()

    def __repr__(self) -> str:
        return f"PackEntry(<redacted>, {len(self.urls)} URLs)"


@dataclass(frozen=True)
class PackInfo:
    """What a pack states about itself: whose it is, and what was promised to the people behind it."""

    method: str
    epsilon: float
    delta: float
    task: bytes = NO_TASK
    """zeros: a release that no service made"""
    round: int = 0
    fraction_bits: int = DEFAULT_FRACTION_BITS

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidParameter("method", f"must be one of {', '.join(METHODS)}")
        if not 0 < self.epsilon <= sys.float_info.max:
            raise InvalidParameter("epsilon", "must be a finite number above 0")
        if not 0 <= self.delta < 1 or math.copysign(1.0, self.delta) < 0:
            raise InvalidParameter("delta", "must be from 0 to below 1")
        if len(self.task) != 16:
            raise InvalidParameter("task", "must have 16 bytes")
        if not 0 <= self.round < 1 << 32 or (self.round == 0) != (self.task == NO_TASK):
            raise InvalidParameter("round", "must be from 1 on, and 0 without a task")
        if not FEWEST_BITS <= self.fraction_bits <= MOST_BITS:
            raise InvalidParameter("fraction_bits", f"must be from {FEWEST_BITS} to {MOST_BITS}")

    @property
    def unit(self) -> float:
        return 2.0**-self.fraction_bits


def best_first(item: PackUrl) -> tuple[int, int, bytes]:
    """The order of a query's URLs: the higher lower bound, then the higher probability, then the bytes."""
    return -item.lower, -item.probability, item.url.encode()


def encode_pack(info: PackInfo, entries: Iterable[PackEntry]) -> bytes:
    """The one encoding of some entries, whatever order they come in; entries that no pack can hold are refused."""
    content = _encode(info, entries)
    decode_pack(content)
    return content


def _encode(info: PackInfo, entries: Iterable[PackEntry]) -> bytes:
    ordered = sorted((entry.query.encode(), entry) for entry in entries)
    urls = sorted({url.url.encode() for _, entry in ordered for url in entry.urls})
    number_of = {url: place for place, url in enumerate(urls)}
    starts, queries, before = [], bytearray(), b""
    for place, (string, entry) in enumerate(ordered):
        if place % BLOCK == 0:
            starts.append(len(queries))
            before = b""
        write_text(queries, string, before)
        before = string
        write_numbers(queries, entry.lower, entry.probability)
        write_number(queries, len(entry.urls))
        for url in sorted(entry.urls, key=best_first):
            write_number(queries, number_of[url.url.encode()])
            write_numbers(queries, url.lower, url.probability)
    url_starts, url_texts = write_blocks(urls)
    header = _HEADER.pack(
        *(MAGIC, PACK_VERSION, info.fraction_bits, METHODS.index(info.method) + 1, info.task, info.round),
        *(info.epsilon, info.delta, len(ordered), sum(len(entry.urls) for _, entry in ordered), len(urls)),
        *(len(queries), len(url_texts)),
    )
    offsets = [*starts, *url_starts]
    return b"".join([header, struct.pack(f">{len(offsets)}I", *offsets), queries, url_texts])


def write_numbers(out: bytearray, lower: int, probability: int) -> None:
    if not 1 <= lower <= probability:
        raise MessageError("pack: expected a lower bound of at least one unit, and at most the probability")
    write_number(out, lower)
    write_number(out, probability - lower)


def read_numbers(reader: Reader, fraction_bits: int) -> tuple[int, int]:
    lower, gap = reader.number(), reader.number()
    if lower < 1 or lower + gap > 1 << fraction_bits:
        raise reader.refuse("expected 0 < lower bound ≤ probability ≤ 1")
    return lower, lower + gap


def decode_pack(content: bytes | memoryview) -> Pack:
    """A pack in which everything was read and checked: sizes, order, numbers, normal forms, canonical form."""
    pack = Pack(content)
    pack.check()
    return pack


class Pack:
    """A pack over bytes in memory or mapped from a file. Making one reads the header alone; ``check`` reads it all."""

    def __init__(self, content: bytes | memoryview) -> None:
        if len(content) > LARGEST:
            raise MessageError(f"pack: larger than {LARGEST >> 20} MiB")
        if len(content) < _HEADER.size:
            raise MessageError(f"pack: truncated: {len(content)} bytes, and the header alone has {_HEADER.size}")
        magic, version, bits, method, task, number, epsilon, delta, *sizes = _HEADER.unpack_from(content)
        if magic != MAGIC or content[7] != 0:
            raise MessageError("pack: expected a searchblend pack")
        if version != PACK_VERSION:
            raise MessageError(f"pack: version {version}, expected {PACK_VERSION}")
        if method not in (1, 2):
            raise MessageError("pack: method: expected 1 or 2")
        try:
            self.info = PackInfo(METHODS[method - 1], epsilon, delta, task, number, bits)
        except InvalidParameter as error:
            raise MessageError(f"pack: {error}") from error
        self.n_queries: int = sizes[0]
        self.n_pairs: int = sizes[1]
        self.n_urls: int = sizes[2]
        query_bytes, url_bytes = sizes[3:]
        self._content = content
        n_blocks, n_url_blocks = -(-self.n_queries // BLOCK), -(-self.n_urls // BLOCK)
        self._url_table = _HEADER.size + 4 * n_blocks
        self._queries = self._url_table + 4 * n_url_blocks
        self._urls = self._queries + query_bytes
        expected = self._urls + url_bytes
        if len(content) != expected:
            what = "truncated" if len(content) < expected else "trailing bytes"
            raise MessageError(f"pack: {what}: {len(content)} bytes, expected {expected}")

    def __len__(self) -> int:
        return self.n_queries

    def __repr__(self) -> str:
        return f"Pack({self.n_queries} queries, {self.n_pairs} pairs, {self.digest[:12]})"

    @property
    def content(self) -> bytes:
        """The file, byte by byte."""
        return bytes(self._content)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes: the name of the artifact."""
        return hashlib.sha256(self._content).hexdigest()

    @property
    def n_blocks(self) -> int:
        """How many blocks of queries there are."""
        return -(-self.n_queries // BLOCK)

    def block(self, number: int) -> Iterator[PackEntry]:
        """The entries of one block, in order."""
        for string, lower, probability, pairs in self._read_block(number):
            yield PackEntry(decoded(string), lower, probability, tuple(PackUrl(self.url(u), a, p) for u, a, p in pairs))

    def entries(self) -> Iterator[PackEntry]:
        """All entries in the order of the bytes of their queries."""
        urls = [decoded(string) for string in self._all_urls()]
        for number in range(self.n_blocks):
            for string, lower, probability, pairs in self._read_block(number):
                answers = tuple(PackUrl(_listed(urls, place), a, p) for place, a, p in pairs)
                yield PackEntry(decoded(string), lower, probability, answers)

    def queries(self, start: int = 0) -> Iterator[tuple[bytes, int, int]]:
        """Query bytes, lower bound and probability, from a block on; no URL is read."""
        for number in range(start, self.n_blocks):
            for string, lower, probability, _ in self._read_block(number):
                yield string, lower, probability

    def first_of_block(self, number: int) -> bytes:
        """The first query of a block, which is written in full."""
        return self._reader(number).text(b"")

    def block_for(self, query: bytes) -> int:
        """The last block whose first query is not after ``query``; 0 if there is none."""
        low, high = 0, self.n_blocks
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.first_of_block(middle) <= query else (low, middle)
        return low

    def find(self, query: str) -> PackEntry | None:
        """The entry of exactly this query."""
        if not self.n_queries:
            return None
        wanted = query.encode()
        for string, lower, probability, pairs in self._read_block(self.block_for(wanted)):
            if string == wanted:
                return PackEntry(query, lower, probability, tuple(PackUrl(self.url(u), a, p) for u, a, p in pairs))
            if string > wanted:
                break
        return None

    def url(self, number: int) -> str:
        """One URL of the table."""
        if not 0 <= number < self.n_urls:
            raise MessageError("pack: a URL that is not in the table")
        block, place = divmod(number, BLOCK)
        strings = read_texts(self._url_reader(block), place + 1)
        for _ in range(place):
            next(strings)
        return decoded(next(strings))

    def check(self) -> None:
        """Read everything; refuse what is not the canonical pack of its own content."""
        self._check_ends()
        entries = list(self.entries())
        if any(one.query.encode() >= other.query.encode() for one, other in itertools.pairwise(entries)):
            raise MessageError("pack: expected the queries in the order of their bytes")
        for place, entry in enumerate(entries):
            _check_entry(entry, place)
        if bool(self.n_pairs) != all(entry.urls for entry in entries) and entries:
            raise MessageError("pack: expected URLs for every query or for none")
        if _encode(self.info, entries) != self._content:
            raise MessageError("pack: expected the canonical form: exact counts, and a URL table with the used URLs")

    def _check_ends(self) -> None:
        """Every block ends where the next begins."""
        for number in range(self.n_blocks):
            reader = self._reader(number)
            for _ in self._read_block(number, reader):
                pass
            if not reader.at_end:
                raise reader.refuse("expected the end of the block")
        for number in range(-(-self.n_urls // BLOCK)):
            reader = self._url_reader(number)
            for _ in read_texts(reader, min(BLOCK, self.n_urls - number * BLOCK)):
                pass
            if not reader.at_end:
                raise reader.refuse("expected the end of the block")

    def _read_block(
        self, number: int, reader: Reader | None = None
    ) -> Iterator[tuple[bytes, int, int, list[tuple[int, int, int]]]]:
        reader, bits, string = reader or self._reader(number), self.info.fraction_bits, b""
        for _ in range(min(BLOCK, self.n_queries - number * BLOCK)):
            string = reader.text(string)
            lower, probability = read_numbers(reader, bits)
            n = reader.number()
            if n > self.n_urls:
                raise reader.refuse("expected no more URLs than there are")
            yield string, lower, probability, [(reader.number(), *read_numbers(reader, bits)) for _ in range(n)]

    def _all_urls(self) -> Iterator[bytes]:
        before = b""
        for number in range(-(-self.n_urls // BLOCK)):
            for string in read_texts(self._url_reader(number), min(BLOCK, self.n_urls - number * BLOCK)):
                if string <= before:
                    raise MessageError("pack: expected the URLs in the order of their bytes")
                before = string
                yield string

    def _reader(self, block: int) -> Reader:
        ends = self._block_ends(_HEADER.size, block, self.n_blocks, self._queries, self._urls)
        return Reader(self._content, *ends, "pack: queries")

    def _url_reader(self, block: int) -> Reader:
        n_blocks = -(-self.n_urls // BLOCK)
        ends = self._block_ends(self._url_table, block, n_blocks, self._urls, len(self._content))
        return Reader(self._content, *ends, "pack: URLs")

    def _block_ends(self, table: int, block: int, n_blocks: int, first: int, last: int) -> tuple[int, int]:
        start = first + self._offset(table, block)
        end = first + self._offset(table, block + 1) if block + 1 < n_blocks else last
        if not first <= start < end <= last or (block == 0 and start != first):
            raise MessageError("pack: block offsets: expected them to ascend from 0 within their part")
        return start, end

    def _offset(self, table: int, block: int) -> int:
        return int.from_bytes(self._content[table + 4 * block : table + 4 * block + 4], "big")


def decoded(string: bytes) -> str:
    """A string of a pack that was perhaps not checked."""
    try:
        return string.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MessageError("pack: a text that is not UTF-8") from error


def _listed(urls: Sequence[str], place: int) -> str:
    if place >= len(urls):
        raise MessageError("pack: a URL that is not in the table")
    return urls[place]


def _check_entry(entry: PackEntry, place: int) -> None:
    if normalize(entry.query) != entry.query:
        raise MessageError(f"pack: query {place}: not in normal form")
    if any(normalize_url(url.url) != url.url for url in entry.urls):
        raise MessageError(f"pack: query {place}: a URL that is not in normal form")
    if len({url.url for url in entry.urls}) != len(entry.urls):
        raise MessageError(f"pack: query {place}: a URL twice")
    if list(entry.urls) != sorted(entry.urls, key=best_first):
        raise MessageError(f"pack: query {place}: expected the best URL first")
    if any(url.lower > entry.lower or url.probability > entry.probability for url in entry.urls):
        raise MessageError(f"pack: query {place}: expected no URL above its query")


def fits_pack(string: str) -> bool:
    """Whether a query or URL is short enough for a pack."""
    return 0 < len(string.encode()) <= LONGEST_TEXT
