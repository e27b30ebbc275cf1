"""Signatures of packs that people move by hand. Apart from ``pack_files``, since plain packs need no cryptography."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from searchblend.core.errors import InputError, MessageError
from searchblend.files.private import read_private
from searchblend.releases.pack_files import PackFile, read_bytes, read_pack_file
from searchblend.wire.signing import SigningKey, read_public_point, sign_pack, verify_signed_pack


def signed_content(content: bytes, key_files: Sequence[Path]) -> bytes:
    """A pack's bytes with a signature of every key in front."""
    return sign_pack(content, [_signing_key(path) for path in key_files])


def read_pinned(path: Path, pins: Sequence[str]) -> PackFile:
    """A pack that one of the pinned keys has signed; anything else is refused."""
    pinned = dict(read_public_point(pin, "pin") for pin in pins)
    try:
        verify_signed_pack(read_bytes(path), pinned)
    except MessageError as error:
        raise InputError(path, str(error)) from error
    return replace(read_pack_file(path), verified=True)


def _signing_key(path: Path) -> SigningKey:
    try:
        return SigningKey.of_pem(read_private(path))
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    except MessageError as error:
        raise InputError(path, str(error)) from error
