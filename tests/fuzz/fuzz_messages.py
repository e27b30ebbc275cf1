"""Targets: what arrives over the network. Each takes bytes; ``Finding``, or any undocumented error, is a fault."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from fuzz_rules import CANARY, demand, documented_errors_only

from searchblend.core.errors import MessageError, SearchblendError
from searchblend.wire.canonical import canonical_json, parse_canonical
from searchblend.wire.head_list import _decode_queries, decode_head_list, encode_head_list
from searchblend.wire.manifest import TokenPart, decode_payload, decode_signed
from searchblend.wire.report import ReportRefused, ReportShape, counters_of, decode_report, encode_report
from searchblend.wire.report_batch import decode_reports
from searchblend.wire.sealed import Opener, SealingContext, _pad, _records, _unpad
from searchblend.wire.signing import verify_manifest
from searchblend.wire.tokens import (
    TOKEN_TYPE,
    TokenKey,
    TokenVerifier,
    challenge_digest,
    encode_directory,
    read_request,
    terms_of_directory,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "v1"


@cache
def cases(name: str) -> list[dict[str, Any]]:
    document: dict[str, list[dict[str, Any]]] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return document["cases"]


@cache
def shapes() -> list[ReportShape]:
    found: dict[str, ReportShape] = {}
    for case in cases("report_bytes"):
        values = {**case["shape"], "task": bytes.fromhex(case["shape"]["task"])}
        values["digest"] = bytes.fromhex(values["digest"])
        shape = ReportShape(**{field.name: values[field.name] for field in fields(ReportShape)})
        found.setdefault(repr(shape), shape)
    return list(found.values())


def report(data: bytes) -> None:
    """One report, alone and in a batch: both decoders say the same, and what is taken encodes to the same payload."""
    shape = shapes()[(data[0] if data else 0) % len(shapes())]
    message = data[1:]
    refusal, parts = None, None
    try:
        _, parts = decode_report(message, shape)
    except ReportRefused as error:
        refusal = error.reason
    if len(message) == shape.size:
        batch = decode_reports(message, shape)
        demand(batch.refused.get(0) == refusal, "the decoder of batches disagrees")
        demand(parts is None or batch.counters[0].tolist() == counters_of(parts, shape), "other counters")
    if parts is not None:
        again = encode_report(parts, shape)
        demand(again[: shape.payload_bytes] == message[: shape.payload_bytes], "a report with two encodings")


def report_batch(data: bytes) -> None:
    shape = shapes()[(data[0] if data else 0) % len(shapes())]
    with documented_errors_only():
        found = decode_reports(data[1:], shape)
        demand(len(found.ids) == len(found.accepted) == len(found.counters), "ids and counters do not fit")
        demand(len(found.accepted) + len(found.refused) == (len(data) - 1) // shape.size, "a report went missing")


def _context(case: dict[str, Any]) -> SealingContext:
    return SealingContext(bytes.fromhex(case["task"]), case["round"], bytes.fromhex(case["consent"]))


def sealed(data: bytes) -> None:
    """A sealed message with the real key; and, past the encryption, what it may hold."""
    case = cases("sealed_record")[0]
    with documented_errors_only():
        Opener(bytes.fromhex(case["private_key"]), _context(case), at_most=3).open(data, bytes.fromhex(case["tag"]))
    with documented_errors_only():
        _records(_unpad(data), 3)
    with documented_errors_only():
        _records(_unpad(_pad(data)), 3)


def manifest(data: bytes) -> None:
    pinned = {name: bytes.fromhex(point) for name, point in cases("manifest")[0]["pinned"].items()}
    with documented_errors_only():
        decode_signed(data)
    with documented_errors_only():
        decode_payload(data)
    with documented_errors_only():
        verify_manifest(data, pinned)


def head_list(data: bytes) -> None:
    """A head list as it stands, and with the digest of what it became, so that changes get past it."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    with documented_errors_only():
        decode_head_list(document)
    with documented_errors_only():
        if isinstance(document, dict) and isinstance(document.get("queries"), list):
            document["digest"] = _decode_queries(document["queries"]).digest
        message = decode_head_list(document)
        again = decode_head_list(
            encode_head_list(message.head, message.params, message.design, optin_result=message.optin_result)
        )
        demand(again == message, "a head list does not come back")


def canonical(data: bytes) -> None:
    try:
        document = parse_canonical(data, "document")
    except MessageError:
        return
    demand(canonical_json(document) == data, "two texts of one document")


@cache
def _verifier() -> TokenVerifier:
    return TokenVerifier(TokenPart("https://issuer.example", "/", _token_key().text), bytes(16), 1)


@cache
def _token_key() -> TokenKey:
    return TokenKey(rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key().public_numbers())


def token(data: bytes) -> None:
    """An Authorization header; no token is valid here, for nobody holds the key."""
    for text in (data.decode("latin-1"), data.decode("utf-8", "replace")):
        try:
            _verifier().nonce(text)
        except SearchblendError:
            continue
        demand(False, "a token that nobody signed was taken")


def token_key(data: bytes) -> None:
    with documented_errors_only():
        demand(TokenKey.read(data).content == data, "a key does not come back")


def token_request(data: bytes) -> None:
    with documented_errors_only():
        last_byte, blinded = read_request(data)
        demand(TOKEN_TYPE + bytes([last_byte]) + blinded == data, "a token request does not come back")


def issuer_directory(data: bytes) -> None:
    with documented_errors_only():
        terms = terms_of_directory("https://issuer.example", data, 1)
        demand(terms.issuer == "https://issuer.example", "a directory names another issuer")


def seeds() -> dict[str, list[bytes]]:
    reports = [
        bytes([number]) + bytes.fromhex(case["message"])
        for number, shape in enumerate(shapes())
        for case in cases("report_bytes")
        if len(case["message"]) == 2 * shape.size
    ]
    records = canonical_json({"records": [[f"{CANARY} weather", f"http://{CANARY}.example"], ["x", None]]})
    lists = [json.dumps(case["head_list"], ensure_ascii=False).encode() for case in cases("report_shape")]
    manifests = [case["message"].encode() for case in cases("manifest")]
    header = TOKEN_TYPE + bytes(32) + challenge_digest("issuer.example", bytes(16), 1)
    return {
        "report": reports,
        "report_batch": [reports[0], reports[0] + reports[0][1:], reports[-1] + reports[-1][1:] * 3],
        "sealed": [bytes.fromhex(case["message"]) for case in cases("sealed_record")] + [records, _pad(records)],
        "manifest": manifests + [json.loads(text)["payload"].encode() for text in manifests],
        "head_list": [text for text in lists if len(text) < 20_000],
        "canonical": [records, b'{"a":[1,-2,{"b":null}],"c":"\xc3\xa9\\n"}'],
        "token": [b'PrivateToken token="' + b"A" * 8 + b'=="', b"PrivateToken token=" + header.hex().encode()],
        "token_key": [_token_key().content],
        "token_request": [TOKEN_TYPE + b"x" + bytes(256)],
        "issuer_directory": [encode_directory([(_token_key(), 0)], "/token-request")],
    }


TARGETS = {
    job.__name__: job
    for job in (
        report,
        report_batch,
        sealed,
        manifest,
        head_list,
        canonical,
        token,
        token_key,
        token_request,
        issuer_directory,
    )
}
