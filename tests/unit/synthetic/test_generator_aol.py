"""The shape of the made-up AOL log: every line, and the published figures as far as a small log shows them."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from searchblend.synthetic.aol import FULL_SIZE, aol_chunk, clicked_law, site_of
from searchblend.synthetic.pieces import aol_text, chunk_generator
from searchblend.synthetic.population import aol_query_shares

USERS = 4_000
LINE = re.compile(
    r"[1-9]\d*\t[^\t\n]+\t2006-0[345]-\d\d [0-2]\d:[0-5]\d:[0-5]\d\t(?:\d+\thttp://[a-z-]+(?:\.[a-z-]+)+|\t)"
)


@pytest.fixture(scope="module")
def chunk():
    return aol_chunk(0, USERS, FULL_SIZE, chunk_generator(8, 0))


@pytest.fixture(scope="module")
def lines(chunk):
    return [line.split("\t") for line in aol_text(chunk).decode().splitlines()]


def test_every_line_has_five_fields_and_a_click_has_all_of_them(chunk):
    text = aol_text(chunk).decode().splitlines()
    assert len(text) == len(chunk.user)
    assert [line for line in text if not LINE.fullmatch(line)] == []


@pytest.mark.thorough
def test_lines_are_sorted_by_user_and_time(lines):
    keys = [(int(user), time) for user, _, time, _, _ in lines]
    assert keys == sorted(keys)
    assert len({user for user, _ in keys}) == USERS


def test_lines_of_one_user_and_time_are_clicks_on_one_page(lines):
    for one, other in pairwise(lines):
        if one[0] == other[0] and one[2] == other[2]:
            assert one[1] == other[1]
            assert one[4]
            assert other[4]


def test_clicks_of_a_next_page_are_beyond_the_tenth_rank(lines):
    """The page is counted in requests for the same query one after another."""
    page = 0
    for before, line in pairwise(lines):
        if before[:2] != line[:2]:
            page = 0
        elif before[2] != line[2]:
            page += 1
        if line[3] not in {"", "0"}:
            assert (int(line[3]) - 1) // 10 <= page


def test_shares_of_lines(chunk, lines):
    n = len(lines)
    assert chunk.counts["clicks"] / n == pytest.approx(1 - 0.466, rel=0.05)
    assert chunk.counts["new_queries"] / n == pytest.approx(0.577, rel=0.05)
    assert chunk.counts["next_pages"] / n == pytest.approx(0.217, rel=0.05)
    assert chunk.counts["clicking_users"] / USERS == pytest.approx(0.79, rel=0.05)


def test_lines_per_user(lines):
    per_user = np.array(list(Counter(user for user, *_ in lines).values()))
    assert np.mean(per_user == 1) == pytest.approx(0.087, abs=0.02)
    assert np.mean(per_user >= 5) == pytest.approx(0.77, abs=0.03)
    assert np.median(per_user) == pytest.approx(17, abs=2)
    assert 30 < per_user.mean() < 90


def test_click_ranks(chunk):
    ranks = chunk.item_rank[chunk.site >= 0]
    published = [0.421, 0.119, 0.085, 0.061, 0.049, 0.041, 0.034, 0.030, 0.028, 0.030]
    found = [np.mean(ranks == rank) for rank in range(1, 11)]
    assert found == pytest.approx(published, rel=0.08)
    assert np.mean(ranks > 10) == pytest.approx(0.10, abs=0.015)
    assert 0 < np.mean(ranks == 0) < 0.001
    assert np.all(chunk.item_rank[chunk.site < 0] == -1)


def test_queries_of_clicks_follow_figure_9():
    n = 2_000_000
    ranks = clicked_law().ranks((np.arange(n) + 0.5) / n)
    found = np.bincount(ranks[ranks < 50], minlength=50) / n
    assert found == pytest.approx(aol_query_shares()[:50], abs=2 / n)
    assert found.sum() == pytest.approx(0.088, rel=0.01)
    next_fifty = np.mean((ranks >= 50) & (ranks < 100))
    assert next_fifty == pytest.approx(aol_query_shares()[50:100].sum(), rel=0.02)


def test_a_frequent_query_leads_mostly_to_one_site():
    weather = site_of(np.zeros(3, dtype=np.int64), np.array([0, 0, 1]))
    assert weather[0] == weather[1] == 0 != weather[2]
    variants = site_of(np.array([0, 2, 6]), np.zeros(3, dtype=np.int64))
    assert variants.tolist() == [0, 0, 0], "weather, forecast.example and www.forecast.example"


@pytest.mark.parametrize(("all_users", "lines_of_busiest"), [(FULL_SIZE, 279_430), (FULL_SIZE // 10, 27_943)])
def test_the_busiest_user_grows_with_the_log(all_users, lines_of_busiest):
    busiest = all_users // 2
    found = aol_chunk(busiest - 3, 7, all_users, chunk_generator(1, 0))
    per_user = np.unique(found.user, return_counts=True)[1]
    assert per_user[3] == lines_of_busiest
    assert np.all(np.diff(found.second[found.user == np.unique(found.user)[3]]) >= 0)
