"""Strings of others as they are shown: nothing unseen, nothing that moves its neighbours."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchblend.core.visible import visible

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
MARKS = "\u200e\u200f\u061c"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bank\u202egnp.exe", "bank[U+202E]gnp.exe"),
        ("\x1b[31mred\x07", "[U+001B][31mred[U+0007]"),
        ("a\u2066b\u2069", "a[U+2066]b[U+2069]"),
        ("pay\u200bpal", "pay[U+200B]pal"),
        ("\U000e0041", "[U+E0041]"),
        ("\udc80", "[U+DC80]"),
        ("\x00\x85\u2028", "[U+0000][U+0085][U+2028]"),
    ],
)
def test_what_is_not_seen_is_spelt_out(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text", ["", "weather", "שלום", "مى\u200cخواهم", "👩\u200d🚀", "❤\ufe0f", "two\nlines\tand a tab"]
)
def test_what_is_written_stays(text):
    assert visible(text) == text


@given(st.text())
def test_no_control_is_left(text):
    shown = visible(text)
    assert visible(shown) == shown
    for sign in shown:
        assert unicodedata.bidirectional(sign) not in BIDI
        assert sign not in MARKS
        assert unicodedata.category(sign) not in {"Cc", "Cs", "Zl", "Zp"} or sign in "\t\n"
