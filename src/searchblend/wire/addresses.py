"""Addresses that people write down: https, or http on this machine.

Apart from the documents that hold them, so that a command which only checks a setting loads nothing else.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from searchblend.core.documents import Matching
from searchblend.core.errors import InvalidParameter

_HOST: Final = r"https://(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:]+\])|http://(?:127\.0\.0\.1|localhost|\[::1\])"
ORIGIN: Final = rf"(?:{_HOST})(?::[1-9][0-9]{{0,4}})?"
"""a server without a path"""
_SERVER: Final = rf"{ORIGIN}(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*"
_PORT: Final = re.compile(r":([0-9]+)(?:/|$)")
_LARGEST_PORT: Final = 65_535
_EXAMPLE: Final = "expected an address such as https://lists.example"
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


def service_address(field: str, address: str, *, plain_http: bool, over_http: str) -> SplitResult:
    """The parts of a service's address, with or without a path.

    Args:
        field: The setting that holds it.
        address: What it says.
        plain_http: Whether another machine may be asked over http.
        over_http: What is expected where it may not.
    """
    try:
        parts = urlsplit(address)
        is_usable = parts.port is None or 0 < parts.port <= _LARGEST_PORT
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise InvalidParameter(field, _EXAMPLE) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_usable or parts.username is not None:
        raise InvalidParameter(field, _EXAMPLE)
    if not parts.path.isascii() or not parts.path.isprintable() or " " in parts.path:
        raise InvalidParameter(field, "expected a path of ASCII characters without spaces")
    if parts.query or parts.fragment:
        raise InvalidParameter(field, "expected an address without query and fragment")
    if parts.scheme == "http" and not plain_http and not is_this_machine(parts.hostname):
        raise InvalidParameter(field, over_http)
    return parts


def check_secure(field: str, address: str) -> None:
    """Refuse an address on the way to which anyone could read or change what is sent."""
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(parts.hostname or ""))
    if not is_safe or not parts.hostname:
        raise InvalidParameter(field, "expected https://… (http:// on this machine alone)")


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _has_possible_port(server: str) -> bool:
    port = _PORT.search(server)
    return port is None or int(port[1]) <= _LARGEST_PORT
