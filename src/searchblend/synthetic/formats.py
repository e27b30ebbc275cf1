"""A chunk of made-up users as text: the AOL format, the Yandex format, and a plain table of four columns."""

from __future__ import annotations

from typing import Final

import numpy as np

from searchblend.synthetic.aol import AolChunk
from searchblend.synthetic.columns import Bytes, Column, decimals, rows_text, timestamps
from searchblend.synthetic.laws import Ints
from searchblend.synthetic.words import SITE_WIDTH, query_texts, site_texts
from searchblend.synthetic.yandex import YandexChunk, domains, result_pages, terms

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
