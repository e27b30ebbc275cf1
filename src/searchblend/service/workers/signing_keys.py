"""Which signing keys a service signs with: one set, on record in its database.

Every publisher compares its folder with the record. One with other keys signs nothing and says so: two publishers with
keys of their own would sign over each other without end, and devices would refuse what one of them signs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, MessageError, OutputError, UsageError
from searchblend.files.durable import make_private_folder, read_private, write_secret
from searchblend.store.service_store import ServiceStore
from searchblend.store.store_errors import StoreError
from searchblend.wire.manifest import MOST_SIGNATURES
from searchblend.wire.signing import SigningKey

_RECORD: Final = "signing keys"


class OtherSigningKeys(StoreError):
    """The folder's signing keys are not those on record."""


def keys_on_record(store: ServiceStore) -> list[str] | None:
    """The ids of the keys that sign, in order; nothing before the first publisher has put its own on record."""
    content = store.artifacts.kept(0, _RECORD)
    return None if content is None else json.loads(content)


def adopt_keys(store: ServiceStore, key_ids: Iterable[str], *, actor: str, now: int) -> None:
    """From now on these sign, and no others."""
    ids = sorted(key_ids)
    with store.transaction():
        store.artifacts.keep(0, _RECORD, json.dumps(ids).encode())
        store.audit.append(actor, "signing keys on record", now, {"keys": ids})


def keys_trouble(store: ServiceStore, key_ids: Iterable[str]) -> str | None:
    """Why a publisher with these keys signs nothing, if so."""
    recorded = keys_on_record(store)
    if recorded is None or recorded == sorted(key_ids):
        return None
    return "the folder's signing keys are not those on record; use that folder, or `searchblend keys adopt` this one"


class SigningKeys:
    """A folder of PEM files; every key in it signs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def all(self) -> list[SigningKey]:
        return [_read_key(path) for path in sorted(self._folder.glob("*.pem"))]

    def add(self) -> SigningKey:
        """A new key; one more than a manifest may carry signatures is refused."""
        if len(self.all()) >= MOST_SIGNATURES:
            raise UsageError(
                f"{self._folder}: {MOST_SIGNATURES} signing keys are there, and a manifest carries no more signatures; "
                "remove one first"
            )
        key = SigningKey.new()
        make_private_folder(self._folder)
        path = self._folder / f"{key.key_id}.pem"
        try:
            write_secret(path, key.as_pem())
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
        return key

    def add_if_none(self) -> None:
        """Make the first key; refuse a folder whose keys could not all sign."""
        keys = self.all()
        if len(keys) > MOST_SIGNATURES:
            raise UsageError(f"{self._folder}: expected at most {MOST_SIGNATURES} signing keys")
        if not keys:
            self.add()

    def remove(self, key_id: str) -> None:
        keys = self.all()
        if key_id not in {key.key_id for key in keys}:
            raise UsageError("no signing key of this id")
        if len(keys) == 1:
            raise UsageError("the last signing key cannot be removed; add another first")
        path = self._folder / f"{key_id}.pem"
        try:
            path.unlink()
        except OSError as error:
            raise OutputError(f"{path}: cannot be removed: {error.strerror}") from error


def _read_key(path: Path) -> SigningKey:
    try:
        return SigningKey.of_pem(read_private(path))
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    except MessageError as error:
        raise InputError(path, str(error)) from error
