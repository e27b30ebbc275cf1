"""Texts for made-up queries and sites: word-like, all different, and a function of the number alone.

A *piece* is a made-up word (CV)+C, so in a text without blanks two consonants in a row are where one piece ends and
the next begins. Pieces spell the number digit by digit; whatever stands around them (``www.``, a common word) depends
on the number too, and no common word has the form of a piece. Hence different numbers have different texts.

Texts are columns of fixed width with NULs where there is nothing; whoever writes them drops the NULs.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.synthetic.laws import Ints, fixed_uniform, mixed

Bytes = NDArray[np.bytes_]

TOP_QUERIES: Final = (
    "google",
    "yahoo",
    "google.com",
    "myspace.com",
    "mapquest",
    "yahoo.com",
    "www.google.com",
    "myspace",
    "ebay",
)
"""The published names of the most frequent AOL queries ([BLJ] Fig. 9); all other texts are made up."""
TOP_SITES: Final = ("google", "yahoo", "myspace", "mapquest", "ebay")
"""Sites 0-4: where the published names lead."""
SITE_OF_TOP_QUERY: Final = (0, 1, 0, 2, 3, 1, 0, 2, 4)

SITE_NAME, ONE_WORD, FEW_WORDS, MANY_WORDS = range(4)
"""Kinds of query: ``www.x.example`` or ``x.example``, one word, two or three, four or more."""
_KIND_OF_TOP_QUERY: Final = (1, 1, 0, 0, 1, 0, 0, 1, 1)

QUERY_LIMIT: Final = 1 << 36
SITE_LIMIT: Final = 1 << 24
_COMMON_LIMIT: Final = 1 << 24  # below it two pieces spell the number, from it on three
_DIGIT_BITS: Final = 12
_PIECE_WIDTH: Final = 7
_NOT_ASCII_SHARE: Final = 0.006
_INTENT_SALT, _LOOK_SALT, _SITE_SALT = 1, 2, 3

_SINGLE: Final = """area|baby|bible|blue|book|casino|city|county|dictionary|directory|disease|florida|free|game|guide
|house|jobs|joke|library|lyrics|movie|music|office|online|ohio|people|picture|quote|recipe|review|sale|school|song|state
|store|texas|ticket|university|video|weather|2006|101"""
_PHRASE: Final = """on sale|free online|in florida|how to make|phone number search|real estate|high school|of america
|song lyrics online|where to buy|with small children|in the bible|county public library|and the city|in reno nevada
|southern california"""
_NOT_ASCII: Final = "café|münchen|são paulo|niño|CAFE\u0301|ＳＡＬＥ|東京|москва|ÉCOLE|ﬁesta|año nuevo|zürich"
"""Some are not in normal form: capitals, a combining accent, full width, a ligature."""


def _listed(words: str) -> list[bytes]:
    return [f" {word}".encode() for word in words.replace("\n", "").split("|")]


def _pieces() -> Bytes:
    """4,096 made-up words of 3, 5 and 7 letters; a stride prime to 14 · 70^n visits no word twice."""
    consonants, vowels = "bdfgklmnprstvz", "aeiou"
    words = []
    for n_syllables, n_words, stride in ((1, 512, 607), (2, 2_560, 42_397), (3, 1_024, 2_967_799)):
        for number in range(n_words):
            rest, word = number * stride % (14 * 70**n_syllables), ""
            for _ in range(n_syllables):
                rest, consonant = divmod(rest, len(consonants))
                rest, vowel = divmod(rest, len(vowels))
                word += consonants[consonant] + vowels[vowel]
            words.append(word + consonants[rest])
    return np.array(words, dtype=f"S{_PIECE_WIDTH}")


_PIECES: Final = _pieces()
_SINGLES, _PHRASES, _OTHERS = _listed(_SINGLE), _listed(_PHRASE), _listed(_NOT_ASCII)
_WORDS: Final = np.array([b"", *_SINGLES, *_PHRASES, *_OTHERS, b".example"])
_FIRST_PHRASE: Final = 1 + len(_SINGLES)
_FIRST_OTHER: Final = _FIRST_PHRASE + len(_PHRASES)
_SITE_ENDING: Final = len(_WORDS) - 1
_QUERY = np.dtype(
    [
        ("www", "S4"),
        ("first", f"S{_PIECE_WIDTH}"),
        ("blank", "S1"),
        ("second", f"S{_PIECE_WIDTH}"),
        ("other_blank", "S1"),
        ("third", f"S{_PIECE_WIDTH}"),
        ("words", _WORDS.dtype),
    ]
)
_SITE = np.dtype([("start", "S11"), ("first", f"S{_PIECE_WIDTH}"), ("second", f"S{_PIECE_WIDTH}"), ("end", "S8")])
QUERY_WIDTH: Final = _QUERY.itemsize
SITE_WIDTH: Final = _SITE.itemsize


def intent(queries: Ints) -> NDArray[np.float64]:
    """How much a query asks for one site, in [0, 1): its kind, its clicks and its ranks follow from it."""
    return fixed_uniform(queries, _INTENT_SALT)


def kinds(queries: Ints, intents: NDArray[np.float64]) -> Ints:
    """The kind of each query; rare ones have more words."""
    rare = queries >= _COMMON_LIMIT
    few = np.where(rare, 0.42, 0.22)
    one = np.where(rare, 0.92, 0.74)
    site = np.where(rare, 0.97, 0.93)
    kinds_: Ints = MANY_WORDS - ((intents >= few).astype(np.int64) + (intents >= one) + (intents >= site))
    top = np.flatnonzero(queries < len(TOP_QUERIES))
    kinds_[top] = np.array(_KIND_OF_TOP_QUERY)[queries[top]]
    return kinds_


def query_texts(queries: Ints) -> Bytes:
    """The text of each query."""
    intents = intent(queries)
    kind = kinds(queries, intents)
    shape = fixed_uniform(queries, _LOOK_SALT)
    rare = queries >= _COMMON_LIMIT
    text = np.zeros(len(queries), dtype=_QUERY)
    text["www"][(kind == SITE_NAME) & (shape < 0.5)] = b"www."
    first, second, third = _spelled(queries, rare)
    text["first"], text["second"] = _PIECES[first], _PIECES[second]
    text["third"][rare] = _PIECES[third[rare]]
    spaced = kind >= FEW_WORDS
    text["blank"][spaced & (~rare | (shape < 0.7))] = b" "
    text["other_blank"][spaced & rare] = b" "
    text["words"] = _WORDS[_words_around(kind, shape, rare)]
    whole = text.view(f"S{QUERY_WIDTH}")
    top = np.flatnonzero(queries < len(TOP_QUERIES))
    whole[top] = np.array(TOP_QUERIES, dtype=np.bytes_)[queries[top]]
    return whole


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


def _words_around(kind: Ints, shape: NDArray[np.float64], rare: NDArray[np.bool_]) -> Ints:
    """Which entry of ``_WORDS`` ends the text: a rare query of many words is one word, a common one a phrase longer."""
    spread = (shape * 2.0**20).astype(np.int64)
    single, phrase = 1 + spread % len(_SINGLES), _FIRST_PHRASE + spread % len(_PHRASES)
    words = np.where(kind == MANY_WORDS, np.where(rare & (shape < 0.6), single, phrase), 0)
    words[(kind == FEW_WORDS) & ~rare & (shape < 0.5)] = single[(kind == FEW_WORDS) & ~rare & (shape < 0.5)]
    words[kind == SITE_NAME] = _SITE_ENDING
    odd = (kind >= FEW_WORDS) & (spread % 1024 < round(1024 * _NOT_ASCII_SHARE / 0.8))
    words[odd] = _FIRST_OTHER + (spread[odd] >> 10) % len(_OTHERS)
    return words


def site_texts(sites: Ints) -> Bytes:
    """``http://`` and the host of each site."""
    text = np.zeros(len(sites), dtype=_SITE)
    scrambled = mixed(sites, _SITE_SALT)
    text["start"] = np.where(scrambled & np.uint64(7) == 0, b"http://", b"http://www.")
    number = sites * 0x9E3779B1 & (SITE_LIMIT - 1)
    number ^= number >> _DIGIT_BITS
    text["first"], text["second"] = _PIECES[number & 4095], _PIECES[number >> _DIGIT_BITS]
    text["end"] = b".example"
    whole = text.view(f"S{SITE_WIDTH}")
    top = np.flatnonzero(sites < len(TOP_SITES))
    whole[top] = np.array([f"http://www.{name}.com" for name in TOP_SITES], dtype=np.bytes_)[sites[top]]
    return whole
