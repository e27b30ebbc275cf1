"""A chunk of synthetic users as text: the AOL format, the Yandex format, and a plain table of four columns.

A column is an array of byte strings of fixed width (with a second dimension: several columns in a row), or one byte
string for all rows; or it is a pair of places and such texts, and stays empty in the other rows. Columns are laid side
by side in one buffer and the NULs that fill the widths are dropped in a single pass: several times faster than
joining strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.synthetic.aol import AolChunk
from searchblend.synthetic.laws import Ints
from searchblend.synthetic.words import SITE_WIDTH, query_texts, site_texts
from searchblend.synthetic.yandex import YandexChunk, domains, result_pages, terms

Bytes = NDArray[np.bytes_]
Column = Bytes | bytes | tuple[Ints, Bytes | bytes]

_GROUP: Final = 10_000
_PADDED: Final = np.array([b"%04d" % number for number in range(_GROUP)], dtype="S4")
_PLAIN: Final = np.array([b"%d" % number for number in range(_GROUP)], dtype="S4")
_CLOCK: Final = np.array([b"%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60) for s in range(86_400)], dtype="S8")
_FIRST_DAY: Final = date(2006, 3, 1)
_DATES: Final = np.array([f"{_FIRST_DAY + timedelta(days=day)} ".encode() for day in range(92)], dtype="S11")
AOL_HEADER: Final = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
TABLE_HEADER: Final = b"user\tquery\turl\ttime\n"
_TAB, _LINE_END = b"\t", b"\n"


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
    return decimals(chunk.user), query_texts(chunk.queries)[chunk.search], url, timestamps(chunk.second)


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
