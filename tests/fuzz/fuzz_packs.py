"""Targets: packs of answers, their deltas and their signatures, as a device gets them."""

from __future__ import annotations

from functools import cache

from fuzz_messages import cases
from fuzz_rules import demand, documented_errors_only

from searchblend.search.pack import Pack, decode_pack, encode_pack
from searchblend.search.pack_delta import apply_delta, read_delta_info
from searchblend.wire.signed_pack import decode_signed_pack


def pack(data: bytes) -> None:
    """What is taken is canonical: encoding it again gives the same bytes. What is not checked must still not break."""
    with documented_errors_only():
        found = decode_pack(data)
        entries = list(found.entries())
        demand(encode_pack(found.info, entries) == data, "a pack with two encodings")
        for entry in entries[:20]:
            demand(found.find(entry.query) == entry, "an entry that is not found")
    with documented_errors_only():
        Pack(data).find("weather")


@cache
def base() -> Pack:
    return Pack(bytes.fromhex(cases("pack_delta")[0]["base"]))


def pack_delta(data: bytes) -> None:
    with documented_errors_only():
        read_delta_info(data)
    with documented_errors_only():
        decode_pack(apply_delta(base(), data))


def signed_pack(data: bytes) -> None:
    with documented_errors_only():
        decode_signed_pack(data)


def seeds() -> dict[str, list[bytes]]:
    small = [case for case in cases("pack") if len(case["pack"]) < 20_000]
    deltas = [case for case in cases("pack_delta") if case["base"] == cases("pack_delta")[0]["base"]]
    return {
        "pack": [bytes.fromhex(case["pack"]) for case in small],
        "pack_delta": [bytes.fromhex(case["delta"]) for case in deltas],
        "signed_pack": [bytes.fromhex(case["message"]) for case in cases("signed_pack")],
    }


TARGETS = {job.__name__: job for job in (pack, pack_delta, signed_pack)}
