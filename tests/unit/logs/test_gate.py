"""The gate: what it lets through, what it holds back, and how it counts."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from searchblend.logs.formats import gate
from searchblend.logs.formats.files import Span
from searchblend.logs.formats.gate import FileCheck, Gate, check_clean
from searchblend.logs.formats.layout import MAX_LINE, LineRules

HEADED = LineRules(header=True)
HEADLESS = LineRules()
CSV = LineRules(header=True, quotes=True, separator=b",", n_fields=3)
OVER_LINES = LineRules(header=True, quotes=True, quoted_line_feeds=True, separator=b",", n_fields=3)
QUIET = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def through(path: Path, text: bytes, rules: LineRules = HEADED) -> tuple[list[tuple[int, bytes]], FileCheck]:
    """The numbered lines that pass, without blank ones, and what the gate counted."""
    path.write_bytes(text)
    opened = Gate(path, rules)
    found = []
    for numbers, block in opened.numbered_blocks():
        assert block.endswith(b"\n")
        lines = block[:-1].split(b"\n")
        first = [numbers + i for i in range(len(lines))] if isinstance(numbers, int) else numbers
        found += [(number, line) for number, line in zip(first, lines, strict=True) if line]
    return found, opened.check


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
        pristine = check_clean(tmp_path / "log", HEADED)
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


@pytest.mark.thorough
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
    assert (check_clean(tmp_path / "log", HEADED) is not None) is fits


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
        found, passed = through(tmp_path / "log", written.getvalue().encode(), OVER_LINES)

    def clean(field: str) -> str:
        return field.replace("\n", " ").replace("\x1f", " ")

    assert [line.decode().split("\x1f") for _, line in found] == [[clean(field) for field in row] for row in rows]
    assert not passed.held_back


BAD_QUOTES = [b'a,"open', b'a,5" disk', b'"a"b,c', b'a,"b" ,c', b'"', b'a,"', b'a,"b""']


@pytest.mark.parametrize("bad", BAD_QUOTES)
@pytest.mark.parametrize("closing", BAD_QUOTES)
def test_a_line_with_bad_quotes_is_held_back_alone_whatever_follows(bad, closing, tmp_path: Path):
    others = [b"%d,fine" % i for i in range(300)] + [b'x,"also, fine"']
    text = b"\n".join([b"user,query", bad, *others, closing, b"last,line"])
    found, passed = through(tmp_path / "log", text, CSV)
    kept = [b"user,query", *others[:-1], b"x\x1falso, fine", b"last,line"]
    assert [line for _, line in found] == [line.replace(b",", b"\x1f") if b", " not in line else line for line in kept]
    assert [place.line for place in passed.held_back["bad_quotes"].first] == [2, 304]


def test_a_line_with_bad_bytes_and_bad_quotes_is_held_back_for_its_bytes(tmp_path: Path):
    _, passed = through(tmp_path / "log", b'u,q\n1,"\0\n2,"\xff\n3,"' + b"x" * MAX_LINE + b"\n", CSV)
    assert {reason: kind.count for reason, kind in passed.held_back.items()} == {
        "nul_byte": 1,
        "invalid_utf8": 1,
        "line_too_long": 1,
    }


def test_nothing_in_quotes_is_no_blank_line(tmp_path: Path):
    found, passed = through(tmp_path / "log", b'u,q\n""\n\n1,a\n', CSV)
    assert [line for _, line in found] == [b"u\x1fq", b" ", b"1\x1fa"]
    assert passed.lines == 3


def test_line_feeds_inside_quotes_are_blanks_where_they_are_asked_for(tmp_path: Path):
    text = b'user,query\n1,"open\n2,"also, fine"\n3,"two\nlines"\n'
    found, passed = through(tmp_path / "log", text, OVER_LINES)
    assert [line for _, line in found[1:]] == [b"2\x1falso, fine", b"3\x1ftwo lines"]
    assert [place.line for place in passed.held_back["bad_quotes"].first] == [2]


@pytest.mark.thorough
def test_an_open_quote_is_not_looked_for_beyond_a_line_of_full_length(tmp_path: Path):
    text = b'u,q\n1,"open\n' + b"2,fine\n" * 400_000 + b'3,"closed"\n'
    found, passed = through(tmp_path / "log", text, OVER_LINES)
    assert len(found) == 400_002
    assert passed.held_back["bad_quotes"].count == 1


@pytest.mark.parametrize("extra", [-1, 1])
def test_a_record_of_several_lines_is_not_longer_than_one_line_may_be(extra, tmp_path: Path):
    """With a blank for each line feed."""
    n = MAX_LINE // 2 - len(b'1,""') // 2 + extra
    text = b'u,q\n1,"' + b"y\n" * n + b'"\n2,fine\n'
    found, _ = through(tmp_path / "log", text, OVER_LINES)
    assert max(len(line) for _, line in found) <= MAX_LINE
    assert (len(found) == 3) is (extra < 0)


BOM = b"\xef\xbb\xbf"
WHOLE_LINES = [b"a,b", b'"a,b",c', b'"', b"a\x1fb,c", b"\r", b"\r\r", b"a\rb\r", BOM + b"a,b", BOM]
LINES = st.lists(
    st.sampled_from(WHOLE_LINES)
    | st.lists(st.sampled_from([b"a", b",", b'"', b"\x1f", b"\r", b"\0", BOM, b"\xff"]), max_size=8).map(b"".join),
    max_size=12,
)


@QUIET
@given(lines=LINES, rules=st.sampled_from([HEADED, HEADLESS, CSV]), block=st.sampled_from([7, 16, 1 << 22]))
def test_every_line_passes_the_gate_as_it_would_alone(lines, rules, block, tmp_path: Path):
    """And a file that needs no gate has nothing that the gate would change, but for the separator of CSV."""
    first = [b"user,query"] if rules.header else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "_BLOCK", block)
        patch.setattr(gate, "_SCAN_BLOCK", block)
        together, _ = through(tmp_path / "log", b"\n".join([*first, *lines, b""]), rules)
        pristine = check_clean(tmp_path / "log", rules)
        alone = [
            line
            for one in lines
            for _, line in through(tmp_path / "one", b"\n".join([*first, one, b""]), rules)[0][len(first) :]
        ]
    found = [line for _, line in together[len(first) :]]
    assert found == alone
    if pristine is not None:
        assert found == [line.replace(b",", b"\x1f") if rules.quotes else line for line in lines if line]


@pytest.mark.parametrize("at", range(MAX_LINE - 2, MAX_LINE + 3))
def test_a_carriage_return_at_the_end_of_a_block_does_not_make_a_line_too_long(at, tmp_path: Path, monkeypatch):
    """Where blocks end depends on what other people's lines are: a line of full length passes everywhere."""
    monkeypatch.setattr(gate, "_BLOCK", MAX_LINE)
    text = b"u\n" + b"x" * (at - 2) + b"\n" + b"y" * MAX_LINE + b"\r\nlast\n"
    found, passed = through(tmp_path / "log", text)
    assert len(found) == 4
    assert not passed.held_back


@pytest.mark.parametrize("rules", [HEADED, CSV], ids=["tsv", "csv"])
@pytest.mark.parametrize("lines_before", [0, 3, 30_000])
def test_a_line_with_very_many_fields_is_one_with_too_many_and_short(rules, lines_before, tmp_path: Path):
    """The database takes a time that grows with the square of their number: one person could stop every release."""
    good = b"a" + rules.separator + b"b\n"
    text = good * lines_before + rules.separator * 900_000 + b"\n" + good
    (tmp_path / "log").write_bytes(text)
    assert check_clean(tmp_path / "log", rules) is None
    found, check = through(tmp_path / "log", text, rules)
    assert not check.held_back
    assert [number for number, _ in found] == list(range(1, lines_before + 3))
    separator = b"\x1f" if rules.quotes else rules.separator
    assert found[-2][1].count(separator) == rules.n_fields
    assert {line for number, line in found if number != lines_before + 1} == {b"a" + separator + b"b"}


@pytest.mark.parametrize("size", [1, 100, 700])
def test_fields_over_several_blocks_are_added_up(size, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(gate, "_SCAN_BLOCK", 64)
    (tmp_path / "log").write_bytes(b"\t" * size + b"\n" + b"x\ty\n" * 500)
    assert (check_clean(tmp_path / "log", HEADED) is None) is (size > 257)


def test_pristine_files_are_counted_and_others_are_not(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"a\tb\n\nc\td\n\n\nlast\t")
    counted = check_clean(path, HEADED, odd_bytes=b"[")
    assert counted is not None
    assert (counted.lines, counted.bytes, counted.ascii_only, counted.no_odd_bytes) == (3, 16, True, True)
    for text, *known in ((b"a[\n", True, False), ("é\n".encode(), False, True), (b"a\n", True, True)):
        path.write_bytes(text)
        counted = check_clean(path, HEADED, odd_bytes=b"[")
        assert counted is not None
        assert [counted.ascii_only, counted.no_odd_bytes] == known
    for text in (b"a\r\n", b"\0\n", b"\xff\n", b"\xef\xbb\xbfa\n", b"\xc3", b"x" * (MAX_LINE + 1)):
        path.write_bytes(text)
        assert check_clean(path, HEADED) is None
    for text in (b'"a"\n', b"a\x1fb\n"):
        path.write_bytes(text)
        assert check_clean(path, CSV) is None
        assert check_clean(path, HEADED) is not None
    for start in range(7):
        path.write_bytes(b"a" * start + b"\n\xef\xbb\xbfa\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gate, "_SCAN_BLOCK", 4)
            assert check_clean(path, HEADLESS) is None
            assert check_clean(path, HEADED) is not None


@QUIET
@given(
    pieces=st.lists(
        st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b'"', b",", b"\xc3\xa9"])
    ),
    cuts=st.lists(st.integers(3, 80)),  # a byte-order mark is not cut
    rules=st.sampled_from([HEADED, HEADLESS, CSV]),
)
def test_a_file_in_spans_is_the_file(tmp_path, pieces, cuts, rules):
    """Wherever it is cut: the same lines with the same numbers are let through, and the same are held back."""
    path = tmp_path / "log"
    path.write_bytes(b"".join(pieces))
    found, check = through(path, b"".join(pieces), rules)
    size = path.stat().st_size
    ends = sorted({min(cut, size) for cut in cuts} | {size})
    lines, before, checks = [], 0, []
    for start, end in pairwise([0, *ends]):
        part = Gate(path, rules, Span(start, end))
        for numbers, block in part.numbered_blocks():
            for i, line in enumerate(block[:-1].split(b"\n")):
                if line:
                    lines.append((before + (numbers + i if isinstance(numbers, int) else numbers[i]), line))
        places = {r: [p.line + before for p in k.first] for r, k in part.check.held_back.items()}
        checks.append((part.check.bytes, part.check.lines, places))
        before += part.lines_read
    assert lines == found
    assert sum(n for n, _, _ in checks) == check.bytes
    assert sum(n for _, n, _ in checks) == check.lines
    for reason, kind in check.held_back.items():
        assert [place.line for place in kind.first] == [n for _, _, held in checks for n in held.get(reason, [])][:5]
