"""The local-search pack that a manifest names: fetched whole or as a difference, checked, exchanged in one step."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from searchblend.core.errors import MessageError, OutputError
from searchblend.device.device_errors import NoAnswer
from searchblend.device.policy import Policy
from searchblend.device.transport import Transport
from searchblend.search.pack import Pack
from searchblend.search.pack_store import PackStore
from searchblend.wire.manifest import Manifest, PackDelta, PackPart

FOLDER: Final = "pack"


class Packs:
    """The packs of one task beside the device's state. The last good one stays until another is whole."""

    def __init__(self, folder: Path, task: str, policy: Policy) -> None:
        self._store, self._policy = PackStore(folder / FOLDER, bytes.fromhex(task)), policy

    def current(self) -> Pack | None:
        return self._store.current()

    def erase(self) -> None:
        self._store.erase()

    def update(self, manifest: Manifest, transport: Transport) -> str:
        """One word or sentence about what happened; never an error, for a report does not depend on a pack."""
        part = manifest.pack
        if part is None:
            return "none is published"
        present = self._store.current()
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
                    self._store.update(content, artifact=part.artifact, round_number=part.round)
                except (NoAnswer, MessageError):
                    break  # the whole file will do
                return f"updated to round {part.round} by a difference of {delta.bytes} bytes"
        self._store.put(_artifact(part, transport), artifact=part.artifact, round_number=part.round)
        return f"updated to round {part.round}"


def _artifact(named: PackPart | PackDelta, transport: Transport) -> bytes:
    answer = transport.send("GET", f"/v1/artifacts/{named.artifact}", at_most=named.bytes)
    if answer.status != 200:
        raise NoAnswer("refused", f"status {answer.status}")
    if hashlib.sha256(answer.body).hexdigest() != named.artifact:
        raise MessageError("pack: not the file that the manifest names")
    return answer.body
