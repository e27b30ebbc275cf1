"""Binary HTTP (RFC 9292): a request or an answer as bytes that can be sealed. Standard library only.

Written is the form of known length, filled up with zeros to one of few sizes, so that who sees only the size learns
little. Read are both forms. Trailers and informational answers are read and dropped: no one here sends any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from searchblend.core.errors import MessageError

MOST_FIELDS: Final = 64
SMALLEST: Final = 1024
STEP: Final = 64 * 1024
_REQUEST, _RESPONSE, _REQUEST_IN_PIECES, _RESPONSE_IN_PIECES = range(4)
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE: Final = re.compile(rb"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?")
_METHOD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VISIBLE: Final = re.compile(rb"[!-~]*")
Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class HttpRequest:
    """``repr`` shows neither fields nor content: they may hold a credential."""

    method: str
    scheme: str
    authority: str
    path: str
    fields: Fields = ()
    """names in lower case"""
    content: bytes = b""

    def __repr__(self) -> str:
        return f"HttpRequest({self.method})"


@dataclass(frozen=True)
class HttpResponse:
    """An answer; ``repr`` shows its status alone."""

    status: int
    fields: Fields = ()
    """names in lower case"""
    content: bytes = b""

    def __repr__(self) -> str:
        return f"HttpResponse({self.status})"


def encode_request(request: HttpRequest) -> bytes:
    """The request in its padded size."""
    control = (request.method, request.scheme, request.authority, request.path)
    return _padded(
        _number(_REQUEST) + b"".join(_text(part) for part in control) + _rest(request.fields, request.content)
    )


def encode_response(response: HttpResponse) -> bytes:
    """The answer in its padded size."""
    return _padded(_number(_RESPONSE) + _number(response.status) + _rest(response.fields, response.content))


def padded_size(n_bytes: int) -> int:
    """The least power of two from 1 KiB on that holds so many bytes; beyond 64 KiB, the least multiple of it."""
    if n_bytes > STEP:
        return -(-n_bytes // STEP) * STEP
    return max(SMALLEST, 1 << (n_bytes - 1).bit_length()) if n_bytes else SMALLEST


def decode_request(message: bytes) -> HttpRequest:
    """A request in either form; ``MessageError`` for anything else."""
    reader = _Reader(message)
    form = reader.number()
    if form not in (_REQUEST, _REQUEST_IN_PIECES):
        raise MessageError("binary HTTP: expected a request")
    method, scheme, authority, path = (reader.text() for _ in range(4))
    for name, value, pattern in (("method", method, _METHOD), ("scheme", scheme, _VISIBLE), ("path", path, _VISIBLE)):
        if not value or not pattern.fullmatch(value):
            raise MessageError(f"binary HTTP: {name}: expected visible ASCII characters")
    if not _VISIBLE.fullmatch(authority):
        raise MessageError("binary HTTP: authority: expected visible ASCII characters")
    fields, content = reader.rest(in_pieces=form == _REQUEST_IN_PIECES)
    return HttpRequest(method.decode(), scheme.decode(), authority.decode(), path.decode(), fields, content)


def decode_response(message: bytes) -> HttpResponse:
    """The final answer in either form; ``MessageError`` for anything else."""
    reader = _Reader(message)
    form = reader.number()
    if form not in (_RESPONSE, _RESPONSE_IN_PIECES):
        raise MessageError("binary HTTP: expected an answer")
    in_pieces = form == _RESPONSE_IN_PIECES
    while 100 <= (status := reader.number()) < 200:
        reader.fields(in_pieces=in_pieces)
    if not 200 <= status < 600:
        raise MessageError("binary HTTP: status: expected 200 to 599")
    fields, content = reader.rest(in_pieces=in_pieces)
    return HttpResponse(status, fields, content)


class _Reader:
    """Reads from the front. What is left out at the end is empty (RFC 9292, 3.8)."""

    def __init__(self, message: bytes) -> None:
        self._message, self._place = message, 0

    def number(self) -> int:
        """QUIC's variable-length integer: the first two bits say how many bytes there are."""
        if self._place >= len(self._message):
            raise MessageError("binary HTTP: truncated")
        n_bytes = 1 << (self._message[self._place] >> 6)
        value = int.from_bytes(self._take(n_bytes), "big")
        return value & ((1 << (8 * n_bytes - 2)) - 1)

    def text(self) -> bytes:
        return self._take(self.number())

    def rest(self, *, in_pieces: bool) -> tuple[Fields, bytes]:
        """Fields and content, then trailers and zeros."""
        fields = self.fields(in_pieces=in_pieces)
        content = (b"".join(self._pieces()) if in_pieces else self.text()) if self._is_more() else b""
        self.fields(in_pieces=in_pieces)
        if self._message.count(0, self._place) != len(self._message) - self._place:
            raise MessageError("binary HTTP: expected nothing but zeros after the message")
        return fields, content

    def fields(self, *, in_pieces: bool) -> Fields:
        if not self._is_more():
            return ()
        if in_pieces:
            return _checked(self._lines_to_zero())
        section = _Reader(self.text())
        return _checked(section._lines())

    def _lines(self) -> Iterator[tuple[bytes, bytes]]:
        while self._is_more():
            yield self.text(), self.text()

    def _lines_to_zero(self) -> Iterator[tuple[bytes, bytes]]:
        for name in self._pieces():
            yield name, self.text()

    def _pieces(self) -> Iterator[bytes]:
        """Strings up to an empty one."""
        while piece := self.text():
            yield piece

    def _is_more(self) -> bool:
        return self._place < len(self._message)

    def _take(self, n_bytes: int) -> bytes:
        end = self._place + n_bytes
        if end > len(self._message):
            raise MessageError("binary HTTP: truncated")
        taken, self._place = self._message[self._place : end], end
        return taken


def _checked(lines: Iterable[tuple[bytes, bytes]]) -> Fields:
    fields: list[tuple[str, str]] = []
    for name, value in lines:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise MessageError("binary HTTP: expected field names in lower case, and values without control characters")
        if len(fields) == MOST_FIELDS:
            raise MessageError(f"binary HTTP: expected at most {MOST_FIELDS} fields")
        fields.append((name.decode(), value.decode("latin-1")))
    return tuple(fields)


def _rest(fields: Fields, content: bytes) -> bytes:
    section = b"".join(_text(name.lower()) + _text(value) for name, value in fields)
    return _number(len(section)) + section + _number(len(content)) + content + _number(0)


def _text(value: str) -> bytes:
    content = value.encode("latin-1")
    return _number(len(content)) + content


def _number(value: int) -> bytes:
    power = next(power for power in range(4) if value < 1 << (8 * (1 << power) - 2))
    n_bytes = 1 << power
    return (value | power << (8 * n_bytes - 2)).to_bytes(n_bytes, "big")


def _padded(message: bytes) -> bytes:
    return message.ljust(padded_size(len(message)), b"\0")
