"""Texts of made-up queries and sites: different for different numbers, usable after normalization, mostly ASCII."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest

from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.suspects import Suspects
from searchblend.synthetic import words as generate_words
from searchblend.synthetic.aol import site_of
from searchblend.synthetic.pieces import decimals, rows_text, timestamps
from searchblend.synthetic.population import URLS_PER_QUERY
from searchblend.synthetic.words import N_WRITTEN, QUERY_LIMIT, SITE_LIMIT, query_texts, site_texts
from searchblend.synthetic.world import (
    ASPECTS,
    DETAILS,
    DIRECTORIES,
    LIST_LENGTH,
    PLACES,
    STYLES,
    SUBJECTS,
    YEARS,
    rank_of_query,
    ranked_query,
    ranked_url,
    world,
    written_hosts,
    written_queries,
)

COMMON = np.arange(30_000)
RARE = np.unique(np.random.default_rng(5).integers(1 << 24, QUERY_LIMIT, 30_000))


def texts(column):
    return rows_text(len(column), [column, b"\n"]).decode().splitlines()


def test_queries_differ_before_and_after_normalization():
    found = texts(query_texts(np.concatenate([COMMON, RARE])))
    assert len(set(found)) == len(found)
    normal = [normalize(text) for text in found]
    assert None not in normal
    assert len(set(normal)) == len(normal)


def test_the_first_queries_are_written_and_lead_to_written_sites():
    assert texts(query_texts(np.arange(N_WRITTEN))) == list(written_queries())
    assert texts(site_texts(np.arange(2))) == ["http://www.forecast.example", "http://www.skymap.example"]
    hosts = [f"http://www.{hosts[0]}" for hosts in world().values()]
    assert texts(site_texts(site_of(np.arange(N_WRITTEN), np.zeros(N_WRITTEN, dtype=np.int64)))) == hosts


def test_a_text_does_not_depend_on_its_neighbours():
    assert texts(query_texts(COMMON[100:200])) == texts(query_texts(COMMON))[100:200]


def test_a_few_queries_are_not_ascii_and_some_of_them_not_in_normal_form():
    found = texts(query_texts(np.concatenate([COMMON, RARE])))
    other = [text for text in found if not text.isascii()]
    assert 0.003 < len(other) / len(found) < 0.010
    assert 0.1 < np.mean([normalize(text) != text for text in other]) < 0.9
    assert all(text == text.lower() and " ".join(text.split()) == text for text in found if text.isascii())


def test_the_words_at_each_place_give_the_number_back():
    lists = (SUBJECTS, ASPECTS, PLACES, STYLES, DETAILS, YEARS)
    assert [len(set(words)) for words in lists] == [LIST_LENGTH] * 6
    assert not any(re.search(r"[^a-z0-9]", word) for words in lists for word in words)
    ends = {word for text in generate_words._WORDS.tolist() for word in text.decode().split()}
    assert ends.isdisjoint({*DETAILS, *PLACES})


def test_no_written_query_can_be_composed():
    spelled = {*SUBJECTS, *ASPECTS, *PLACES, *STYLES, *DETAILS, *YEARS}
    compounds_of_two = {f"{one} {other}" for one in SUBJECTS for other in ASPECTS}
    written = written_queries()
    assert compounds_of_two.isdisjoint(written)
    assert not [q for q in written if len(q.split()) > 3 and spelled.issuperset(q.split())]
    assert not [q for q in written if "-" in q]


def test_the_world_is_in_normal_form_and_speaks_several_languages():
    assert 250 < N_WRITTEN < 1000
    assert all(normalize(query) == query for query in written_queries())
    assert all(normalize_url(f"http://{host}") == f"http://{host}" for host in written_hosts())
    assert all(host.endswith(".example") for host in (*written_hosts(), *DIRECTORIES))
    scripts = {unicodedata.name(sign).split()[0] for query in written_queries() for sign in query if sign.isalpha()}
    assert {"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "DEVANAGARI", "HANGUL", "CJK"} <= scripts
    assert not [query for query in written_queries() if Suspects().in_text(query)]


@pytest.mark.parametrize("ranks", [range(6_000), range(4_811_600, 4_811_646), range(13_171_900, 13_171_961)])
def test_a_ranked_query_gives_its_rank_back(ranks):
    found = [ranked_query(rank) for rank in ranks]
    assert len(set(found)) == len(found)
    assert [rank_of_query(query) for query in found] == list(ranks)


@pytest.mark.parametrize("foreign", ["", "*", "unheard of", "garden", "garden repair leeds", "a b c d", "2006"])
def test_a_query_of_another_world_has_no_rank(foreign):
    assert rank_of_query(foreign) == -1


@pytest.mark.parametrize("rank", [0, 2, N_WRITTEN - 1, N_WRITTEN, 100_000])
def test_a_query_has_eleven_urls_in_normal_form(rank):
    urls = [ranked_url(rank, place) for place in range(URLS_PER_QUERY)]
    assert len(set(urls)) == URLS_PER_QUERY
    assert all(normalize_url(url) == url for url in urls)


def test_sites_are_hosts_that_normalization_leaves_alone():
    numbers = np.concatenate([COMMON, np.arange(SITE_LIMIT - 100, SITE_LIMIT)])
    found = texts(site_texts(numbers))
    assert len(set(found)) == len(found)
    assert all(normalize_url(url) == url for url in found)
    assert all(url.endswith(".example") for url in found)


@pytest.mark.parametrize("top", [0, 9, 10, 9_999, 10_000, 99_999_999, 10**8, 123_456_789_012])
def test_decimals(top):
    numbers = np.array([0, 7, top, min(top, 10_000), min(top, 20_304), top // 2, top // 10_000 * 10_000])
    assert texts(decimals(numbers)) == [str(number) for number in numbers]


def test_timestamps_cover_three_months():
    assert texts(timestamps(np.array([0, 86_399, 86_400, 92 * 86_400 - 1]))) == [
        "2006-03-01 00:00:00",
        "2006-03-01 23:59:59",
        "2006-03-02 00:00:00",
        "2006-05-31 23:59:59",
    ]


def test_columns_for_some_rows_only():
    text = rows_text(3, [decimals(np.array([1, 2, 3])), (np.array([0, 2]), np.array([b"a", b"b"])), b";"])
    assert text == b"1a;2;3b;"
