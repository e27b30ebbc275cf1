"""The rounds' private keys, as files that only the curator reads. Destroying one makes its round's records unreadable.

A key is in no database, so no copy of a database helps anybody once its file is gone. Destroying overwrites the bytes
before the name goes; a file system that keeps old blocks (copy on write, flash) needs its own encryption below.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from searchblend.errors import OutputError, RunError
from searchblend.server.private_folder import make_private_folder
from searchblend.store.private_file import read_private
from searchblend.wire.sealed import KEY_BYTES, new_round_key


class KeyLost(RunError):
    """The private key of a round is not there: its records cannot be opened by anybody."""


class Vault:
    """A folder of keys, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_private_folder(folder)
        try:
            folder.chmod(0o700)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be kept from others: {error.strerror}") from error

    def create(self, task: str, number: int) -> bytes:
        """A new key pair; the public key. An unused earlier key of the round is destroyed."""
        self.destroy(task, number)
        private, public = new_round_key()
        descriptor = os.open(self._path(task, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, private)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._sync()
        return public

    def private_key(self, task: str, number: int) -> bytes:
        try:
            key = read_private(self._path(task, number))
        except FileNotFoundError:
            raise KeyLost(f"round {number}: its private key is gone") from None
        if len(key) != KEY_BYTES:
            raise KeyLost(f"round {number}: its private key is damaged")
        return key

    def destroy(self, task: str, number: int) -> None:
        """Overwrite and remove; nothing to do if it is gone."""
        path = self._path(task, number)
        with contextlib.suppress(FileNotFoundError):
            with path.open("r+b", buffering=0) as file:
                file.write(b"\0" * max(path.stat().st_size, KEY_BYTES))
                os.fsync(file.fileno())
            path.unlink()
            self._sync()

    def held(self) -> list[tuple[str, int]]:
        """The rounds whose keys are here."""
        found = []
        for path in sorted(self._folder.glob("*.key")):
            task, _, number = path.stem.partition("-")
            if number.isdecimal():
                found.append((task, int(number)))
        return found

    def _path(self, task: str, number: int) -> Path:
        return self._folder / f"{task}-{number}.key"

    def _sync(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
