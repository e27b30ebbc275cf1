"""The sealed opt-in record: written on a device, readable by the curator of one round alone, counted for one person.

HPKE (RFC 9180) base mode, X25519 / HKDF-SHA256 / AES-128-GCM, one shot, by the library ``cryptography``.

    message    = version (1 byte, 2) ‖ suite (1 byte, 1) ‖ consent digest (32) ‖ enc (32) ‖ ciphertext
    tag        = SHA-256("searchblend contributor v1" ‖ task (16) ‖ round (4, big-endian) ‖ SHA-256(credential))
    info       = "searchblend opt-in v2" ‖ task (16) ‖ round (4, big-endian) ‖ consent digest (32) ‖ tag (32); no AAD
    plaintext  = length (2, big-endian) ‖ canonical JSON ‖ zeros, filled up to the least of BUCKETS that holds it
    JSON       = {"records":[[query,url],…]}; url is null in a task without URLs

Task, round, the words that were consented to and the contributor are bound in: a record opens nowhere else, and a copy
of it under another's tag opens nowhere at all. The tag is in no message: the service computes it from the credential
that came with the record. It is made from the credential's hash, which is what a service keeps of an enrolment code, so
that the curator can tell the tags of enrolled people from invented ones. The size says only the bucket.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from searchblend.core.errors import MessageError
from searchblend.core.normalization import normalize
from searchblend.core.records import WILDCARD, Record
from searchblend.wire.canonical import canonical_json, parse_canonical

SEALED_MEDIA_TYPE: Final = "application/vnd.searchblend.sealed"
SEALED_VERSION: Final = 2
SUITE: Final = 1
BUCKETS: Final = (256, 512, 1024, 2048, 4096)
LABEL: Final = b"searchblend opt-in v2"
TAG_LABEL: Final = b"searchblend contributor v1"
CONSENT_BYTES: Final = 32
KEY_BYTES: Final = 32
TAG_BYTES: Final = 32
_HEAD: Final = 2 + CONSENT_BYTES
_FRAME: Final = 2
_ENC_BYTES: Final = 32
OVERHEAD: Final = _HEAD + _ENC_BYTES + 16
SEALED_SIZES: Final = tuple(OVERHEAD + bucket for bucket in BUCKETS)
_HPKE: Final = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)


@dataclass(frozen=True)
class SealingContext:
    """What the records of a round are bound to, whoever sends them; public."""

    task: bytes
    round: int
    consent: bytes
    """SHA-256 of the string that the user agreed to"""

    def info(self, tag: bytes) -> bytes:
        """What one contributor's record is bound to."""
        if len(tag) != TAG_BYTES:  # every part has a fixed size: no two lists of parts have the same bytes
            raise MessageError(f"sealed record: tag: expected {TAG_BYTES} bytes")
        return LABEL + self.task + self.round.to_bytes(4, "big") + self.consent + tag

    def tag_of(self, credential: str) -> bytes:
        """The tag of whoever has this credential."""
        return self.tag_of_hash(hashlib.sha256(credential.encode()).digest())

    def tag_of_hash(self, credential_hash: bytes) -> bytes:
        return hashlib.sha256(TAG_LABEL + self.task + self.round.to_bytes(4, "big") + credential_hash).digest()


def new_round_key() -> tuple[bytes, bytes]:
    """A private and a public key, 32 bytes each."""
    private = X25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def public_key_of(private_key: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def seal_records(records: Sequence[Record], context: SealingContext, tag: bytes, public_key: bytes) -> bytes:
    """Seal one person's records for one round; they open under this tag alone."""
    if not records:
        raise MessageError("sealed record: records: expected at least one")
    padded = _pad(_content(records))
    try:
        sealed = _HPKE.encrypt(padded, X25519PublicKey.from_public_bytes(public_key), context.info(tag))
    except ValueError as error:  # 32 bytes of any kind load, but a point of small order makes no secret
        raise MessageError("sealed record: public_key: expected a key that can be sealed to") from error
    return bytes([SEALED_VERSION, SUITE]) + context.consent + sealed


def fits_sealed(records: Sequence[Record]) -> bool:
    """Whether these records together are short enough for one message."""
    return _FRAME + len(_content(records)) <= BUCKETS[-1]


def check_sealed(message: bytes, context: SealingContext) -> None:
    """What can be checked without the key: form, size and consent."""
    if len(message) not in SEALED_SIZES or message[:2] != bytes([SEALED_VERSION, SUITE]):
        raise MessageError("sealed record: malformed: expected version 2, suite 1 and the size of a bucket")
    if message[2:_HEAD] != context.consent:
        raise MessageError("sealed record: wrong-consent: made under another consent text")


def encapsulation(message: bytes) -> bytes:
    """What no two sealings share, short of a copy."""
    return message[_HEAD : _HEAD + _ENC_BYTES]


class Opener:
    """The private key of one round, ready to open many records."""

    def __init__(self, private_key: bytes, context: SealingContext, *, at_most: int) -> None:
        self._key = X25519PrivateKey.from_private_bytes(private_key)
        self._context, self._at_most = context, at_most

    def open(self, message: bytes, tag: bytes) -> list[Record]:
        """The records, at least one and at most what the round takes of one person."""
        check_sealed(message, self._context)
        try:
            padded = _HPKE.decrypt(message[_HEAD:], self._key, self._context.info(tag))
        except (InvalidTag, ValueError) as error:
            raise MessageError("sealed record: not sealed for this round, consent and contributor") from error
        return _records(_unpad(padded), self._at_most)


def _content(records: Sequence[Record]) -> bytes:
    return canonical_json({"records": [_pair(record) for record in records]})


def _pair(record: Record) -> list[str | None]:
    query, url = record
    if not isinstance(query, str):
        raise MessageError("sealed record: expected a query")
    return [query, url if isinstance(url, str) else None]


def _pad(content: bytes) -> bytes:
    if _FRAME + len(content) > BUCKETS[-1]:
        raise MessageError(f"sealed record: expected at most {BUCKETS[-1] - _FRAME} bytes")
    framed = len(content).to_bytes(_FRAME, "big") + content
    return framed.ljust(next(bucket for bucket in BUCKETS if len(framed) <= bucket), b"\0")


def _unpad(padded: bytes) -> bytes:
    length = int.from_bytes(padded[:2], "big")
    content, rest = padded[2 : 2 + length], padded[2 + length :]
    if len(content) != length or any(rest) or _pad(content) != padded:
        raise MessageError("sealed record: wrong padding")
    return content


def _records(content: bytes, at_most: int) -> list[Record]:
    document = parse_canonical(content, "sealed record")
    pairs = document.get("records") if isinstance(document, dict) and set(document) == {"records"} else None
    if not isinstance(pairs, list) or not 1 <= len(pairs) <= at_most:
        raise MessageError(f"sealed record: records: expected 1 to {at_most}")
    return [_record(pair) for pair in pairs]


def _record(pair: Any) -> Record:
    if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str | None)):
        raise MessageError("sealed record: records: expected [query, url] pairs")
    query, url = pair
    if normalize(query) != query or url == "":
        raise MessageError("sealed record: records: expected normalized queries and URLs")
    return Record(query, WILDCARD if url is None else url)
