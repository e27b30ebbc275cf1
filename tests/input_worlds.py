"""Logs of a few people, with everything in their lines that a line can hold, and of one person more.

What is read of a log must be the sum of what is read of its people. A *world* is one file: the lines of some others,
and those of one more person, X. Many worlds are read at once, in three ways: the others alone, X alone, and both.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final
from unittest import mock
from urllib.parse import quote_plus

import duckdb
import numpy as np
import zstandard

from searchblend.blender.groups import Weights
from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.records import HeadList
from searchblend.logs.duckdb import feed
from searchblend.logs.formats import gate
from searchblend.logs.formats.files import LogInput
from searchblend.logs.formats.judge import PROBLEMS, WITHOUT_URL
from searchblend.logs.formats.layout import MAX_LINE
from searchblend.logs.read import SearchLog, read_log
from searchblend.mechanisms.tally import Tally

KEY: Final = bytes(range(16))
BOM: Final = b"\xef\xbb\xbf"
FORMATS: Final = ("aol", "tsv", "csv", "jsonl", "yandex", "excite", "combined", "ubi")
AOL_NAMES: Final = {"user": "AnonID", "query": "Query", "time": "QueryTime", "rank": "ItemRank", "url": "ClickURL"}
PIECES: Final = {
    "quote": [b'"', b'""', b'"x"'],
    "return": [b"\r", b"\r\r"],
    "nul": [b"\0"],
    "mark": [BOM, BOM + BOM],
    "invalid": [b"\xff", b"\xc3", b"\xed\xa0\x80"],
    "separator": [b"\x1f", b"\x1e", b"\x1c"],
    "control": [b"\x01", b"\x0b", b"\x0c", b"\x1b", b"\x7f", "\x85".encode()],
    "joiner": ["\u200c".encode(), "\u202e".encode(), "\u2028".encode(), "\u0378".encode()],
    "letter": ["é".encode(), "e\u0301".encode(), "東".encode(), "😀".encode(), "ſ".encode()],
    "escape": [b"\\u0000", b"\\ud800", b"\\u001f", b"\\n", b"\\u0022", b"\\ufeff"],
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


# --- how files are laid out ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """The columns of a log's files and the options that say which is which. Files of one log have two headers."""

    format: str
    headers: tuple[tuple[str, ...], ...] = ((), ())
    """the roles of the columns, in their order; one that nobody asks for is called as it stands here"""
    names: Mapping[str, str] = field(default_factory=dict)
    """role → what the files call it"""
    options: Mapping[str, Any] = field(default_factory=dict)
    start: bytes = b""
    end_of_header: bytes = b""
    headerless: bool = False
    encoding: str = "utf-8"
    """of the files; lines in one byte to a letter are what bytes they are"""
    mark: str = ","
    """what stands between fields of CSV"""
    in_folders: bool = False
    """whether the names of folders say who has opted in"""

    @property
    def quoted_line_feeds(self) -> bool:
        return bool(self.options.get("quoted_line_feeds"))

    def header(self, file: int) -> bytes:
        names = [self.names.get(role, role) for role in self.headers[file % 2]]
        return ("," if self.format == "csv" else "\t").join(names).encode()

    def line(self, file: int, texts: Mapping[str, bytes], chance: random.Random, *, plain: bool) -> bytes:
        """A line of a file with these fields; plain: without quotes."""
        roles = self.headers[file % 2]
        if self.format == "excite":
            return b"\t".join([texts["user"], texts["time"], texts["query"]])
        if self.format == "combined":
            return self._request(texts)
        if self.format == "jsonl":
            members = {self.names.get(role, role): text.decode() for role, text in texts.items()}
            if not texts["url"]:
                del members[self.names.get("url", "url")]
            return json.dumps(members, ensure_ascii=chance.random() < 0.5).encode()
        fields = [texts[role] for role in roles]
        if self.format == "aol" and not texts["url"]:
            fields = fields[:3]
        if self.format != "csv":
            return b"\t".join(fields)
        quote = self.quoted_line_feeds or (not plain and chance.random() < 0.3)
        return b",".join(b'"%b"' % one.replace(b'"', b'""') if quote or b"," in one else one for one in fields)

    def _request(self, texts: Mapping[str, bytes]) -> bytes:
        search, time = b"/search?n=1&q=" + quote_plus(texts["query"]).encode(), texts["time"].decode()
        with suppress(ValueError):
            time = datetime.fromisoformat(time).strftime("%d/%b/%Y:%H:%M:%S +0100")
        by_name = self.options["columns"]["user"] == "remote_user"
        who = (b"192.0.2.1", texts["user"]) if by_name else (texts["user"], b"-")
        target, referrer = (texts["url"], b"http://site.example" + search) if texts["url"] else (search, b"-")
        return b'%b - %b [%b] "GET %b HTTP/1.1" 200 5 "%b" "agent"' % (*who, time.encode(), target, referrer)


def shape_of(format_name: str, chance: random.Random) -> Shape:
    """The usual layout, or one with other names, another order, more or fewer columns, an opt-in column, no URLs."""
    if format_name in ("yandex", "excite"):
        return Shape(format_name)
    if format_name in ("combined", "ubi"):
        plain: dict[str, Any] = {"urls": False} if chance.random() < 0.2 else {}
        if format_name == "combined":
            plain["columns"] = {"user": chance.choice(["address", "remote_user"])}
            plain["query_parameter"] = chance.choice(["q", "/search?q"])
        return Shape(format_name, options=plain)
    usual = tuple(AOL_NAMES) if format_name == "aol" else ("user", "query", "url", "time", "rank")
    names = dict(AOL_NAMES) if format_name == "aol" else {}
    options: dict[str, Any] = {}
    start = chance.choice([b"", b"", BOM]) if format_name != "jsonl" else b""
    headers = [usual, usual]
    if chance.random() < 0.4:
        names |= (
            {} if format_name == "aol" else {"user": "who", "query": "what was typed", "url": "a.b", "time": "when"}
        )
        named = {"user", "query", *chance.sample(["url", "time"], chance.randrange(3))}
        named |= {"url"} if format_name == "jsonl" else set()  # nothing but a header can say that there are none
        options["columns"] = {role: names[role] for role in sorted(named)}
    if chance.random() < 0.3 and format_name != "aol":
        options["optin_column"] = "joined"
        headers = [(*header, "joined") for header in headers]
    if chance.random() < 0.2 and "url" not in options.get("columns", {}):
        options["urls"] = False
    if format_name in ("tsv", "csv") and chance.random() < 0.5:
        other = [*headers[1], "remark"]
        chance.shuffle(other)
        headers[1] = tuple(other)
    if format_name == "csv" and chance.random() < 0.2:
        options["quoted_line_feeds"] = True
    return Shape(format_name, (headers[0], headers[1]), names, options, start, chance.choice([b"", b"", b"\r"]))


def varied(shape: Shape, chance: random.Random) -> Shape:
    """The same layout, or one without a header line, or with another character between fields, or folders that say who
    has opted in."""
    if shape.format not in ("tsv", "csv"):
        return _in_folders(shape, chance)
    options = dict(shape.options)
    headerless = chance.random() < 0.3
    if headerless:
        numbers = {role: f"#{place}" for place, role in enumerate(shape.headers[0], 1)}
        if "optin_column" in options:
            options["optin_column"] = numbers.pop("joined")
        if not options.get("urls", True):
            del numbers["url"]
        options["columns"] = numbers
    if shape.format == "csv" and chance.random() < 0.4:
        options["delimiter"] = ";"
    headers = (shape.headers[0],) * 2 if headerless else shape.headers
    mark = options.get("delimiter", ",")
    if mark == ";" and not headerless and chance.random() < 0.5:
        del options["delimiter"]  # the header shows it
    return _in_folders(replace(shape, options=options, headers=headers, headerless=headerless, mark=mark), chance)


def _in_folders(shape: Shape, chance: random.Random) -> Shape:
    if shape.format in ("yandex", "ubi") or shape.headerless or chance.random() < 0.7:
        return shape
    first, second = (tuple(role for role in header if role != "joined") for header in shape.headers)
    return replace(shape, headers=(first, second), options={**shape.options, "optin_column": "joined"}, in_folders=True)


# --- people ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    others: list[bytes]
    mine: list[bytes]
    mixed: list[bytes]


@dataclass(frozen=True)
class _Habits:
    """What somebody's lines may hold."""

    pieces: Sequence[bytes]
    plain: bool = False
    """no quotes and no commas"""
    timed: bool = False
    """every time is one"""


def worlds(shape: Shape, n: int, theirs: str | None, chance: random.Random, first: int = 0) -> list[World]:
    """Worlds in which the others' lines have one kind of odd bytes, or none; sometimes another kind as well. They are
    numbered from ``first``: nobody is in two worlds of one log.

    X's lines have some kinds: the same in all worlds, or others in each. Unless quotes are what is odd about the
    others, theirs may be free of them: then it is X who decides how such a file must be read. So may all times of
    theirs be proper ones.
    """
    pieces = [
        piece
        for kind in (theirs, *chance.sample(sorted(PIECES), chance.choice([0, 0, 1])))
        for piece in (PIECES[kind] if kind else [])
    ]
    habits = _Habits(pieces, plain=theirs != "quote" and chance.random() < 0.75, timed=chance.random() < 0.5)
    mine = _some_kinds(chance)
    same = chance.random() < 0.5
    found = [
        _world(shape, number, habits, mine if same else _some_kinds(chance), chance)
        for number in range(first, first + n)
    ]
    if chance.random() < 0.2 and not shape.quoted_line_feeds:
        found[0].mine.append(b"X" * (MAX_LINE + chance.randrange(-1, 3)) + chance.choice([b"", b"\r"]))
        found[0].mixed.insert(chance.randrange(len(found[0].mixed) + 1), found[0].mine[-1])
    return found


def _some_kinds(chance: random.Random) -> list[bytes]:
    kinds = {**PIECES, **ONLY_X}
    often = [*kinds, "quote", "quote", "quote", "return", "nul", "feed"]
    return [piece for kind in chance.choices(often, k=chance.choice([0, 1, 1, 2, 4])) for piece in kinds[kind]]


def _world(shape: Shape, number: int, theirs: _Habits, mine: list[bytes], chance: random.Random) -> World:
    """Nobody else at all in one of ten: then the file is empty, but for a header, without X."""
    people = range(chance.randrange(1, 4) if chance.random() < 0.9 else 0)
    others = [line for person in people for line in _lines(shape, number, person, theirs, chance)]
    chance.shuffle(others)
    lines = _lines(shape, number, None, _Habits(mine), chance) if chance.random() < 0.7 else []
    if mine and chance.random() < 0.3 and not shape.quoted_line_feeds:
        lines.append(b"".join(chance.choices(mine, k=chance.randrange(1, 4))))
    if chance.random() < 0.1:
        lines.append(shape.header(number) or b"{}")
    places = sorted(chance.choices(range(len(others) + 1), k=len(lines)))
    mixed = list(others)
    for place, line in sorted(zip(places, lines, strict=True), key=lambda pair: -pair[0]):
        mixed.insert(place, line)
    return World(others, lines, mixed)


def _odd(line: bytes, pieces: Sequence[bytes], chance: random.Random) -> bytes:
    for _ in range(chance.choice([0, 1, 1, 2]) if pieces else 0):
        place = chance.choice([0, len(line), chance.randrange(len(line) + 1)])
        line = line[:place] + chance.choice(pieces) + line[place:]
    return line


def _lines(shape: Shape, world: int, person: int | None, habits: _Habits, chance: random.Random) -> list[bytes]:
    """A few lines of somebody; ``person`` None is X, none of whose texts anybody else has.

    Odd bytes go anywhere in a line, but where line feeds may be quoted: there the promise rests on well-formed quotes,
    so they go into fields.
    """
    n = chance.randrange(1, 4 if person is not None else 6)
    if shape.format == "yandex":
        return [_odd(line, habits.pieces, chance) for line in _session(world, person, n, chance)]
    if shape.format == "ubi":
        rows = [row for _ in range(n) for row in _ubi_rows(_texts(world, person, habits, chance), chance)]
        return [_odd(row, habits.pieces, chance) for row in rows]
    found: list[bytes] = []
    for _ in range(n):
        texts = {role: text.encode() for role, text in _texts(world, person, habits, chance).items()}
        if shape.quoted_line_feeds:
            role = chance.choice(sorted(texts))
            texts[role] = _odd(texts[role], habits.pieces, chance)
        line = shape.line(world, texts, chance, plain=habits.plain)
        found.append(line if shape.quoted_line_feeds else _odd(line, habits.pieces, chance))
        found += [found[-1]] * (chance.random() < 0.2)
    return found


def _texts(world: int, person: int | None, habits: _Habits, chance: random.Random) -> dict[str, str]:
    host, year = ("x", 2007) if person is None else ("o", 2006)
    words = ["Weather", "news ", "27 inch", *([] if habits.plain else ["a, b"])]
    times = [f"{year}-01-0{chance.randrange(1, 4)} 10:00:00", f"{year}"]
    times += [] if habits.timed else [f"{year} noon", ""]
    return {
        "user": f"X{world}" if person is None else f"o{world}n{person}",
        "query": f"{host}{chance.randrange(3)} {chance.choice(words)}",
        "url": chance.choice(
            [f"http://{host}.example/{chance.randrange(2)}", f"HTTP://{host.upper()}.example:80/", ""]
        ),
        "time": chance.choice(times),
        "rank": f"{chance.randrange(3)}{host}" if chance.random() < 0.1 else str(chance.randrange(3)),
        "joined": chance.choice(["yes", "yes", "1", "TRUE ", "no", "", "perhaps"]),
        "remark": chance.choice(["", "nobody reads this"]),
    }


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


def _ubi_rows(texts: Mapping[str, str], chance: random.Random) -> list[bytes]:
    """A search with its clicks. Searches of different people have the same ids."""
    row = {"client_id": texts["user"], "query_id": f"q{chance.randrange(3)}"}
    search = {**row, "user_query": texts["query"], "timestamp": texts["time"].replace(" ", "T") + "Z"}
    found = {"object": {"object_id": texts["url"]}, "position": {"ordinal": texts["rank"]}}
    event = {**row, "action_name": chance.choice(["click", "click", "view"]), "event_attributes": found}
    rows: list[dict[str, Any]] = [search, *[event] * chance.randrange(3)]
    if chance.random() < 0.3:
        rows = [{"_id": 1, "_source": row} for row in rows]
    return [json.dumps(row, ensure_ascii=chance.random() < 0.5).encode() for row in rows]


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


def write(folder: Path, shape: Shape, made: Sequence[World], ending: bytes, *suffixes: str) -> list[Path]:
    """Three logs: both, the others alone, X alone. A log without a usable line is refused, so there is somebody more in
    the last two, each in a file of their own, and both of these are in the first. Equal shares of
    the files have each of the suffixes, which say how they are compressed."""
    anchors = [anchor(shape, name) for name in ("anchor1", "anchor2")]
    both = _log(folder / "both", shape, [world.mixed for world in made], anchors, ending, suffixes)
    others = _log(folder / "others", shape, [world.others for world in made], anchors[:1], ending, suffixes)
    by_header = [[line for world in made[first::2] for line in world.mine] for first in (0, 1)]
    return [both, others, _log(folder / "mine", shape, by_header, anchors[1:], b"\n", ("",))]


def anchor(shape: Shape, name: str) -> list[bytes]:
    if shape.format == "yandex":
        number = f"6{name[-1]}"  # no part of a line of X spells it
        return [
            line.encode()
            for line in (f"{number}\tM\t1\t{number}", f"{number}\t0\tQ\t0\t6\t1\t1,1", f"{number}\t1\tC\t0\t6")
        ]
    texts = {"user": name, "query": f"sure {name}", "url": "http://anchor.example", "time": "2005-01-01 10:00:00"}
    texts |= {"rank": "1", "joined": "yes", "remark": ""}
    if shape.format == "ubi":
        event: dict[str, Any] = {"action_name": "click", "event_attributes": {"object": {"object_id": texts["url"]}}}
        rows: list[dict[str, Any]] = [{"user_query": texts["query"], "timestamp": ""}, event]
        return [json.dumps({"client_id": name, "query_id": "q", **row}).encode() for row in rows]
    plain = {role: text.encode() for role, text in texts.items()}
    return [shape.line(0, plain, random.Random(0), plain=True)]


def _log(
    folder: Path,
    shape: Shape,
    files: Sequence[list[bytes]],
    anchors: Sequence[list[bytes]],
    ending: bytes,
    suffixes: Sequence[str],
) -> Path:
    """One file for each list of lines and for each anchor, all in a folder; every second one has the other header."""
    folder.mkdir(parents=True)
    for number, lines in enumerate(files):
        suffix = suffixes[number * len(suffixes) // len(files)]
        _write(folder, f"{number:04}", shape, number, lines, ending, suffix)
    for number, lines in enumerate(anchors):
        _write(folder, f"anchor{number}", shape, 0, lines, b"\n", "")
    return folder


_JOINED: Final = ("yes", "perhaps")
"""of every second file, where the names of folders say who has opted in"""


def _write(folder: Path, name: str, shape: Shape, number: int, lines: list[bytes], ending: bytes, suffix: str) -> None:
    """UBI has a file for each of its tables; a line is in one of them by what it holds itself."""
    if shape.in_folders:
        folder /= f"joined={_JOINED[number % 2]}"
        folder.mkdir(exist_ok=True)
    if shape.format != "ubi":
        _write_file(folder / f"{name}.{shape.format}{suffix}", shape, number, lines, ending)
        return
    for table, is_event in (("ubi_queries", False), ("ubi_events", True)):
        rows = [line for line in lines if (b"action_name" in line) is is_event]
        _write_file(folder / f"{name}.{table}.jsonl{suffix}", shape, number, rows, ending)


def _write_file(path: Path, shape: Shape, number: int, lines: list[bytes], ending: bytes) -> None:
    header = (
        [shape.start + shape.header(number) + shape.end_of_header]
        if shape.headers[0] and shape.format != "jsonl" and not shape.headerless
        else []
    )
    content = _in_encoding(shape, header, lines, ending)
    if shape.mark == ";":
        content = content.translate(bytes.maketrans(b",;", b";,"))
    ways: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}
    cut = len(content) * (number % 4) // 3  # in several members, which may end in the middle of a line
    parts = [content] if path.suffix not in ways or cut in (0, len(content)) else [content[:cut], content[cut:]]
    path.write_bytes(b"".join(ways.get(path.suffix, bytes)(part) for part in parts))


_UTF_16: Final = {"utf-16": b"\xff\xfe", "utf-16-le": b"", "utf-16-be": b""}


def _in_encoding(shape: Shape, header: Sequence[bytes], lines: Sequence[bytes], ending: bytes) -> bytes:
    """In UTF-16 bytes that are not UTF-8 become halves of surrogate pairs, and some lines have a byte too many, unless
    one could be in the middle of a record. What is done to a line depends on it alone."""
    if shape.encoding not in _UTF_16:
        return b"\n".join([*header, *lines]) + ending
    order = "utf-16-le" if shape.encoding == "utf-16" else shape.encoding
    wide = [line.decode("utf-8", "surrogateescape").encode(order, "surrogatepass") for line in [*header, *lines]]
    for place, line in enumerate(lines, len(header)):
        if len(line) % 7 == 3 and not shape.quoted_line_feeds:
            wide[place] = wide[place][: len(line)] + b"\n" + wide[place][len(line) :]
    return _UTF_16[shape.encoding] + "\n".encode(order).join(wide) + ending.decode().encode(order)


Row = tuple[str | None, ...]
_TYPES: Final = ("VARCHAR", "TIMESTAMP")
"""of the times in every second file"""


def write_parquet_worlds(folder: Path, n: int, chance: random.Random) -> list[Path]:
    """The same three logs of n worlds: with values that are missing, and with times of another type in every second
    file, and strings that are not UTF-8."""
    odd = [piece.decode() for pieces in PIECES.values() for piece in pieces if _is_utf8(piece)]
    odd += [_TO_BE_UNSOUND] * (1 + len(odd) // 4)

    def value(text: str) -> str | None:
        return chance.choice([text, text, text + chance.choice(odd), None])

    def rows(world: int, user: str, host: str) -> list[Row]:
        times = ["2006-01-01", "infinity", "-infinity", None] if world % 2 else ["2006", "", *odd, None]
        return [
            (
                value(f"{user}{world}"),
                value(f"{host} {chance.choice(odd)}"),
                value(f"http://{host}.example/{chance.choice(odd)}"),
                chance.choice(times),
            )
            for _ in range(chance.randrange(4))
        ]

    others = [rows(world, "o", "o") for world in range(n)]
    mine = [rows(world, "X", "x") for world in range(n)]
    both = [a + b for a, b in zip(others, mine, strict=True)]
    by_type = [list(chain(*mine[first::2])) for first in (0, 1)]
    return [
        _write_parquet(folder / "both", both, ["a1", "a2"]),
        _write_parquet(folder / "others", others, ["a1"]),
        _write_parquet(folder / "mine", by_type, ["a2"]),
    ]


def table_worlds(n: int, chance: random.Random) -> list[dict[str, Any]]:
    """The same three logs of n worlds in memory: columns of Python objects of any kind."""
    odd = [piece.decode() for pieces in PIECES.values() for piece in pieces if _is_utf8(piece)]
    others = chance.random() < 0.5  # who has the objects that are no text

    def value(text: str, *, no_text: bool) -> Any:
        strange = [None, float("nan"), 7, 2.5, True, text.encode(), f"{text}{chance.choice(odd)}"]
        return chance.choice([text, text, *strange, *(["\ud800", Unprintable()] if no_text else [])])

    def rows(user: str, *, no_text: bool) -> list[tuple[Any, ...]]:
        texts = [
            (f"{user}{world}", f"{user} {chance.choice(odd)}", f"http://{user}.example/", "2006-01-01")
            for world in range(n)
            for _ in range(chance.randrange(4))
        ]
        rows = [tuple(value(text, no_text=no_text) for text in texts_of_row) for texts_of_row in texts]
        return [(f"{user}{row[0]}" if isinstance(row[0], float | int) else row[0], *row[1:]) for row in rows]

    theirs, mine = rows("o", no_text=others), rows("X", no_text=not others)
    anchors = [(name, f"sure {name}", "http://anchor.example", None) for name in ("a1", "a2")]
    logs = [theirs + mine + anchors, theirs + anchors[:1], mine + anchors[1:]]
    return [
        {name: _objects(column) for name, column in zip(_COLUMNS, zip(*log, strict=True), strict=True)} for log in logs
    ]


def declared(log: Mapping[str, Sequence[Any]], chance: random.Random) -> duckdb.DuckDBPyRelation:
    """A log whose columns are ENUMs: they declare its texts, and perhaps one that nobody has."""
    texts = {name: [_text(value) for value in column] for name, column in log.items()}
    return enum_relation(texts, unused=chance.choice([None, "nobody's", "line\nfeed", "7", ""]))


def enum_relation(columns: Mapping[str, Sequence[str | None]], *, unused: str | None = None) -> duckdb.DuckDBPyRelation:
    """A table of ENUMs. They are sorted, so that one more text gives the others other numbers."""
    connection = duckdb.connect()
    for name, texts in columns.items():
        values = sorted({text for text in (*texts, unused) if text is not None})
        connection.execute(f"CREATE TYPE {name}_texts AS ENUM (SELECT unnest(?::VARCHAR[]))", [values])
    typed = ", ".join(f"unnest(?::VARCHAR[])::{name}_texts AS {name}" for name in columns)
    connection.execute(f"CREATE TABLE t AS SELECT {typed}", [list(texts) for texts in columns.values()])
    return connection.table("t")


def categorized(log: Mapping[str, Sequence[Any]], chance: random.Random) -> Any:
    """A pandas DataFrame of categoricals, which declare their objects, and perhaps one that nobody has."""
    import pandas

    unused: Sequence[Any] = chance.choice([(), [2.25], ["line\nfeed"], ["\ud800"], [Unprintable()], [b"bytes"]])
    frame = {}
    for name, column in log.items():
        values = pandas.Series(list(column), dtype=object)
        categories = pandas.Index([*values.dropna().unique(), *unused], dtype=object)
        frame[name] = pandas.Categorical(values, categories=categories.unique())
    return pandas.DataFrame(frame)


def _text(value: Any) -> str | None:
    try:
        text = str(value)
        text.encode()
    except ValueError:
        return None
    return None if value is None or text == "nan" else text


_COLUMNS: Final = ("user", "query", "url", "time")


class Unprintable:
    """An object that has no text."""

    def __str__(self) -> str:
        raise ValueError


def _objects(values: Sequence[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _is_utf8(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


_TO_BE_UNSOUND = "unsound"
_UNSOUND = b"\xffa\xc3?\xe2\x82b"
"""takes its place in files: DuckDB would not write it"""


def _write_parquet(folder: Path, tables: Sequence[Sequence[Row]], anchors: Sequence[str]) -> Path:
    """One file for each table (user, query, url, time) and for each anchor."""
    folder.mkdir(parents=True)
    more = [[(name, f"sure {name}", "http://anchor.example", None)] for name in anchors]
    with duckdb.connect() as connection:
        for number, rows in enumerate([*tables, *more]):
            kind = _TYPES[number % 2] if number < len(tables) else "VARCHAR"
            connection.execute(f"CREATE OR REPLACE TABLE t (user VARCHAR, query VARCHAR, url VARCHAR, time {kind})")
            if rows:
                connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            file = folder / f"{number:04}.parquet"
            connection.execute(f"COPY t TO '{file}' (COMPRESSION uncompressed)")
            file.write_bytes(file.read_bytes().replace(_TO_BE_UNSOUND.encode(), _UNSOUND))
    return folder


# --- what is read of them --------------------------------------------------------------------------------------------


def found_in(paths: LogInput, format_name: str, **options: Any) -> Counter[Any]:
    """Everything that is read, drawn and counted of a log, as things that add up from person to person."""
    with read_log(paths, format=format_name, key=KEY, **options) as log:
        summary = log.summary
        found: Counter[Any] = Counter(_rows(log, options))
        if options.get("draws") == 0:
            found.update(_counts(log, searches_only="searches_only" in options))
        if options.get("rows"):
            found.update(_weights(log))
    found.update(lines=summary.lines, users=summary.users, used=summary.used, without_url=summary.without_url)
    found.update({reason: kind.count for reason, kind in summary.malformed.items()})
    return +found


def _rows(log: SearchLog, options: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The tables of an engine; whose rows they are is among their columns."""
    engine: Any = log._engine
    found: list[tuple[Any, ...]] = []
    if options.get("draws"):
        rows = engine._database.rows
        found += [("drawn", *row) for row in rows(f"SELECT {', '.join(_DRAWN)} FROM {engine.drawn}")]
        if "optin_column" in options:
            found += [("joined", *row) for row in rows(f"SELECT person FROM {engine.drawn} WHERE {engine.opted_in}")]
    if options.get("keep_lines"):
        # A malformed line is nobody's (one of Yandex that is cut may name another's session): it counts by its reason.
        found += [("lines", *row) for row in engine._session.rows(f"SELECT * FROM lines WHERE problem IN {_KEPT}")]
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
    return _by_name(tallies)


def _weights(log: SearchLog) -> Counter[Any]:
    """What a curator over many records counts of each group."""
    found: Counter[Any] = Counter()
    for side, group in zip(("in", "out"), log._engine.split_by_fraction(0.5), strict=True):
        weights, shares = Weights(2, 100), group.own_shares(_HEAD, 52)
        found += _by_name({f"queries {side}": group.weighted_queries(weights)})
        found += _by_name({f"records {side}": group.weighted_records(_QUERIES, weights)})
        found.update({("cell", side, cell): int(n) for cell, n in enumerate(shares.cells)})
        found[("squares", side)] += shares.squares
    return found


def _by_name(tallies: Mapping[str, Tally]) -> Counter[Any]:
    return Counter(
        {
            (name, record): n
            for name, tally in tallies.items()
            for n, records in tally.at_least(1).items()
            for record in records
        }
    )


_DRAWN: Final = ("person", "draw", "query", "url")
_KEPT: Final = (0, PROBLEMS.index(WITHOUT_URL))
_QUERIES: Final = [f"{host}{i} {words}" for host in "ox" for i in range(3) for words in ("weather", "news", "27 inch")]
_HEAD: Final = HeadList([(query, [f"http://{query[0]}.example/{i}" for i in range(2)]) for query in _QUERIES])


def differences(both: Counter[Any], others: Counter[Any], mine: Counter[Any]) -> list[Any]:
    """What is not the sum of all people; empty if nobody's line has changed anybody else's."""
    sum_of_parts = others + mine
    return [*(both - sum_of_parts), *(sum_of_parts - both)]


@contextmanager
def small_blocks() -> Iterator[None]:
    """Files of a few lines are read as large ones are: in many blocks, and after a look at their beginning alone."""
    with ExitStack() as stack:
        for module, name, size in ((feed, "_BEGINNING", 256), (gate, "_SCAN_BLOCK", 256), (gate, "_BLOCK", 4096)):
            stack.enter_context(mock.patch.object(module, name, size))
        yield
