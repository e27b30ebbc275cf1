"""Single-use tokens: a blind-signed one pays for one report of one round, and for nothing else."""

from __future__ import annotations

import base64
import hashlib
import os

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from databases import DATABASES, fresh_database
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.service.round_model import RoundNumbers
from searchblend.wire.tokens import TOKEN_TYPE, TokenVerifier, challenge_digest, issuer_key_id
from service_http import REPORT, http_service
from service_parts import people

ISSUER = "issuer.example"
KEY = rsa.generate_private_key(65537, 2048)
PEM = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
TASK = bytes(range(16))


def mgf1(seed, n):
    blocks = (hashlib.sha384(seed + i.to_bytes(4, "big")).digest() for i in range(n // 48 + 1))
    return b"".join(blocks)[:n]


def emsa_pss(message, bits):
    """RFC 8017, 9.1.1, with SHA-384 and a salt of 48 bytes."""
    length = (bits + 7) // 8
    salt = os.urandom(48)
    digest = hashlib.sha384(b"\0" * 8 + hashlib.sha384(message).digest() + salt).digest()
    block = b"\0" * (length - 48 - 48 - 2) + b"\1" + salt
    masked = bytearray(a ^ b for a, b in zip(block, mgf1(digest, length - 49), strict=True))
    masked[0] &= 0xFF >> (8 * length - bits)
    return bytes(masked) + digest + b"\xbc"


def blind_signed(message):
    """RFC 9474: the issuer raises a blinded number to d and never sees the message."""
    numbers = KEY.private_numbers()
    n, e, d = numbers.public_numbers.n, numbers.public_numbers.e, numbers.d
    encoded = int.from_bytes(emsa_pss(message, n.bit_length() - 1), "big")
    r = int.from_bytes(os.urandom(255), "big") | 1
    seen_by_issuer = encoded * pow(r, e, n) % n
    assert seen_by_issuer != encoded
    signature = pow(seen_by_issuer, d, n) * pow(r, -1, n) % n
    return signature.to_bytes(256, "big")


def token_for(task, round_number, nonce=None):
    signed = TOKEN_TYPE + (nonce or os.urandom(32)) + challenge_digest(ISSUER, task, round_number)
    signed += issuer_key_id(KEY.public_key())
    return signed + blind_signed(signed)


def header(token):
    return f'PrivateToken token="{base64.urlsafe_b64encode(token).decode()}"'


def test_a_blind_signed_token_is_accepted():
    token = token_for(TASK, 7, b"n" * 32)
    verifier = TokenVerifier(PEM, ISSUER)
    assert verifier.verify(token, TASK, 7) == verifier.nonce(header(token), TASK, 7) == b"n" * 32
    assert verifier.nonce(header(token).replace("=", "").replace("token", "token=", 1), TASK, 7) == b"n" * 32


def test_any_other_token_is_refused():
    token = token_for(TASK, 7)
    verifier = TokenVerifier(PEM, ISSUER)
    for wrong in (token[:-1], token + b"\0", b"\0\1" + token[2:], b""):
        with pytest.raises(MessageError):
            verifier.verify(wrong, TASK, 7)
    for position in (2, 40, 70, 98, 353):
        changed = bytearray(token)
        changed[position] ^= 1
        with pytest.raises(MessageError):
            verifier.verify(bytes(changed), TASK, 7)
    for task, number in ((TASK, 8), (b"x" * 16, 7)):
        with pytest.raises(MessageError, match="another round"):
            verifier.verify(token, task, number)
    with pytest.raises(MessageError, match="another round"):
        TokenVerifier(PEM, "other.example").verify(token, TASK, 7)
    for text in ("", "Bearer x", "PrivateToken token=", "PrivateToken token=!!", header(token) + "x"):
        with pytest.raises(MessageError):
            verifier.nonce(text, TASK, 7)


def test_wrong_issuer_keys_are_refused():
    small = rsa.generate_private_key(65537, 1024).public_key()
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    for key in (small, other):
        pem = key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        with pytest.raises(InvalidParameter):
            TokenVerifier(pem, ISSUER)
    with pytest.raises(InvalidParameter):
        TokenVerifier(b"nothing", ISSUER)


@pytest.mark.parametrize("kind", DATABASES)
def test_a_token_pays_for_one_report(kind, tmp_path):
    with http_service(fresh_database(kind, tmp_path), tmp_path, tokens=TokenVerifier(PEM, ISSUER)) as http:
        round_ = http.client_round()
        first, second = http.parts.messages(round_, people(2, seed=2))
        path = f"/v1/tasks/{round_.task}/rounds/{round_.number}/reports"
        token = token_for(bytes.fromhex(round_.task), round_.number)

        def send(message, token=None):
            extra = {"authorization": header(token)} if token else {}
            return http.client.post(path, content=message, headers={**REPORT, **extra}).status_code

        assert send(first) == 401
        assert send(first, token[:-1] + bytes([token[-1] ^ 1])) == 401
        assert send(first, token) == 200
        assert send(first, token) == 200
        assert send(second, token) == 409
        assert send(second, token_for(bytes.fromhex(round_.task), round_.number)) == 200
        assert http.reports(round_, first).status_code == 401
        assert http.parts.store.reports.n_seen(round_.key) == 2
        assert RoundNumbers.read(http.parts.store, round_).conservation.holds
        http.client.__exit__(None, None, None)
        assert http.parts.store.reports.refusals(round_.key) == {"bad-credential": 2, "spent-token": 1}
