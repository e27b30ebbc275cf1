"""The gate that every byte of a text log passes before a database sees it.

A CSV reader of a database is fast and forgiving: DuckDB's drops a line of 100 MB without a word, reads a NUL byte as
text, and gives up a whole file over one stray carriage return. So the gate checks the bytes first. What it lets
through are whole lines of valid UTF-8, at most 1 MiB each, ended by a line feed, without quotes; what it holds
back it counts, by reason and line number. A line with very many fields is shortened to one field too many, since DuckDB
takes a time that grows with the square of their number. Of very many blank lines none passes, since DuckDB adds them to
the length of the line that follows.

What becomes of a line depends on that line alone (``proofs/input_reading.md``): where one person's line begins and ends
is decided by line feeds, and no other line is changed or held back for it.

Most files need no cleaning: nothing would be held back or changed. ``check_clean`` detects that at memory speed and the
database then reads the file itself. All others flow through ``Gate``, which gives the same fields of every line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InputError
from searchblend.logs.formats.encodings import ByteSource, in_utf8
from searchblend.logs.formats.files import BOM, WHOLE, Span, compression_of, open_raw, open_text_bytes
from searchblend.logs.formats.layout import MAX_LINE, UTF_8, LineRules
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.summary import (
    BAD_QUOTES,
    INVALID_ENCODING,
    INVALID_UTF8,
    LINE_TOO_LONG,
    NUL_BYTE,
    Malformed,
    Place,
)

MOST_BLANK: Final = 1 << 18
"""More blank lines than ever come to a database in a row."""
SEPARATOR: Final = "\x1f"
"""What stands between the fields of a CSV line that has passed the gate. In a field of CSV it counts as a blank."""

_MANY: Final = 256
"""Lines with so many fields more than they may have are shortened."""
_BLANK_LINES: Final = b"\n" * (MOST_BLANK // 4)
_BLOCK: Final = 1 << 22
_SCAN_BLOCK: Final = 1 << 17
_LINE_FEED: Final = 10
_LINE_WITH_BOM: Final = b"\n" + BOM

OnBytes = Callable[[int], None]


@dataclass(frozen=True)
class _CsvPatterns:
    """The lines of CSV (RFC 4180) with one separator."""

    record: re.Pattern[bytes]
    open_record: re.Pattern[bytes]
    """one whose last field has an open quote"""
    next_field: re.Pattern[bytes]


@cache
def _csv(separator: bytes) -> _CsvPatterns:
    mark = re.escape(separator)
    field = rb'(?:"(?:[^"]|"")*"|[^"' + mark + rb"]*)"
    return _CsvPatterns(
        re.compile(field + rb"(?:" + mark + field + rb")*"),
        re.compile(rb"(?:" + field + mark + rb')*"(?:[^"]|"")*'),
        re.compile(rb"(?:^|" + mark + rb')(?:"((?:[^"]|"")*)"|([^"' + mark + rb"]*))"),
    )


@dataclass
class FileCheck:
    """What the gate counted in one file, or in a part of it."""

    bytes: int = 0
    lines: int = 0
    """Lines let through, the header among them; not blank ones."""
    ascii_only: bool = False
    """Whether there is surely nothing but ASCII."""
    no_odd_bytes: bool = False
    """Whether there are surely none of the bytes that the caller called odd."""
    held_back: dict[str, Malformed] = field(default_factory=dict)

    def hold_back(self, reason: str, place: Place) -> None:
        self.held_back.setdefault(reason, Malformed()).add(place)


def check_clean(
    path: LogFile,
    rules: LineRules,
    *,
    odd_bytes: bytes = b"",
    only: int | None = None,
    on_bytes: OnBytes = lambda n: None,
) -> FileCheck | None:
    """The size of a plain file of this machine that needs no gate, or None as soon as something shows that it does.

    ``only`` checks no more than so many bytes of its beginning.
    """
    if not isinstance(path, Path) or compression_of(path) is not None or rules.encoding != UTF_8:
        return None
    check = FileCheck(ascii_only=True, no_odd_bytes=True)
    utf8 = _Utf8Check()
    unwanted = b"\0\r" + (b'"\x1f' if rules.quotes else b"")
    in_this_line, separators, last, tail = 0, 0, _LINE_FEED, b""
    with open_raw(path) as raw:
        while block := raw.read(_SCAN_BLOCK):
            if any(byte in block for byte in unwanted) or not utf8.accepts(block):
                return None
            if (check.bytes == 0 and block.startswith(BOM)) or _has_very_many_blank_lines(block):
                return None
            if not (rules.header or utf8.only_ascii) and _LINE_WITH_BOM in tail + block:
                return None
            first_end = block.find(b"\n")
            if in_this_line + (len(block) if first_end < 0 else first_end) > MAX_LINE:
                return None
            in_this_line = in_this_line + len(block) if first_end < 0 else len(block) - 1 - block.rfind(b"\n")
            separators += block.count(rules.separator, 0, len(block) if first_end < 0 else first_end)
            ends = line_ends(block)
            if separators > rules.n_fields + _MANY or _may_have_very_many_fields(block, ends, rules):
                return None
            if first_end >= 0:
                separators = block.count(rules.separator, block.rfind(b"\n"))
            check.lines += count_lines(ends, after=last)
            check.ascii_only = utf8.only_ascii
            check.no_odd_bytes = check.no_odd_bytes and not any(byte in block for byte in odd_bytes)
            check.bytes += len(block)
            last, tail = block[-1], block[-len(BOM) :]
            on_bytes(len(block))
            if only is not None and check.bytes >= only:
                return check
    check.lines += last != _LINE_FEED
    return check if utf8.accepts(b"", last=True) else None


def line_ends(block: bytes) -> NDArray[np.intp]:
    """Where the line feeds of a block are."""
    return np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == _LINE_FEED)


def count_lines(ends: NDArray[np.intp], *, after: int = _LINE_FEED) -> int:
    """How many lines that are not blank end in a block; ``after`` is the byte before it."""
    blank = np.count_nonzero(ends[1:] - ends[:-1] == 1) + (after == _LINE_FEED and 0 in ends[:1])
    return int(len(ends) - blank)


class _Utf8Check:
    """Whether blocks of a file, one after the other, are valid UTF-8."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.only_ascii = True

    def accepts(self, block: bytes, *, last: bool = False) -> bool:
        if self.only_ascii and block.isascii():
            return True
        self.only_ascii = False
        try:
            self._decoder.decode(block, final=last)
        except UnicodeDecodeError:
            return False
        return True


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Gate:
    """Lets the good lines of one file through, in blocks, and counts the others."""

    def __init__(self, path: LogFile, rules: LineRules, span: Span = WHOLE) -> None:
        self.path = path
        self._span = span
        self.check = FileCheck()
        self._rules = rules
        self._line = 1
        """The number of the line that comes next."""
        self._open_record = b""
        """The beginning of a quoted record whose end is in the next block."""

    @property
    def lines_read(self) -> int:
        """How many lines of the file were read, blank ones and those held back among them."""
        return self._line - 1

    def blocks(self, on_bytes: OnBytes = lambda n: None) -> Iterator[bytes]:
        """Blocks of whole lines, each ended by a line feed. ``on_bytes`` gets how many bytes were read."""
        for _, block in self.numbered_blocks(on_bytes):
            yield block

    def numbered_blocks(self, on_bytes: OnBytes = lambda n: None) -> Iterator[tuple[int | list[int], bytes]]:
        """Blocks with the number of their first line, or of every line where they are not consecutive."""
        with open_text_bytes(self.path, self._span) as (source, raw):
            try:
                reported = raw.tell()
                for block in self._whole_lines(in_utf8(source, self._rules.encoding, self.path)):
                    on_bytes(raw.tell() - reported)
                    reported = raw.tell()
                    cleaned = self._pass_block(block)
                    if cleaned is not None:
                        yield cleaned
                if self._open_record:
                    cleaned = self._line_by_line(self._open_record, last=True)
                    if cleaned is not None:
                        yield cleaned
            except EOFError as error:
                raise InputError(self.path, "the compressed file is cut off", line=self._line) from error

    def _whole_lines(self, source: ByteSource) -> Iterator[bytes]:
        """The text in blocks that end at a line end. A line that is too long is never kept: it is passed over."""
        carry = b""
        skipping, at_start = False, self._span.start == 0
        while block := source.read(_BLOCK):
            if at_start and self._rules.header:
                block = block.removeprefix(BOM)
            at_start = False
            self.check.bytes += len(block)
            if skipping:
                _, line_feed, block = block.partition(b"\n")
                if not line_feed:
                    continue
                skipping = False
                self._line += 1
            cut = block.rfind(b"\n") + 1
            if cut:
                yield carry + block[:cut]
                carry = block[cut:]
            else:
                carry += block
            if len(carry) > MAX_LINE + 1:  # a carriage return may belong to its end
                self._hold_back(LINE_TOO_LONG)
                carry, skipping = b"", True
        if carry:
            yield carry + b"\n"

    def _pass_block(self, block: bytes) -> tuple[int | list[int], bytes] | None:
        first = self._line
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        block, self._open_record = self._open_record + block, b""
        ends = line_ends(block)
        if self._needs_line_by_line(block, ends):
            return self._line_by_line(block, last=False)
        self._line += len(ends)
        self.check.lines += count_lines(ends)
        return first, block.replace(self._rules.separator, SEPARATOR.encode()) if self._rules.quotes else block

    def _needs_line_by_line(self, block: bytes, ends: NDArray[np.intp]) -> bool:
        return (
            b"\r" in block
            or (self._rules.quotes and (b'"' in block or b"\x1f" in block))
            or (not self._rules.header and (block.startswith(BOM) or _LINE_WITH_BOM in block))
            or _may_have_a_byte_problem(block)
            or _has_very_many_blank_lines(block)
            or _may_have_very_many_fields(block, ends, self._rules)
        )

    def _line_by_line(self, block: bytes, *, last: bool) -> tuple[list[int], bytes] | None:
        kept: list[bytes] = []
        numbers: list[int] = []
        doubtful = _may_have_a_byte_problem(block)
        lines = block[:-1].split(b"\n")
        position = 0
        while position < len(lines):
            record, used = lines[position], 1
            if self._rules.quoted_line_feeds:
                record, used = _joined_record(lines, position, _csv(self._rules.separator), last=last)
                if not used:
                    self._open_record = b"\n".join(lines[position:]) + b"\n"
                    break
            cleaned = self._cleaned(record, doubtful=doubtful)
            if cleaned:
                kept.append(cleaned)
                numbers.append(self._line)
            position += used
            self._line += used
        self.check.lines += len(kept)
        return (numbers, b"\n".join(kept) + b"\n") if kept else None

    def _cleaned(self, record: bytes, *, doubtful: bool) -> bytes:
        """A line as a database may see it; empty if it is blank or was held back."""
        if doubtful and (reason := _byte_problem(record)) is not None:
            is_other = reason == INVALID_UTF8 and self._rules.encoding != UTF_8
            self._hold_back(INVALID_ENCODING if is_other else reason)
            return b""
        record = self._without_marks(record).replace(b"\r", b" ")
        if not self._rules.quotes or not record:
            return self._shortened(record, self._rules.separator)
        fields = csv_fields(record, self._rules.separator)
        if fields is None:
            self._hold_back(BAD_QUOTES)
            return b""
        if b"\x1f" in record:
            fields = [field.replace(b"\x1f", b" ") for field in fields]
        joined = self._without_marks(b"\x1f".join(fields))  # one in quotes begins the line now
        return self._shortened(joined or b" ", b"\x1f")  # nothing in quotes is not a blank line: it has too few fields

    def _without_marks(self, record: bytes) -> bytes:
        """Without a header any line may begin a file, and a database takes a byte-order mark from there alone."""
        while not self._rules.header and record.startswith(BOM):
            record = record[len(BOM) :]
        return record

    def _shortened(self, record: bytes, separator: bytes) -> bytes:
        """A line with very many fields is one with too many whatever they hold, so it may be a short one."""
        n_fields = self._rules.n_fields
        return separator * n_fields if record.count(separator) > n_fields + _MANY else record

    def _hold_back(self, reason: str) -> None:
        self.check.hold_back(reason, Place(str(self.path), self._line))


def _joined_record(lines: list[bytes], position: int, csv: _CsvPatterns, *, last: bool) -> tuple[bytes, int]:
    """The record that begins at a line, and how many lines it takes: 0 if it may go on in the next block.

    A line that opens a quote and is not closed within 1 MiB is a record by itself: reading goes on at the next line.
    """
    first = lines[position]
    if not csv.open_record.fullmatch(first):
        return first, 1
    length = len(first)
    for end in range(position + 1, len(lines)):
        length += 1 + len(lines[end])
        if length > MAX_LINE:
            return first, 1
        if lines[end].count(b'"') % 2:  # only such a line can close the quote
            record = b" ".join(lines[position : end + 1])
            return (record, end + 1 - position) if csv.record.fullmatch(record) else (first, 1)
    return (first, 1) if last else (b"", 0)


def _may_have_a_byte_problem(block: bytes) -> bool:
    """Whether any line of a block may have one; a line over 1 MiB covers one of the windows."""
    return (
        b"\0" in block
        or not (block.isascii() or _is_utf8(block))
        or any(block.find(b"\n", at, at + MAX_LINE // 2) < 0 for at in range(0, len(block), MAX_LINE // 2))
    )


def _may_have_very_many_fields(block: bytes, ends: NDArray[np.intp], rules: LineRules) -> bool:
    """Whether a line of a block has more than so many separators; certain for twice that number.

    Only a line with more bytes than that can have them. Then, of every so many separators one is checked: two of those
    in one line are too many.
    """
    step = rules.n_fields + _MANY
    if np.diff(ends, prepend=-1, append=len(block)).max() <= step:
        return False
    separators = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord(rules.separator))[::step].tolist()
    return any(block.find(b"\n", first, second) < 0 for first, second in pairwise(separators))


def _has_very_many_blank_lines(block: bytes) -> bool:
    """Certain if a fourth of ``MOST_BLANK`` are in it; a longer run that others begin and end fills a block.

    A run of so many covers one of the bytes that are looked at first.
    """
    return (b"\n" in block[:: len(_BLANK_LINES)] and _BLANK_LINES in block) or (
        len(block) > 1 and block.isspace() and not block.strip(b"\n")
    )


def _byte_problem(line: bytes) -> str | None:
    if len(line) > MAX_LINE:
        return LINE_TOO_LONG
    if b"\0" in line:
        return NUL_BYTE
    return None if _is_utf8(line) else INVALID_UTF8


def csv_fields(record: bytes, separator: bytes) -> list[bytes] | None:
    """The fields of a CSV record without their quotes (RFC 4180), or None if its quotes do not balance."""
    if b'"' not in record:
        return record.split(separator)
    csv = _csv(separator)
    if not csv.record.fullmatch(record):
        return None
    fields = csv.next_field.finditer(record)
    return [field[2] if field[1] is None else field[1].replace(b'""', b'"') for field in fields]
