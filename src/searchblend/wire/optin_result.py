"""The curator's signed word for a head list: which queries and URLs it drew from the opt-in users' records.

A signed manifest says who asks, and not where the questions come from: a publisher, or whoever writes to its database,
could add a query that only one person would search for. So the curator signs what it drew, when it draws it, and
devices answer about nothing else. Reviewers may remove what must not be published, and no one may learn from the
signature what that was: the curator signs hashes of the entries, each with 128 random bits of its own. The list is
published with the random bits of what stayed, and with the bare hashes of what was removed.

    entry  SHA-256("searchblend opt-in entry v1\\n" ‖ salt (16) ‖ canonical JSON [query, url]); of a query url is null
    root   SHA-256("searchblend opt-in entries v1\\n" ‖ the entries of everything that was drawn, sorted)
    signed "searchblend opt-in result v1\\n" ‖ canonical JSON of delta, epsilon, root, round and task

Standard library only; signatures are checked in ``signing``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from searchblend.core.documents import JsonObject, encode
from searchblend.core.errors import MessageError
from searchblend.core.randomness import Randomness
from searchblend.core.records import HeadList
from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import Signature, decode_signature

SIGNED_PREFIX: Final = b"searchblend opt-in result v1\n"
_ENTRY_PREFIX: Final = b"searchblend opt-in entry v1\n"
_ENTRIES_PREFIX: Final = b"searchblend opt-in entries v1\n"
_SALT_BYTES: Final = 16
_WHERE: Final = "opt-in result"
_FIELDS: Final = {"curator", "key", "removed", "salts"}


@dataclass(frozen=True)
class DrawnBy:
    """Which round a list was drawn in, and with what promise; the numbers as in its manifest."""

    task: str
    round: int
    epsilon: str
    delta: str

    def signed_bytes(self, root: str) -> bytes:
        return SIGNED_PREFIX + canonical_json({**vars(self), "root": root})


@dataclass(frozen=True)
class OptinResult:
    """What a head list carries beside its queries. Salts are in the order of the list."""

    salts: Sequence[Sequence[str]]
    """of each query, then of its URLs; hexadecimal"""
    removed: Sequence[str]
    """entries that were drawn and are not published, sorted"""
    key: str
    """the curator's public point; devices that pinned a curator believe no other"""
    curator: Signature

    def root(self, head: HeadList) -> str:
        """What the curator must have signed; ``MessageError`` if this is not the result of a list of this form."""
        entries = [*_published(head, self.salts), *map(bytes.fromhex, self.removed)]
        return hashlib.sha256(_ENTRIES_PREFIX + b"".join(sorted(entries))).hexdigest()

    def without(self, head: HeadList, removed: Collection[tuple[int, int | None]]) -> OptinResult:
        """After a review, with the same signature; ``removed`` as in ``HeadFigures.without``. Its salts are gone."""
        kept, gone = list[Sequence[str]](), list[str]()
        for i, (query, salts) in enumerate(zip(head.queries, self.salts, strict=True)):
            urls = (None, *range(len(salts) - 1))
            stays = [(i, None) not in removed and (i, j) not in removed for j in urls]
            entries = zip(_entries_of(head, query, salts), salts, stays, strict=True)
            gone += [entry.hex() for entry, _, is_kept in entries if not is_kept]
            if stays[0]:
                kept.append([salt for salt, is_kept in zip(salts, stays, strict=True) if is_kept])
        return replace(self, salts=kept, removed=sorted([*self.removed, *gone]))


def certify(
    head: HeadList, drawn_by: DrawnBy, sign: Callable[[bytes], Signature], key: bytes, randomness: Randomness
) -> OptinResult:
    """What the curator says of the list that it has drawn, before anyone reviews it.

    Args:
        head: the list as it was drawn
        drawn_by: its round and promise
        sign: with the curator's key
        key: the curator's public point
        randomness: for the salts
    """
    salts = [[randomness.take(_SALT_BYTES).hex() for _ in range(1 + len(head.urls(q)))] for q in head.queries]
    unsigned = OptinResult(salts, (), key.hex(), Signature("", ""))
    return replace(unsigned, curator=sign(drawn_by.signed_bytes(unsigned.root(head))))


def encode_optin_result(result: OptinResult) -> JsonObject:
    return {**encode(result)}


def decode_optin_result(document: Any) -> OptinResult:
    """Strictly; whether it fits a list, and who signed it, is for ``root`` and ``signing``."""
    if not isinstance(document, dict) or set(document) != _FIELDS:
        raise MessageError(f"{_WHERE}: expected {', '.join(sorted(_FIELDS))}")
    salts, removed = document["salts"], document["removed"]
    if not isinstance(salts, list) or not all(isinstance(each, list) and each for each in salts):
        raise MessageError(f"{_WHERE}: salts: expected a list of lists")
    if not all(_is_hex(salt, 2 * _SALT_BYTES) for each in salts for salt in each):
        raise MessageError(f"{_WHERE}: salts: expected {2 * _SALT_BYTES} hexadecimal digits each")
    if not isinstance(removed, list) or not all(_is_hex(entry, 64) for entry in removed):
        raise MessageError(f"{_WHERE}: removed: expected 64 hexadecimal digits each")
    if not _is_hex(document["key"], 130):
        raise MessageError(f"{_WHERE}: key: expected 130 hexadecimal digits")
    return OptinResult(salts, removed, document["key"], decode_signature(document["curator"], f"{_WHERE}: curator"))


def _published(head: HeadList, salts: Sequence[Sequence[str]]) -> Iterator[bytes]:
    if [len(each) for each in salts] != [1 + len(head.urls(query)) for query in head.queries]:
        raise MessageError(f"{_WHERE}: salts: expected one for each query and each URL of the list")
    for query, each in zip(head.queries, salts, strict=True):
        yield from _entries_of(head, query, each)


def _entries_of(head: HeadList, query: str, salts: Iterable[str]) -> Iterator[bytes]:
    for url, salt in zip((None, *head.urls(query)), salts, strict=True):
        content = _ENTRY_PREFIX + bytes.fromhex(salt) + canonical_json([query, url])
        yield hashlib.sha256(content).digest()


def _is_hex(value: object, digits: int) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None
