"""Single-use tokens that say "one report of one client" without saying whose: Privacy Pass (RFC 9578), type 0x0002.

    token      = type (2) ‖ nonce (32) ‖ challenge digest (32) ‖ key id (32) ‖ authenticator (256)
    challenge  = type (2) ‖ issuer name (2 + n) ‖ redemption context (1 + 32) ‖ origin info (2 + 0)
    context    = SHA-256("searchblend token v1" ‖ task (16) ‖ round (4, big-endian))

The authenticator is a blind RSA signature (RFC 9474, RSABSSA-SHA384-PSS-Deterministic): the issuer sees neither nonce
nor token, so whoever redeems it cannot be found in the issuer's books. Verifying it is RSASSA-PSS, done by
``cryptography``. Only verification is here; issuing needs the issuer's key and knowledge of accounts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from searchblend.core.errors import InvalidParameter, MessageError

TOKEN_TYPE: Final = b"\x00\x02"
KEY_BITS: Final = 2048
SIGNED_BYTES: Final = 2 + 32 + 32 + 32
TOKEN_BYTES: Final = SIGNED_BYTES + KEY_BITS // 8
_CONTEXT_LABEL: Final = b"searchblend token v1"
_PSS: Final = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=48)
_PSS_ALGORITHM: Final = bytes.fromhex(
    "303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b0609608648016503040202"
    "a203020130"
)
"""AlgorithmIdentifier of RSASSA-PSS with SHA-384 and a salt of 48 bytes, as RFC 9578 wants it in a key's id"""
_HEADER: Final = re.compile(r'PrivateToken token="?([A-Za-z0-9_-]+={0,2})"?')


def challenge_digest(issuer: str, task: bytes, round_number: int) -> bytes:
    """What a token for this round must have been issued for."""
    context = hashlib.sha256(_CONTEXT_LABEL + task + round_number.to_bytes(4, "big")).digest()
    name = issuer.encode()
    challenge = TOKEN_TYPE + len(name).to_bytes(2, "big") + name + b"\x20" + context + b"\x00\x00"
    return hashlib.sha256(challenge).digest()


def issuer_key_id(key: RSAPublicKey) -> bytes:
    """SHA-256 of the key as a SubjectPublicKeyInfo of RSASSA-PSS."""
    pkcs1 = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    bits = _der(0x03, b"\x00" + pkcs1)
    return hashlib.sha256(_der(0x30, _PSS_ALGORITHM + bits)).digest()


class TokenVerifier:
    """One issuer's public key."""

    def __init__(self, pem: bytes, issuer: str) -> None:
        try:
            key = serialization.load_pem_public_key(pem)
        except ValueError as error:
            raise InvalidParameter("token_key", "expected a PEM public key") from error
        if not isinstance(key, RSAPublicKey) or key.key_size != KEY_BITS:
            raise InvalidParameter("token_key", f"expected an RSA key of {KEY_BITS} bits")
        self._key, self._issuer, self._key_id = key, issuer, issuer_key_id(key)

    def nonce(self, header: str, task: bytes, round_number: int) -> bytes:
        """The nonce of a valid token in an Authorization header, or ``MessageError``."""
        match = _HEADER.fullmatch(header)
        if not match:
            raise MessageError("token: expected Authorization: PrivateToken token=…")
        try:
            token = base64.urlsafe_b64decode(match[1].rstrip("=") + "=" * (-len(match[1].rstrip("=")) % 4))
        except (binascii.Error, ValueError) as error:
            raise MessageError("token: expected base64url") from error
        return self.verify(token, task, round_number)

    def verify(self, token: bytes, task: bytes, round_number: int) -> bytes:
        """The nonce of a valid token for this round."""
        if len(token) != TOKEN_BYTES or token[:2] != TOKEN_TYPE:
            raise MessageError(f"token: expected {TOKEN_BYTES} bytes of type 2")
        if token[34:66] != challenge_digest(self._issuer, task, round_number):
            raise MessageError("token: issued for another round")
        if token[66:98] != self._key_id:
            raise MessageError("token: of another issuer's key")
        try:
            self._key.verify(token[SIGNED_BYTES:], token[:SIGNED_BYTES], _PSS, hashes.SHA384())
        except InvalidSignature as error:
            raise MessageError("token: wrong signature") from error
        return token[2:34]


def _der(tag: int, content: bytes) -> bytes:
    n = len(content)
    if n < 0x80:
        return bytes([tag, n]) + content
    length = n.to_bytes((n.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(length)]) + length + content
