"""Sorted strings where each says only how it differs from the one before, and the numbers between them.

Standard library only: this runs on devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import AnyStr, Final

from searchblend.core.errors import MessageError

BLOCK: Final = 16
"""strings in a block; the first of a block is written in full, so that a block can be read without the others"""
LONGEST_TEXT: Final = 2048
_LARGEST: Final = (1 << 32) - 1


def write_number(out: bytearray, value: int) -> None:
    """Seven bits in a byte, the lowest first; the top bit says that more follow. No more bytes than it takes."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_text(out: bytearray, string: bytes, before: bytes) -> None:
    """How many bytes are shared with the string before, how many follow, and those."""
    shared = shared_start(before, string)
    write_number(out, shared)
    write_number(out, len(string) - shared)
    out += string[shared:]


def write_blocks(strings: Iterable[bytes]) -> tuple[list[int], bytes]:
    """Where each block of sorted strings begins, and all of them."""
    starts, out, before = [], bytearray(), b""
    for place, string in enumerate(strings):
        if place % BLOCK == 0:
            starts.append(len(out))
            before = b""
        write_text(out, string, before)
        before = string
    return starts, bytes(out)


def shared_start(one: AnyStr, other: AnyStr) -> int:
    """How many bytes, or letters, two strings begin with alike."""
    if other.startswith(one):
        return len(one)
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))


class Reader:
    """Reads forward through a part of a message and never past its end."""

    __slots__ = ("_content", "_end", "_what", "place")

    def __init__(self, content: bytes | memoryview, start: int, end: int, what: str) -> None:
        self._content, self.place, self._end, self._what = content, start, end, what

    @property
    def at_end(self) -> bool:
        return self.place == self._end

    def refuse(self, problem: str) -> MessageError:
        return MessageError(f"{self._what}: {problem} at byte {self.place}")

    def number(self) -> int:
        value = shift = 0
        while True:
            if self.place >= self._end:
                raise self.refuse("ends within a number")
            byte = self._content[self.place]
            self.place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise self.refuse("expected a number of at most 5 bytes")
        if (byte == 0 and shift) or value > _LARGEST:
            raise self.refuse("expected a number below 2^32 in as few bytes as it takes")
        return value

    def text(self, before: bytes) -> bytes:
        """The next string; it must come after ``before`` in the order of bytes and share with it all that it can."""
        shared, n_more = self.number(), self.number()
        if shared > len(before) or not 0 < shared + n_more <= LONGEST_TEXT or self.place + n_more > self._end:
            raise self.refuse(f"expected a text of 1 to {LONGEST_TEXT} bytes")
        more = bytes(self._content[self.place : self.place + n_more])
        if more[:1] <= before[shared : shared + 1]:
            raise self.refuse("expected sorted texts that share all they can with the one before")
        self.place += n_more
        return before[:shared] + more


def read_texts(reader: Reader, count: int) -> Iterator[bytes]:
    """The strings of one block, or of any run that begins with a whole string."""
    before = b""
    for _ in range(count):
        before = reader.text(before)
        yield before
