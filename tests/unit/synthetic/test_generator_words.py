"""Texts of made-up queries and sites: different for different numbers, usable after normalization, mostly ASCII."""

from __future__ import annotations

import re

import numpy as np
import pytest

from searchblend.core.normalization import normalize, normalize_url
from searchblend.synthetic import words as generate_words
from searchblend.synthetic.formats import decimals, rows_text, timestamps
from searchblend.synthetic.words import QUERY_LIMIT, SITE_LIMIT, TOP_QUERIES, query_texts, site_texts

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


def test_the_first_queries_have_the_published_names():
    assert texts(query_texts(np.arange(len(TOP_QUERIES)))) == list(TOP_QUERIES)
    assert texts(site_texts(np.arange(2))) == ["http://www.google.com", "http://www.yahoo.com"]


def test_a_text_does_not_depend_on_its_neighbours():
    assert texts(query_texts(COMMON[100:200])) == texts(query_texts(COMMON))[100:200]


def test_a_few_queries_are_not_ascii_and_some_of_them_not_in_normal_form():
    found = texts(query_texts(np.concatenate([COMMON, RARE])))
    other = [text for text in found if not text.isascii()]
    assert 0.003 < len(other) / len(found) < 0.010
    assert 0.1 < np.mean([normalize(text) != text for text in other]) < 0.9
    assert all(text == text.lower() and " ".join(text.split()) == text for text in found if text.isascii())


def test_a_piece_can_be_told_from_what_follows():
    pieces = [piece.decode() for piece in generate_words._PIECES]
    assert len(set(pieces)) == 4_096
    form = re.compile(r"(?:[bdfgklmnprstvz][aeiou])+[bdfgklmnprstvz]")
    assert all(form.fullmatch(piece) for piece in pieces)
    common = [word for text in generate_words._WORDS.tolist() for word in text.decode().split()]
    assert [word for word in common if form.fullmatch(word)] == []


def test_sites_are_hosts_that_normalization_leaves_alone():
    numbers = np.concatenate([COMMON, np.arange(SITE_LIMIT - 100, SITE_LIMIT)])
    found = texts(site_texts(numbers))
    assert len(set(found)) == len(found)
    assert all(normalize_url(url) == url for url in found)
    assert all(url.endswith(".example") for url in found[5:])


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
