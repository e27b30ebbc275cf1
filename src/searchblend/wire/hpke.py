"""HPKE (RFC 9180) in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, as a context that also exports.

``cryptography`` has this suite for one message (``wire/sealed.py`` uses it). Oblivious HTTP keys its answers from the
context that the request was sealed in, which takes the exporter; so the key schedule is here, on the library's X25519
and AES-GCM and the standard library's HMAC.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from searchblend.core.errors import MessageError

KEM_ID: Final = 0x0020
KDF_ID: Final = 0x0001
AEAD_ID: Final = 0x0001
ENC_BYTES: Final = 32
KEY_BYTES: Final = 16
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
_HASH_BYTES: Final = 32
_VERSION: Final = b"HPKE-v1"
_KEM_SUITE: Final = b"KEM" + KEM_ID.to_bytes(2, "big")
_SUITE: Final = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (KEM_ID, KDF_ID, AEAD_ID))
_BASE_MODE: Final = b"\0"


class HpkeContext:
    """One side of one exchange: messages are numbered, secrets are exported by name. RFC 9180, 5.1 to 5.3."""

    def __init__(self, enc: bytes, shared_secret: bytes, info: bytes) -> None:
        self.enc = enc
        psk_id_hash = _labeled_extract(_SUITE, b"", b"psk_id_hash", b"")
        schedule = _BASE_MODE + psk_id_hash + _labeled_extract(_SUITE, b"", b"info_hash", info)
        secret = _labeled_extract(_SUITE, shared_secret, b"secret", b"")
        self._aead = AESGCM(_labeled_expand(_SUITE, secret, b"key", schedule, KEY_BYTES))
        self._base_nonce = _labeled_expand(_SUITE, secret, b"base_nonce", schedule, NONCE_BYTES)
        self._exporter = _labeled_expand(_SUITE, secret, b"exp", schedule, _HASH_BYTES)
        self._number = 0

    def seal(self, plaintext: bytes, aad: bytes = b"") -> bytes:
        return self._aead.encrypt(self._next_nonce(), plaintext, aad)

    def open(self, ciphertext: bytes, aad: bytes = b"") -> bytes:
        """The plaintext, or ``MessageError``: after which this context is of no more use."""
        try:
            return self._aead.decrypt(self._next_nonce(), ciphertext, aad)
        except InvalidTag as error:
            raise MessageError("HPKE: does not open") from error

    def export(self, name: bytes, length: int) -> bytes:
        return _labeled_expand(_SUITE, self._exporter, b"sec", name, length)

    def _next_nonce(self) -> bytes:
        number = int.from_bytes(self._base_nonce, "big") ^ self._number
        self._number += 1
        return number.to_bytes(NONCE_BYTES, "big")


def sender(public_key: bytes, info: bytes, ephemeral: X25519PrivateKey | None = None) -> HpkeContext:
    """The context of who seals; tests give the ephemeral key."""
    own = ephemeral or X25519PrivateKey.generate()
    enc = own.public_key().public_bytes_raw()
    return HpkeContext(enc, _shared_secret(own, public_key, enc, public_key), info)


def receiver(private_key: X25519PrivateKey, enc: bytes, info: bytes) -> HpkeContext:
    """The context of who opens."""
    own = private_key.public_key().public_bytes_raw()
    return HpkeContext(enc, _shared_secret(private_key, enc, enc, own), info)


def hkdf_extract(salt: bytes, key: bytes) -> bytes:
    return hmac.digest(salt or bytes(_HASH_BYTES), key, hashlib.sha256)


def hkdf_expand(key: bytes, info: bytes, length: int) -> bytes:
    content, block = b"", b""
    for number in range(1, -(-length // _HASH_BYTES) + 1):
        block = hmac.digest(key, block + info + bytes([number]), hashlib.sha256)
        content += block
    return content[:length]


def _shared_secret(own: X25519PrivateKey, peer: bytes, enc: bytes, recipient: bytes) -> bytes:
    """RFC 9180, 4.1: the same for both sides. A point of small order is refused, and so is what is not a point."""
    try:
        agreed = own.exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError as error:
        raise MessageError("HPKE: expected a public key that gives a secret") from error
    key = _labeled_extract(_KEM_SUITE, b"", b"eae_prk", agreed)
    return _labeled_expand(_KEM_SUITE, key, b"shared_secret", enc + recipient, _HASH_BYTES)


def _labeled_extract(suite: bytes, salt: bytes, label: bytes, key: bytes) -> bytes:
    return hkdf_extract(salt, _VERSION + suite + label + key)


def _labeled_expand(suite: bytes, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return hkdf_expand(key, length.to_bytes(2, "big") + _VERSION + suite + label + info, length)
