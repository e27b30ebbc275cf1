"""Packs as files that people move by hand: built from a release, signed, read back and checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from searchblend.core.errors import InputError, InvalidParameter, MessageError
from searchblend.search.build_pack import BuiltPack, build_pack
from searchblend.search.pack import LARGEST, NO_TASK, Pack, decode_pack
from searchblend.search.pack_delta import apply_delta, encode_delta
from searchblend.wire.manifest import Signature
from searchblend.wire.signed_pack import decode_signed_pack, is_signed_pack

_RESULT: Final = "result.json"
_STATEMENT: Final = "statement.json"


@dataclass(frozen=True)
class PackFile:
    """A pack that was read from a file, all of it checked."""

    pack: Pack
    signatures: tuple[Signature, ...]
    """whose they claim to be"""
    verified: bool = False
    """one of the caller's pinned keys has signed it"""


def build_from_release(release: Path, *, task: bytes = NO_TASK, round_number: int = 0) -> BuiltPack:
    """The pack of a release folder or of its ``result.json``."""
    path = release / _RESULT if release.is_dir() else release
    content = _read(path)
    document = _json(path, content)
    if release.is_dir():
        _check_statement(release, path, content)
    try:
        return build_pack(document, task=task, round_number=round_number)
    except MessageError as error:
        raise InputError(path, str(error)) from error


def read_pack_file(path: Path) -> PackFile:
    """A pack, plain or signed; whose signatures those are is another question (``signed_pack_files``)."""
    content = read_bytes(path)
    try:
        if not is_signed_pack(content):
            return PackFile(decode_pack(content), ())
        signed = decode_signed_pack(content)
        return PackFile(decode_pack(signed.pack), signed.signatures)
    except MessageError as error:
        raise InputError(path, str(error)) from error


def diff_packs(base: Pack, result: Pack) -> bytes:
    """The delta between two packs that were read from files."""
    try:
        return encode_delta(base, result)
    except InvalidParameter as error:
        raise MessageError(f"the packs cannot follow each other: {error.expected}") from error


def apply_delta_file(base: Pack, path: Path) -> bytes:
    """The pack that a delta file leads to."""
    try:
        return apply_delta(base, read_bytes(path))
    except MessageError as error:
        raise InputError(path, str(error)) from error


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that is not larger than any pack."""
    try:
        if path.stat().st_size > 2 * LARGEST:
            raise InputError(path, f"larger than any pack ({LARGEST >> 20} MiB)")
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def _json(path: Path, content: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(path, "expected a JSON document") from error
    if not isinstance(document, dict):
        raise InputError(path, "expected a JSON object")
    return document


def _check_statement(release: Path, result: Path, content: bytes) -> None:
    """The result must be the file that the privacy statement speaks of."""
    statement = _json(release / _STATEMENT, _read(release / _STATEMENT))
    try:
        expected = statement["files"][_RESULT]["sha256"]
    except (KeyError, TypeError) as error:
        raise InputError(release / _STATEMENT, f"expected the SHA-256 of {_RESULT}", field="files") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise InputError(result, f"is not the file that {_STATEMENT} speaks of")
