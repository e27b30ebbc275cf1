"""The gate: what it lets through, what it holds back, and how it counts."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from searchblend.logs import gate
from searchblend.logs.gate import MAX_LINE, Gate, Passed, count_pristine

QUIET = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def through(path: Path, text: bytes, *, quotes: bool = False) -> tuple[list[tuple[int, bytes]], Passed]:
    """The numbered lines that pass, without blank ones, and what the gate counted."""
    path.write_bytes(text)
    opened = Gate(path, quotes=quotes)
    found = []
    for numbers, block in opened.numbered_blocks():
        assert block.endswith(b"\n")
        lines = block[:-1].split(b"\n")
        first = [numbers + i for i in range(len(lines))] if isinstance(numbers, int) else numbers
        found += [(number, line) for number, line in zip(first, lines, strict=True) if line]
    return found, opened.passed


def lines_of(text: bytes) -> list[tuple[int, bytes]]:
    """What a simple reader would let through."""
    found = []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        line = line.removesuffix(b"\r")
        try:
            line.decode()
        except UnicodeDecodeError:
            continue
        if line and b"\0" not in line:
            found.append((number, line.replace(b"\r", b" ")))
    return found


PIECES = st.sampled_from(
    [b"a", b"\t", b"\n", b"\r\n", b"\r", b"\0", b"\xff", "é".encode(), "é".encode()[:1], b"\n\n", b'"']
)


@QUIET
@given(pieces=st.lists(PIECES, max_size=60), block=st.sampled_from([7, 16, 1 << 22]))
@example(pieces=[b"\xef\xbb\xbf", b"a\n"], block=7)
def test_it_agrees_with_a_simple_reader(pieces, block, tmp_path: Path):
    text = b"".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "_BLOCK", block)
        patch.setattr(gate, "_SCAN_BLOCK", block)
        found, passed = through(tmp_path / "log", text)
        pristine = count_pristine(tmp_path / "log", quotes=False)
    # A carriage return at the very end of the file has no line feed to belong to.
    assert found == lines_of(text + b"\n" if text.endswith(b"\r") else text)
    assert passed.lines == len(found)
    if pristine is not None:
        assert (pristine.lines, pristine.bytes) == (len(found), len(text))
        assert not passed.held_back


def test_reasons_and_line_numbers(tmp_path: Path):
    text = b"header\nok\n\xff\nnul\0\n\nok\r\n" + b"x" * (MAX_LINE + 1) + b"\nlast\n\xc3"
    found, passed = through(tmp_path / "log", text)
    assert [line for _, line in found] == [b"header", b"ok", b"ok", b"last"]
    assert [number for number, _ in found] == [1, 2, 6, 8]
    places = {reason: [place.line for place in kind.first] for reason, kind in passed.held_back.items()}
    assert places == {"invalid_utf8": [3, 9], "nul_byte": [4], "line_too_long": [7]}


@pytest.mark.parametrize("length", [MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 3 * MAX_LINE, 9 * MAX_LINE])
@pytest.mark.parametrize("before", [0, 3 * MAX_LINE])
def test_a_long_line_is_held_back_and_the_rest_goes_on(length, before, tmp_path: Path):
    text = b"b\n" * (before // 2) + b"y" * length + b"\nafter\n"
    found, passed = through(tmp_path / "log", text)
    fits = length <= MAX_LINE
    assert found[-1] == (before // 2 + 2, b"after")
    assert passed.lines == before // 2 + 1 + fits
    assert {r: (k.count, k.first[0].line) for r, k in passed.held_back.items()} == (
        {} if fits else {"line_too_long": (1, before // 2 + 1)}
    )
    assert (count_pristine(tmp_path / "log", quotes=False) is not None) is fits


def test_the_last_line_may_be_too_long(tmp_path: Path):
    found, passed = through(tmp_path / "log", b"a\n" + b"x" * (9 * MAX_LINE))
    assert [line for _, line in found] == [b"a"]
    assert passed.held_back["line_too_long"].count == 1


CSV_FIELDS = st.text(st.sampled_from(list('ab ,"\n\x1fé')), max_size=6)


@QUIET
@given(rows=st.lists(st.lists(CSV_FIELDS, min_size=2, max_size=3), max_size=12), block=st.sampled_from([16, 1 << 22]))
def test_csv_fields_come_out_as_python_reads_them(rows, block, tmp_path: Path):
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "_BLOCK", block)
        found, passed = through(tmp_path / "log", written.getvalue().encode(), quotes=True)

    def clean(field: str) -> str:
        return field.replace("\n", " ").replace("\x1f", " ")

    assert [line.decode().split("\x1f") for _, line in found] == [[clean(field) for field in row] for row in rows]
    assert not passed.held_back


@pytest.mark.parametrize("bad", [b'a,"open', b'a,5" disk', b'"a"b,c', b'a,"b" ,c'])
def test_a_line_with_bad_quotes_costs_itself_only(bad, tmp_path: Path):
    text = b"user,query\n1,fine\n" + bad + b'\n2,"also, fine"\n3,"two\nlines"\n'
    found, passed = through(tmp_path / "log", text, quotes=True)
    assert (4, b"2\x1falso, fine") in found
    assert (5, b"3\x1ftwo lines") in found
    assert passed.held_back["bad_quotes"].count == 1
    assert passed.held_back["bad_quotes"].first[0].line == 3


def test_an_open_quote_is_not_looked_for_beyond_a_line_of_full_length(tmp_path: Path):
    text = b'u,q\n1,"open\n' + b"2,fine\n" * 400_000 + b'3,"closed"\n'
    found, passed = through(tmp_path / "log", text, quotes=True)
    assert len(found) == 400_002
    assert passed.held_back["bad_quotes"].count == 1


def test_pristine_files_are_counted_and_others_are_not(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"a\tb\n\nc\td\n\n\nlast\t")
    counted = count_pristine(path, quotes=False, awkward=b"[")
    assert counted is not None
    assert (counted.lines, counted.bytes, counted.ascii, counted.tame) == (3, 16, True, True)
    for text, *known in ((b"a[\n", True, False), ("é\n".encode(), False, True), (b"a\n", True, True)):
        path.write_bytes(text)
        counted = count_pristine(path, quotes=False, awkward=b"[")
        assert counted is not None
        assert [counted.ascii, counted.tame] == known
    for text in (b"a\r\n", b"\0\n", b"\xff\n", b"\xef\xbb\xbfa\n", b"\xc3", b"x" * (MAX_LINE + 1)):
        path.write_bytes(text)
        assert count_pristine(path, quotes=False) is None
    path.write_bytes(b'"a"\n')
    assert count_pristine(path, quotes=True) is None
    assert count_pristine(path, quotes=False) is not None
