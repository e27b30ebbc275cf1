"""Addresses of services that a device asks: https, or http on this machine.

Apart from the documents that hold them, so that a command which only checks a setting loads nothing else.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

from searchblend.core.documents import Matching
from searchblend.core.errors import InvalidParameter

_HOST: Final = r"https://(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])|http://(?:127\.0\.0\.1|localhost|\[::1\])"
ORIGIN: Final = rf"(?:{_HOST})(?::[1-9][0-9]{{0,4}})?"
"""a server without a path"""
_SERVER: Final = rf"{ORIGIN}(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*"
_PORT: Final = re.compile(r":([0-9]+)(?:/|$)")
_LARGEST_PORT: Final = 65_535
_AN_ADDRESS: Final = Matching(_SERVER, "https://…, or http:// on this machine, without a / at the end")
Server: TypeAlias = Annotated[str, _AN_ADDRESS]


def is_origin(address: str) -> bool:
    """Whether it is https://HOST, or http:// on this machine, each with a port or without, and nothing more."""
    return re.fullmatch(ORIGIN, address) is not None and _has_possible_port(address)


def check_server(field: str, address: str) -> None:
    """Refuse what no device would take for an address."""
    if not _AN_ADDRESS.admits(address):
        raise InvalidParameter(field, f"expected {_AN_ADDRESS.expected}")
    if not _has_possible_port(address):
        raise InvalidParameter(field, f"expected a port of at most {_LARGEST_PORT}")


def _has_possible_port(server: str) -> bool:
    port = _PORT.search(server)
    return port is None or int(port[1]) <= _LARGEST_PORT
