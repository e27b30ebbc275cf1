"""Logs of a few people, with everything in their lines that a line can hold, and of one person more.

What is read of a log must be the sum of what is read of its people. A *world* is one file: the lines of some others,
and those of one more person, X. Many worlds are read at once, in three ways: the others alone, X alone, and both.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import zstandard

from searchblend.clickgraph.release.click_log import Cap
from searchblend.logs.formats.gate import MAX_LINE
from searchblend.logs.read import SearchLog, read_log

KEY: Final = bytes(range(16))
BOM: Final = b"\xef\xbb\xbf"
FORMATS: Final = ("aol", "tsv", "csv", "jsonl", "yandex", "excite")
HEADERS: Final = {
    "aol": b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL",
    "tsv": b"user\tquery\turl\ttime\trank",
    "csv": b"user,query,url,time,rank",
}
PIECES: Final = {
    "quote": [b'"', b'""', b'"x"'],
    "return": [b"\r", b"\r\r"],
    "nul": [b"\0"],
    "mark": [BOM, BOM + BOM],
    "invalid": [b"\xff", b"\xc3", b"\xed\xa0\x80"],
    "separator": [b"\x1f", b"\x1e", b"\x1c"],
    "control": [b"\x01", b"\x0b", b"\x0c", b"\x1b", b"\x7f", "\x85".encode()],
    "joiner": ["\u200c".encode(), "\u202e".encode(), "\u2028".encode(), "\u0378".encode()],
    "letter": ["é".encode(), "東".encode(), "😀".encode(), "ſ".encode()],
    "syntax": [b"{", b"}", b"[", b"]", b"\\", b":", b"#", b"'", b"\\N", b"=", b"NULL", b"://"],
    "blank": [b" ", b"  ", "\u3000".encode()],
    "long": [b"x" * 2100],
}
"""Bytes that are put anywhere in a line, by kind."""
ONLY_X: Final = {
    "feed": [b"\n", b"\r\n", b"\n\n", b'\n"', b'"\n'],
    "field": [b"\t", b",", b"\t\t", b",,"],
    "fields": [b"\t" * 400, b"," * 400, b"\x1f" * 400],
}
"""Bytes that make other lines or fields of one: then who the others are could not be said beforehand."""


@dataclass(frozen=True)
class World:
    others: list[bytes]
    mine: list[bytes]
    mixed: list[bytes]
    ending: bytes


def worlds(format_name: str, n: int, theirs: str | None, chance: random.Random) -> list[World]:
    """Worlds in which the others' lines have one kind of odd bytes, or none; sometimes another kind as well.

    X's lines have some kinds: the same in all worlds, or others in each. Unless quotes are what is odd about the
    others, theirs may be free of them: then it is X who decides how such a file must be read.
    """
    pieces = [
        piece
        for kind in (theirs, *chance.sample(sorted(PIECES), chance.choice([0, 0, 1])))
        for piece in (PIECES[kind] if kind else [])
    ]
    plain = theirs != "quote" and chance.random() < 0.75
    mine = _some_kinds(chance)
    same = chance.random() < 0.5
    found = [
        _world(format_name, number, pieces, mine if same else _some_kinds(chance), chance, plain=plain)
        for number in range(n)
    ]
    if chance.random() < 0.2:
        found[0].mine.append(b"X" * (MAX_LINE + chance.randrange(-1, 3)) + chance.choice([b"", b"\r"]))
        found[0].mixed.insert(chance.randrange(len(found[0].mixed) + 1), found[0].mine[-1])
    return found


def _some_kinds(chance: random.Random) -> list[bytes]:
    kinds = {**PIECES, **ONLY_X}
    often = [*kinds, "quote", "quote", "quote", "return", "nul", "feed"]
    return [piece for kind in chance.choices(often, k=chance.choice([0, 1, 1, 2, 4])) for piece in kinds[kind]]


def _world(
    format_name: str, number: int, theirs: list[bytes], mine: list[bytes], chance: random.Random, *, plain: bool
) -> World:
    others = [
        _odd(line, theirs, chance)
        for person in range(chance.randrange(1, 4))
        for line in _lines(format_name, number, person, chance, plain=plain)
    ]
    chance.shuffle(others)
    lines = _lines(format_name, number, None, chance) if chance.random() < 0.7 else []
    lines = [_odd(line, mine, chance) for line in lines]
    if mine and chance.random() < 0.3:
        lines.append(b"".join(chance.choices(mine, k=chance.randrange(1, 4))))
    if chance.random() < 0.1:
        lines.append(HEADERS.get(format_name, b"{}"))
    places = sorted(chance.choices(range(len(others) + 1), k=len(lines)))
    mixed = list(others)
    for place, line in sorted(zip(places, lines, strict=True), key=lambda pair: -pair[0]):
        mixed.insert(place, line)
    return World(others, lines, mixed, chance.choice([b"", b"\n"]))


def _odd(line: bytes, pieces: list[bytes], chance: random.Random) -> bytes:
    for _ in range(chance.choice([0, 1, 1, 2]) if pieces else 0):
        place = chance.choice([0, len(line), chance.randrange(len(line) + 1)])
        line = line[:place] + chance.choice(pieces) + line[place:]
    return line


def _lines(
    format_name: str, world: int, person: int | None, chance: random.Random, *, plain: bool = False
) -> list[bytes]:
    """A few lines of somebody; ``person`` None is X, none of whose texts anybody else has."""
    n = chance.randrange(1, 4 if person is not None else 6)
    if format_name == "yandex":
        return _session(world, person, n, chance)
    user = f"X{world}" if person is None else f"o{world}n{person}"
    host = "x" if person is None else "o"
    words = ["Weather", "news ", "27 inch", *([] if plain else ["a, b"])]
    found = []
    for _ in range(n):
        query = f"{host}{chance.randrange(3)} {chance.choice(words)}"
        url = chance.choice([f"http://{host}.example/{chance.randrange(2)}", f"HTTP://{host.upper()}.example:80/", ""])
        year = 2007 if person is None else 2006
        time = chance.choice([f"{year}-01-0{chance.randrange(1, 4)} 10:00:00", f"{year}", f"{year} noon", ""])
        rank = f"{chance.randrange(3)}{host}" if chance.random() < 0.1 else str(chance.randrange(3))
        found.append(_line(format_name, [user, query, url, time, rank], chance, plain=plain))
        found += [found[-1]] * (chance.random() < 0.2)
    return found


def _line(format_name: str, fields: list[str], chance: random.Random, *, plain: bool) -> bytes:
    user, query, url, time, rank = fields
    if format_name == "aol":
        return "\t".join([user, query, time, rank, url] if url else [user, query, time]).encode()
    if format_name == "excite":
        return "\t".join([user, time, query]).encode()
    if format_name == "jsonl":
        members = dict(zip(("user", "query", "url", "time", "rank"), fields, strict=True))
        if not url:
            del members["url"]
        return json.dumps(members, ensure_ascii=chance.random() < 0.5).encode()
    if format_name == "csv":
        quote = not plain and chance.random() < 0.3
        return ",".join(f'"{field}"' if quote or "," in field else field for field in fields).encode()
    return "\t".join(fields).encode()


def _session(world: int, person: int | None, n: int, chance: random.Random) -> list[bytes]:
    """A session's number says whose a line is: those of X have the digits 8 and 9 alone, others' begin with 5."""
    number = f"{world:08b}".replace("0", "8").replace("1", "9") if person is None else f"5{world:04}{person}"
    found = [f"{number}\tM\t{chance.randrange(3)}\t{7000 if person is None else 100 + world}{person or 0}"]
    for page in range(n):
        query = f"{70 if person is None else 10}{chance.randrange(3)}"
        found.append(f"{number}\t{chance.randrange(3)}\tQ\t{page % 2}\t{query}\t1,2\t5,6\t7,8")
        found += [f"{number}\t{3 + chance.randrange(3)}\tC\t{page % 2}\t{chance.randrange(4)}"] * chance.randrange(3)
    if person is None and chance.random() < 0.3:
        found += _almost_others(f"5{world:04}0", chance)
    return [line.encode() for line in found]


def _almost_others(number: str, chance: random.Random) -> list[str]:
    """Lines that a forgiving reader of numbers would take for those of somebody else's session."""
    spellings = [
        f"+{number}",
        f" {number}",
        f"{number} ",
        f"{number}.4",
        f"{number}e0",
        f"0{number}",
        f"5_{number[1:]}",
    ]
    almost = chance.choice([*spellings, hex(int(number))])
    return [f"{almost}\tM\t0\t0", f"{almost}\t9\tQ\t0\t666\t1,2\t5,6\t7,8", f"{almost}\t9\tC\t0\t666"]


# --- files -----------------------------------------------------------------------------------------------------------


ANCHORS: Final = {
    "aol": [b"anchor\tsure\t2005-01-01 10:00:00\t1\thttp://anchor.example"],
    "tsv": [b"anchor\tsure\thttp://anchor.example\t2005-01-01 10:00:00\t1"],
    "csv": [b"anchor,sure,http://anchor.example,2005-01-01 10:00:00,1"],
    "jsonl": [b'{"user": "anchor", "query": "sure", "url": "http://anchor.example", "time": "2005", "rank": "1"}'],
    "yandex": [b"6\tM\t1\t6", b"6\t0\tQ\t0\t6\t1\t1,1", b"6\t1\tC\t0\t6"],
    "excite": [b"anchor\t2005\tsure"],
}
"""One person more, in a file of their own: a log without a usable line is refused."""


def write(folder: Path, format_name: str, files: Iterable[list[bytes]], ending: bytes, suffix: str = "") -> Path:
    """One file for each list of lines and one for the anchor, all in a folder."""
    folder.mkdir(parents=True)
    ways: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}
    header = [HEADERS[format_name]] if format_name in HEADERS else []
    for number, lines in enumerate([ANCHORS[format_name], *files]):
        content = b"\n".join([*header, *lines]) + ending
        (folder / f"{number:04}.{format_name}{suffix}").write_bytes(ways[suffix](content))
    return folder


def write_parquet(folder: Path, tables: Iterable[list[list[str]]]) -> Path:
    folder.mkdir(parents=True)
    anchor = [["anchor", "sure", "http://anchor.example", "2005"]]
    with duckdb.connect() as connection:
        for number, rows in enumerate([anchor, *tables]):
            connection.execute("CREATE OR REPLACE TABLE t (user VARCHAR, query VARCHAR, url VARCHAR, time VARCHAR)")
            if rows:
                connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            connection.execute(f"COPY t TO '{folder}/{number:04}.parquet'")
    return folder


# --- what is read of them --------------------------------------------------------------------------------------------


def found_in(paths: Path | list[Path], format_name: str, **options: Any) -> Counter[Any]:
    """Everything that is read, drawn and counted of a log, as things that add up from person to person."""
    with read_log(paths, format=format_name, key=KEY, **options) as log:
        summary = log.summary
        found: Counter[Any] = Counter(_rows(log, options))
        if options.get("draws") == 0:
            found.update(_counts(log, searches_only="searches_only" in options))
    found.update(lines=summary.lines, users=summary.users, used=summary.used, without_url=summary.without_url)
    found.update({reason: kind.count for reason, kind in summary.malformed.items()})
    return +found


def _rows(log: SearchLog, options: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The tables of an engine; whose rows they are is among their columns."""
    engine: Any = log._engine
    found: list[tuple[Any, ...]] = []
    if options.get("draws"):
        found += [("drawn", *row) for row in engine._database.rows(f"SELECT {', '.join(_DRAWN)} FROM {engine.drawn}")]
    if options.get("keep_lines"):
        found += [("lines", *row) for row in engine._session.rows("SELECT * FROM lines")]
    return found


def _counts(log: SearchLog, *, searches_only: bool) -> Counter[Any]:
    """What a click graph would count; every person's part is limited by itself."""
    activity = log.activity()
    tallies = {f"first {n}": activity.searches(Cap(n)) for n in (1, 2)}
    tallies["weighted"] = activity.weighted_searches(2, 100, ["o1 news", "x1 news"])
    if not searches_only:
        tallies["all"] = activity.searches(Cap(9, distinct=False))
        tallies["clicks"] = activity.clicks(_QUERIES, Cap(2), within=Cap(3))
        tallies["pairs"] = activity.reformulations(_QUERIES, Cap(1))
    return Counter(
        {
            (name, record): n
            for name, tally in tallies.items()
            for n, records in tally.at_least(1).items()
            for record in records
        }
    )


_DRAWN: Final = ("person", "draw", "pick", "query", "url")
_QUERIES: Final = [f"{host}{i} {words}" for host in "ox" for i in range(3) for words in ("weather", "news", "27 inch")]


def differences(both: Counter[Any], others: Counter[Any], mine: Counter[Any], anchor: Counter[Any]) -> list[Any]:
    """What is not the sum of all people; empty if nobody's line has changed anybody else's."""
    whole, sum_of_parts = both + anchor, others + mine
    return [*(whole - sum_of_parts), *(sum_of_parts - whole)]
