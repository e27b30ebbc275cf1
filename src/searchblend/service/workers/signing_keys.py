"""Keys that sign: the publisher's, for manifests, and the curator's, for the rounds that it opens.

A service signs manifests with one set of keys, on record in its database. Every publisher compares its folder with the
record. One with other keys signs nothing and says so: two publishers with keys of their own would sign over each other
without end, and devices would refuse what one of them signs. The curator's key is in its key folder, which no one else
reads; others know its public point.

With a passphrase (``key_passphrase``) every one of these files is encrypted PKCS#8: a copy of the folder signs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, InvalidParameter, MessageError, OutputError, UsageError
from searchblend.files.durable import (
    keep_first_secret,
    make_key_folder,
    read_key_file,
    read_private,
    refuse_loose_folder,
    replace_secret,
    write_secret,
)
from searchblend.service.settings import ServeSettings
from searchblend.store.errors import StoreError
from searchblend.store.service_store import ServiceStore
from searchblend.wire.manifest import MOST_SIGNATURES
from searchblend.wire.signing import SigningKey, read_public_point

_RECORD: Final = "signing keys"
CURATOR_FILE: Final = "curator.pem"
_LONGEST_PASSPHRASE: Final = 1023
"""as much as the encryption of PKCS#8 takes"""
_of_descriptors: dict[str, bytes] = {}
"""passphrases that came by a descriptor: it can be read once, and keys are read again and again"""


def passphrase_of(source: str, field: str = "key_passphrase") -> bytes | None:
    """The passphrase that a setting names: ``file:PATH``, ``env:NAME`` or ``fd:NUMBER``; None where it is empty.

    Never the passphrase itself: other users see a command's arguments, and settings are printed.
    """
    if not source:
        return None
    kind, _, name = source.partition(":")
    try:
        if kind == "file" and name:
            passphrase = read_private(Path(name))
        elif kind == "env" and name in os.environ:
            passphrase = os.environb[name.encode()]
        elif kind == "fd" and name.isdecimal():
            passphrase = _of_descriptors[name] if name in _of_descriptors else _read_descriptor(name)
        else:
            raise InvalidParameter(field, "expected file:PATH, env:NAME of a variable that is set, or fd:NUMBER")
    except OSError as error:
        raise UsageError(f"{field}: {kind}:{name}: cannot be read: {error.strerror}") from error
    passphrase = passphrase.rstrip(b"\r\n")
    if not 1 <= len(passphrase) <= _LONGEST_PASSPHRASE:
        raise InvalidParameter(field, f"expected a passphrase of 1 to {_LONGEST_PASSPHRASE} bytes")
    return passphrase


def _read_descriptor(number: str) -> bytes:
    with os.fdopen(int(number), "rb") as file:
        return _of_descriptors.setdefault(number, file.read(_LONGEST_PASSPHRASE + 3))


def passed_on_passphrase(source: str) -> str:
    """What a child process cannot read for itself, in hexadecimal: a descriptor's content. Else nothing."""
    return (passphrase_of(source) or b"").hex() if source.startswith("fd:") else ""


def keep_passed_on(source: str, passphrase: str) -> None:
    """In the child: what the parent has read."""
    if passphrase:
        _of_descriptors[source.removeprefix("fd:")] = bytes.fromhex(passphrase)


class OtherSigningKeys(StoreError):
    """The folder's signing keys are not those on record."""


def keys_on_record(store: ServiceStore) -> list[str] | None:
    """The ids of the keys that sign, in order; nothing before the first publisher has put its own on record."""
    recorded: list[str] | None = store.artifacts.kept_json(0, _RECORD)
    return recorded


def adopt_keys(store: ServiceStore, key_ids: Iterable[str], *, actor: str, now: int) -> None:
    """From now on these sign, and no others."""
    ids = sorted(key_ids)
    with store.transaction():
        store.artifacts.keep_json(0, _RECORD, ids)
        store.audit.append(actor, "signing keys on record", now, {"keys": ids})


def keys_trouble(store: ServiceStore, key_ids: Iterable[str]) -> str | None:
    """Why a publisher with these keys signs nothing, if so."""
    recorded = keys_on_record(store)
    if recorded is None or recorded == sorted(key_ids):
        return None
    return "the folder's signing keys are not those on record; use that folder, or `searchblend keys adopt` this one"


class SigningKeys:
    """A folder of PEM files; every key in it signs."""

    def __init__(self, folder: Path, passphrase: str = "") -> None:
        """``passphrase``: where it is, as in ``passphrase_of``."""
        self._folder, self._passphrase = folder, passphrase

    @classmethod
    def of(cls, settings: ServeSettings) -> SigningKeys:
        return cls(settings.signing_folder, settings.key_passphrase)

    def all(self) -> list[SigningKey]:
        paths = sorted(self._folder.glob("*.pem"))
        if paths:
            refuse_loose_folder(self._folder)
        passphrase = passphrase_of(self._passphrase) if paths else None
        return [_read_key(path, passphrase) for path in paths]

    def add(self) -> SigningKey:
        """A new key; one more than a manifest may carry signatures is refused."""
        make_key_folder(self._folder)
        if len(self.all()) >= MOST_SIGNATURES:
            raise UsageError(
                f"{self._folder}: {MOST_SIGNATURES} signing keys exist, and a manifest carries no more signatures; "
                "remove one first"
            )
        key = SigningKey.new()
        path = self._folder / f"{key.key_id}.pem"
        try:
            write_secret(path, key.as_pem(passphrase_of(self._passphrase)))
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
        return key

    def add_if_none(self) -> None:
        """Make the first key; refuse a folder whose keys could not all sign."""
        make_key_folder(self._folder)
        keys = self.all()
        if len(keys) > MOST_SIGNATURES:
            raise UsageError(f"{self._folder}: expected at most {MOST_SIGNATURES} signing keys")
        if not keys:
            self.add()

    def remove(self, key_id: str) -> None:
        keys = self.all()
        if key_id not in {key.key_id for key in keys}:
            raise UsageError("no signing key with this id")
        if len(keys) == 1:
            raise UsageError("the last signing key cannot be removed; add another first")
        path = self._folder / f"{key_id}.pem"
        try:
            path.unlink()
        except OSError as error:
            raise OutputError(f"{path}: cannot be removed: {error.strerror}") from error


def read_curator_key(folder: Path, passphrase: str = "") -> SigningKey | None:
    """The curator's key of this folder, if there is one."""
    try:
        return _read_key(folder / CURATOR_FILE, passphrase_of(passphrase))
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise


def make_curator_key(folder: Path, passphrase: str = "") -> SigningKey:
    """The curator's key of this folder, made if there is none. It appears whole; of two makers the first wins."""
    known = read_curator_key(folder, passphrase)
    if known is not None:
        return known
    make_key_folder(folder)
    path = folder / CURATOR_FILE
    try:
        keep_first_secret(path, SigningKey.new().as_pem(passphrase_of(passphrase)))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    return _read_key(path, passphrase_of(passphrase))


def protect_keys(settings: ServeSettings, new: str) -> list[str]:
    """Encrypt every key of both folders anew, or store them in the clear where ``new`` is empty; the ids of all.

    A file is replaced as a whole, and one that has the new passphrase already is left: what was interrupted can be
    repeated.
    """
    before, after = passphrase_of(settings.key_passphrase), passphrase_of(new, "new_passphrase")
    done = []
    for path in [*sorted(settings.signing_folder.glob("*.pem")), settings.vault_folder / CURATOR_FILE]:
        if not path.exists():
            continue
        try:
            key = _read_key(path, after)
        except InputError:
            key = _read_key(path, before)
            try:
                replace_secret(path, key.as_pem(after))
            except OSError as error:
                raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
        done.append(key.key_id)
    return done


def curator_points(settings: ServeSettings) -> dict[str, bytes]:
    """The curators whose rounds are believed here, by key id: those that were named, or the one of this key folder.

    A publisher of its own reads no folder of the curator's, wherever it is.
    """
    if settings.curator_key:
        keys = settings.curator_key.replace(",", " ").split()
        return dict(read_public_point(key, "curator_key") for key in keys)
    own = None if settings.role == "publisher" else read_curator_key(settings.vault_folder, settings.key_passphrase)
    return {} if own is None else {own.key_id: own.public_point}


def require_curator(settings: ServeSettings) -> None:
    """A publisher that knows no curator could sign no round's key."""
    if not curator_points(settings):
        raise UsageError(
            "curator_key: expected the curator's public key; `searchblend keys curator` shows it where the curator runs"
        )


def _read_key(path: Path, passphrase: bytes | None) -> SigningKey:
    try:
        return SigningKey.of_pem(read_key_file(path), passphrase)
    except MessageError as error:
        raise InputError(path, str(error)) from error
