"""Single-use tokens that say "one report of one client" without saying whose: Privacy Pass (RFC 9578), type 0x0002.

    token      = type (2) ‖ nonce (32) ‖ challenge digest (32) ‖ key id (32) ‖ authenticator (256)
    challenge  = type (2) ‖ issuer name (2 + n) ‖ redemption context (1 + 32) ‖ origin info (2 + 0)
    context    = SHA-256("searchblend token v1" ‖ task (16) ‖ round (4, big-endian))
    request    = type (2) ‖ last byte of the key id (1) ‖ blinded message (256)
    response   = blind signature (256)

The authenticator is a blind RSA signature (``blind_rsa``) over all that is before it: the issuer sees neither nonce nor
token nor for which task it is, so whoever redeems it cannot be found in the issuer's books. Verifying it is
RSASSA-PSS, done by ``cryptography``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.wire.addresses import is_origin
from searchblend.wire.base64url import decode_base64url, encode_base64url
from searchblend.wire.blind_rsa import SALT_BYTES, Blinded, blind, finalize
from searchblend.wire.manifest import TOKEN_PATH, TokenPart

TOKEN_TYPE: Final = b"\x00\x02"
KEY_BITS: Final = 2048
NONCE_BYTES: Final = 32
SIGNED_BYTES: Final = 2 + NONCE_BYTES + 32 + 32
SIGNATURE_BYTES: Final = KEY_BITS // 8
TOKEN_BYTES: Final = SIGNED_BYTES + SIGNATURE_BYTES
REQUEST_BYTES: Final = 3 + SIGNATURE_BYTES
DIRECTORY_PATH: Final = "/.well-known/private-token-issuer-directory"
DIRECTORY_MEDIA_TYPE: Final = "application/private-token-issuer-directory"
REQUEST_MEDIA_TYPE: Final = "application/private-token-request"
RESPONSE_MEDIA_TYPE: Final = "application/private-token-response"
_CONTEXT_LABEL: Final = b"searchblend token v1"
_EXPONENT: Final = 65_537
_PSS: Final = padding.PSS(mgf=padding.MGF1(hashes.SHA384()), salt_length=SALT_BYTES)
_BEFORE_MODULUS: Final = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108300b060960864801"
    "6503040202a2030201300382010f003082010a0282010100"
)
_AFTER_MODULUS: Final = bytes.fromhex("0203010001")
"""SubjectPublicKeyInfo of RSASSA-PSS with SHA-384 and a salt of 48 bytes around a modulus, as RFC 9578 wants a key"""
_HEADER: Final = re.compile(r'PrivateToken token="?([A-Za-z0-9_-]+={0,2})"?')
_SYSTEM: Final = SystemRandomness()


def issuer_name(address: str) -> str:
    """How a challenge names the issuer at this address: host and port."""
    return urlsplit(address).netloc


def challenge_digest(issuer: str, task: bytes, round_number: int) -> bytes:
    """What a token for this round must have been issued for."""
    context = hashlib.sha256(_CONTEXT_LABEL + task + round_number.to_bytes(4)).digest()
    name = issuer.encode()
    challenge = TOKEN_TYPE + len(name).to_bytes(2) + name + b"\x20" + context + b"\x00\x00"
    return hashlib.sha256(challenge).digest()


@dataclass(frozen=True)
class TokenKey:
    """An issuer's public key."""

    numbers: RSAPublicNumbers

    @classmethod
    def read(cls, content: bytes) -> TokenKey:
        """From a SubjectPublicKeyInfo; there is one encoding of a key."""
        start, end = len(_BEFORE_MODULUS), len(_BEFORE_MODULUS) + SIGNATURE_BYTES
        n = int.from_bytes(content[start:end])
        if content[:start] != _BEFORE_MODULUS or content[end:] != _AFTER_MODULUS or n.bit_length() != KEY_BITS:
            raise MessageError(f"token key: expected an RSASSA-PSS key of {KEY_BITS} bits with SHA-384")
        return cls(RSAPublicNumbers(_EXPONENT, n))

    @classmethod
    def of_text(cls, text: str) -> TokenKey:
        """From base64url, as a directory and a manifest have it."""
        return cls.read(_of_base64url(text))

    @property
    def content(self) -> bytes:
        """The SubjectPublicKeyInfo."""
        return _BEFORE_MODULUS + self.numbers.n.to_bytes(SIGNATURE_BYTES) + _AFTER_MODULUS

    @property
    def text(self) -> str:
        return encode_base64url(self.content)

    @property
    def key_id(self) -> bytes:
        return hashlib.sha256(self.content).digest()

    def is_signed(self, signature: bytes, content: bytes) -> bool:
        try:
            self.numbers.public_key().verify(signature, content, _PSS, hashes.SHA384())
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class TokenRequest:
    """A token that was asked for: what goes to the issuer, and what stays. ``repr`` shows neither."""

    signed: bytes
    """type, nonce, challenge digest and key id"""
    request: bytes
    inverse: bytes

    def __repr__(self) -> str:
        return "TokenRequest()"

    @classmethod
    def make(cls, key: TokenKey, digest: bytes, *, randomness: Randomness = _SYSTEM) -> TokenRequest:
        """For a challenge with this digest. Takes the nonce, then what ``blind`` takes."""
        signed = TOKEN_TYPE + randomness.take(NONCE_BYTES) + digest + key.key_id
        blinded: Blinded = blind(signed, key.numbers, randomness=randomness)
        return cls(signed, TOKEN_TYPE + key.key_id[-1:] + blinded.content, blinded.inverse)

    def is_for(self, key: TokenKey, digest: bytes) -> bool:
        return self.signed[2 + NONCE_BYTES :] == digest + key.key_id

    def token(self, response: bytes, key: TokenKey) -> bytes:
        """The token, or ``MessageError`` if the issuer has signed something else or with another key."""
        signature = finalize(response, self.inverse, key.numbers)
        if not key.is_signed(signature, self.signed):
            raise MessageError("token: the issuer's answer is not a signature of its key")
        return self.signed + signature


def read_request(message: bytes) -> tuple[int, bytes]:
    """The last byte of the key's id, and the blinded message."""
    if len(message) != REQUEST_BYTES or message[:2] != TOKEN_TYPE:
        raise MessageError(f"token request: expected {REQUEST_BYTES} bytes of type 2")
    return message[2], message[3:]


class TokenVerifier:
    """What pays for a report of one round: tokens of one issuer's key, for this round's challenge."""

    def __init__(self, terms: TokenPart, task: bytes, round_number: int) -> None:
        self._key = TokenKey.of_text(terms.key)
        self._key_id = self._key.key_id
        self._digest = challenge_digest(issuer_name(terms.issuer), task, round_number)

    def nonce(self, header: str) -> bytes:
        """The nonce of a valid token in an Authorization header, or ``MessageError``."""
        match = _HEADER.fullmatch(header)
        if not match:
            raise MessageError("token: expected Authorization: PrivateToken token=…")
        return self.verify(_of_base64url(match[1].rstrip("=")))

    def verify(self, token: bytes) -> bytes:
        """The nonce of a valid token."""
        if len(token) != TOKEN_BYTES or token[:2] != TOKEN_TYPE:
            raise MessageError(f"token: expected {TOKEN_BYTES} bytes of type 2")
        if token[34:66] != self._digest:
            raise MessageError("token: issued for another round, or by another issuer")
        if token[66:98] != self._key_id:
            raise MessageError("token: of another key of the issuer")
        if not self._key.is_signed(token[SIGNED_BYTES:], token[:SIGNED_BYTES]):
            raise MessageError("token: wrong signature")
        return token[2:34]


def token_header(token: bytes) -> str:
    """The Authorization header that spends a token."""
    return f'PrivateToken token="{base64.urlsafe_b64encode(token).decode()}"'


def encode_directory(keys: Sequence[tuple[TokenKey, int]], request_path: str) -> bytes:
    """An issuer's directory (RFC 9578, 4): keys, the preferred first, with the time from which they are used."""
    listed = [
        {"token-type": 2, "token-key": base64.urlsafe_b64encode(key.content).decode(), "not-before": start}
        for key, start in keys
    ]
    return json.dumps({"issuer-request-uri": request_path, "token-keys": listed}).encode()


def terms_of_directory(issuer: str, content: bytes, now: int) -> TokenPart:
    """What reports of a round are paid with from now on: the directory's first key of type 2 that is in use."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise MessageError("issuer directory: not JSON") from None
    if not isinstance(document, dict) or not isinstance(document.get("token-keys"), list):
        raise MessageError("issuer directory: expected an object with token-keys")
    path = str(document.get("issuer-request-uri")).removeprefix(issuer)
    if not TOKEN_PATH.fullmatch(path):
        raise MessageError("issuer directory: issuer-request-uri: expected a path on the issuer's own host")
    for entry in document["token-keys"]:
        if not isinstance(entry, dict) or entry.get("token-type") != 2:
            continue
        start = entry.get("not-before", 0)
        if isinstance(start, int) and start <= now:
            key = TokenKey.of_text(str(entry.get("token-key")).rstrip("="))
            return TokenPart(issuer=issuer, request=path, key=key.text)
    raise MessageError("issuer directory: expected a key of token type 2 that is in use")


@dataclass(frozen=True)
class TokenAccount:
    """By what an issuer knows a device: its address, and a secret. ``repr`` does not show that."""

    issuer: str
    credential: str

    def __repr__(self) -> str:
        return f"TokenAccount({self.issuer})"

    @classmethod
    def of_link(cls, link: str) -> TokenAccount:
        """``https://issuer.example#sbi_…``, as the issuer's people hand it out."""
        issuer, _, credential = link.strip().partition("#")
        issuer = issuer.removesuffix("/")
        if not is_origin(issuer):
            raise InvalidParameter("account", "expected a link such as https://issuer.example#sbi_…")
        if not re.fullmatch("[A-Za-z0-9_-]{22,200}", credential):
            raise InvalidParameter("account", "expected the account's secret after the #")
        return cls(issuer, credential)

    @property
    def link(self) -> str:
        return f"{self.issuer}#{self.credential}"


def _of_base64url(text: str) -> bytes:
    try:
        return decode_base64url(text)
    except ValueError as error:
        raise MessageError("token: expected base64url") from error
