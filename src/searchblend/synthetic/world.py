"""The world that synthetic users search: what they ask, and where it leads.

The first queries and their sites are written by hand, in several languages (world.tsv: a query, its sites). All others
are composed from five lists of words (word_lists.txt), so that any number has a query of its own. Every address ends
in ``.example``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from itertools import product
from typing import Final


def _word_lists() -> list[list[str]]:
    """Of word_lists.txt: one a line, after its name."""
    return [line.split(": ")[1].split() for line in _read("word_lists.txt").splitlines()]


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


SUBJECTS, ASPECTS, PLACES, STYLES, DETAILS = _word_lists()
YEARS: Final = [str(year) for year in range(1950, 2014)]
LIST_LENGTH: Final = 64
N_COMPOUNDS: Final = LIST_LENGTH**2
DIRECTORIES: Final = (
    "encyclopedia.example",
    "answers.example",
    "forum.example",
    "shopping.example",
    "videohall.example",
    "magazine.example",
    "directory.example",
    "handbook.example",
    "notebook.example",
    "archive.example",
)
"""sites that have a page about everything"""


@cache
def world() -> dict[str, tuple[str, ...]]:
    """The written queries, most frequent first, each with the hosts that it leads to, best first."""
    lines = (line.split("\t") for line in _read("world.tsv").splitlines())
    return {query: tuple(hosts.split()) for query, hosts in lines}


@cache
def written_queries() -> tuple[str, ...]:
    return tuple(world())


@cache
def written_hosts() -> tuple[str, ...]:
    """All hosts of the written queries, those of the most frequent first."""
    return tuple(dict.fromkeys(host for hosts in world().values() for host in hosts))


def compounds(first: list[str], second: list[str]) -> list[str]:
    """All 4,096 pairs of two lists; their order is the lists', so that a number and its pair give each other."""
    return [f"{one} {other}" for one, other in product(first, second)]


def scrambled(number: int) -> int:
    """A one-to-one scramble of 24 bits: neighbours in rank have nothing in common in words."""
    for odd in _ODD:
        number = number * odd % _COMMON
        number ^= number >> _HALF_BITS
    return number


def unscrambled(number: int) -> int:
    for odd in reversed(_ODD):
        number ^= number >> _HALF_BITS
        number = number * pow(odd, -1, _COMMON) % _COMMON
    return number


_ODD: Final = (0x957F2D, 0x82EF95)
_COMMON: Final = 1 << 24
_HALF_BITS: Final = 12


def ranked_query(rank: int) -> str:
    """The query of a rank (0 is the most frequent): written, of two words, or of four."""
    written = written_queries()
    if rank < len(written):
        return written[rank]
    rank -= len(written)
    if rank < N_COMPOUNDS:
        return _pair(rank * _ODD[0] % N_COMPOUNDS, SUBJECTS, ASPECTS)
    high, low = divmod(scrambled(rank), N_COMPOUNDS)
    return f"{_pair(low, SUBJECTS, ASPECTS)} {_pair(high, PLACES, STYLES)}"


def rank_of_query(query: str) -> int:
    """The inverse of ``ranked_query``; −1 for what is not of this world."""
    place = _places().get(query)
    if place is not None:
        return place
    words = query.split(" ")
    try:
        low = _number(words[:2], SUBJECTS, ASPECTS)
        if len(words) == 2:
            rank = low * pow(_ODD[0], -1, N_COMPOUNDS) % N_COMPOUNDS
        else:
            rank = unscrambled(_number(words[2:], PLACES, STYLES) * N_COMPOUNDS + low)
    except ValueError:
        return -1
    rank += len(written_queries())
    return rank if ranked_query(rank) == query else -1


def ranked_url(rank: int, place: int) -> str:
    """The URL at a place of a query's results: its own sites first, then its pages on sites about everything."""
    query = ranked_query(rank)
    own = world().get(query) or (f"{query.replace(' ', '-')}.example",)
    if place < len(own):
        return f"http://{own[place]}"
    return f"http://{DIRECTORIES[place - len(own)]}/{own[0].removesuffix('.example')}"


def _pair(number: int, first: list[str], second: list[str]) -> str:
    return f"{first[number // LIST_LENGTH]} {second[number % LIST_LENGTH]}"


def _number(words: list[str], first: list[str], second: list[str]) -> int:
    one, other = words
    return first.index(one) * LIST_LENGTH + second.index(other)


@cache
def _places() -> dict[str, int]:
    return {query: rank for rank, query in enumerate(written_queries())}
