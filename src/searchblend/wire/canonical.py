"""Canonical JSON: one string for one document, the same in Python and JavaScript. Standard library only.

Keys are ASCII and sorted, there is no blank, strings are UTF-8 with the escapes of ``JSON.stringify``, and numbers are
whole and exact in a double. Other numbers travel as strings, the shortest that gives the same double back: no two
languages print those alike.
"""

from __future__ import annotations

import json
from typing import Any, Final

from searchblend.core.documents import encode
from searchblend.core.errors import MessageError

_EXACT: Final = 1 << 53
DEEPEST: Final = 16


def canonical_json(document: Any) -> bytes:
    """The bytes of a document; refused if it has no canonical form."""
    _check(document, 0)
    string = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return string.encode("utf-8")


def json_bytes(document: Any) -> bytes:
    """A document as compact JSON, with floats and in the order of its fields: for answers, where nothing is signed."""
    return json.dumps(encode(document), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def parse_canonical(content: bytes, what: str) -> Any:
    """The document of exactly these bytes; anything that is not its canonical form is refused."""
    try:
        document = json.loads(content.decode("utf-8"))
        same = canonical_json(document) == content
    except (ValueError, RecursionError, MessageError) as error:
        raise MessageError(f"{what}: expected canonical JSON") from error
    if not same:
        raise MessageError(f"{what}: expected canonical JSON")
    return document


def _check(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise MessageError("canonical JSON: nested too deeply")
    if isinstance(value, dict):
        if not all(isinstance(key, str) and key.isascii() for key in value):
            raise MessageError("canonical JSON: expected ASCII keys")
        for inner in value.values():
            _check(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check(inner, depth + 1)
    elif isinstance(value, str):
        _check_text(value)
    elif isinstance(value, bool) or value is None:
        return
    elif not isinstance(value, int) or abs(value) >= _EXACT:
        raise MessageError("canonical JSON: expected whole numbers below 2^53; write others as strings")


def _check_text(string: str) -> None:
    try:
        string.encode("utf-8")
    except UnicodeEncodeError:
        raise MessageError("canonical JSON: a text with a lone surrogate") from None
