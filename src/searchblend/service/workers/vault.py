"""The rounds' private keys, as files that only the curator reads. Destroying one makes its round's records unreadable.

A key is in no database, so no copy of a database is of use once its file is gone. Destroying overwrites the bytes
before the name goes; a file system that keeps old blocks (copy on write, flash) needs its own encryption below.

Beside a key lies what was drawn with it, from before anyone sees it until both are destroyed: rows of a database can
be set back, and a second draw would have noise of its own that no ledger knows of. For the same reason the tags of
withdrawn records lie there, as soon as the curator has seen them and until the key is destroyed.

Making a key touches no other: each has a file of its own name, and the public key that the round was opened with says
which of them counts. So a curator that was overtaken while it made one leaves a file that none needs, and no damage.

A key's deadline is in the name of its file: rows can be changed, and the promise of when raw records end is the
curator's own. It is read without opening the key, and cannot be lost without it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Set
from pathlib import Path
from typing import Final, NamedTuple

from searchblend.core.errors import RunError
from searchblend.files.durable import (
    destroy,
    keep_first_secret,
    make_key_folder,
    read_private,
    write_secret,
    write_whole,
)
from searchblend.store.errors import StoreUnavailable
from searchblend.store.rounds import KeyFacts
from searchblend.store.states import PAST_RAW
from searchblend.wire.sealed import KEY_BYTES, TAG_BYTES, new_round_key, public_key_of

_IDENTITY: Final = "curator.id"
_NAMED_BYTES: Final = 16
_KEY: Final = ".key"
_DRAWN: Final = ".drawn"
_WITHDRAWN: Final = ".withdrawn"


class KeyLost(RunError):
    """The private key of a round is not there: its records cannot be opened any more."""


class HeldKey(NamedTuple):
    """A file of the folder."""

    task: str
    number: int
    label: str
    """the beginning of its public key, in hexadecimal digits; empty for a file of an earlier version"""
    destroy_by: int | None = None
    """the deadline that the round was opened with; None for a file of an earlier version"""

    def is_overdue(self, now: int) -> bool:
        return self.destroy_by is not None and now >= self.destroy_by

    def is_for(self, public_key: bytes) -> bool:
        return self.label in ("", _label(public_key))

    def is_needed(self, facts: KeyFacts | None, now: int) -> bool:
        """Whatever else is wrong with its round, a key does not outlive the deadline."""
        if self.is_overdue(now) or facts is None or facts.state in PAST_RAW:
            return False
        return facts.shred_by is None or now < facts.shred_by


class Vault:
    """A folder of keys, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_key_folder(folder)

    @property
    def identity(self) -> str:
        """Which folder this is, wherever it is mounted: made once, and never secret."""
        path = self._folder / _IDENTITY
        if not path.exists():
            keep_first_secret(path, secrets.token_hex(_NAMED_BYTES).encode())
        return path.read_text(encoding="ascii")

    def create(self, task: str, number: int, *, destroy_by: int) -> bytes:
        """A new key pair; the public key. Keys that are there stay as they are."""
        private, public = new_round_key()
        write_secret(self._path(HeldKey(task, number, _label(public), destroy_by)), private)
        return public

    def private_key(self, task: str, number: int, public_key: bytes) -> bytes:
        """The key that the round was opened with."""
        for held in (self._labelled(task, number, public_key), HeldKey(task, number, "")):
            with contextlib.suppress(FileNotFoundError):
                key = read_private(self._path(held))
                if len(key) == KEY_BYTES and public_key_of(key) == public_key:
                    return key
                raise KeyLost(f"round {number}: its private key is damaged")
        raise KeyLost(f"round {number}: its private key is gone")

    def drawn(self, task: str, number: int, public_key: bytes) -> bytes | None:
        """What was drawn with this key, if anything was."""
        try:
            return read_private(self._path(self._labelled(task, number, public_key), _DRAWN))
        except FileNotFoundError:
            return None

    def keep_drawn(self, task: str, number: int, public_key: bytes, content: bytes) -> bytes:
        """On disk when this returns: what was drawn first with this key, which need not be what was given here."""
        path = self._path(self._labelled(task, number, public_key), _DRAWN)
        keep_first_secret(path, content)
        return read_private(path)

    def withdrawn(self, task: str, number: int) -> set[bytes]:
        """The tags of a round whose records were seen withdrawn, whatever any row says now."""
        return set[bytes]().union(*(self._withdrawn(held) for held in self._of_round(task, number)))

    def remember_withdrawn(self, held: HeldKey, tags: Set[bytes]) -> bool:
        """On disk when this returns, beside the key; whether any of them is new."""
        known = self._withdrawn(held)
        if tags <= known:
            return False
        write_whole(self._path(held, _WITHDRAWN), b"".join(sorted(known | tags)))
        return True

    def _withdrawn(self, held: HeldKey) -> set[bytes]:
        try:
            content = read_private(self._path(held, _WITHDRAWN))
        except FileNotFoundError:
            return set()
        return {content[start : start + TAG_BYTES] for start in range(0, len(content), TAG_BYTES)}

    def destroy(self, task: str, number: int) -> None:
        """Overwrite and remove every key of a round; nothing to do if none is there."""
        each_alone(self.destroy_file, self._of_round(task, number))

    def overdue(self, now: int) -> list[HeldKey]:
        """The keys that are here although their deadline has passed, whatever any row says."""
        return [held for held in self.held() if held.is_overdue(now)]

    def destroy_file(self, held: HeldKey) -> None:
        """The key, and only then what was drawn with it and who withdrew."""
        drawn, withdrawn = self._path(held, _DRAWN), self._path(held, _WITHDRAWN)
        unfinished = (*self._folder.glob(f"{drawn.name}.*"), *self._folder.glob(f".{withdrawn.name}.*"))
        for path in (self._path(held), drawn, withdrawn, *unfinished):
            destroy(path, at_least=KEY_BYTES)

    def held(self) -> list[HeldKey]:
        """The keys that are here, and those of which only what lies beside them is left."""
        keys = set()
        for path in (path for suffix in (_KEY, _DRAWN, _WITHDRAWN) for path in self._folder.glob(f"*{suffix}")):
            task, _, rest = path.stem.partition("-")
            number, _, rest = rest.partition("-")
            label, _, destroy_by = rest.partition("-")
            if number.isdecimal():
                keys.add(HeldKey(task, int(number), label, int(destroy_by) if destroy_by.isdecimal() else None))
        return sorted(keys, key=lambda held: held[:3])

    def _of_round(self, task: str, number: int) -> list[HeldKey]:
        return [held for held in self.held() if held[:2] == (task, number)]

    def _labelled(self, task: str, number: int, public_key: bytes) -> HeldKey:
        """The file that was made with this public key, whether or not it is here."""
        label = _label(public_key)
        same = (held for held in self.held() if held[:3] == (task, number, label))
        return next(same, HeldKey(task, number, label))

    def _path(self, held: HeldKey, suffix: str = _KEY) -> Path:
        parts = (held.task, str(held.number), held.label, "" if held.destroy_by is None else str(held.destroy_by))
        return self._folder / f"{'-'.join(part for part in parts if part)}{suffix}"


def each_alone(step: Callable[[HeldKey], object], keys: Iterable[HeldKey]) -> int:
    """Take the step for each key, also after one that fails, whose error comes at the end; for how many it was true."""
    done, failures = 0, list[Exception]()
    for held in keys:
        try:
            done += bool(step(held))
        except StoreUnavailable:
            raise
        except Exception as error:  # a file or a row in any condition: the other keys' deadlines must be kept
            failures.append(error)
    if failures:
        raise failures[0]
    return done


def _label(public_key: bytes) -> str:
    return public_key.hex()[: 2 * _NAMED_BYTES]
