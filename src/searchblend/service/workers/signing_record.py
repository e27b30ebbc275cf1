"""Which signing keys a service signs with: one set, on record in its database.

Every publisher compares its folder with the record. One with other keys signs nothing and says so: two publishers with
keys of their own would sign over each other without end, and devices would refuse what one of them signs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from searchblend.store.service_store import ServiceStore
from searchblend.store.store_errors import StoreError

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
