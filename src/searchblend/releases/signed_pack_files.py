"""Signatures of packs that people move by hand. Apart from ``pack_files``, since plain packs need no cryptography."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, InvalidParameter, MessageError
from searchblend.files.private import read_private
from searchblend.releases.pack_files import PackFile, read_bytes, read_pack_file
from searchblend.wire.signing import SigningKey, key_id, sign_pack, verify_signed_pack

_POINT_BYTES: Final = 65


def signed_content(content: bytes, key_files: Sequence[Path]) -> bytes:
    """A pack's bytes with a signature of every key in front."""
    return sign_pack(content, [_signing_key(path) for path in key_files])


def read_pinned(path: Path, pins: Sequence[str]) -> PackFile:
    """A pack that one of the pinned keys has signed; anything else is refused."""
    points = [_public_point(pin) for pin in pins]
    try:
        verify_signed_pack(read_bytes(path), {key_id(point): point for point in points})
    except MessageError as error:
        raise InputError(path, str(error)) from error
    return replace(read_pack_file(path), verified=True)


def _public_point(text: str) -> bytes:
    """The uncompressed point in hexadecimal, as ``searchblend keys list`` prints it."""
    try:
        point = bytes.fromhex(text)
    except ValueError:
        point = b""
    if len(point) != _POINT_BYTES or point[0] != 4:
        raise InvalidParameter("pin", "must be a public point, 130 hexadecimal digits beginning with 04")
    return point


def _signing_key(path: Path) -> SigningKey:
    try:
        return SigningKey.of_pem(read_private(path))
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    except MessageError as error:
        raise InputError(path, str(error)) from error
