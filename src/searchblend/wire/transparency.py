"""What a transparency log says: its entries, and checkpoints of it that its service signs and witnesses cosign.

An entry is canonical JSON: a manifest of a task by its number and the SHA-256 of its payload, or a public key. A
checkpoint is a signed note (C2SP): origin, number of entries and root, a blank line, and lines of signatures. The
signatures are ECDSA P-256, of the keys that sign manifests and that devices have pinned, so they carry the notes' type
for algorithms of one's own (0xff) and no other program's checks.

    signed by the service   "searchblend checkpoint v1\\n" ‖ the note's text
    cosigned by a witness   "searchblend cosignature v1\\ntime T\\n" ‖ the note's text; T is in the signature's line

Standard library only; signatures are checked in ``signing``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from searchblend.core.errors import MessageError
from searchblend.wire.canonical import canonical_json, parse_canonical
from searchblend.wire.manifest import Signature
from searchblend.wire.merkle import HASH_BYTES

CHECKPOINT_MEDIA_TYPE: Final = "text/plain"
TILE_MEDIA_TYPE: Final = "application/octet-stream"
LARGEST_CHECKPOINT: Final = 16 << 10
MANIFEST_ENTRY: Final = "manifest"
SIGNING_KEY: Final = "signing-key"
CURATOR_KEY: Final = "curator-key"
_SIGNED: Final = b"searchblend checkpoint v1\n"
_COSIGNED: Final = b"searchblend cosignature v1\n"
_LOG_TYPE: Final = b"\xffsearchblend/es256"
_WITNESS_TYPE: Final = b"\xffsearchblend/cosignature-es256"
_ID_BYTES: Final = 4
_TIME_BYTES: Final = 8
_SIGNATURE_BYTES: Final = 64
_MOST_LINES: Final = 32
_NAME: Final = "[!-*,-~]{1,100}"
"""printable, without a blank or a plus"""
_NOTE: Final = re.compile(
    rf"({_NAME})\n(0|[1-9][0-9]{{0,14}})\n([A-Za-z0-9+/]{{43}}=)\n\n((?:— {_NAME} [A-Za-z0-9+/=]+\n)+)"
)
_HEX: Final = {MANIFEST_ENTRY: ("sha256", 64), SIGNING_KEY: ("key", 130), CURATOR_KEY: ("key", 130)}


@dataclass(frozen=True)
class NoteLine:
    """A signature of a note: who, by name; which of their keys; and bytes."""

    name: str
    key_hash: bytes
    signature: bytes


@dataclass(frozen=True)
class Checkpoint:
    """How long the log is and what it holds, with the signatures that came with it."""

    origin: str
    size: int
    root: bytes
    lines: Sequence[NoteLine] = field(default=(), compare=False)

    @property
    def text(self) -> bytes:
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n".encode()

    @property
    def signed_bytes(self) -> bytes:
        return _SIGNED + self.text

    def cosigned_bytes(self, time: int) -> bytes:
        return _COSIGNED + f"time {time}\n".encode() + self.text

    def signatures(self, pinned: Mapping[str, bytes]) -> list[Signature]:
        """The service's own, by the ids of the keys that are pinned."""
        by_hash = {_key_hash(self.origin, _LOG_TYPE, point): key_id for key_id, point in pinned.items()}
        return [
            Signature.of_bytes(by_hash[line.key_hash], line.signature)
            for line in self.lines
            if line.name == self.origin and line.key_hash in by_hash and len(line.signature) == _SIGNATURE_BYTES
        ]

    def cosignatures(self, witnesses: Mapping[str, bytes]) -> list[tuple[str, bytes, Signature]]:
        """Key id, what was signed, and the signature, for each line that is of one of these witnesses' keys."""
        cosignatures = []
        for line in self.lines:
            for key_id, point in witnesses.items():
                if line.key_hash == _key_hash(line.name, _WITNESS_TYPE, point):
                    time, raw = line.signature[:_TIME_BYTES], line.signature[_TIME_BYTES:]
                    if len(raw) == _SIGNATURE_BYTES:
                        signed = self.cosigned_bytes(int.from_bytes(time, "big"))
                        cosignatures.append((key_id, signed, Signature.of_bytes(key_id, raw)))
        return cosignatures

    def with_signature(self, point: bytes, signature: Signature) -> Checkpoint:
        line = NoteLine(self.origin, _key_hash(self.origin, _LOG_TYPE, point), signature.content)
        return replace(self, lines=(*self.lines, line))

    def with_cosignature(self, name: str, point: bytes, signature: Signature, time: int) -> Checkpoint:
        """One line for each key of a witness; a newer one replaces an older one."""
        key_hash = _key_hash(name, _WITNESS_TYPE, point)
        return self.with_line(NoteLine(name, key_hash, time.to_bytes(_TIME_BYTES, "big") + signature.content))

    def lines_of(self, witness: bytes) -> list[NoteLine]:
        """What claims to be of this witness' key, under whatever name."""
        return [line for line in self.lines if line.key_hash == _key_hash(line.name, _WITNESS_TYPE, witness)]

    def with_line(self, line: NoteLine) -> Checkpoint:
        others = tuple(one for one in self.lines if (one.name, one.key_hash) != (line.name, line.key_hash))
        return replace(self, lines=(*others, line))


@dataclass(frozen=True)
class LogEntry:
    """What was logged; of a manifest task and number too."""

    kind: str
    value: str
    """SHA-256 of a manifest's payload, or a public point; hexadecimal"""
    task: str = ""
    sequence: int = 0

    @classmethod
    def of_manifest(cls, task: str, sequence: int, payload: bytes) -> LogEntry:
        return cls(MANIFEST_ENTRY, hashlib.sha256(payload).hexdigest(), task, sequence)


def encode_entry(entry: LogEntry) -> bytes:
    """One entry has one encoding: a device computes it from the manifest that it was given."""
    named = {"task": entry.task, "sequence": entry.sequence} if entry.kind == MANIFEST_ENTRY else {}
    return canonical_json({"kind": entry.kind, _HEX[entry.kind][0]: entry.value, **named})


def decode_entry(content: bytes) -> LogEntry:
    document: Any = parse_canonical(content, "log entry")
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in _HEX:
        raise MessageError(f"log entry: kind: expected one of {', '.join(_HEX)}")
    name, digits = _HEX[kind]
    fields = {"kind", name, *(("task", "sequence") if kind == MANIFEST_ENTRY else ())}
    if set(document) != fields:
        raise MessageError(f"log entry: expected {', '.join(sorted(fields))}")
    for each, length in ((name, digits), *((("task", 32),) if kind == MANIFEST_ENTRY else ())):
        if not isinstance(document[each], str) or not re.fullmatch(f"[0-9a-f]{{{length}}}", document[each]):
            raise MessageError(f"log entry: {each}: expected {length} hexadecimal digits")
    sequence = document.get("sequence", 0)
    if not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 0:
        raise MessageError("log entry: sequence: expected 0 or more")
    return LogEntry(kind, document[name], document.get("task", ""), sequence)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    lines = (
        f"— {line.name} {base64.b64encode(line.key_hash + line.signature).decode()}\n" for line in checkpoint.lines
    )
    return checkpoint.text + b"\n" + "".join(lines).encode()


def decode_checkpoint(content: bytes) -> Checkpoint:
    """The note, strictly; nothing of it is to be believed before a signature was checked."""
    try:
        match = _NOTE.fullmatch(content.decode("utf-8")) if len(content) <= LARGEST_CHECKPOINT else None
        if match is None or match[4].count("\n") > _MOST_LINES:
            raise MessageError("checkpoint: expected a signed note: origin, size, root, a blank line, signatures")
        root = base64.b64decode(match[3], validate=True)
        lines = tuple(_note_line(line) for line in match[4].splitlines())
    except ValueError as error:
        raise MessageError("checkpoint: expected UTF-8 and base64") from error
    if len(root) != HASH_BYTES or base64.b64encode(root).decode() != match[3]:
        raise MessageError("checkpoint: root: expected 32 bytes in base64")
    return Checkpoint(match[1], int(match[2]), root, lines)


def encode_bundle(entries: Iterable[bytes]) -> bytes:
    """Entries as tlog-tiles bundles them: each with its length in two bytes before it."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def decode_bundle(content: bytes) -> list[bytes]:
    entries = list[bytes]()
    while content:
        length = int.from_bytes(content[:2], "big")
        if len(content) < 2 + length:
            raise MessageError("log entries: cut off")
        entries.append(content[2 : 2 + length])
        content = content[2 + length :]
    return entries


def _note_line(line: str) -> NoteLine:
    _, name, encoded = line.split(" ")
    content = base64.b64decode(encoded, validate=True)
    return NoteLine(name, content[:_ID_BYTES], content[_ID_BYTES:])


def _key_hash(name: str, kind: bytes, point: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + kind + point).digest()[:_ID_BYTES]
