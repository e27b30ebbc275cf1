"""What is wrong with a line, if anything: the rule in Python; and where the first malformed lines of a log are.
``duckdb/scan.py`` has the same rule as SQL, with these functions for what a cheap test cannot decide, and counts by it.

The first of these that applies is the line's problem: it is not a line of the format; too few or too many fields; no
user; a click without its query; an unusable query; *no URL* (in a log that has URLs; not malformed, but dropped); an
opt-in that is neither yes nor no; an unusable URL; a count that is none.

The pass over the text counts malformed lines without knowing their numbers. So when there are some, the files are read
again, until the first few of each kind are found. Lines that are good at a glance are passed over by the million.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.normalization import normalize, normalize_url
from searchblend.logs.formats.gate import SEPARATOR, Gate
from searchblend.logs.formats.layout import (
    Columns,
    Delimited,
    JsonLines,
    Layout,
    ServerLog,
    Sessions,
    Source,
    TextLayout,
    UbiTable,
)
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.formats.server_log import LineReader, decoded_query
from searchblend.logs.summary import (
    BAD_COUNT,
    BAD_LINE,
    BAD_OPTIN,
    CLICK_WITHOUT_QUERY,
    FIRST_PLACES,
    MISSING_USER,
    TOO_FEW_FIELDS,
    TOO_MANY_FIELDS,
    UNUSABLE_QUERY,
    UNUSABLE_URL,
    Malformed,
    Place,
)

WITHOUT_URL: Final = "without_url"
PROBLEMS: Final = (
    "",
    BAD_LINE,
    TOO_FEW_FIELDS,
    MISSING_USER,
    CLICK_WITHOUT_QUERY,
    UNUSABLE_QUERY,
    WITHOUT_URL,
    BAD_OPTIN,
    UNUSABLE_URL,
    BAD_COUNT,
)
"""What can be wrong with the fields of a line, in the order in which it is checked. The position is the number that
stands for it in a table of lines."""
YES: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
NO: Final = frozenset({"0", "false", "f", "no", "n", "off", ""})
COUNT: Final = "0|[1-9][0-9]*"
"""A count of searches has one spelling, too."""
MOST_COUNTED: Final = 999_999_999
"""A larger count is this one, so that no single search makes a line malformed."""
ASCII_BLANKS: Final = " \t\n\v\f\r"
MAX_LENGTH: Final = 2048
"""Longer queries and URLs (in bytes) are unusable: NFKC takes time quadratic in a run of combining marks."""
_CACHED: Final = 1 << 17
_ID: Final = r"(?:0|[1-9][0-9]*)"
"""An id has one spelling: a line with another one (``+5``, ``5.4``, ``005``) names no session of another person."""

_LINE_FEED: Final = 10
_SPACE: Final = 32
_RARE: Final = np.array([byte not in b"\t\n" and (byte < 32 or byte > 126 or byte in b"[]\\") for byte in range(256)])

Bytes = NDArray[np.uint8]
Positions = NDArray[np.intp]
Judge = Callable[[str], str | None]
"""The problem of a line that has passed the gate; lines come in the order of the file."""


@lru_cache(_CACHED)
def query_is_usable(query: str) -> bool:
    return is_short(query) and normalize(query) is not None


@lru_cache(_CACHED)
def url_is_usable(url: str) -> bool:
    return is_short(url) and normalize_url(url) is not None


@lru_cache(_CACHED)
def host_is_usable(url: str) -> bool:
    return is_short(url) and normalize_url(url, host_only=True) is not None


def is_short(string: str) -> bool:
    return len(string) <= MAX_LENGTH and len(string.encode("utf-8", "surrogatepass")) <= MAX_LENGTH


def forget() -> None:
    """Drops the strings that were remembered: they are people's searches."""
    for remembered in (query_is_usable, url_is_usable, host_is_usable, decoded_query):
        remembered.cache_clear()


def judge_for(layout: Layout, *, host_only: bool) -> Judge:
    match layout:
        case Delimited():
            return lambda line: _judge_delimited(layout, line, host_only=host_only)
        case JsonLines():
            return lambda line: _judge_json(layout, line, host_only=host_only)
        case ServerLog():
            reader = LineReader(layout.user, layout.query_parameter)
            return lambda line: _judge_request(layout, reader, line, host_only=host_only)
        case UbiTable():
            return lambda line: _judge_ubi(layout, line)
        case Sessions():
            return _SessionJudge()
        case Columns():
            raise AssertionError("Parquet has no lines of text")


def _judge_delimited(layout: Delimited, line: str, *, host_only: bool) -> str | None:
    fields = line.split(SEPARATOR if layout.quotes else layout.delimiter)
    if len(fields) > layout.n_fields:
        return TOO_MANY_FIELDS
    if len(fields) < (layout.least_fields or layout.n_fields) and len(fields) != layout.may_end_after:
        return TOO_FEW_FIELDS
    fields += [""] * (layout.n_fields - len(fields))
    strings = {role: fields[position] for role, position in layout.positions.items()} | dict(layout.in_folders)
    return judge_fields(strings, has_urls=layout.has_urls, no_query=layout.no_query, host_only=host_only)


def _judge_json(layout: JsonLines, line: str, *, host_only: bool) -> str | None:
    document = _document(line)
    if isinstance(document, str):
        return document
    members = {role: document.get(key) for role, key in layout.keys.items()}
    if any(isinstance(member, dict | list) for member in members.values()):
        return BAD_LINE
    strings = {role: "" if member is None else str(member) for role, member in members.items()}
    strings |= layout.in_folders
    return judge_fields(strings, has_urls=layout.has_urls, host_only=host_only)


def _judge_request(layout: ServerLog, reader: LineReader, line: str, *, host_only: bool) -> str | None:
    if SEPARATOR in line:
        return TOO_MANY_FIELDS
    strings = reader.read(line)
    if not strings:
        return BAD_LINE if strings is None else WITHOUT_URL
    return judge_fields({**strings, **layout.in_folders}, has_urls=layout.has_urls, host_only=host_only)


def _document(line: str) -> dict[str, object] | str:
    """The object that a line is, or what is wrong with it."""
    if SEPARATOR in line:
        return TOO_MANY_FIELDS
    try:
        document = json.loads(line, object_pairs_hook=_first_of_each)
        json.dumps(document, ensure_ascii=False).encode()  # half of a surrogate pair is not a string
    except (ValueError, RecursionError):
        return BAD_LINE
    return document if isinstance(document, dict) else BAD_LINE


def _judge_ubi(layout: UbiTable, line: str) -> str | None:
    """What a line alone shows. Whether a click has a query, and a usable one, is in other lines, and only counted."""
    document = _document(line)
    if isinstance(document, str):
        return document
    source = document.get("_source")
    for path in layout.members.values():
        member: object = source if isinstance(source, dict) else document
        for part in path.split("."):
            member = member.get(part) if isinstance(member, dict) else None
        if isinstance(member, dict | list):
            return BAD_LINE
    return None


def _first_of_each(members: list[tuple[str, object]]) -> dict[str, object]:
    return dict(reversed(members))


def judge_fields(
    strings: Mapping[str, str], *, has_urls: bool, no_query: str | None = None, host_only: bool = False
) -> str | None:
    """The problem of a line with these fields."""
    if not strings["user"].strip(ASCII_BLANKS):
        return MISSING_USER
    query = strings["query"]
    if query == no_query or not query_is_usable(query):
        return UNUSABLE_QUERY
    if has_urls and not strings["url"]:
        return WITHOUT_URL
    if strings.get("optin", "").strip(" ").lower() not in YES | NO:
        return BAD_OPTIN
    usable = host_is_usable if host_only else url_is_usable
    if has_urls and not usable(strings["url"]):
        return UNUSABLE_URL
    return None if re.fullmatch(COUNT, strings.get("count", "1").strip(" ")) else BAD_COUNT


class _SessionJudge:
    """Knows the session at hand. Clicks come after their query, in the same session."""

    _SESSION: Final = re.compile(rf"{_ID}\tM\t{_ID}\t{_ID}", re.ASCII)
    _QUERY: Final = re.compile(rf"{_ID}\t{_ID}\t[QT]\t{_ID}\t{_ID}\t[0-9,]*(?:\t[0-9]+,[0-9]+)*", re.ASCII)
    _CLICK: Final = re.compile(rf"{_ID}\t{_ID}\tC\t{_ID}\t{_ID}", re.ASCII)

    def __init__(self) -> None:
        self._session = ""
        self._has_user = False
        self._pages: set[str] = set()

    def __call__(self, line: str) -> str | None:
        fields = line.split("\t")
        if len(fields) > Sessions.n_fields:
            return TOO_MANY_FIELDS
        is_session, is_query = self._SESSION.fullmatch(line), self._QUERY.fullmatch(line)
        if not is_session and not is_query and not self._CLICK.fullmatch(line):
            return BAD_LINE
        if fields[0] != self._session:
            self._session, self._has_user, self._pages = fields[0], False, set()
        if is_session:
            self._has_user = True
            return None
        if is_query:
            self._pages.add(fields[3])
            return None
        if not self._has_user:
            return MISSING_USER
        return None if fields[3] in self._pages else CLICK_WITHOUT_QUERY


def locate(sources: Sequence[Source], counts: Mapping[str, int], *, host_only: bool) -> dict[str, Malformed]:
    """The first places of each problem that was counted."""
    located = {problem: Malformed(count) for problem, count in counts.items()}
    left = {problem: min(count, FIRST_PLACES) for problem, count in counts.items()}
    for layout, paths in sources:
        if (
            isinstance(layout, Columns) or getattr(layout, "kinds", None) is not None
        ):  # Parquet: the engine finds its rows
            continue
        for path in paths:
            judge = judge_for(layout, host_only=host_only)
            judge_all = host_only or bool(left.get(BAD_OPTIN))
            for line, content in _doubtful_lines(path, layout, judge_all=judge_all):
                problem = judge(content)
                if problem is not None and left.get(problem):
                    located[problem].first.append(Place(str(path), line))
                    left[problem] -= 1
                    if not any(left.values()):
                        return located
    return located


def _doubtful_lines(path: LogFile, layout: TextLayout, *, judge_all: bool) -> Iterator[tuple[int, str]]:
    """Lines that may be malformed, with their numbers; all that are malformed are among them."""
    gate = Gate(path, layout.rules)
    header = layout.rules.header
    for numbers, block in gate.numbered_blocks():
        text = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(text == _LINE_FEED)
        starts = np.concatenate(([0], ends[:-1] + 1))
        doubtful = ends > starts
        if header:
            doubtful[np.argmax(doubtful)] = False
            header = False
        if isinstance(layout, Delimited) and not judge_all and not layout.in_folders:
            doubtful &= _not_good_at_a_glance(layout, text, ends)
        for i in np.flatnonzero(doubtful).tolist():
            yield numbers + i if isinstance(numbers, int) else numbers[i], block[starts[i] : ends[i]].decode()


def _not_good_at_a_glance(layout: Delimited, text: Bytes, ends: Positions) -> NDArray[np.bool_]:
    """Which lines have a wrong number of fields, a field that begins with a blank, or any unusual byte."""
    delimiter = SEPARATOR if layout.quotes else layout.delimiter
    marks = np.flatnonzero((text == _LINE_FEED) | (text == ord(delimiter)))
    line_ends = np.searchsorted(marks, ends)
    doubtful: NDArray[np.bool_] = np.diff(line_ends, prepend=-1) != layout.n_fields
    rare = np.flatnonzero(_RARE[text] & (text != ord(delimiter)))
    doubtful[np.searchsorted(ends, rare)] = True
    regular = np.flatnonzero(~doubtful)
    for role in ("user", "query", "url"):
        if role in layout.positions:
            mark = line_ends[regular] - (layout.n_fields - 1 - layout.positions[role])
            start, end = np.where(mark > 0, marks[mark - 1] + 1, 0), marks[mark]
            check = _unlike_a_url if role == "url" else _unlike_a_string
            doubtful[regular[check(layout, text, start, end)]] = True
    return doubtful


def _unlike_a_string(layout: Delimited, text: Bytes, start: Positions, end: Positions) -> NDArray[np.bool_]:
    length = end - start
    suspect = -1 if layout.no_query is None else len(layout.no_query)
    odd: NDArray[np.bool_] = (length == 0) | (length > MAX_LENGTH) | (text[start] <= _SPACE) | (length == suspect)
    return odd


def _unlike_a_url(layout: Delimited, text: Bytes, start: Positions, end: Positions) -> NDArray[np.bool_]:
    """A blank in it, or a second colon (a port)."""
    blanks, colons = np.flatnonzero(text == _SPACE), np.flatnonzero(text == ord(":"))
    n_blanks = np.searchsorted(blanks, end) - np.searchsorted(blanks, start)
    n_colons = np.searchsorted(colons, end) - np.searchsorted(colons, start)
    odd: NDArray[np.bool_] = (n_blanks > 0) | (n_colons > 1) | (end - start > MAX_LENGTH)
    return odd
