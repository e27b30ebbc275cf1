"""The rules of ``normalize`` one by one, and the table of Unicode 14 against the interpreter's own."""

from __future__ import annotations

import runpy
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from searchblend.core.normalization import fold, normalize, normalize_url, single_blanks
from searchblend.core.unicode14 import END, TABLE, VERSION, all_assigned, unassigned_ranges

ROOT = Path(__file__).parents[3]
HAS_UNICODE_14 = unicodedata.unidata_version == VERSION
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)}
WHITE_SPACE |= {0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


def assigned_code_points() -> list[str]:
    unassigned = {number for first, end in unassigned_ranges() for number in range(first, end)}
    return [chr(number) for number in range(END) if number not in unassigned]


def by_the_letter(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())


@pytest.mark.thorough
@pytest.mark.skipif(
    not HAS_UNICODE_14,
    reason=f"NOT TESTED: the Unicode 14.0 table against its source; unicodedata is {unicodedata.unidata_version} here",
)
def test_the_table_is_that_of_unicode_14():
    wrong = [
        f"U+{number:04X}"
        for number in range(END)
        if all_assigned(chr(number)) == (unicodedata.category(chr(number)) in ("Cn", "Cs"))
    ]
    assert wrong == []
    script = runpy.run_path(str(ROOT / "vectors" / "make_unicode14.py"))
    assert script["table"]().split() == TABLE.split()


def test_the_table_has_unicode_14_size():
    # UnicodeData 14.0.0: 144 697 characters, with 65 control codes and 137 468 for private use.
    assert len(assigned_code_points()) == 144_697 + 65 + 137_468


def test_ranges_are_ordered_and_apart():
    ranges = unassigned_ranges()
    edges = [edge for pair in ranges for edge in pair]
    assert edges == sorted(set(edges))
    assert ranges[-1][1] == END


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("intruder", [0x378, 0xD7FC, 0xD800, 0xDFFF, 0xFDD0, 0xFFFF, 0x1FAE8, 0x10FFFF])
def test_one_unassigned_code_point_is_found_anywhere(intruder, position):
    letters = list("éa")
    letters.insert(position, chr(intruder))
    text = "".join(letters)
    assert not all_assigned(text)
    assert normalize(text) is None
    assert normalize_url(text) is None
    assert normalize_url(f"http://a.example/{text}") is None


def test_the_class_is_not_compiled_on_import():
    """Import stays far below 5 ms because only the first text that is not ASCII pays for the class."""
    code = (
        "import searchblend.core.unicode14 as table, searchblend.core.normalization as n;"
        "n.normalize('Weather'); n.normalize_url('http://A.example/');"
        "assert table._assigned.cache_info().currsize == 0;"
        "n.normalize('é'); assert table._assigned.cache_info().currsize == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_table_is_not_made_from_another_unicode(monkeypatch):
    script = runpy.run_path(str(ROOT / "vectors" / "make_unicode14.py"))
    monkeypatch.setattr(unicodedata, "unidata_version", "15.0.0")
    with pytest.raises(SystemExit, match=r"needs unicodedata 14\.0\.0"):
        script["main"]()


@pytest.mark.parametrize(("text", "folded"), [("\u0378", "a"), ("é", "\u0378")])
def test_a_newer_unicode_neither_rescues_nor_smuggles_in(monkeypatch, text, folded):
    """Where an unassigned code point has got a lower case, or is one, the text is refused before or after."""
    monkeypatch.setattr("searchblend.core.normalization.fold", lambda given: given.replace(text, folded))
    assert normalize(f"{text}x") is None
    assert normalize_url(f"http://{text}.example/") is None
    assert normalize_url(f"{text}.example", host_only=True) is None


def test_blanks_are_white_space_and_nothing_else():
    found = {number for number in range(END) if single_blanks(f"a{chr(number)}b") == "a b"}
    assert found == WHITE_SPACE


def test_every_code_point_folds_to_a_fixpoint_of_nfkc_and_lower_case():
    wrong = [text for text in assigned_code_points() if by_the_letter(fold(text)) != fold(text)]
    assert wrong == []


def test_folding_a_single_code_point_is_nfkc_and_lower_case():
    wrong = [text for text in assigned_code_points() if fold(text) != by_the_letter(text)]
    assert wrong == []


@pytest.mark.thorough
def test_every_code_point_is_normalized_once_and_for_all():
    once = {normalize(text) for text in assigned_code_points()} - {None}
    assert [text for text in once if normalize(text) != text] == []


def test_capitals_with_marks_fold_to_a_fixpoint():
    marks = [text for text in map(chr, range(0x300, 0x370)) if all_assigned(text)]
    capitals = [text for text in assigned_code_points() if text.lower() != text]
    pairs = [fold(capital + mark) for capital in capitals for mark in marks]
    assert [text for text in pairs if by_the_letter(text) != text] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ΣΟΦΟΣ", "σοφος"), ("ΣΊΣΥΦΟΣ, ΣΟΦΌΣ;", "σίσυφος, σοφός;"), ("Σ", "σ"), ("ΣΣ", "σς"), ("ΤΣ\u0301Α", "τσ\u0301α")],
)
def test_greek_words_fold_as_lower_case_does(text, expected):
    assert fold(text) == expected == by_the_letter(text)


@pytest.mark.parametrize("neighbour", ["\u0295", "\U0001171e", "'", ".", ":", "\u00ad", "a", "😀"])
def test_sigma_does_not_look_at_other_neighbours(neighbour):
    assert fold(f"Α{neighbour}Σ") == f"α{neighbour}σ"
    assert fold(f"ΑΣ{neighbour}α") == f"ας{neighbour}α"


def test_sharp_s_is_not_folded_into_two():
    assert normalize("Straße") == "straße"


@pytest.mark.parametrize("text", ["", " ", "\t", "\u3000\u0085", "\u00a0"])
def test_nothing_left_is_unusable(text):
    assert normalize(text) is None
    assert normalize_url(text) is None
    assert normalize_url(text, host_only=True) is None


@pytest.mark.parametrize(
    "delimiter", ["\uff0f", "\uff1f", "\uff03", "\uff20", "\uff3b", "\uff3d", "\uff3c", "\u2100", "\u2049", "\u00a8"]
)
def test_a_host_may_not_fold_into_a_delimiter(delimiter):
    assert normalize_url(f"http://good.example{delimiter}evil.example/") is None
    assert normalize_url(f"http://good.example{delimiter}evil.example/", host_only=True) is None
    assert normalize_url(f"http://good.example/{delimiter}") == f"http://good.example/{delimiter}"


def test_a_port_of_any_length_is_no_error():
    assert normalize_url(f"http://a.example:{'9' * 5000}/") == f"http://a.example:{'9' * 5000}"
