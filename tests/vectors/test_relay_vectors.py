"""Replays the vectors of what goes through a relay: HPKE, binary HTTP, oblivious HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from searchblend.core.errors import MessageError
from searchblend.wire.binary_http import (
    HttpRequest,
    HttpResponse,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    padded_size,
)
from searchblend.wire.hpke import receiver, sender
from searchblend.wire.ohttp import (
    GatewayKey,
    KeyConfiguration,
    SealedRequest,
    UnknownKey,
    decode_configurations,
    encode_configurations,
    open_request,
)

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"


def document(name):
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert found["version"] == 1
    return found["cases"]


def cases(name):
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in document(name)])


def key_of(digits):
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(digits))


def fields_of(pairs):
    return tuple((name, value) for name, value in pairs)


@cases("hpke")
def test_hpke(case):
    info, plaintext = bytes.fromhex(case["info"]), bytes.fromhex(case["plaintext"])
    sends = sender(bytes.fromhex(case["public_key"]), info, key_of(case["ephemeral"]))
    assert sends.enc.hex() == case["enc"]
    opens = receiver(key_of(case["private_key"]), sends.enc, info)
    for aad, sealed in case["sealed"]:
        assert sends.seal(plaintext, bytes.fromhex(aad)).hex() == sealed
        assert opens.open(bytes.fromhex(sealed), bytes.fromhex(aad)) == plaintext
    for name, length, exported in case["exported"]:
        assert sends.export(bytes.fromhex(name), length).hex() == exported
        assert opens.export(bytes.fromhex(name), length).hex() == exported


@cases("binary_http")
def test_binary_http(case):
    message = bytes.fromhex(case["message"])
    if "request" in case:
        said = case["request"]
        expected = HttpRequest(
            **{**said, "fields": fields_of(said["fields"]), "content": bytes.fromhex(said["content"])}
        )
        found, written = decode_request(message), encode_request(expected)
    else:
        said = case["response"]
        expected = HttpResponse(said["status"], fields_of(said["fields"]), bytes.fromhex(said["content"]))
        found, written = decode_response(message), encode_response(expected)
    assert found == expected
    assert (written == message) is case["is_written"]
    assert len(written) == padded_size(len(written))


def test_sizes_are_few():
    for n_bytes, size in ((0, 1024), (1, 1024), (1024, 1024), (1025, 2048), (65_536, 65_536), (65_537, 131_072)):
        assert padded_size(n_bytes) == size
    assert padded_size(10**6) == 16 * 65_536


@cases("bad_binary_http")
def test_bad_binary_http_is_refused(case):
    decode = {"request": decode_request, "response": decode_response}[case["kind"]]
    with pytest.raises(MessageError, match=case["says"]):
        decode(bytes.fromhex(case["message"]))


@cases("ohttp")
def test_oblivious_http(case):
    (configuration,) = decode_configurations(bytes.fromhex(case["configurations"]))
    assert (configuration.key_id, configuration.digest) == (case["key_id"], case["digest"])
    assert encode_configurations([configuration]).hex() == case["configurations"]
    request, response = bytes.fromhex(case["request"]), bytes.fromhex(case["response"])
    sealed = SealedRequest(configuration, request, key_of(case["ephemeral"]))
    assert sealed.message.hex() == case["sealed_request"]
    key = GatewayKey(key_of(case["private_key"]), case["key_id"])
    assert key.configuration.public_key == configuration.public_key
    opened = open_request(sealed.message, [key])
    assert opened.request == request
    assert opened.seal(response, bytes.fromhex(case["salt"])).hex() == case["sealed_response"]
    assert sealed.open(bytes.fromhex(case["sealed_response"])) == response
    assert sealed.open(opened.seal(response)) == response, "every answer has a salt of its own"
    assert opened.seal(response) != opened.seal(response)


@cases("bad_ohttp")
def test_bad_oblivious_http_is_refused(case):
    with pytest.raises(MessageError, match=case["says"]):
        configuration = decode_configurations(bytes.fromhex(case["configurations"]))[0]
        sealed = SealedRequest(configuration, bytes.fromhex(case["request"]), key_of(case["ephemeral"]))
        sealed.open(bytes.fromhex(case["answer"]))


def test_a_gateway_refuses_what_was_not_sealed_to_it():
    (case,) = (case for case in document("ohttp") if case["name"] == "a report")
    key, message = GatewayKey.of_bytes(bytes.fromhex(case["private_key"])), bytes.fromhex(case["sealed_request"])
    other = GatewayKey(X25519PrivateKey.generate(), key.key_id)
    assert open_request(message, [other, key]).request.hex() == case["request"], "keys of one number are all tried"
    for changed, kind in (
        (bytes([message[0] ^ 1]) + message[1:], UnknownKey),
        (message[:2] + b"\x10" + message[3:], UnknownKey),
        (message[:6] + b"\x03" + message[7:], UnknownKey),
        (message[:-1] + bytes([message[-1] ^ 1]), MessageError),
        (message[:7] + bytes(32) + message[39:], MessageError),
        (message[:54], MessageError),
    ):
        with pytest.raises(MessageError) as refusal:
            open_request(changed, [key])
        assert type(refusal.value) is kind
    with pytest.raises(MessageError):
        open_request(message, [other])


def test_of_several_configurations_the_first_that_can_be_used_counts():
    key = GatewayKey.of_bytes(bytes(range(32)))
    foreign = KeyConfiguration(b"\x07\x00\x10" + bytes(65) + b"\x00\x04\x00\x01\x00\x01")
    assert decode_configurations(encode_configurations([foreign, key.configuration])) == [key.configuration]
    assert "private" not in repr(key)
