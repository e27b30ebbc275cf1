"""Typing errors, against the table written out, and rows that are kept from one text to the next."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.search.pack_index import Rows


def reference(one, other):
    table = [[max(i, j) if not i or not j else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (one[i - 1] != other[j - 1])
            )
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("ca", "abc", 3), ("ab", "ba", 1), ("", "ab", 2), ("weather", "wetaher", 1), ("a", "a", 0), ("😀b", "b😀", 1)],
)
def test_known_distances(one, other, distance):
    assert Rows(one, 3).distance(other) == reference(one, other) == distance


WORDS = st.text("abc", max_size=7)


@settings(max_examples=200, deadline=None)
@given(WORDS, st.lists(WORDS, max_size=20), st.integers(1, 3), st.booleans())
def test_many_texts_one_after_another(text, others, limit, in_order):
    rows = Rows(text, limit)
    for other in sorted(others) if in_order else others:
        distance = reference(text, other)
        assert rows.distance(other) == (distance if distance <= limit else None)
