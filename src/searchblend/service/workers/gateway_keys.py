"""Keys of the oblivious gateway: a new one every so often, the one before accepted for a week.

    made, named in manifests            preferred                       accepted
    |-------- ANNOUNCED_SECONDS --------|-------- every_seconds --------|-------- ACCEPTED_SECONDS --------| destroyed

All follows from the names of the files, which say when a key begins to be preferred, and from the clock: gateways that
share the folder agree, whoever of them makes the next key. The configurations go on record in the database, where the
publisher takes their digests for the manifests from; the private keys never leave the folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from searchblend.core.errors import InputError, OutputError
from searchblend.files.durable import destroy, keep_first_secret, make_key_folder, read_key_file
from searchblend.service.clock import DAY
from searchblend.store.errors import StoreError
from searchblend.store.service_store import ServiceStore
from searchblend.wire.ohttp import GatewayKey

ANNOUNCED_SECONDS: Final = DAY
ACCEPTED_SECONDS: Final = 7 * DAY
"""as long as a manifest is valid: a device that read one may use what it names"""
_KEY_BYTES: Final = 32
_NAME: Final = re.compile(r"gateway-([0-9]{12})\.key")


class GatewayKeys:
    """The keys of one folder. One thread keeps them up, others ask for them."""

    def __init__(self, folder: Path, every_seconds: int) -> None:
        self._folder, self._every = folder, every_seconds
        self._keys: dict[int, GatewayKey] = {}
        """by the time from which one is preferred, in this order; replaced as a whole"""

    def make_first(self, now: int) -> None:
        """Make the folder, and a key if there is none."""
        make_key_folder(self._folder)
        self._load()
        if not self._keys:
            self._make(now)

    def accepted(self, now: int) -> list[GatewayKey]:
        """All that requests may be sealed to, the preferred one first."""
        keys = self._keys
        begun = [starts for starts in keys if starts <= now]
        preferred = max(begun, default=min(keys, default=0))
        order = sorted(
            (starts for starts in keys if self._ends(starts, now) > now), key=lambda starts: starts != preferred
        )
        return [keys[starts] for starts in order]

    def keep_up(self, store: ServiceStore, now: int) -> int:
        """Make the next key when it is time, destroy those whose time is over, put the others on record.

        ``StoreError`` if a stranger's key was on record: it is taken off, and devices that saw it named may use it.
        """
        self.make_first(now)
        newest = max(self._keys)
        if newest + self._every - ANNOUNCED_SECONDS <= now:
            self._make(max(newest + self._every, now + ANNOUNCED_SECONDS))
        over = [starts for starts in self._keys if self._ends(starts, now) <= now]
        for starts in over:
            destroy(self._path(starts), at_least=_KEY_BYTES)
        self._keys = {starts: key for starts, key in self._keys.items() if starts not in over}
        configurations = {key.configuration.encoded: self._ends(starts, now) for starts, key in self._keys.items()}
        with store.transaction():
            strange = self._strange(store, now)
            store.artifacts.drop_gateway_keys(strange)
            new = store.artifacts.record_gateway_keys(configurations, now)
        if strange:
            raise StoreError("a key that is in no gateway's folder was on record, and is taken off")
        return new

    def _strange(self, store: ServiceStore, now: int) -> set[bytes]:
        """Configurations on record that no gateway has put there: whoever writes to the database could be reading."""
        own = {key.configuration.encoded for key in self._keys.values()}
        strange = set(store.artifacts.gateway_keys(now)) - own
        if strange:  # another gateway may have made a key meanwhile: the file comes first
            self._load()
            strange -= {key.configuration.encoded for key in self._keys.values()}
        return strange

    def _ends(self, starts: int, now: int) -> int:
        """Until when a key is accepted; the newest one for as long as there is no other."""
        following = min((later for later in self._keys if later > starts), default=max(starts + self._every, now))
        return following + ACCEPTED_SECONDS

    def _load(self) -> None:
        """What other gateways have made in the folder, or destroyed."""
        present = sorted(int(name[1]) for path in self._folder.iterdir() if (name := _NAME.fullmatch(path.name)))
        self._keys = {starts: self._keys.get(starts) or self._read(starts) for starts in present}

    def _make(self, starts: int) -> None:
        path = self._path(starts)
        try:
            keep_first_secret(path, X25519PrivateKey.generate().private_bytes_raw())
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
        self._load()

    def _read(self, starts: int) -> GatewayKey:
        path = self._path(starts)
        content = read_key_file(path)
        if len(content) != _KEY_BYTES:
            raise InputError(path, f"expected a private key of {_KEY_BYTES} bytes")
        return GatewayKey.of_bytes(content)

    def _path(self, starts: int) -> Path:
        return self._folder / f"gateway-{starts:012d}.key"
