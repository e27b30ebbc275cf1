"""The rounds' private keys, as files that only the curator reads. Destroying one makes its round's records unreadable.

A key is in no database, so no copy of a database helps anybody once its file is gone. Destroying overwrites the bytes
before the name goes; a file system that keeps old blocks (copy on write, flash) needs its own encryption below.

Beside a key lies what was drawn with it, from before anybody sees it until both are destroyed: rows of a database can
be set back, and a second draw would have noise of its own that no ledger knows of.

Making a key touches no other: each has a file of its own name, and the public key that the round was opened with says
which of them counts. So a curator that was overtaken while it made one leaves a file that nobody needs, and no damage.
"""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path
from typing import Final, NamedTuple

from searchblend.core.errors import OutputError, RunError
from searchblend.files.durable import destroy, keep_first_secret, make_private_folder, write_secret
from searchblend.files.private import read_private
from searchblend.store.rounds import KeyFacts
from searchblend.store.states import PAST_RAW
from searchblend.wire.sealed import KEY_BYTES, new_round_key, public_key_of

_IDENTITY: Final = "curator.id"
_NAMED_BYTES: Final = 16
_KEY: Final = ".key"
_DRAWN: Final = ".drawn"


class KeyLost(RunError):
    """The private key of a round is not there: its records cannot be opened by anybody."""


class HeldKey(NamedTuple):
    """A file of the folder."""

    task: str
    number: int
    label: str
    """the beginning of its public key, in hexadecimal digits; empty for a file of an earlier version"""

    def is_for(self, public_key: bytes) -> bool:
        return self.label in ("", _label(public_key))

    def is_needed(self, facts: KeyFacts | None, now: int) -> bool:
        """Whatever else is wrong with its round, a key does not outlive the deadline."""
        if facts is None or facts.state in PAST_RAW:
            return False
        return facts.shred_by is None or now < facts.shred_by


class Vault:
    """A folder of keys, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_private_folder(folder)
        try:
            folder.chmod(0o700)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be kept from others: {error.strerror}") from error

    @property
    def identity(self) -> str:
        """Which folder this is, wherever it is mounted: made once, and never secret."""
        path = self._folder / _IDENTITY
        if not path.exists():
            keep_first_secret(path, secrets.token_hex(_NAMED_BYTES).encode())
        return path.read_text(encoding="ascii")

    def create(self, task: str, number: int) -> bytes:
        """A new key pair; the public key. Keys that are there stay as they are."""
        private, public = new_round_key()
        write_secret(self._path(HeldKey(task, number, _label(public))), private)
        return public

    def private_key(self, task: str, number: int, public_key: bytes) -> bytes:
        """The key that the round was opened with."""
        for label in (_label(public_key), ""):
            with contextlib.suppress(FileNotFoundError):
                key = read_private(self._path(HeldKey(task, number, label)))
                if len(key) == KEY_BYTES and public_key_of(key) == public_key:
                    return key
                raise KeyLost(f"round {number}: its private key is damaged")
        raise KeyLost(f"round {number}: its private key is gone")

    def drawn(self, task: str, number: int, public_key: bytes) -> bytes | None:
        """What was drawn with this key, if anything was."""
        try:
            return read_private(self._path(HeldKey(task, number, _label(public_key)), _DRAWN))
        except FileNotFoundError:
            return None

    def keep_drawn(self, task: str, number: int, public_key: bytes, content: bytes) -> bytes:
        """On disk when this returns: what was drawn first with this key, which need not be what was given here."""
        path = self._path(HeldKey(task, number, _label(public_key)), _DRAWN)
        keep_first_secret(path, content)
        return read_private(path)

    def destroy(self, task: str, number: int) -> None:
        """Overwrite and remove every key of a round; nothing to do if none is there."""
        for held in self.held():
            if (held.task, held.number) == (task, number):
                self.destroy_file(held)

    def destroy_file(self, held: HeldKey) -> None:
        """The key, and only then what was drawn with it."""
        drawn = self._path(held, _DRAWN)
        for path in (self._path(held), drawn, *self._folder.glob(f"{drawn.name}.*")):
            destroy(path, at_least=KEY_BYTES)

    def held(self) -> list[HeldKey]:
        """The keys that are here, and those of which only what was drawn is left."""
        keys = set()
        for path in (*self._folder.glob(f"*{_KEY}"), *self._folder.glob(f"*{_DRAWN}")):
            task, _, rest = path.stem.partition("-")
            number, _, label = rest.partition("-")
            if number.isdecimal():
                keys.add(HeldKey(task, int(number), label))
        return sorted(keys)

    def _path(self, held: HeldKey, suffix: str = _KEY) -> Path:
        return self._folder / f"{held.task}-{held.number}{f'-{held.label}' if held.label else ''}{suffix}"


def _label(public_key: bytes) -> str:
    return public_key.hex()[: 2 * _NAMED_BYTES]
