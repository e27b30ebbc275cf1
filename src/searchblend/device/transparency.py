"""What a device asks of the public log: that everyone can see the manifest that it was shown.

A split view (one manifest for a person, another for everyone else) needs either a manifest that is in no log, or a
second log. So a device believes a manifest only if it is in a log whose checkpoint a pinned key has signed; it keeps
the roots of the log's full tiles and the last root, and refuses a log that is not the one it knows with more at its
end. Two devices that were shown different logs can tell, by any checkpoint that goes from one to the other: a pack's
comes with every pack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from searchblend.core.errors import MessageError
from searchblend.device.device_errors import DeviceRefused
from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import Manifest
from searchblend.wire.merkle import HASH_BYTES, MOST_ENTRIES, TILE, hashes_of, leaf_hash, root_of
from searchblend.wire.signing import verify_checkpoint, witnesses_of
from searchblend.wire.transparency import LARGEST_CHECKPOINT, MANIFEST_ENTRY, Checkpoint, LogEntry, encode_entry

Fetch = Callable[[str, int], bytes]
"""the bytes of a path below ``/v1/log``, of at most so many"""
EARLIER_TILES: Final = 16
"""how far back a manifest is looked for: it is valid for a month at most"""


@dataclass(frozen=True)
class LastLog:
    """The newest checkpoint that this device has checked."""

    origin: str = ""
    size: int = 0
    root: str = ""
    tiles: Sequence[str] = field(default_factory=list)
    """roots of the full tiles; the first hashes of the next one are fetched again"""


@dataclass(frozen=True)
class Witnesses:
    """Who must have cosigned a checkpoint, and how many of them."""

    keys: Mapping[str, bytes]
    least: int


def check_log(
    manifest: Manifest, last: LastLog, fetch: Fetch, pinned: Mapping[str, bytes], witnesses: Witnesses
) -> LastLog:
    """What to remember of the log from now on; ``DeviceRefused`` if it is forged, forked or without the manifest."""
    try:
        checkpoint = verify_checkpoint(fetch("checkpoint", LARGEST_CHECKPOINT), pinned)
    except MessageError as error:
        raise DeviceRefused("log-forged", str(error)) from None
    if len(witnesses_of(checkpoint, witnesses.keys)) < witnesses.least:
        raise DeviceRefused("log-unwitnessed", f"expected {witnesses.least}")
    view = _View(checkpoint, last, fetch)
    if not view.has(leaf_hash(entry_of(manifest))):
        raise DeviceRefused("not-logged")
    if manifest.pack is not None and manifest.pack.log is not None:
        view.check_known(manifest.pack.log.size, bytes.fromhex(manifest.pack.log.root))
    return view.remembered()


def entry_of(manifest: Manifest) -> bytes:
    """The entry of a manifest as it was signed, with the fields of later minor versions."""
    digest = hashlib.sha256(canonical_json(manifest.document)).hexdigest()
    return encode_entry(LogEntry(MANIFEST_ENTRY, digest, manifest.task, manifest.sequence))


class _View:
    """The log as this checkpoint has it, from the last full tile that is known on."""

    def __init__(self, checkpoint: Checkpoint, last: LastLog, fetch: Fetch) -> None:
        self._checkpoint, self._fetch = checkpoint, fetch
        if last.origin not in ("", checkpoint.origin):
            raise DeviceRefused("log-forked", "another log")
        if checkpoint.size > MOST_ENTRIES:
            raise DeviceRefused("log-forked", "longer than any log")
        if checkpoint.size < last.size:
            raise DeviceRefused("log-forked", "shorter than before")
        self._tiles = [bytes.fromhex(root) for root in last.tiles]
        self._leaves = list[bytes]()
        for number in range(len(self._tiles), -(-checkpoint.size // TILE)):
            self._leaves += self._tile(number)
        self.check_known(last.size, bytes.fromhex(last.root) if last.size else b"")
        self.check_known(checkpoint.size, checkpoint.root)

    def _tile(self, number: int) -> list[bytes]:
        """Full, or as far as the checkpoint goes."""
        width = min(TILE, self._checkpoint.size - number * TILE)
        suffix = "" if width == TILE else f".p/{width}"
        hashes = hashes_of(self._fetch(f"tile/0/{number:03d}{suffix}", width * HASH_BYTES))
        if len(hashes) != width or (number < len(self._tiles) and root_of(hashes) != self._tiles[number]):
            raise DeviceRefused("log-forked", "a tile that is not of this log")
        return hashes

    def has(self, leaf: bytes) -> bool:
        if leaf in self._leaves:
            return True
        known = len(self._tiles)
        return any(leaf in self._tile(number) for number in reversed(range(max(0, known - EARLIER_TILES), known)))

    def check_known(self, size: int, root: bytes) -> None:
        """Whether the log had this root when it was so long."""
        if size == 0:
            return
        if size > self._checkpoint.size:
            raise DeviceRefused("log-forked", "longer elsewhere")
        number, rest = divmod(size, TILE)
        known = len(self._tiles)
        tiles = self._tiles[: min(number, known)]
        later = self._leaves[: max(0, size - known * TILE)]
        leaves = self._tile(number)[:rest] if number < known and rest else later
        if root_of(leaves, tiles) != root:
            raise DeviceRefused("log-forked", "another history")

    def remembered(self) -> LastLog:
        full = len(self._leaves) // TILE
        new = [root_of(self._leaves[n * TILE : (n + 1) * TILE]) for n in range(full)]
        tiles = [root.hex() for root in (*self._tiles, *new)]
        return LastLog(self._checkpoint.origin, self._checkpoint.size, self._checkpoint.root.hex(), tiles)
