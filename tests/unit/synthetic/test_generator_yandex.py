"""The shape of the made-up Yandex log: rows that join, and the published figures per user and session."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from searchblend.synthetic.pieces import LogRequest, chunk_generator, jobs_of, make_piece, yandex_table, yandex_text
from searchblend.synthetic.population import yandex_query_shares
from searchblend.synthetic.yandex import QUERIES, domains, yandex_chunk

USERS = 2_000


@pytest.fixture(scope="module")
def chunk():
    return yandex_chunk(10_000, USERS, chunk_generator(8, 0))


@pytest.fixture(scope="module")
def rows(chunk):
    return [line.split("\t") for line in yandex_text(chunk, first_session=70).decode().splitlines()]


def kind(row):
    return "M" if row[1] == "M" else row[2]


def test_rows_have_the_fields_of_their_kind(rows):
    fields = {"M": 4, "Q": 16, "C": 5}
    assert all(len(row) == fields[kind(row)] for row in rows)
    for row in rows:
        numbers = [part for field in row for part in field.split(",")]
        assert all(part.isdecimal() for part in numbers if part not in {"M", "Q", "C"})
        if kind(row) == "Q":
            assert 1 <= len(row[5].split(",")) <= 5
            assert all(len(pair.split(",")) == 2 for pair in row[6:])


def test_sessions_are_numbered_through_and_days_ascend(rows):
    starts = [row for row in rows if kind(row) == "M"]
    assert [int(row[0]) for row in starts] == list(range(70, 70 + len(starts)))
    assert {int(row[3]) for row in starts} == set(range(10_000, 10_000 + USERS))
    whens = [(int(row[3]), int(row[2])) for row in starts]
    assert whens == sorted(whens)
    assert all(1 <= day <= 27 for _, day in whens)


def test_every_click_joins_to_a_page_that_shows_its_url(rows):
    shown = {}
    for row in rows:
        if kind(row) == "Q":
            assert (row[0], row[3]) not in shown
            shown[row[0], row[3]] = {pair.split(",")[0] for pair in row[6:]}
        elif kind(row) == "C":
            assert row[4] in shown[row[0], row[3]]


def test_a_session_starts_at_zero_and_time_passes(rows):
    for before, row in pairwise(rows):
        assert kind(before) != "M" or (kind(row), row[1], row[3]) == ("Q", "0", "0")
        if kind(before) != "M" and kind(row) != "M":
            assert row[0] == before[0]
            assert int(row[1]) > int(before[1])
        if kind(row) == "M":
            assert int(row[0]) == int(before[0]) + 1


def test_a_url_has_one_domain(rows):
    pairs = {tuple(pair.split(",")) for row in rows if kind(row) == "Q" for pair in row[6:]}
    assert len({url for url, _ in pairs}) == len(pairs)
    url, domain = next(iter(pairs))
    assert domains(np.array([int(url)])).tolist() == [int(domain)]


def test_figures_per_user_and_session(chunk):
    counts = chunk.counts
    assert counts["sessions"] / USERS == pytest.approx(34_573_630 / 5_736_333, rel=0.1)
    assert counts["queries"] / counts["sessions"] == pytest.approx(65_172_853 / 34_573_630, rel=0.05)
    assert counts["clicks"] / counts["queries"] == pytest.approx(64_693_054 / 65_172_853, rel=0.05)
    assert counts["clicking_users"] / USERS == pytest.approx(4_970_073 / 5_736_333, rel=0.05)


def test_the_head_is_the_profiles_and_flatter_than_aol():
    n = 2_000_000
    ranks = QUERIES.ranks((np.arange(n) + 0.5) / n)
    found = np.bincount(ranks[ranks < 1_000], minlength=1_000) / n
    assert found == pytest.approx(yandex_query_shares()[:1_000], rel=0.01, abs=2 / n)
    assert found[0] < 0.0211 / 5


def test_the_table_has_a_row_per_click_and_one_per_query_without(chunk, rows):
    table = [line.split("\t") for line in yandex_table(chunk).decode().splitlines()]
    user_of = {row[0]: row[3] for row in rows if kind(row) == "M"}
    query_of = {(row[0], row[3]): row[4] for row in rows if kind(row) == "Q"}
    clicks = [[user_of[row[0]], query_of[row[0], row[3]], row[4]] for row in rows if kind(row) == "C"]
    assert [row[:3] for row in table if row[2]] == clicks
    clicked = {(row[0], row[3]) for row in rows if kind(row) == "C"}
    without = [[user_of[page[0]], query, ""] for page, query in query_of.items() if page not in clicked]
    assert [row[:3] for row in table if not row[2]] == without
    times = [(int(row[0]), int(row[3])) for row in table]
    assert [user for user, _ in times] == sorted(user for user, _ in times)


def test_sessions_go_on_counting_from_chunk_to_chunk():
    jobs = list(jobs_of(LogRequest("yandex", 400, "yandex", 5), compress=False))
    numbers = [int(line.split(b"\t")[0]) for job in jobs for line in make_piece(job).text.splitlines()]
    assert sorted(set(numbers)) == list(range(max(numbers) + 1))
    assert numbers == sorted(numbers)
