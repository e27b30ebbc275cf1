"""Text in other encodings than UTF-8, decoded line by line: what the gate sees is UTF-8.

A line that cannot be decoded comes as a byte that no UTF-8 has, so that the gate holds it back, and it alone.

UTF-16 has two bytes to a code unit, and one stray byte would shift all that follow. So a line ends wherever the two
bytes of a line feed are, and the next one is counted from there. A line with an odd number of bytes is held back, and
the next is read as ever. (These two bytes can also be the end of a letter U+0Axx and the beginning of one U+xx00, or
the other way round: then what stands on either side has an odd number of bytes, and is held back.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np

from searchblend.core.errors import InputError
from searchblend.logs.formats.layout import MAX_LINE, UTF_8, UTF_16, UTF_16_BE, UTF_16_LE

_UTF_16_MARKS: Final = {b"\xff\xfe": UTF_16_LE, b"\xfe\xff": UTF_16_BE}
_UTF_16_FEEDS: Final = {UTF_16_LE: b"\n\0", UTF_16_BE: b"\0\n"}
_INVALID: Final = b"\xff"
_TOO_LONG: Final = b"x" * (MAX_LINE + 2)
_MOST_BYTES: Final = 2 * len(_TOO_LONG)
"""A line of more is too long whatever it holds: two bytes of UTF-16 are at least one of UTF-8."""


class ByteSource(Protocol):
    """What a reader needs of a file: the next bytes."""

    def read(self, size: int, /) -> bytes: ...


def may_be_cut(encoding: str) -> bool:
    """Whether a byte 0A is a line feed wherever it stands, so that parts of a file can be read by themselves."""
    return encoding != UTF_16 and encoding not in _UTF_16_FEEDS


def in_utf8(source: ByteSource, encoding: str, path: object) -> ByteSource:
    """The same lines in UTF-8; ``path`` names the file in errors."""
    if encoding == UTF_8:
        return source
    return _OfBytes(source, encoding) if may_be_cut(encoding) else _OfUtf16(source, encoding, path)


class _OfBytes:
    """An encoding with one byte to a letter. Bytes that are no letter become halves of surrogate pairs, which are not
    valid in UTF-8."""

    def __init__(self, source: ByteSource, encoding: str) -> None:
        self._source, self._encoding = source, encoding

    def read(self, size: int, /) -> bytes:
        return self._source.read(size).decode(self._encoding, "surrogateescape").encode("utf-8", "surrogatepass")


class _OfUtf16:
    """Reads as many whole lines at a time as a block of the file has."""

    def __init__(self, source: ByteSource, encoding: str, path: object) -> None:
        self._source, self._encoding, self._path = source, encoding, path
        self._size = 1
        self._pieces = self._decoded()

    def read(self, size: int, /) -> bytes:
        self._size = size
        return next(self._pieces, b"")

    def _decoded(self) -> Iterator[bytes]:
        """Pieces of text that are never empty. What is left of a line that is too long is passed over."""
        text = self._start()
        feed = _UTF_16_FEEDS.get(self._encoding, b"")
        too_long = False
        while block := self._source.read(self._size):
            text += block
            if too_long:
                end = text.find(feed)
                if end < 0:
                    text = text[-1:]
                    continue
                yield b"\n"
                text, too_long = text[end + len(feed) :], False
            end = text.rfind(feed)
            if end >= 0:
                yield self._lines(text[:end], feed) + b"\n"
                text = text[end + len(feed) :]
            if len(text) > _MOST_BYTES:
                yield _TOO_LONG
                text, too_long = text[-1:], True
        if text and not too_long:
            yield self._lines(text, feed)

    def _start(self) -> bytes:
        """The first bytes of the text. In ``utf-16`` two come before it, which are the writer's of the file and no
        line's: without them not even the header could be read."""
        if self._encoding != UTF_16:
            return b""
        start = b""
        while len(start) < 2 and (more := self._source.read(2 - len(start))):
            start += more
        if start and start[:2] not in _UTF_16_MARKS:
            advice = f"without one say --encoding {' or '.join(_UTF_16_FEEDS)}"
            raise InputError(self._path, f"expected a byte-order mark of UTF-16 as its first bytes; {advice}")
        self._encoding = _UTF_16_MARKS.get(start[:2], self._encoding)
        return start[2:]

    def _lines(self, text: bytes, feed: bytes) -> bytes:
        """Lines in UTF-8. Whole blocks are decoded at once if all their lines are of whole code units."""
        unit = np.dtype("<u2" if self._encoding == UTF_16_LE else ">u2")
        if len(text) % 2 == 0 and not _is_between(text, ord("\n"), unit):
            try:
                return text.decode(self._encoding).encode()
            except UnicodeDecodeError:
                pass
        return b"\n".join(self._line(line) for line in text.split(feed))

    def _line(self, line: bytes) -> bytes:
        try:
            return line.decode(self._encoding).encode()
        except UnicodeDecodeError:
            return _INVALID


def _is_between(text: bytes, letter: int, unit: np.dtype[np.uint16]) -> bool:
    """Whether two bytes look like this code unit that belong to two others."""
    between = text[1:-1]
    return bool(np.any(np.frombuffer(between[: len(between) // 2 * 2], dtype=unit) == letter))
