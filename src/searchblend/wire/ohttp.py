"""Oblivious HTTP (RFC 9458): a request sealed to a gateway, and the answer sealed to whoever sent that request.

    key configuration = key id (1) ‖ KEM (2) ‖ public key (32) ‖ length (2) ‖ KDF and AEAD (4) …
    configurations    = length (2) ‖ key configuration …
    header            = key id (1) ‖ KEM (2) ‖ KDF (2) ‖ AEAD (2)
    request           = header ‖ enc (32) ‖ ciphertext; info = "message/bhttp request" ‖ 0 ‖ header
    answer            = nonce (16) ‖ ciphertext, keyed from the request's HPKE context and this nonce

One suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. What is sealed is binary HTTP
(``wire/binary_http.py``).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from searchblend.core.errors import MessageError
from searchblend.wire.binary_http import padded_size
from searchblend.wire.hpke import (
    AEAD_ID,
    ENC_BYTES,
    KDF_ID,
    KEM_ID,
    KEY_BYTES,
    NONCE_BYTES,
    TAG_BYTES,
    HpkeContext,
    hkdf_expand,
    hkdf_extract,
    receiver,
    sender,
)

REQUEST_MEDIA_TYPE: Final = "message/ohttp-req"
RESPONSE_MEDIA_TYPE: Final = "message/ohttp-res"
KEYS_MEDIA_TYPE: Final = "application/ohttp-keys"
GATEWAY_PATH: Final = "/.well-known/ohttp-gateway"
"""RFC 9540: where a gateway takes requests, and gives out its key configurations"""
KEY_PROBLEM: Final = "https://iana.org/assignments/http-problem-types#ohttp-key"
"""RFC 9458, 5.3: the gateway does not know the key that a request was sealed to"""
LARGEST_KEYS: Final = 4096
_PUBLIC_BYTES: Final = 32
_KEY_BYTES: Final = 3 + _PUBLIC_BYTES
_HEADER_BYTES: Final = 7
_SUITE: Final = KDF_ID.to_bytes(2, "big") + AEAD_ID.to_bytes(2, "big")
_SALT_BYTES: Final = max(KEY_BYTES, NONCE_BYTES)
_REQUEST_LABEL: Final = b"message/bhttp request"
_RESPONSE_LABEL: Final = b"message/bhttp response"
_REQUEST_OVERHEAD: Final = _HEADER_BYTES + ENC_BYTES + TAG_BYTES
_RESPONSE_OVERHEAD: Final = _SALT_BYTES + TAG_BYTES
LARGEST_REQUEST: Final = 2 * 64 * 1024 + _REQUEST_OVERHEAD
"""that a gateway of this project takes: a report of 64 KiB with what is said around it, in its padded size"""
_MOST_AROUND: Final = 8 * 1024
"""bytes of an answer's status and fields"""


def largest_response(content_bytes: int) -> int:
    """Of an answer whose content has at most so many bytes."""
    return padded_size(content_bytes + _MOST_AROUND) + _RESPONSE_OVERHEAD


class UnknownKey(MessageError):
    """Sealed to a key, or in a suite, that this gateway does not have."""


@dataclass(frozen=True)
class KeyConfiguration:
    """A gateway's public key with its number, as the gateway wrote it."""

    encoded: bytes

    @classmethod
    def of(cls, key_id: int, public_key: bytes) -> KeyConfiguration:
        head = bytes([key_id]) + KEM_ID.to_bytes(2, "big") + public_key
        return cls(head + len(_SUITE).to_bytes(2, "big") + _SUITE)

    @property
    def key_id(self) -> int:
        return self.encoded[0]

    @property
    def public_key(self) -> bytes:
        return self.encoded[3 : 3 + _PUBLIC_BYTES]

    @property
    def digest(self) -> str:
        """What a manifest names it by."""
        return hashlib.sha256(self.encoded).hexdigest()

    @property
    def is_usable(self) -> bool:
        """Whether it is of our KEM, and our suite is among its own."""
        suites = self.encoded[_KEY_BYTES + 2 :]
        is_whole = (
            int.from_bytes(self.encoded[_KEY_BYTES : _KEY_BYTES + 2], "big") == len(suites) and not len(suites) % 4
        )
        is_ours = _SUITE in (suites[place : place + 4] for place in range(0, len(suites), 4))
        return self.encoded[1:3] == KEM_ID.to_bytes(2, "big") and is_whole and is_ours


@dataclass(frozen=True)
class GatewayKey:
    """A gateway's key pair and its number."""

    private_key: X25519PrivateKey
    key_id: int

    @classmethod
    def of_bytes(cls, private_key: bytes) -> GatewayKey:
        """Numbered by a byte of the public key's digest, so that no one has to remember numbers.

        Two keys may share one, and then both are tried.
        """
        key = X25519PrivateKey.from_private_bytes(private_key)
        return cls(key, hashlib.sha256(key.public_key().public_bytes_raw()).digest()[0])

    @property
    def configuration(self) -> KeyConfiguration:
        return KeyConfiguration.of(self.key_id, self.private_key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"GatewayKey({self.key_id})"


def encode_configurations(configurations: Iterable[KeyConfiguration]) -> bytes:
    """The body of ``application/ohttp-keys``, the preferred one first."""
    return b"".join(len(each.encoded).to_bytes(2, "big") + each.encoded for each in configurations)


def decode_configurations(content: bytes) -> list[KeyConfiguration]:
    """Those that can be used here, in their order; ``MessageError`` if there are none."""
    usable: list[KeyConfiguration] = []
    place = 0
    while place < len(content):
        size = int.from_bytes(content[place : place + 2], "big")
        configuration = KeyConfiguration(content[place + 2 : place + 2 + size])
        if place + 2 > len(content) or len(configuration.encoded) != size:
            raise MessageError("key configurations: truncated")
        if configuration.is_usable:
            usable.append(configuration)
        place += 2 + size
    if not usable:
        raise MessageError("key configurations: expected one with X25519, HKDF-SHA256 and AES-128-GCM")
    return usable


class SealedRequest:
    """A request sealed to a gateway; opens the answer to it, and no other."""

    def __init__(
        self, configuration: KeyConfiguration, request: bytes, ephemeral: X25519PrivateKey | None = None
    ) -> None:
        header = _header(configuration.key_id)
        self._context = sender(configuration.public_key, _info(header), ephemeral)
        self.message: Final = header + self._context.enc + self._context.seal(request)

    def open(self, message: bytes) -> bytes:
        """The answer, or ``MessageError``."""
        if len(message) < _RESPONSE_OVERHEAD:
            raise MessageError("oblivious HTTP: the answer is too short")
        salt, ciphertext = message[:_SALT_BYTES], message[_SALT_BYTES:]
        aead, nonce = _response_keys(self._context, salt)
        try:
            return aead.decrypt(nonce, ciphertext, b"")
        except InvalidTag as error:
            raise MessageError("oblivious HTTP: the answer does not open") from error


class OpenedRequest:
    """A request that a gateway opened; seals the answer to it."""

    def __init__(self, context: HpkeContext, request: bytes) -> None:
        self._context, self.request = context, request

    def seal(self, response: bytes, salt: bytes | None = None) -> bytes:
        """The answer; tests give the salt, which must never be used twice."""
        fresh = salt or secrets.token_bytes(_SALT_BYTES)
        aead, nonce = _response_keys(self._context, fresh)
        return fresh + aead.encrypt(nonce, response, b"")


def open_request(message: bytes, keys: Sequence[GatewayKey]) -> OpenedRequest:
    """The request, by the key that it names: ``UnknownKey`` if that is not here, ``MessageError`` if none opens it."""
    header, enc = message[:_HEADER_BYTES], message[_HEADER_BYTES : _HEADER_BYTES + ENC_BYTES]
    if len(message) < _REQUEST_OVERHEAD:
        raise MessageError("oblivious HTTP: the request is too short")
    named = [key for key in keys if _header(key.key_id) == header]
    if not named:
        raise UnknownKey("oblivious HTTP: sealed to a key that is not in use")
    for key in named:
        try:
            context = receiver(key.private_key, enc, _info(header))
            return OpenedRequest(context, context.open(message[_HEADER_BYTES + ENC_BYTES :]))
        except MessageError:
            continue
    raise MessageError("oblivious HTTP: the request does not open")


def _header(key_id: int) -> bytes:
    return bytes([key_id]) + KEM_ID.to_bytes(2, "big") + _SUITE


def _info(header: bytes) -> bytes:
    return _REQUEST_LABEL + b"\0" + header


def _response_keys(context: HpkeContext, salt: bytes) -> tuple[AESGCM, bytes]:
    """RFC 9458, 4.4."""
    key = hkdf_extract(context.enc + salt, context.export(_RESPONSE_LABEL, _SALT_BYTES))
    return AESGCM(hkdf_expand(key, b"key", KEY_BYTES)), hkdf_expand(key, b"nonce", NONCE_BYTES)
