"""Replays the vectors of tokens: the RFCs' own, byte by byte, and the challenge that this protocol asks for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from searchblend.core.errors import MessageError
from searchblend.core.randomness import Tape
from searchblend.wire.blind_rsa import blind, blind_sign, finalize
from searchblend.wire.tokens import TokenKey, TokenRequest, challenge_digest, issuer_name, read_request

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"


def cases(name):
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert document["version"] == 1
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in document["cases"]])


def private_numbers(case):
    n, e, d, p, q = (int(case[name], 16) for name in ("n", "e", "d", "p", "q"))
    public = rsa.RSAPublicNumbers(e, n)
    return rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)


@cases("blind_rsa")
def test_blind_rsa(case):
    key = private_numbers(case)
    n, given = key.public_numbers.n, {name: bytes.fromhex(case[name]) for name in case if name not in ("name", "e")}
    r = pow(int(case["inv"], 16), -1, n).to_bytes(len(given["n"]))
    blinded = blind(given["msg"], key.public_numbers, randomness=Tape(given["salt"] + r))
    assert (blinded.content, blinded.inverse) == (given["blinded_msg"], given["inv"])
    assert blind_sign(blinded.content, key) == given["blind_sig"]
    assert finalize(given["blind_sig"], blinded.inverse, key.public_numbers) == given["sig"]
    for wrong in (given["n"], b"\xff" * len(given["n"]), blinded.content[1:], blinded.content + b"\0"):
        with pytest.raises(MessageError):
            blind_sign(wrong, key)
        with pytest.raises(MessageError):
            finalize(wrong, blinded.inverse, key.public_numbers)


@cases("token")
def test_token(case):
    given = {name: bytes.fromhex(case[name]) for name in case if name not in ("name", "private_key")}
    key = TokenKey.read(given["key"])
    assert (key.content, TokenKey.of_text(key.text)) == (given["key"], key)
    tape = Tape(given["nonce"] + given["salt"] + given["blind"])
    request = TokenRequest.make(key, hashlib.sha256(given["challenge"]).digest(), randomness=tape)
    assert (request.request, tape.left) == (given["request"], 0)
    last_byte, blinded = read_request(request.request)
    private = serialization.load_pem_private_key(case["private_key"].encode(), None)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert blind_sign(blinded, private.private_numbers()) == given["response"]
    assert last_byte == key.key_id[-1]
    assert request.token(given["response"], key) == given["token"]
    for position in (0, 255):
        wrong = bytearray(given["response"])
        wrong[position] ^= 1
        with pytest.raises(MessageError):
            request.token(bytes(wrong), key)


@cases("token_challenge")
def test_challenge(case):
    digest = challenge_digest(issuer_name(case["issuer"]), bytes.fromhex(case["task"]), case["round"])
    assert digest.hex() == case["digest"] == hashlib.sha256(bytes.fromhex(case["challenge"])).hexdigest()
