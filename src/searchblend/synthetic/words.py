"""Texts of queries and sites by their numbers: all different, and a function of the number alone.

A text is written by hand or composed of *compounds*, pairs of words of two lists (world.py): one for the most frequent
composed queries, two for other common ones, three for rare ones. A compound has two words, and no other word of a text
is among the details that a third compound begins with, so the words at each place give the number back. Hence different
numbers have different strings.

Strings are columns of fixed width, padded with NULs, which the writer drops.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.synthetic.laws import Ints, fixed_uniform, mixed
from searchblend.synthetic.world import (
    ASPECTS,
    DETAILS,
    N_COMPOUNDS,
    PLACES,
    STYLES,
    SUBJECTS,
    YEARS,
    compounds,
    world,
    written_hosts,
    written_queries,
)

Bytes = NDArray[np.bytes_]

SITE_NAME, ONE_WORD, FEW_WORDS, MANY_WORDS = range(4)
"""Kinds of query: ``www.x.example`` or ``x.example``, words joined by hyphens, words, words and a phrase."""
_KIND_OF_TOP_QUERY: Final = (1, 1, 0, 0, 1, 0, 0, 1, 1)
"""of the nine most frequent queries of the AOL log, whose shares are published"""

N_WRITTEN: Final = len(written_queries())
_N_SHORT: Final = N_WRITTEN + N_COMPOUNDS
QUERY_LIMIT: Final = 1 << 36
SITE_LIMIT: Final = 1 << 24
_COMMON_LIMIT: Final = 1 << 24  # below it two compounds spell the number, from it on three
_DIGIT_BITS: Final = 12
_NOT_ASCII_SHARE: Final = 0.006
_INTENT_SALT, _LOOK_SALT, _SITE_SALT = 1, 2, 3

_PHRASE: Final = """for sale|near me|how to|for kids|with map|by post|at home|on foot|in winter|for two|by night|of all
|to rent|as a gift|for free|2006|101|who makes|what is|where|when|why|which|abroad"""
_NOT_ASCII: Final = "café|münchen|são paulo|niño|CAFE\u0301|ＳＡＬＥ|東京|москва|ÉCOLE|ﬁesta|año nuevo|zürich"
"""Some are not in normal form: capitals, a combining accent, full width, a ligature."""


def _listed(words: str) -> list[bytes]:
    return [f" {word}".encode() for word in words.replace("\n", "").split("|")]


def _spaced_and_joined(first: list[str], second: list[str]) -> Bytes:
    """All compounds, then all with a hyphen."""
    spaced = compounds(first, second)
    return np.array([*spaced, *(text.replace(" ", "-") for text in spaced)], dtype=np.bytes_)


_FIRST: Final = _spaced_and_joined(SUBJECTS, ASPECTS)
_SECOND: Final = _spaced_and_joined(PLACES, STYLES)
_THIRD: Final = _spaced_and_joined(DETAILS, YEARS)
_PHRASES, _OTHERS = _listed(_PHRASE), _listed(_NOT_ASCII)
_WORDS: Final = np.array([b"", *_PHRASES, *_OTHERS, b".example"])
_FIRST_OTHER: Final = 1 + len(_PHRASES)
_SITE_ENDING: Final = len(_WORDS) - 1
_QUERY = np.dtype(
    [
        ("www", "S4"),
        ("first", _FIRST.dtype),
        ("blank", "S1"),
        ("second", _SECOND.dtype),
        ("other_blank", "S1"),
        ("third", _THIRD.dtype),
        ("words", _WORDS.dtype),
    ]
)
_SITE = np.dtype(
    [("start", "S11"), ("first", _FIRST.dtype), ("hyphen", "S1"), ("second", _SECOND.dtype), ("end", "S8")]
)
QUERY_WIDTH: Final = _QUERY.itemsize
SITE_WIDTH: Final = _SITE.itemsize
_WRITTEN: Final = np.array([query.encode() for query in written_queries()], dtype=f"S{QUERY_WIDTH}")
_WRITTEN_SITES: Final = np.array([f"http://www.{host}" for host in written_hosts()], dtype=f"S{SITE_WIDTH}")
SITE_OF_QUERY: Final = np.array([written_hosts().index(hosts[0]) for hosts in world().values()])
"""where each written query leads first"""


def intent(queries: Ints) -> NDArray[np.float64]:
    """How much a query asks for one site, in [0, 1): its kind, its clicks and its ranks follow from it."""
    return fixed_uniform(queries, _INTENT_SALT)


def kinds(queries: Ints, intents: NDArray[np.float64]) -> Ints:
    """The kind of each query; rare ones have more words."""
    rare = queries >= _COMMON_LIMIT
    few = np.where(rare, 0.42, 0.22)
    one = np.where(rare, 0.92, 0.74)
    site = np.where(rare, 0.97, 0.93)
    kind: Ints = MANY_WORDS - ((intents >= few).astype(np.int64) + (intents >= one) + (intents >= site))
    top = np.flatnonzero(queries < len(_KIND_OF_TOP_QUERY))
    kind[top] = np.array(_KIND_OF_TOP_QUERY)[queries[top]]
    return kind


def query_texts(queries: Ints) -> Bytes:
    """The string of each query."""
    kind = kinds(queries, intent(queries))
    look = fixed_uniform(queries, _LOOK_SALT)
    rare, short = queries >= _COMMON_LIMIT, queries < _N_SHORT
    site = kind == SITE_NAME
    joined = np.where(site | ((kind == ONE_WORD) & ~short), N_COMPOUNDS, 0)
    first, second, third = _spelled(queries, rare)
    first[short] = queries[short] * _SHORT_STRIDE % N_COMPOUNDS
    blank = np.where(joined, b"-", b" ")
    text = np.zeros(len(queries), dtype=_QUERY)
    text["www"][site & (look < 0.5)] = b"www."
    text["first"] = _FIRST[first + joined]
    at = np.flatnonzero(~short)
    text["blank"][at], text["second"][at] = blank[at], _SECOND[(second + joined)[at]]
    at = np.flatnonzero(rare)
    text["other_blank"][at], text["third"][at] = blank[at], _THIRD[(third + joined)[at]]
    text["words"] = _WORDS[_words_around(kind, look, short)]
    whole = text.view(f"S{QUERY_WIDTH}")
    written = np.flatnonzero(queries < N_WRITTEN)
    whole[written] = _WRITTEN[queries[written]]
    return whole


_SHORT_STRIDE: Final = 0xF2D
"""odd, so that it visits every compound once"""


def _spelled(queries: Ints, rare: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Digits of a one-to-one scramble of the number: of 24 bits for common queries, of 36 for rare ones."""
    bits = np.where(rare, np.int64(3 * _DIGIT_BITS), np.int64(2 * _DIGIT_BITS)).astype(np.uint64)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    number = queries.astype(np.uint64)
    for odd in (0x5851F42D4C957F2D, 0xD1342543DE82EF95):
        number = number * np.uint64(odd) & mask
        number ^= number >> (bits >> np.uint64(1))
    digit = np.uint64((1 << _DIGIT_BITS) - 1)
    shifts = (np.uint64(0), np.uint64(_DIGIT_BITS), np.uint64(2 * _DIGIT_BITS))
    first, second, third = ((number >> shift & digit).astype(np.int64) for shift in shifts)
    return first, second, third


def _words_around(kind: Ints, look: NDArray[np.float64], short: NDArray[np.bool_]) -> Ints:
    """Which entry of ``_WORDS`` ends the text."""
    spread = (look * 2.0**20).astype(np.int64)
    words = np.where((kind == MANY_WORDS) & ~short, 1 + spread % len(_PHRASES), 0)
    words[kind == SITE_NAME] = _SITE_ENDING
    odd = (kind >= FEW_WORDS) & ~short & (spread % 1024 < round(1024 * _NOT_ASCII_SHARE / 0.8))
    words[odd] = _FIRST_OTHER + (spread[odd] >> 10) % len(_OTHERS)
    return words


def site_texts(sites: Ints) -> Bytes:
    """``http://`` and the host of each site."""
    text = np.zeros(len(sites), dtype=_SITE)
    scrambled = mixed(sites, _SITE_SALT)
    text["start"] = np.where(scrambled & np.uint64(7) == 0, b"http://", b"http://www.")
    number = sites * 0x9E3779B1 & (SITE_LIMIT - 1)
    number ^= number >> _DIGIT_BITS
    text["first"] = _FIRST[N_COMPOUNDS + (number & (N_COMPOUNDS - 1))]
    text["hyphen"], text["second"] = b"-", _SECOND[N_COMPOUNDS + (number >> _DIGIT_BITS)]
    text["end"] = b".example"
    whole = text.view(f"S{SITE_WIDTH}")
    written = np.flatnonzero(sites < len(_WRITTEN_SITES))
    whole[written] = _WRITTEN_SITES[sites[written]]
    return whole
