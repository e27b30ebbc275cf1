"""CSV for people: no spreadsheet computes a cell, and every string comes back."""

from __future__ import annotations

import csv
import io
import re
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from searchblend.core.csv_cells import read_cell, write_cell, write_csv

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1;1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "＝1+1",
    "＋1",
    "－1",
    "＠SUM(1)",
    "−1",
    "⁺1",
    " =1+1",
    "\u3000=1+1",
    "\ufeff=1+1",
    "\u202e=1+1",
    "\x00=1+1",
    '"=1+1',
    "'=1+1",
]
AFTER = ["weather,", "weather;", "weather|", "weather\t", "weather\n", "weather\r", 'weather";"', "weather; "]
DANGEROUS = {sign for sign in map(chr, range(0x10000)) if unicodedata.normalize("NFKC", sign) in "=+-@"} | {"−"}
TRICKY = st.text(st.sampled_from("=+-@＝−'\"\t\r\n ,;|\u200b\u3000\x00ab1"), max_size=12)
ANY = st.one_of(TRICKY, st.text(st.characters(exclude_categories=["Cs"]), max_size=12))


def computes(cell: str) -> bool:
    """Whether a spreadsheet may take this cell for a formula: the first sign that is seen is one of them."""
    seen = re.sub(r"""^[\s"\x00-\x20\x7f-\xa0\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\xad]+""", "", cell)
    return cell[:1] in {"\t", "\r", "\n"} or seen[:1] in DANGEROUS


def cells_anywhere(text: str) -> list[str]:
    """Every cell that a program may make of a field, whatever it splits at."""
    return [text, *re.split(r"[,;|\t\r\n]", text)]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_begins_as_a_formula(formula):
    assert not computes(write_cell(formula))
    assert read_cell(write_cell(formula)) == formula


@pytest.mark.parametrize("before", AFTER)
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_begins_as_a_formula_where_another_program_splits_it(before, formula):
    written = write_cell(before + formula)
    assert not any(computes(cell) for cell in cells_anywhere(written))
    assert read_cell(written) == before + formula


@given(ANY)
@example("''=''='")
@example("'\t''='")
def test_every_string_comes_back(text):
    assert read_cell(write_cell(text)) == text


@given(TRICKY)
def test_no_string_holds_a_cell_that_begins_as_a_formula(text):
    assert not any(computes(cell) for cell in cells_anywhere(write_cell(text)))


@pytest.mark.parametrize(
    "text", ["weather", "c++", "a-b", 'the "best" -cheap shop', "https://a.example/?q=1", "it's", "'"]
)
def test_ordinary_strings_stay_as_they_are(text):
    assert write_cell(text) == text
    assert read_cell(text) == text


@given(st.lists(st.tuples(ANY, ANY), max_size=4), st.sampled_from(",\t"))
def test_a_table_is_read_again_by_other_programs(rows, delimiter):
    text = write_csv(["query", "=url"], [{"query": query, "=url": url} for query, url in rows], delimiter)
    read = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    assert [tuple(map(read_cell, row)) for row in read] == [("query", "=url"), *rows]


def test_numbers_are_numbers_and_nothing_is_an_empty_field():
    row = {"a": -1, "b": -0.25, "c": None, "d": np.float64(-2.5), "e": np.int64(-3), "f": "", "g": "-1", "h": True}
    assert write_csv(list(row), [row]).splitlines()[1] == '-1,-0.25,,-2.5,-3,"","\'-1",True'


def test_what_other_programs_split_at_is_quoted():
    lines = write_csv(["a", "b"], [{"a": "x;y", "b": "x|y"}, {"a": "x\ty", "b": " x"}, {"a": 'x"y', "b": "x y"}])
    assert lines == 'a,b\n"x;y","x|y"\n"x\ty"," x"\n"x""y",x y\n'


def test_writing_a_long_string_takes_linear_time():
    for text in ("\t" * 200_000, "'" * 200_000, " " * 200_000, ",' " * 60_000 + "="):
        assert read_cell(write_cell(text)) == text
