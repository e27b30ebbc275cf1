"""Changes to bytes that break parsers, for runs without a coverage-guided fuzzer and for the short run in the tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

TOKENS = [
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\x1b[2J", b"\r", b"\n", b"\r\n",
    b"\t", b",", b'"', b'""', b"'", b"\\", b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b"[" * 3000,
    b'{"a":' * 1500, b":", b"null", b"true", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"9" * 30, b"9" * 5000,
    b"-0", b"18446744073709551616", b"1e-400", b"%00", b"%zz", b"http://", b"https://[::1]:99999/", b"xn--",
    b"//", b"@", b"#", b"?", "İ".encode(), "ß".encode(), "\u200b".encode(), "\u2028".encode(), "é".encode(),
    "e\u0301".encode(), "⋆".encode(), "𝔘".encode(), "\x85".encode(),
]  # fmt: skip
"""Texts that have broken a parser somewhere."""


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _set(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.randrange(256)


def _remove(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data) + 1)
    del data[start : start + chance.choice([1, 2, 8, 64, len(data)])]


def _repeat(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data) + 1)
    piece = data[start : start + chance.choice([1, 4, 32, 200])]
    data[start:start] = piece * chance.choice([1, 2, 20])


def _token(data: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(data) + 1)
    data[start : start + chance.choice([0, 0, 1, 4])] = chance.choice(TOKENS)


def _swap(data: bytearray, chance: random.Random) -> None:
    if len(data) > 1:
        i, j = chance.randrange(len(data)), chance.randrange(len(data))
        data[i], data[j] = data[j], data[i]


STEPS: Sequence[Callable[[bytearray, random.Random], None]] = (_flip, _set, _remove, _repeat, _token, _token, _swap)


def mutated(seeds: Sequence[bytes], chance: random.Random) -> bytes:
    """A seed after a few changes; now and then the tail of another one."""
    data = bytearray(chance.choice(seeds))
    if chance.random() < 0.1:
        other = chance.choice(seeds)
        data[chance.randrange(len(data) + 1) :] = other[chance.randrange(len(other) + 1) :]
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        chance.choice(STEPS)(data, chance)
    return bytes(data)
