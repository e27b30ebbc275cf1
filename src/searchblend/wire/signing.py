"""ECDSA P-256 with SHA-256 over manifests, packs and the keys of rounds: believed is what one pinned key has signed.

A key's id is the first 8 bytes of SHA-256 of its uncompressed public point. Several signatures let a key be replaced
while devices still pin the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.records import HeadList
from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import Manifest, Signature, SignedManifest, decode_payload, decode_signed
from searchblend.wire.optin_result import DrawnBy, OptinResult
from searchblend.wire.signed_pack import SignedPack, decode_signed_pack, encode_signed_pack
from searchblend.wire.transparency import Checkpoint, decode_checkpoint

ROUND_KEY_PREFIX: Final = b"searchblend round key v1\n"
_HASH: Final = ec.ECDSA(hashes.SHA256())
_POINT_BYTES: Final = 65
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class SigningKey:
    """A private P-256 key. ``repr`` shows its id alone."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self.public_point = key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        self.key_id = key_id(self.public_point)

    @classmethod
    def new(cls) -> SigningKey:
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def of_pem(cls, pem: bytes, passphrase: bytes | None = None) -> SigningKey:
        """Of PKCS#8 in PEM. What is encrypted needs its passphrase, and where one is given everything is encrypted."""
        try:
            key = serialization.load_pem_private_key(pem, passphrase)
        except TypeError as error:  # the two ways in which passphrase and file do not go together
            state = "is encrypted; expected its passphrase" if passphrase is None else "is not encrypted"
            raise MessageError(f"signing key: {state}") from error
        except ValueError as error:
            expected = (
                "an unencrypted PEM private key" if passphrase is None else "a PEM private key of this passphrase"
            )
            raise MessageError(f"signing key: expected {expected}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise MessageError("signing key: expected a P-256 key")
        return cls(key)

    def as_pem(self, passphrase: bytes | None = None) -> bytes:
        encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
        return self._key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)

    def sign(self, content: bytes) -> Signature:
        r, s = decode_dss_signature(self._key.sign(content, _HASH))
        raw = r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return Signature.of_bytes(self.key_id, raw)

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"


@dataclass(frozen=True)
class RoundKey:
    """A round as its curator opened it, in the words of the manifest: what the curator signs.

    A manifest is signed by the publisher, who reads the round from the database. Whoever can write there could put a
    key of their own in its place, or change what the curator will do with the records. So the curator signs the round
    with a key that never leaves it; the publisher signs no manifest of a round that the curator did not sign, and a
    device that has pinned the curator's key seals to no other. Signed is ``"searchblend round key v1\\n"`` and the
    canonical JSON of these fields, ECDSA as for manifests.
    """

    task: str
    round: int
    public_key: str
    consent: str
    closes: int
    epsilon: str
    delta: str
    records_per_optin: int
    settings: str
    """SHA-256 of all settings of the round, those that no device sees among them"""

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> RoundKey:
        """Of a manifest in phase opt-in, from minor version 1 on."""
        optin = manifest.optin
        assert optin is not None
        assert optin.settings is not None
        return cls(
            task=manifest.task,
            round=manifest.round,
            public_key=optin.public_key,
            consent=optin.consent,
            closes=optin.closes,
            epsilon=manifest.epsilon,
            delta=manifest.delta,
            records_per_optin=manifest.records_per_optin,
            settings=optin.settings,
        )

    @property
    def signed_bytes(self) -> bytes:
        return ROUND_KEY_PREFIX + canonical_json(vars(self))


def key_id(public_point: bytes) -> str:
    return hashlib.sha256(public_point).hexdigest()[:16]


def read_public_point(digits: str, field: str) -> tuple[str, bytes]:
    """Key id and point of a public key as ``searchblend keys`` prints it; ``InvalidParameter`` names the field."""
    try:
        point = bytes.fromhex(digits)
    except ValueError:
        point = b""
    if len(point) != _POINT_BYTES or point[0] != 4:
        raise InvalidParameter(field, "expected an uncompressed P-256 point: 130 hexadecimal digits beginning with 04")
    return key_id(point), point


def sign_manifest(payload: bytes, keys: Iterable[SigningKey]) -> SignedManifest:
    unsigned = SignedManifest(payload, ())
    return SignedManifest(payload, tuple(key.sign(unsigned.signed_bytes) for key in keys))


def verify_manifest(message: bytes, pinned: Mapping[str, bytes]) -> Manifest:
    """The manifest, if one of the pinned public points (by key id) has signed it; else ``MessageError``."""
    signed = decode_signed(message)
    if not is_signed(signed.signed_bytes, signed.signatures, pinned):
        raise MessageError("manifest: no valid signature of a pinned key")
    return decode_payload(signed.payload)


def is_round_key_signed(manifest: Manifest, pinned: Mapping[str, bytes]) -> bool:
    """Whether one of the pinned curators has signed the round that this manifest, in phase opt-in, asks for."""
    optin = manifest.optin
    if optin is None or optin.curator is None or optin.settings is None:  # minor version 0 has neither
        return False
    return is_signed(RoundKey.of_manifest(manifest).signed_bytes, [optin.curator], pinned)


def is_drawn_by_curator(result: OptinResult, head: HeadList, drawn_by: DrawnBy, curators: Mapping[str, bytes]) -> bool:
    """Whether one of the curators has drawn every entry of this list; without any, whether the key that it names has.

    A key that no device pinned says that list and result belong together, and that whoever signed the manifest stands
    for the curator.
    """
    point = bytes.fromhex(result.key)
    believed = curators or {key_id(point): point}
    try:
        content = drawn_by.signed_bytes(result.root(head))
    except MessageError:
        return False
    return is_signed(content, [result.curator], believed)


def sign_checkpoint(checkpoint: Checkpoint, keys: Iterable[SigningKey]) -> Checkpoint:
    """With a signature of every key; those that it has already stay."""
    for key in keys:
        checkpoint = checkpoint.with_signature(key.public_point, key.sign(checkpoint.signed_bytes))
    return checkpoint


def verify_checkpoint(note: bytes, pinned: Mapping[str, bytes]) -> Checkpoint:
    """The checkpoint, if one of the pinned public points (by key id) has signed it; else ``MessageError``."""
    checkpoint = decode_checkpoint(note)
    if not is_signed(checkpoint.signed_bytes, checkpoint.signatures(pinned), pinned):
        raise MessageError("checkpoint: no valid signature of a pinned key")
    return checkpoint


def witnesses_of(checkpoint: Checkpoint, witnesses: Mapping[str, bytes]) -> set[str]:
    """Which of these witnesses (by key id) have cosigned it."""
    cosignatures = checkpoint.cosignatures(witnesses)
    return {key for key, content, signature in cosignatures if is_signed(content, [signature], witnesses)}


def attached(checkpoint: Checkpoint, cosigned: Checkpoint, witnesses: Mapping[str, bytes]) -> Checkpoint:
    """The checkpoint with one valid line of each of these witnesses that has cosigned it, and nothing else of theirs.

    A note may have few lines: a witness that could add more of them would make it one that no device reads.
    """
    for key, point in witnesses.items():
        own = {key: point}
        valid = [line for line in cosigned.lines_of(point) if witnesses_of(replace(cosigned, lines=(line,)), own)]
        if valid:
            before = checkpoint.lines_of(point)
            others = tuple(line for line in checkpoint.lines if line not in before)
            checkpoint = replace(checkpoint, lines=(*others, valid[0]))
    return checkpoint


def sign_pack(pack: bytes, keys: Iterable[SigningKey]) -> bytes:
    """A pack with a signature of every key in front."""
    unsigned = SignedPack(pack, ())
    return encode_signed_pack(pack, [key.sign(unsigned.signed_bytes) for key in keys])


def verify_signed_pack(content: bytes, pinned: Mapping[str, bytes]) -> bytes:
    """The pack's bytes, if one of the pinned public points (by key id) has signed them; else ``MessageError``."""
    signed = decode_signed_pack(content)
    if not is_signed(signed.signed_bytes, signed.signatures, pinned):
        raise MessageError("signed pack: no valid signature of a pinned key")
    return signed.pack


def is_signed(content: bytes, signatures: Iterable[Signature], pinned: Mapping[str, bytes]) -> bool:
    """Whether one of the pinned public points (by key id) has signed exactly these bytes."""
    return any(_is_by(signature, content, pinned) for signature in signatures)


def _is_by(signature: Signature, content: bytes, pinned: Mapping[str, bytes]) -> bool:
    point = pinned.get(signature.key_id)
    if point is None or key_id(point) != signature.key_id:
        return False
    raw = signature.content
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    if not (0 < r < _ORDER and 0 < s < _ORDER):
        return False
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        key.verify(encode_dss_signature(r, s), content, _HASH)
    except (InvalidSignature, ValueError):
        return False
    return True
