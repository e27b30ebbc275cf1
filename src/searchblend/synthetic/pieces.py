"""Chunks of a synthetic log: what to make, and the text of one chunk. Runs in worker processes.

The text is the AOL format, the Yandex format, or a plain table of four columns. A column is an array of byte strings of
fixed width (with a second dimension: several columns in a row), or one byte string for all rows; or it is a pair of
places and such texts, and stays empty in the other rows. Columns are laid side by side in one buffer and the NULs that
fill the widths are dropped in a single pass: several times faster than joining strings.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InvalidParameter
from searchblend.synthetic.aol import MISSPELT, AolChunk, aol_chunk, with_habits
from searchblend.synthetic.laws import Ints
from searchblend.synthetic.words import SITE_WIDTH, query_texts, site_texts
from searchblend.synthetic.yandex import YandexChunk, domains, result_pages, sessions_per_user, terms, yandex_chunk

Bytes = NDArray[np.bytes_]
Column = Bytes | bytes | tuple[Ints, Bytes | bytes]

PROFILES: Final = ("aol", "yandex")
FORMATS: Final = ("aol", "yandex", "tsv", "parquet")
_GROUP: Final = 10_000
_PADDED: Final = np.array([b"%04d" % number for number in range(_GROUP)], dtype="S4")
_PLAIN: Final = np.array([b"%d" % number for number in range(_GROUP)], dtype="S4")
_CLOCK: Final = np.array([b"%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60) for s in range(86_400)], dtype="S8")
_FIRST_DAY: Final = date(2006, 3, 1)
_DATES: Final = np.array([f"{_FIRST_DAY + timedelta(days=day)} ".encode() for day in range(92)], dtype="S11")
AOL_HEADER: Final = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
TABLE_HEADER: Final = b"user\tquery\turl\ttime\n"
_TAB, _LINE_END = b"\t", b"\n"
_MOST_USERS_PER_CHUNK: Final = 4_096
_FEWEST_CHUNKS: Final = 20
_GZIP_LEVEL: Final = 6


@dataclass(frozen=True)
class LogRequest:
    """What to make: of whom, how many users, written how."""

    profile: str
    n_users: int
    format: str
    seed: int = 1
    habits: bool = False
    """whether people repeat queries and mend their spelling; all else stays, and so does every figure without it"""

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise InvalidParameter("profile", f"must be one of {', '.join(PROFILES)}")
        if self.format not in FORMATS:
            raise InvalidParameter("format", f"must be one of {', '.join(FORMATS)}")
        if self.format in PROFILES and self.format != self.profile:
            raise InvalidParameter("format", f"{self.format} needs the profile {self.format}; tsv and parquet fit both")
        if self.habits and self.profile != "aol":
            raise InvalidParameter("habits", "only of the profile aol, whose queries are words")
        if self.n_users < 1:
            raise InvalidParameter("users", "must be at least 1")
        if self.seed < 0:
            raise InvalidParameter("seed", "must not be negative")


@dataclass(frozen=True)
class Job:
    """One chunk of users; whoever does it needs nothing else."""

    request: LogRequest
    number: int
    first_user: int
    n_users: int
    first_session: int
    compress: bool


@dataclass(frozen=True)
class Piece:
    """The text of a chunk, compressed if asked for, and what it counts."""

    text: bytes | bytearray
    counts: dict[str, int]


def jobs_of(request: LogRequest, *, compress: bool) -> Iterator[Job]:
    """Chunks of a size that depends on the number of users alone; sessions are numbered through."""
    size = min(_MOST_USERS_PER_CHUNK, -(-request.n_users // _FEWEST_CHUNKS))
    first_session = 0
    for number, first_user in enumerate(range(0, request.n_users, size)):
        n_users = min(size, request.n_users - first_user)
        yield Job(request, number, first_user, n_users, first_session, compress)
        if request.format == "yandex":
            first_session += int(sessions_per_user(n_users, chunk_generator(request.seed, number)).sum())


def chunk_generator(seed: int, number: int) -> np.random.Generator:
    """The generator of a chunk: the same whoever asks for it."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


def make_piece(job: Job) -> Piece:
    """The text of one chunk, and what it counts."""
    generator, request = chunk_generator(job.request.seed, job.number), job.request
    if request.profile == "aol":
        lines = aol_chunk(job.first_user, job.n_users, request.n_users, generator)
        lines = with_habits(lines, generator) if request.habits else lines
        text, counts = (aol_text(lines) if request.format == "aol" else aol_table(lines)), lines.counts
    else:
        sessions = yandex_chunk(job.first_user, job.n_users, generator)
        counts = sessions.counts
        text = yandex_text(sessions, job.first_session) if request.format == "yandex" else yandex_table(sessions)
    counts["lines"] = text.count(b"\n")
    return Piece(gzip_member(text) if job.compress else text, counts)


def gzip_member(content: bytes | bytearray) -> bytes:
    """Members of a gzip file may follow one another, so that pieces are compressed apart."""
    return gzip.compress(content, compresslevel=_GZIP_LEVEL, mtime=0)


def aol_text(chunk: AolChunk) -> bytearray:
    """``AnonID Query QueryTime ItemRank ClickURL``; the last two are empty without a click."""
    user, query, url, time = _aol_columns(chunk)
    rank = decimals(np.maximum(chunk.item_rank, 0))
    rank[chunk.site < 0] = b""
    return rows_text(len(user), [user, _TAB, query, _TAB, time, _TAB, rank, _TAB, url, _LINE_END])


def aol_table(chunk: AolChunk) -> bytearray:
    """``user query url time``; the URL is empty without a click."""
    user, query, url, time = _aol_columns(chunk)
    return rows_text(len(user), [user, _TAB, query, _TAB, url, _TAB, time, _LINE_END])


def _aol_columns(chunk: AolChunk) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    url = np.zeros(len(chunk.site), dtype=f"S{SITE_WIDTH}")
    clicked = np.flatnonzero(chunk.site >= 0)
    url[clicked] = site_texts(chunk.site[clicked])
    return decimals(chunk.user), _spelled(chunk.queries)[chunk.search], url, timestamps(chunk.second)


def _spelled(queries: Ints) -> Bytes:
    """The string of each query, as it was typed."""
    wrong = queries >= MISSPELT
    texts = query_texts(np.where(wrong, queries - MISSPELT, queries))
    letters = texts.view(np.uint8).reshape(len(texts), -1)
    plain = np.flatnonzero(wrong & ((letters[:, :3] > ord(" ")) & (letters[:, :3] < ord("\x7f"))).all(axis=1))
    letters[plain, 1:3] = letters[plain, 2:0:-1]
    return texts


def yandex_text(chunk: YandexChunk, first_session: int) -> bytearray:
    """Rows M, Q and C of the Yandex format; sessions are numbered from ``first_session``.

    M: ``SessionID M Day UserID``. Q: ``SessionID Time Q SERPID QueryID terms url,domain …``. C: ``SessionID Time C
    SERPID URLID``.
    """
    sessions, queries, clicks = _row_places(chunk)
    n = len(sessions) + len(queries) + len(clicks)
    is_session = np.zeros(n, dtype=np.int64)
    is_session[sessions] = 1
    columns: list[Column] = [decimals(first_session - 1 + np.cumsum(is_session)), _TAB]
    columns += [(sessions, b"M"), (queries, decimals(chunk.query_time)), (clicks, decimals(chunk.click_time)), _TAB]
    columns += [(sessions, decimals(chunk.day)), (queries, b"Q"), (clicks, b"C"), _TAB]
    columns += [(sessions, decimals(chunk.user)), (queries, decimals(chunk.serp))]
    columns += [(clicks, decimals(chunk.serp[chunk.clicked_row])), (clicks, _TAB), (clicks, decimals(chunk.url))]
    columns += [(queries, _TAB), (queries, decimals(chunk.query)), (queries, _TAB), (queries, _terms(chunk.query))]
    columns += [(queries, _results(chunk.query)), _LINE_END]
    return rows_text(n, columns)


def _row_places(chunk: YandexChunk) -> tuple[Ints, Ints, Ints]:
    """Where the rows of sessions, queries and clicks stand: each session, then each query and its clicks."""
    n_clicks = np.bincount(chunk.clicked_row, minlength=len(chunk.query))
    clicks_before = np.cumsum(n_clicks) - n_clicks
    queries = np.arange(len(chunk.query)) + clicks_before + chunk.session + 1
    sessions = queries[chunk.serp == 0] - 1
    clicks = np.arange(len(chunk.url)) + chunk.clicked_row + chunk.session[chunk.clicked_row] + 2
    return sessions, queries, clicks


def _terms(queries: Ints) -> Bytes:
    """``term,term,…``: one row of fixed width per query."""
    n_terms, numbers = terms(queries)
    digits = decimals(numbers)
    text = np.zeros(numbers.shape, dtype=[("comma", "S1"), ("term", digits.dtype)])
    text["comma"][:, 1:], text["term"] = b",", digits
    text[np.arange(numbers.shape[1]) >= n_terms[:, None]] = (b"", b"")
    return text.view(f"S{text.dtype.itemsize}")


def _results(queries: Ints) -> Bytes:
    """A tab and ``url,domain`` for each result: one row per query."""
    urls = result_pages(queries)
    url, domain = decimals(urls), decimals(domains(urls))
    text = np.zeros(urls.shape, dtype=[("tab", "S1"), ("url", url.dtype), ("comma", "S1"), ("domain", domain.dtype)])
    text["tab"], text["url"], text["comma"], text["domain"] = _TAB, url, b",", domain
    return text.view(f"S{text.dtype.itemsize}")


def yandex_table(chunk: YandexChunk) -> bytearray:
    """``user query url time``: a row for each click, and one without URL for each query that has none.

    Time counts the units of the log from its first day on, 86,400 to a day.
    """
    n_clicks = np.bincount(chunk.clicked_row, minlength=len(chunk.query))
    n_rows = np.maximum(n_clicks, 1)
    row = np.repeat(np.arange(len(n_rows)), n_rows)
    clicks = np.flatnonzero(n_clicks[row])
    session = chunk.session[row]
    within = chunk.query_time[row]
    within[clicks] = chunk.click_time
    time = decimals((chunk.day[session] - 1) * 86_400 + within)
    columns: list[Column] = [decimals(chunk.user[session]), _TAB, decimals(chunk.query)[row], _TAB]
    columns += [(clicks, decimals(chunk.url)), _TAB, time, _LINE_END]
    return rows_text(len(row), columns)


def decimals(numbers: Ints) -> Bytes:
    """Numbers >= 0 in decimal digits; NULs stand before the first digit."""
    shape, rest = numbers.shape, numbers.ravel()
    n_groups = max(1, -(-len(str(int(rest.max(initial=0)))) // 4))
    text = np.zeros((len(rest), n_groups), dtype="S4")
    for group in reversed(range(n_groups)):
        above, digits = np.divmod(rest, _GROUP)
        text[:, group] = np.where(above > 0, _PADDED[digits], _PLAIN[digits])
        if group < n_groups - 1:
            text[rest == 0, group] = b""
        rest = above
    return text.view(f"S{4 * n_groups}").reshape(shape)


def timestamps(seconds: Ints) -> Bytes:
    """Seconds since 2006-03-01 as ``YYYY-MM-DD HH:MM:SS``."""
    day, second = np.divmod(seconds, 86_400)
    text = np.zeros(len(seconds), dtype=[("date", "S11"), ("clock", "S8")])
    text["date"], text["clock"] = _DATES[day], _CLOCK[second]
    return text.view("S19")


def rows_text(n_rows: int, columns: Sequence[Column]) -> bytearray:
    """The columns side by side, row after row, without NULs."""
    parts = [column if isinstance(column, tuple) else (slice(None), column) for column in columns]
    layout = np.dtype([(f"column {number}", _width(texts)) for number, (_, texts) in enumerate(parts)])
    buffer = bytearray(n_rows * layout.itemsize)
    rows = np.frombuffer(buffer, dtype=layout)
    for name, (places, texts) in zip(layout.names or (), parts, strict=True):
        rows[name][places] = texts
    return buffer.translate(None, b"\0")


def _width(texts: Bytes | bytes) -> np.dtype[Any]:
    return np.dtype(f"S{len(texts)}") if isinstance(texts, bytes) else np.dtype((texts.dtype, texts.shape[1:]))
