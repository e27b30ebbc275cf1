"""What is read of a log is the sum of what is read of its people: no line changes another person's.

The lines keep quotes, control characters, carriage returns, byte-order marks, NULs, invalid UTF-8 and lengths beyond
every limit. Files are empty or compressed in several members; columns have other names and orders, and some are
missing; there are opt-in columns, logs without URLs, and line feeds in quotes where the option allows them. Each world
is a pair of neighbours: a file with and without all lines of one person.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from input_worlds import (
    FORMATS,
    PIECES,
    Shape,
    categorized,
    declared,
    differences,
    found_in,
    shape_of,
    small_blocks,
    table_worlds,
    varied,
    worlds,
    write,
    write_parquet_worlds,
)
from searchblend.core.errors import RunError
from searchblend.logs.duckdb import feed, given, load, scan
from searchblend.logs.formats import encodings
from searchblend.logs.formats import sources as formats
from searchblend.logs.formats.files import LogInput
from searchblend.logs.formats.layout import ENCODINGS, UTF_8, Delimited, JsonLines, LineRules

MODES: list[dict[str, Any]] = [
    {"draws": 2, "keep_lines": True, "rows": True},
    {"draws": 0, "keep_lines": True},
    {"draws": 0, "searches_only": True},
    {"draws": 1, "host_only": True, "rows": True},
]
SUFFIXES = ("", "", "", "", ".gz", ".zst")


def read(folder: LogInput, format_name: str, mode: dict[str, Any]) -> Counter[Any]:
    return found_in(folder, format_name, threads=1, memory="512MB", **mode)


KINDS = (None, *PIECES)
AT_ONCE = 2
"""kinds of odd bytes in one log, each in half of its files: more could hide what one of them decides for all files"""
APART = len(KINDS) // AT_ONCE
ALL_BATCHES = len(FORMATS) * APART
"""The numbers below it have every format with every kind of odd bytes in the others' lines."""
SEED = 65
"""the first with which they have every layout, too"""


def kinds_of(number: int) -> tuple[str | None, ...]:
    return KINDS[number // len(FORMATS) % APART :: APART]


def format_and_mode(number: int) -> tuple[str, int]:
    """Every format in every mode, within four times as many numbers as there are formats."""
    format_name = FORMATS[number % len(FORMATS)]
    return format_name, (number % len(FORMATS) + number // len(FORMATS)) % (3 if format_name == "yandex" else 4)


def shape_of_batch(number: int) -> Shape:
    chance = random.Random(f"layout {SEED} {number}")
    return varied(shape_of(format_and_mode(number)[0], chance), chance)


def batch(folder: Path, number: int, kinds: Sequence[str | None], n: int, encoding: str = UTF_8) -> list[Any]:
    """n pairs of each of some kinds, of one format, drawn by a number, read together: what is not the sum."""
    chance = random.Random(number)
    format_name, mode = format_and_mode(number)
    shape = replace(shape_of_batch(number), encoding=encoding)
    if encoding in ("latin-1", "cp1252"):
        shape = replace(shape, start=b"")  # a mark of UTF-8 would be three letters of the first name
    made = [world for place, kind in enumerate(kinds) for world in worlds(shape, n, kind, chance, first=n * place)]
    logs = write(folder, shape, made, chance.choice([b"", b"\n"]), *chance.choices(SUFFIXES, k=len(kinds)))
    with small_blocks() if chance.random() < 0.5 else nullcontext():
        found = [read(log, format_name, {**MODES[mode], **shape.options, "encoding": encoding}) for log in logs]
    shutil.rmtree(folder)
    return differences(*found)


LAYOUTS: dict[str, set[str]] = {
    "aol": {"columns", "urls", "mark", "return", "folders"},
    "jsonl": {"columns", "urls", "optin_column", "folders"},
    "tsv": {"columns", "urls", "optin_column", "mark", "return", "two headers", "headerless", "folders"},
    "csv": {"columns", "urls", "optin_column", "mark", "return", "two headers", "headerless", "folders"}
    | {"delimiter", "delimiter of the header", "quoted_line_feeds"},
    "yandex": set(),
    "excite": {"folders"},
    "combined": {"urls", "folders"},
    "ubi": {"urls"},
}
"""what the layouts of a format can have"""


def test_the_batches_have_every_layout_and_every_mode():
    shapes = {number: shape_of_batch(number) for number in range(ALL_BATCHES)}
    for name, wanted in LAYOUTS.items():
        own = {number: shape for number, shape in shapes.items() if shape.format == name}
        assert wanted <= set().union(*(_features(shape) for shape in own.values()))
        assert wanted == set() or any(not _features(shape) & {"columns", "urls"} for shape in own.values())
        assert {format_and_mode(number)[1] for number in own} == set(range(3 if name == "yandex" else 4))
        assert {kind for number in own for kind in kinds_of(number)} == set(KINDS)


def _features(shape: Shape) -> set[str]:
    more = {
        "mark": bool(shape.start),
        "return": bool(shape.end_of_header),
        "two headers": shape.headers[0] != shape.headers[1],
        "headerless": shape.headerless,
        "folders": shape.in_folders,
        "delimiter of the header": shape.mark == ";" and "delimiter" not in shape.options,
    }
    always = {"columns"} if shape.format == "combined" else set()
    return {*shape.options.keys() - always, *(name for name, has in more.items() if has)}


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, ALL_BATCHES, len(FORMATS)))
def test_no_line_changes_what_is_read_of_another_person(first: int, tmp_path: Path):
    """Pairs of neighbours: 24 of each of two kinds in each of 56 batches."""
    for number in range(first, first + len(FORMATS)):
        assert batch(tmp_path / "log", number, kinds_of(number), 24) == [], number


ALONE: tuple[str | None, ...] = (None, "quote", "separator")
"""Kinds of which one line decides how a whole log is read: beside another kind no log would be without them."""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ALONE)
def test_no_line_changes_another_persons_among_lines_of_one_kind(kind: str | None, tmp_path: Path):
    """Pairs of neighbours: 8 in each format."""
    for number in range(len(FORMATS)):
        assert batch(tmp_path / "log", 200 + number, [kind], 8) == [], number


@pytest.mark.parametrize("number", range(100, 112))
def test_no_line_changes_another_persons_in_a_log_of_one_file(number: int, tmp_path: Path):
    """Nothing else is in the log that could hide a decision about the whole of it."""
    assert batch(tmp_path / "log", number, [KINDS[number // len(FORMATS) % len(KINDS)]], 1) == []


@pytest.mark.thorough
@pytest.mark.parametrize("encoding", ENCODINGS[1:])
def test_no_line_changes_another_persons_in_any_encoding(encoding: str, tmp_path: Path):
    """Pairs of neighbours: 4 of each of two kinds in each format. In UTF-16 some lines have an odd number of bytes."""
    for number in range(300, 300 + len(FORMATS)):
        assert batch(tmp_path / "log", number, [None, KINDS[1 + number % len(PIECES)]], 4, encoding) == [], number


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_800, 80))
def test_no_line_changes_what_is_read_of_another_person_in_100_000_pairs(first: int, tmp_path: Path):
    """One kind in each log."""
    for number in range(first, first + 80):
        assert batch(tmp_path / "log", number, [KINDS[number // len(FORMATS) % len(KINDS)]], 125) == [], number


def parquet_batch(folder: Path, number: int, n: int) -> list[Any]:
    logs = write_parquet_worlds(folder, n, random.Random(number))
    return differences(*(read(log, "parquet", MODES[number % len(MODES)]) for log in logs))


@pytest.mark.parametrize("number", range(2))
def test_no_row_of_parquet_changes_another_persons(number: int, tmp_path: Path):
    assert parquet_batch(tmp_path, number, 16) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(2, 42))
def test_no_row_of_parquet_changes_another_persons_in_4_000_pairs(number: int, tmp_path: Path):
    assert parquet_batch(tmp_path, number, 100) == []


def as_objects(log: Any, _: random.Random) -> Any:
    return log


FORMS = [
    pytest.param(as_objects, id="objects"),
    pytest.param(declared, id="enums"),
    pytest.param(
        categorized,
        id="categories",
        marks=pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed"),
    ),
]
"""What the columns of a table in memory are made of."""


def table_batch(number: int, n: int, form: Callable[[Any, random.Random], Any] = as_objects) -> list[Any]:
    chance = random.Random(number)
    logs = [form(log, chance) for log in table_worlds(n, chance)]
    return differences(*(read(log, "auto", MODES[number % len(MODES)]) for log in logs))


@pytest.mark.parametrize("number", range(4))
def test_no_row_of_a_table_in_memory_changes_another_persons(number: int):
    assert table_batch(number, 16) == []


@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("number", range(2))
def test_no_value_that_a_column_declares_changes_how_a_row_is_read(number: int, form: Callable[..., Any]):
    assert table_batch(number, 16, form) == []


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", range(4, 44))
def test_no_row_of_a_table_in_memory_changes_another_persons_in_4_000_pairs(number: int, form: Callable[..., Any]):
    assert table_batch(number, 100, form) == []


# --- faults that must be detected ------------------------------------------------------------------------------------


def _open_quotes_join_lines(patch: pytest.MonkeyPatch) -> None:
    rules = Delimited.rules.fget
    patch.setattr(Delimited, "rules", property(lambda self: replace(rules(self), quoted_line_feeds=self.quotes)))


def _the_gate_rewrites_what_goes_past_it_elsewhere(patch: pytest.MonkeyPatch) -> None:
    """U+001F in a field of CSV stays where nothing else needs the gate."""
    look = feed.check_clean

    def without_separators(path: Path, rules: LineRules, **options: Any) -> Any:
        is_plain = b'"' not in path.read_bytes()
        return look(path, replace(rules, quotes=rules.quotes and not is_plain), **options)

    patch.setattr(feed, "check_clean", without_separators)


def _members_are_those_of_the_first_lines(patch: pytest.MonkeyPatch) -> None:
    layout = formats._layout

    def from_lines(path: Path, *arguments: Any, **options: Any) -> Any:
        found = layout(path, *arguments, **options)
        if isinstance(found, JsonLines) and b'"url"' not in path.read_bytes():
            return JsonLines({role: key for role, key in found.keys.items() if role != "url"})
        return found

    patch.setattr(formats, "_layout", from_lines)


def _only_the_first_line_loses_its_mark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JsonLines, "rules", LineRules(header=True))


def _code_units_are_counted_from_the_beginning(patch: pytest.MonkeyPatch) -> None:
    """One stray byte of UTF-16 shifts all that follow."""

    def lines(self: Any, text: bytes, feed: bytes) -> bytes:
        return text.decode(self._encoding, "replace").encode()

    patch.setattr(encodings._OfUtf16, "_lines", lines)


def test_a_shift_of_code_units_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _code_units_are_counted_from_the_beginning(monkeypatch)
    numbers = range(300, 300 + 2 * len(FORMATS))
    assert any(batch(tmp_path / str(number), number, ["invalid"], 4, "utf-16") for number in numbers)


def _ids_are_cast_as_they_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scan, "_id", lambda field: f"try_cast({field} AS UBIGINT)")


def _what_a_beginning_promises_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(feed.Feeder, "_check_guesses", lambda self, interrupt: None)


def _clicks_are_joined_by_id_alone(patch: pytest.MonkeyPatch) -> None:
    """Two people's searches have the same id."""
    scan_ubi = load.scan_ubi

    def without_users(*, has_urls: bool) -> scan.Scan:
        made = scan_ubi(has_urls=has_urls)
        select = made.select.replace("SELECT user, id, arg_max", "SELECT any_value(user) AS user, id, arg_max")
        select = select.replace("GROUP BY user, id", "GROUP BY id")
        return replace(made, select=select.replace("AS queries USING (user, id)", "AS queries USING (id)"))

    patch.setattr(load, "scan_ubi", without_users)


FAULTS = {
    "clicks of UBI are joined by id alone": (_clicks_are_joined_by_id_alone, "ubi", None),
    "the beginning of a file is believed": (_what_a_beginning_promises_is_believed, "tsv", "return"),
    "ids with other spellings": (_ids_are_cast_as_they_come, "yandex", None),
    "an open quote joins lines": (_open_quotes_join_lines, "csv", "quote"),
    "the gate rewrites others' separators": (_the_gate_rewrites_what_goes_past_it_elsewhere, "csv", "separator"),
    "members from people's lines": (_members_are_those_of_the_first_lines, "jsonl", None),
    "a mark is removed from the first line only": (_only_the_first_line_loses_its_mark, "jsonl", "mark"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_detected(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant, format_name, kind = FAULTS[name]
    plant(monkeypatch)
    numbers = range(FORMATS.index(format_name), 18 * len(FORMATS), len(FORMATS))
    assert any(_notices(tmp_path / str(number), number, kind) for number in numbers)


def _notices(folder: Path, number: int, kind: str | None) -> bool:
    try:
        return bool(batch(folder, number, [kind], 24))
    except RunError:  # a log that is refused for one person's lines is noticed too
        return True


def test_a_fault_in_the_mending_of_tables_is_detected(monkeypatch: pytest.MonkeyPatch):
    """Once one person's object is not a string, the numbers of all are missing too."""
    text_or_none = given._text_or_none
    monkeypatch.setattr(given, "_text_or_none", lambda value: text_or_none(value) if isinstance(value, str) else None)
    assert table_batch(0, 16) != []
