"""A whole transparency log, read and checked by anyone: what auditors, mirrors and witnesses do.

A device checks that a log only grew; whoever reads all of it checks that it says nothing twice in two ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from searchblend.core.errors import MessageError, RunError
from searchblend.wire.merkle import HASH_BYTES, MOST_ENTRIES, TILE, hashes_of, leaf_hash, root_of
from searchblend.wire.signing import SigningKey, verify_checkpoint
from searchblend.wire.transparency import (
    LARGEST_CHECKPOINT,
    MANIFEST_ENTRY,
    Checkpoint,
    LogEntry,
    decode_bundle,
    decode_entry,
)

Fetch = Callable[[str, int], bytes]
"""the bytes of a path below ``/v1/log``, of at most so many"""
_LARGEST_ENTRY = 512


class LogTrouble(RunError):
    """The log is not what its checkpoint, or an earlier one, says it is."""


@dataclass(frozen=True)
class LogCopy:
    """All entries, whose root is the checkpoint's, and the files that they came in."""

    checkpoint: Checkpoint
    entries: Sequence[LogEntry]
    leaves: Sequence[bytes]
    files: Mapping[str, bytes]

    def check_earlier(self, earlier: Checkpoint) -> None:
        """Whether the log that someone else was shown is the beginning of this one."""
        if earlier.origin != self.checkpoint.origin:
            raise LogTrouble(f"checkpoint of {earlier.size} entries: of another log, {earlier.origin}")
        if earlier.size > self.checkpoint.size:
            raise LogTrouble(f"checkpoint of {earlier.size} entries: this log has {self.checkpoint.size} only")
        if root_of(self.leaves[: earlier.size]) != earlier.root:
            raise LogTrouble(
                f"checkpoint of {earlier.size} entries: SPLIT VIEW, this log had another root at that size"
            )


def read_log(fetch: Fetch, pinned: Mapping[str, bytes]) -> LogCopy:
    """The log of a service whose keys are pinned; ``LogTrouble`` says what does not fit."""
    note = fetch("checkpoint", LARGEST_CHECKPOINT)
    try:
        checkpoint = verify_checkpoint(note, pinned)
        if checkpoint.size > MOST_ENTRIES:
            raise LogTrouble(f"the log says that it has {checkpoint.size} entries, more than any device reads")
        files, raw, hashes = {"checkpoint": note}, list[bytes](), list[bytes]()
        for first in range(0, checkpoint.size, TILE):
            width = min(TILE, checkpoint.size - first)
            name = f"{first // TILE:03d}" + ("" if width == TILE else f".p/{width}")
            for level, most in (("0", width * HASH_BYTES), ("entries", width * (_LARGEST_ENTRY + 2))):
                files[f"tile/{level}/{name}"] = fetch(f"tile/{level}/{name}", most)
            raw += decode_bundle(files[f"tile/entries/{name}"])
            hashes += hashes_of(files[f"tile/0/{name}"])
        entries = [decode_entry(content) for content in raw]
    except MessageError as error:
        raise LogTrouble(str(error)) from None
    leaves = [leaf_hash(content) for content in raw]
    if leaves != hashes or len(leaves) != checkpoint.size or root_of(leaves) != checkpoint.root:
        raise LogTrouble("the entries do not have the root that the checkpoint says")
    _check_numbers(entries)
    return LogCopy(checkpoint, entries, leaves, files)


def cosign(copy: LogCopy, last: Checkpoint | None, witness: SigningKey, *, name: str, now: int) -> Checkpoint:
    """The checkpoint with this witness' signature, if it is the log that the witness has signed before, or longer."""
    if last is not None:
        copy.check_earlier(last)
    checkpoint = copy.checkpoint
    return checkpoint.with_cosignature(name, witness.public_point, witness.sign(checkpoint.cosigned_bytes(now)), now)


def _check_numbers(entries: Iterable[LogEntry]) -> None:
    """Two manifests of one number: a service that shows both, each to some."""
    signed: dict[tuple[str, int], str] = {}
    for entry in entries:
        if entry.kind == MANIFEST_ENTRY and signed.setdefault((entry.task, entry.sequence), entry.value) != entry.value:
            raise LogTrouble(f"task {entry.task}: two manifests have the number {entry.sequence}")
