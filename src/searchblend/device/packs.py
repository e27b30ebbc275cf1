"""The local-search pack that a manifest names: fetched whole or as a difference, checked, exchanged in one step.

The folder of a task holds packs under their SHA-256 and a file ``current`` that names the present one and the one
before. A pack is written beside them, brought to disk and renamed; then ``current`` is replaced the same way. Whoever
is killed in between leaves the old pack in place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
from pathlib import Path
from typing import Final

from searchblend.core.errors import MessageError, OutputError
from searchblend.device.device_errors import NoAnswer
from searchblend.device.policy import Policy
from searchblend.device.transport import Transport
from searchblend.files.durable import write_whole
from searchblend.search.pack import Pack, decode_pack
from searchblend.search.pack_delta import apply_delta
from searchblend.wire.manifest import Manifest, PackDelta, PackPart

FOLDER: Final = "pack"
_CURRENT: Final = "current"
_SUFFIX: Final = ".sbpack"


class Packs:
    """The packs of one task in a folder. The last good one stays until another is whole."""

    def __init__(self, folder: Path, task: str, policy: Policy) -> None:
        self._folder, self._task, self._policy = folder, bytes.fromhex(task), policy

    def update(self, manifest: Manifest, transport: Transport) -> str:
        """One word or sentence about what happened; never an error, for a report does not depend on a pack."""
        part = manifest.pack
        if part is None:
            return "none is published"
        present = self.current()
        if present is not None and present.digest == part.artifact:
            return "up to date"
        try:
            return self._fetch(part, present, transport)
        except (NoAnswer, MessageError, OutputError) as error:
            return f"not updated: {error}"

    def _fetch(self, part: PackPart, present: Pack | None, transport: Transport) -> str:
        if part.bytes > self._policy.largest_pack:
            raise MessageError("pack: larger than this device takes")
        for delta in part.deltas:
            if present is not None and delta.base == present.digest and delta.bytes < part.bytes:
                try:
                    content = _artifact(delta, transport)
                    self.apply(content, artifact=part.artifact, round_number=part.round)
                except (NoAnswer, MessageError):
                    break  # the whole file will do
                return f"updated to round {part.round} by a difference of {delta.bytes} bytes"
        self.put(_artifact(part, transport), artifact=part.artifact, round_number=part.round)
        return f"updated to round {part.round}"

    def current(self) -> Pack | None:
        """The present pack, mapped from its file; the one before if it is gone or damaged; None if there is none."""
        for name in self._names():
            with contextlib.suppress(MessageError, OSError, ValueError):
                pack = Pack(_mapped(self._path(name)))
                if pack.digest == name and pack.info.task == self._task:
                    return pack
        return None

    def put(self, content: bytes, *, artifact: str, round_number: int) -> Pack:
        """Take a pack that came whole; refuse what the manifest does not name and what is older than the present."""
        if hashlib.sha256(content).hexdigest() != artifact:
            raise MessageError("pack: not the file that the manifest names")
        pack = decode_pack(content)
        if (pack.info.task, pack.info.round) != (self._task, round_number):
            raise MessageError("pack: of another task or round")
        present = self.current()
        if present is not None and present.info.round > round_number:
            raise MessageError("pack: older than the present one")
        self._exchange(content, artifact, present)
        return pack

    def apply(self, delta: bytes, *, artifact: str, round_number: int) -> Pack:
        """Take the next pack as a difference from the present one."""
        present = self.current()
        if present is None:
            raise MessageError("pack delta: there is no pack to start from")
        return self.put(apply_delta(present, delta), artifact=artifact, round_number=round_number)

    def erase(self) -> None:
        """Remove all packs of the folder."""
        try:
            for path in [self._folder / _CURRENT, *self._folder.glob(f"*{_SUFFIX}")]:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{self._folder}: cannot be erased: {error.strerror or error}") from error

    def _exchange(self, content: bytes, artifact: str, present: Pack | None) -> None:
        kept = [artifact, *([present.digest] if present is not None and present.digest != artifact else [])]
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._path(artifact), content)
            write_whole(self._folder / _CURRENT, json.dumps(kept).encode())
            for path in self._folder.glob(f"*{_SUFFIX}"):
                if path.stem not in kept:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise OutputError(f"{self._folder}: cannot be written: {error.strerror or error}") from error

    def _names(self) -> list[str]:
        try:
            names = json.loads((self._folder / _CURRENT).read_bytes())
        except (OSError, ValueError, RecursionError):
            return []
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"


def _artifact(named: PackPart | PackDelta, transport: Transport) -> bytes:
    answer = transport.send("GET", f"/v1/artifacts/{named.artifact}", at_most=named.bytes)
    if answer.status != 200:
        raise NoAnswer("refused", f"status {answer.status}")
    if hashlib.sha256(answer.body).hexdigest() != named.artifact:
        raise MessageError("pack: not the file that the manifest names")
    return answer.body


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise MessageError("pack: truncated: the file is empty")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
