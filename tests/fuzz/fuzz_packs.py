"""Targets: packs, deltas and what people type. A pack that is taken has one encoding, and answers without an error."""

from __future__ import annotations

import hashlib
import struct

from fuzz_rules import CANARY, demand, documented_errors_only

from searchblend.search.index import SearchIndex
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, decode_pack, encode_pack
from searchblend.search.pack_delta import apply_delta, encode_delta
from searchblend.wire.signed_pack import decode_signed_pack, encode_signed_pack

INFO = PackInfo("best", 4.0, 1e-5, bytes(range(16)), 1)


def _entries(n: int, shift: int = 0) -> list[PackEntry]:
    return [
        PackEntry(f"{CANARY} {i * 7 + shift}", 50 + i, 90, (PackUrl(f"http://{CANARY}{i % 4}.example", 9 + shift, 20),))
        for i in range(n)
    ]


BASE = encode_pack(INFO, _entries(20))
NEXT = encode_pack(PackInfo("best", 2.0, 1e-6, bytes(range(16)), 2), _entries(19, 1) + _entries(6)[2:])
DELTA = encode_delta(Pack(BASE), Pack(NEXT))


def pack(data: bytes) -> None:
    """Read lazily and strictly: neither fails otherwise than with a documented error."""
    taken = None
    with documented_errors_only():
        taken = decode_pack(data)
    if taken is not None:
        demand(encode_pack(taken.info, taken.entries()) == data, "a pack with two encodings")
        for entry in taken.entries():
            demand(taken.find(entry.query) == entry, "an entry that is listed and not found")
    with documented_errors_only():
        SearchIndex(Pack(data)).search(f"{CANARY} 1")


def pack_delta(data: bytes) -> None:
    """Only the named result comes out; the header is made right once more, so that changed steps are reached."""
    with documented_errors_only():
        demand(hashlib.sha256(apply_delta(Pack(BASE), data)).digest() == data[80:112], "another pack than was named")
    rest = data[124:]
    with documented_errors_only():
        n_urls = min(len(rest), int.from_bytes(data[116:120], "big") % 256)
        apply_delta(
            Pack(BASE),
            DELTA[:112] + data[112:116].ljust(4, b"\0") + struct.pack(">II", n_urls, len(rest) - n_urls) + rest,
        )


def signed_pack(data: bytes) -> None:
    with documented_errors_only():
        signed = decode_signed_pack(data)
        demand(encode_signed_pack(signed.pack, signed.signatures) == data, "an envelope with two encodings")


def typed(data: bytes) -> None:
    """Whatever somebody types, lone surrogates too: an answer in order, the same twice."""
    text = data.decode("utf-8", "surrogateescape")
    index = SearchIndex(Pack(BASE))
    found = index.search(text, 5)
    demand(found == index.search(text, 5), "two answers to one question")
    kinds = [("exact", "prefix", "typo").index(item.kind) for item in found]
    demand(kinds == sorted(kinds), "kinds out of order")


TARGETS = {"pack": pack, "pack_delta": pack_delta, "signed_pack": signed_pack, "typed": typed}


def seeds() -> dict[str, list[bytes]]:
    envelope = b"SBPS\1\1" + bytes(range(72)) + BASE
    texts = [f"{CANARY} 7", CANARY.upper(), CANARY[:3], "zqcanray 7", "", "x" * 70, "é" * 5]
    return {
        "pack": [BASE, NEXT, encode_pack(INFO, [])],
        "pack_delta": [DELTA, encode_delta(Pack(BASE), Pack(BASE))],
        "signed_pack": [envelope],
        "typed": [text.encode() for text in texts],
    }
