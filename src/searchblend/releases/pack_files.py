"""Packs as files that people move by hand: built from a release, signed, read back and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from searchblend.blender.release import BlenderRelease
from searchblend.blender.result import result_of
from searchblend.core.errors import InputError, InvalidParameter, MessageError
from searchblend.core.outlet import Where
from searchblend.files.durable import read_key_file
from searchblend.releases.saved_release import SavedRelease
from searchblend.search.build_pack import BuiltPack, build_pack
from searchblend.search.pack import LARGEST, NO_TASK, Pack, decode_pack
from searchblend.search.pack_delta import MAGIC as DELTA_MAGIC
from searchblend.search.pack_delta import DeltaInfo, apply_delta, encode_delta, read_delta_info
from searchblend.wire.manifest import Signature
from searchblend.wire.release import RESULT, STATEMENT, read_result, read_statement
from searchblend.wire.signed_pack import decode_signed_pack, is_signed_pack


@dataclass(frozen=True)
class PackFile:
    """A pack that was read from a file, all of it checked."""

    pack: Pack
    signatures: tuple[Signature, ...]
    """whose they claim to be"""
    verified: bool = False
    """one of the caller's pinned keys has signed it"""


def build_from_release(
    release: BlenderRelease | SavedRelease | Where, *, task: bytes = NO_TASK, round_number: int = 0
) -> BuiltPack:
    """The pack of a blend: what is certainly above 0, for search without a network.

    Args:
        release: as it was released, or its folder, or its ``result.json``
        task: 16 bytes that name the collection it belongs to, if it belongs to one
        round_number: of that collection

    Example:
        ``Path("answers.sbpack").write_bytes(sb.build_from_release(released).content)``
    """
    if isinstance(release, BlenderRelease):
        return build_pack(result_of(release), task=task, round_number=round_number)
    if isinstance(release, SavedRelease):
        return build_pack(release.result(), task=task, round_number=round_number)
    return _build_from_path(Path(release), task, round_number)


def _build_from_path(release: Path, task: bytes, round_number: int) -> BuiltPack:
    path = release / RESULT if release.is_dir() else release
    result = read_result(path, read_statement(release / STATEMENT, kind="blender") if release.is_dir() else None)
    try:
        return build_pack(result, task=task, round_number=round_number)
    except MessageError as error:
        raise InputError(path, str(error).removeprefix("result: ")) from error


def read_pack_file(path: Path) -> PackFile:
    """A pack, plain or signed; whose signatures those are is another question (``read_pinned``)."""
    content = _read_bytes(path)
    try:
        if not is_signed_pack(content):
            return PackFile(decode_pack(content), ())
        signed = decode_signed_pack(content)
        return PackFile(decode_pack(signed.pack), signed.signatures)
    except MessageError as error:
        raise InputError(path, str(error)) from error


def read_delta_file(path: Path) -> DeltaInfo | None:
    """What a delta states about itself; None if the file is something else."""
    content = _read_bytes(path)
    try:
        return read_delta_info(content) if content.startswith(DELTA_MAGIC) else None
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
        return apply_delta(base, _read_bytes(path))
    except MessageError as error:
        raise InputError(path, str(error)) from error


def _read_bytes(path: Path) -> bytes:
    """The bytes of a file that is not larger than any pack."""
    if path.is_dir():
        raise InputError(path, "expected a pack, found a folder; `searchblend pack build` makes a pack of a release")
    try:
        if path.stat().st_size > 2 * LARGEST:
            raise InputError(path, f"larger than any pack ({LARGEST >> 20} MiB)")
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def signed_content(content: bytes, key_files: Sequence[Path], passphrase: bytes | None = None) -> bytes:
    """A pack's bytes with a signature of every key in front. Needs cryptography, as plain packs do not.

    ``passphrase``: of the keys, if they are encrypted.
    """
    from searchblend.wire.signing import SigningKey, sign_pack

    keys = []
    for path in key_files:
        try:
            keys.append(SigningKey.of_pem(read_key_file(path), passphrase))
        except MessageError as error:
            raise InputError(path, str(error)) from error
    return sign_pack(content, keys)


def read_pinned(path: Path, pins: Sequence[str]) -> PackFile:
    """A pack that one of the pinned keys has signed; anything else is refused. Needs cryptography."""
    from searchblend.wire.signing import read_public_point, verify_signed_pack

    pinned = dict(read_public_point(pin, "pin") for pin in pins)
    try:
        verify_signed_pack(_read_bytes(path), pinned)
    except MessageError as error:
        raise InputError(path, str(error)) from error
    return replace(read_pack_file(path), verified=True)
