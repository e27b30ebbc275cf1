"""Write the vectors of what goes through a relay: HPKE, binary HTTP and oblivious HTTP, good and bad.

Some are the RFCs' own: RFC 9180, A.1.1; RFC 9292, 5; RFC 9458, appendix A. All keys and salts are fixed, so the files
do not change when they are made anew.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from searchblend.wire.binary_http import (
    HttpRequest,
    HttpResponse,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from searchblend.wire.hpke import sender
from searchblend.wire.ohttp import GatewayKey, KeyConfiguration, SealedRequest, encode_configurations, open_request

HERE = Path(__file__).parent / "v1"
RFC_9180 = {
    "name": "RFC 9180, A.1.1",
    "private_key": "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
    "public_key": "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
    "ephemeral": "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "enc": "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
    "plaintext": "4265617574792069732074727574682c20747275746820626561757479",
    "sealed": [
        [
            "436f756e742d30",
            "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
        ],
        [
            "436f756e742d31",
            "af2d7e9ac9ae7e270f46ba1f975be53c09f8d875bdc8535458c2494e8a6eab251c03d0c22a56b8ca42c2063b84",
        ],
    ],
    "exported": [
        ["", 32, "3853fe2b4035195a573ffc53856e77058e15d9ea064de3e59f4961d0095250ee"],
        ["00", 32, "2e8f0b54673c7029649d4eb9d5e33bf1872cf76d623ff164ac185da9e88c21a5"],
        ["54657374436f6e74657874", 32, "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931"],
    ],
}
RFC_9458 = {
    "name": "RFC 9458, appendix A",
    "private_key": "3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a",
    "configurations": "002d01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003",
    "ephemeral": "bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73",
    "request": "00034745540568747470730b6578616d706c652e636f6d012f",
    "sealed_request": "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e469135906992"
    "e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525",
    "salt": "c789e7151fcba46158ca84b04464910d",
    "response": "0140c8",
    "sealed_response": "c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd",
}
REPORT = HttpRequest(
    "POST",
    "https",
    "lists.example",
    "/v1/tasks/000102030405060708090a0b0c0d0e0f/rounds/7/reports",
    (("content-type", "application/vnd.searchblend.report"),),
    bytes(range(73)),
)


def number(value: int) -> bytes:
    power = next(power for power in range(4) if value < 1 << (8 * (1 << power) - 2))
    return (value | power << (8 * (1 << power) - 2)).to_bytes(1 << power, "big")


def text(content: bytes) -> bytes:
    return number(len(content)) + content


def request_document(request: HttpRequest) -> dict[str, Any]:
    return {
        "method": request.method,
        "scheme": request.scheme,
        "authority": request.authority,
        "path": request.path,
        "fields": [list(field) for field in request.fields],
        "content": request.content.hex(),
    }


def response_document(response: HttpResponse) -> dict[str, Any]:
    fields = [list(field) for field in response.fields]
    return {"status": response.status, "fields": fields, "content": response.content.hex()}


def messages() -> list[dict[str, Any]]:
    """``is_written``: the bytes are what this project writes for the document, and not only reads."""
    requests = {
        "a report": REPORT,
        "a manifest": HttpRequest(
            "GET", "https", "lists.example:8443", "/v1/tasks/000102030405060708090a0b0c0d0e0f/manifest"
        ),
        "content of more than 4 KiB": HttpRequest("POST", "https", "lists.example", "/", (), bytes(5_000)),
        "a value beyond ASCII": HttpRequest(
            "DELETE", "http", "localhost", "/x?y=z", (("authorization", "Bearer \u00e9 x"),)
        ),
    }
    responses = {
        "accepted": HttpResponse(200),
        "refused": HttpResponse(409, (("content-type", "application/problem+json"), ("retry-after", "3")), b"{}"),
        "content that fills a size": HttpResponse(200, (), bytes(1024 - 7)),
        "content that is one byte longer": HttpResponse(200, (), bytes(1024 - 6)),
    }
    made = [
        {"name": name, "message": encode_request(one).hex(), "is_written": True, "request": request_document(one)}
        for name, one in requests.items()
    ] + [
        {"name": name, "message": encode_response(one).hex(), "is_written": True, "response": response_document(one)}
        for name, one in responses.items()
    ]
    control = text(b"GET") + text(b"https") + text(b"www.example.com") + text(b"/hello.txt")
    field = text(b"user-agent") + text(b"curl/7.16.3")
    read = {
        "RFC 9292, 5.1, known length": b"\0" + control + text(field) + b"\0\0",
        "known length, cut after the control data": b"\0" + control,
        "known length, with trailers": b"\0" + control + text(field) + text(b"body") + text(text(b"etag") + text(b"x")),
        "in pieces": b"\2" + control + field + b"\0" + text(b"bo") + text(b"dy") + b"\0" + b"\0" + bytes(10),
        "in pieces, cut after the fields": b"\2" + control + field + b"\0",
    }
    made += [
        {"name": name, "message": one.hex(), "is_written": False, "request": request_document(decode_request(one))}
        for name, one in read.items()
    ]
    final = number(200) + text(text(b"content-type") + text(b"text/plain")) + text(b"hello") + b"\0"
    read = {
        "RFC 9292, 5.2, after informational answers": b"\1"
        + number(102)
        + text(text(b"running") + text(b'"sleep 15"'))
        + number(103)
        + b"\0"
        + final,
        "an answer in pieces": b"\3"
        + number(103)
        + text(b"link")
        + text(b"</x>")
        + b"\0"
        + number(404)
        + b"\0"
        + text(b"no")
        + b"\0"
        + text(b"x-trailer")
        + text(b"")
        + b"\0",
    }
    return made + [
        {"name": name, "message": one.hex(), "is_written": False, "response": response_document(decode_response(one))}
        for name, one in read.items()
    ]


def bad_messages() -> list[dict[str, Any]]:
    control = text(b"GET") + text(b"https") + text(b"x.example") + text(b"/")
    many = b"".join(text(b"a") + text(b"b") for _ in range(65))
    bad = {
        "empty": (b"", "truncated"),
        "another form": (b"\4" + control, "expected a"),
        "an answer where a request is read, and the reverse": (b"\1" + number(200), "expected a request"),
        "cut in the control data": (b"\0" + control[:-2], "truncated"),
        "cut in a number": (b"\0\x40", "truncated"),
        "cut in the fields": (b"\0" + control + number(9) + text(b"a"), "truncated"),
        "a field that is longer than its section": (
            b"\0" + control + number(3) + text(b"a") + b"\7abcdefg",
            "truncated",
        ),
        "cut in the content": (b"\0" + control + b"\0" + number(9) + b"12345678", "truncated"),
        "more than zeros at the end": (b"\0" + control + b"\0\0\0" + b"\0\0\1", "zeros"),
        "an empty method": (b"\0\0" + text(b"https") + text(b"x") + text(b"/"), "method"),
        "a path with a blank": (b"\0" + text(b"GET") + text(b"https") + text(b"x") + text(b"/ x"), "path"),
        "an authority with a line break": (
            b"\0" + text(b"GET") + text(b"https") + text(b"x\r\ny") + text(b"/"),
            "authority",
        ),
        "a field name in capitals": (b"\0" + control + text(text(b"Host") + text(b"x")), "lower case"),
        "an empty field name": (b"\0" + control + text(text(b"") + text(b"x")), "lower case"),
        "a value with a line break": (b"\0" + control + text(text(b"a") + text(b"x\r\nb: c")), "control characters"),
        "a value that ends with a blank": (b"\0" + control + text(text(b"a") + text(b"x ")), "control characters"),
        "too many fields": (b"\0" + control + text(many), "at most 64"),
        "pieces without an end": (b"\2" + control + b"\0" + text(b"a"), "truncated"),
    }
    responses = {
        "a request where an answer is read": (b"\0" + control, "expected an answer"),
        "status 99": (b"\1" + number(99), "status"),
        "status 600": (b"\1" + number(600), "status"),
        "informational answers and no other": (b"\1" + number(103) + b"\0", "truncated"),
        "a field name in capitals in an answer": (b"\1" + number(200) + text(text(b"Host") + text(b"x")), "lower case"),
    }
    return [
        {"name": name, "kind": "request", "message": one.hex(), "says": says} for name, (one, says) in bad.items()
    ] + [
        {"name": name, "kind": "response", "message": one.hex(), "says": says}
        for name, (one, says) in responses.items()
    ]


def secret(label: str) -> bytes:
    return hashlib.sha256(f"searchblend vector {label}".encode()).digest()


def exchange(name: str, request: bytes, response: bytes) -> dict[str, Any]:
    key, ephemeral = GatewayKey.of_bytes(secret("gateway")), X25519PrivateKey.from_private_bytes(secret(name))
    sealed = SealedRequest(key.configuration, request, ephemeral)
    salt = secret(f"salt {name}")[:16]
    opened = open_request(sealed.message, [key])
    assert opened.request == request
    return {
        "name": name,
        "private_key": secret("gateway").hex(),
        "configurations": encode_configurations([key.configuration]).hex(),
        "ephemeral": secret(name).hex(),
        "request": request.hex(),
        "sealed_request": sealed.message.hex(),
        "salt": salt.hex(),
        "response": response.hex(),
        "sealed_response": opened.seal(response, salt).hex(),
    }


def exchanges() -> list[dict[str, Any]]:
    made = [dict(RFC_9458), exchange("a report", encode_request(REPORT), encode_response(HttpResponse(200)))]
    for one in made:
        configuration = KeyConfiguration(bytes.fromhex(str(one["configurations"]))[2:])
        one |= {"key_id": configuration.key_id, "digest": configuration.digest}
    return made


def bad_exchanges() -> list[dict[str, Any]]:
    """Key configurations that cannot be used, and answers that are not to this request."""
    good = exchange("a report", encode_request(REPORT), encode_response(HttpResponse(200)))
    configuration, answer = bytes.fromhex(good["configurations"])[2:], bytes.fromhex(good["sealed_response"])
    other_kem = configuration[:1] + b"\0\x10" + configuration[3:]
    other_aead = configuration[:-4] + b"\0\1\0\3"
    low_order = configuration[:3] + bytes(32) + configuration[35:]

    def listed(*configurations: bytes) -> bytes:
        return b"".join(len(one).to_bytes(2, "big") + one for one in configurations)

    keys = {
        "no configuration": (b"", "expected one with X25519"),
        "another KEM": (listed(other_kem), "expected one with X25519"),
        "another AEAD": (listed(other_aead), "expected one with X25519"),
        "cut": (listed(configuration)[:-1], "truncated"),
        "a length that is cut": (listed(configuration) + b"\0", "truncated"),
        "suites that are cut": (listed(configuration[:-2]), "expected one with X25519"),
        "a point that gives no secret": (listed(low_order), "secret"),
    }
    answers = {
        "too short": (answer[:31], "too short"),
        "a changed salt": (bytes([answer[0] ^ 1]) + answer[1:], "does not open"),
        "a changed byte": (answer[:-1] + bytes([answer[-1] ^ 1]), "does not open"),
        "an answer to another request": (
            bytes.fromhex(
                exchange("another", encode_request(REPORT), encode_response(HttpResponse(200)))["sealed_response"]
            ),
            "does not open",
        ),
    }
    base = {name: good[name] for name in ("ephemeral", "request")}
    return [
        {"name": name, **base, "configurations": one.hex(), "answer": None, "says": says}
        for name, (one, says) in keys.items()
    ] + [
        {"name": name, **base, "configurations": good["configurations"], "answer": one.hex(), "says": says}
        for name, (one, says) in answers.items()
    ]


def main() -> None:
    first = sender(
        bytes.fromhex(str(RFC_9180["public_key"])),
        bytes.fromhex(str(RFC_9180["info"])),
        X25519PrivateKey.from_private_bytes(bytes.fromhex(str(RFC_9180["ephemeral"]))),
    )
    assert first.enc.hex() == RFC_9180["enc"]
    made = {
        "hpke": [RFC_9180],
        "binary_http": messages(),
        "bad_binary_http": bad_messages(),
        "ohttp": exchanges(),
        "bad_ohttp": bad_exchanges(),
    }
    for name, cases in made.items():
        content = json.dumps({"version": 1, "cases": cases}, ensure_ascii=False, indent=1)
        (HERE / f"{name}.json").write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
