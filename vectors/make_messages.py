"""Write the vectors of the binary messages: reports, sealed opt-in records and signed manifests, good and bad.

Sealing and signing are randomized, so those files change when they are made anew, though their meaning does not.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from searchblend.blender.best.subset_report import PLAIN_SETS, SINK_SETS, TWO_STAGE, ReportDesign, subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.core.documents import decode, encode
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Tape
from searchblend.core.records import HeadList, Record
from searchblend.wire.canonical import canonical_json
from searchblend.wire.enrolment import EnrolmentDocument, enrolment_link
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.manifest import MANIFEST_MINOR, Manifest, decode_payload, decode_signed, encode_signed
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report
from searchblend.wire.sealed import SealingContext, new_round_key, seal_records
from searchblend.wire.signing import RoundKey, SigningKey, sign_manifest
from searchblend.wire.tokens import TokenKey

HERE = Path(__file__).parent / "v1"
TASK = bytes(range(16))
HEAD = HeadList({"google": ["a", "b", "c"], "yahoo": ["a"], "ebay": ["x", "y"], "⋆": ["*"]})
WIDE = HeadList((f"query {i}", [f"u{j}" for j in range(34)]) for i in range(2000))
RECORDS = [Record("yahoo", "a"), Record("google", "z"), Record("unlisted", "u")]
DESIGNS: list[tuple[str, HeadList, ReportDesign | None, int]] = [
    ("printed", HEAD, None, 1),
    ("printed, two cells", HEAD, None, 2),
    ("two-stage, exact", HEAD, ReportDesign(0, 1, 1, TWO_STAGE), 1),
    ("sets with a sink, about cells", HEAD, ReportDesign(0, 1, 3, SINK_SETS), 1),
    ("sets with a sink, about queries", HEAD, ReportDesign(20, 2, 1, SINK_SETS), 1),
    ("sets with a sink, both, three parts", HEAD, ReportDesign(10, 1, 3, SINK_SETS), 3),
    ("plain sets, both", HEAD, ReportDesign(10, 2, 3, PLAIN_SETS), 2),
    ("more cells than two bytes number", WIDE, ReportDesign(0, 1, 2, SINK_SETS), 1),
]


def tape(label: str, n_bytes: int = 4096) -> bytes:
    blocks = (hashlib.sha256(f"{label}/{i}".encode()).digest() for i in range(n_bytes // 32 + 1))
    return b"".join(blocks)[:n_bytes]


def shape_document(shape: ReportShape) -> dict[str, Any]:
    return {**asdict(shape), "task": shape.task.hex(), "digest": shape.digest.hex()}


def reports() -> list[dict[str, Any]]:
    cases = []
    for name, head, design, m in DESIGNS:
        params = BlenderParams(Budget(1.0, 1e-6), records_per_client=m)
        shape = ReportShape.of(TASK, 7, head, params, design)
        source = Tape(tape(name))
        for n in range(4):
            if design is None:
                parts = cells_as_parts(local_report(RECORDS, head, params, randomness=source))
            else:
                parts = subset_report(RECORDS, head, design, params, randomness=source)
            nonce = hashlib.sha256(f"{name}/{n}".encode()).digest()[:16]
            cases.append(
                {
                    "name": f"{name}, {n}",
                    "shape": shape_document(shape),
                    "size": shape.size,
                    "counts_per_report": shape.counts_per_report,
                    "parts": [[part.about_queries, list(part.items)] for part in parts],
                    "nonce": nonce.hex(),
                    "message": encode_report(parts, shape, randomness=Tape(nonce)).hex(),
                }
            )
    return cases


def shapes() -> list[dict[str, Any]]:
    """From the head-list message to the shape of a report: every number that fixes its bytes."""
    cases = []
    for name, head, design, m in DESIGNS:
        if head is WIDE:
            continue
        params = BlenderParams(Budget(1.0, 1e-6), records_per_client=m)
        shape = ReportShape.of(TASK, 7, head, params, design)
        cases.append(
            {
                "name": name,
                "task": TASK.hex(),
                "round": 7,
                "head_list": encode_head_list(head, params, design),
                "shape": shape_document(shape),
                "items": shape.items,
                "width": shape.width,
                "size": shape.size,
                "n_counters": shape.n_counters,
                "counts_per_report": shape.counts_per_report,
            }
        )
    return cases


def bad_reports() -> list[dict[str, Any]]:
    params = BlenderParams(Budget(1.0, 1e-6))
    shape = ReportShape.of(TASK, 7, HEAD, params, ReportDesign(0, 1, 3, SINK_SETS))

    def remade(payload: bytes) -> bytes:
        nonce = b"n" * 16
        return payload + nonce + hashlib.sha256(nonce + payload).digest()[:16]

    def part(kind: int, *items: int) -> bytes:
        return bytes([kind]) + b"".join(item.to_bytes(2, "big") for item in items)

    header = shape.header
    good = remade(header + part(0, 1, 2, 3))
    changed = bytearray(good)
    changed[33] ^= 1
    cases: list[tuple[str, bytes, str]] = [
        ("empty", b"", "malformed"),
        ("one byte short", good[:-1], "malformed"),
        ("one byte more", good + b"\0", "malformed"),
        ("version 0", remade(b"\0" + header[1:] + part(0, 1, 2, 3)), "malformed"),
        ("version 2", remade(b"\2" + header[1:] + part(0, 1, 2, 3)), "malformed"),
        ("another suite", remade(header[:1] + b"\3" + header[2:] + part(0, 1, 2, 3)), "malformed"),
        ("another task", remade(header[:2] + b"\xff" * 16 + header[18:] + part(0, 1, 2, 3)), "wrong-round"),
        ("another round", remade(header[:21] + b"\x08" + header[22:] + part(0, 1, 2, 3)), "wrong-round"),
        ("another head list", remade(header[:22] + b"\0" * 8 + part(0, 1, 2, 3)), "wrong-head-list"),
        ("an id of other bytes", bytes(changed), "id-mismatch"),
        ("another nonce", good[:-32] + b"m" * 16 + good[-16:], "id-mismatch"),
        ("kind 2", remade(header + part(2, 1, 2, 3)), "malformed"),
        ("about queries, which the round does not ask", remade(header + part(1, 0, 1, 2)), "malformed"),
        ("two items", remade(header + part(0, 1, 2, 0xFFFF)), "malformed"),
        ("an item after an unused place", remade(header + part(0, 0xFFFF, 1, 2)), "malformed"),
        ("an item twice", remade(header + part(0, 1, 1, 2)), "malformed"),
        ("descending", remade(header + part(0, 3, 2, 1)), "malformed"),
        ("out of range", remade(header + part(0, 1, 2, HEAD.n_cells - 1)), "malformed"),
    ]
    return [
        {"name": name, "shape": shape_document(shape), "message": message.hex(), "reason": reason}
        for name, message, reason in cases
    ]


def sealed() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    private, public = new_round_key()
    consent = hashlib.sha256(b"consent text").digest()
    context = SealingContext(TASK, 7, consent)
    credential = "sbe_an-enrolment-code-of-26"
    tag = context.tag_of(credential)
    base = {
        "private_key": private.hex(),
        "task": TASK.hex(),
        "round": 7,
        "consent": consent.hex(),
        "credential": credential,
        "tag": tag.hex(),
        "at_most": 3,
    }

    def sealed_for(records: list[Record], **changes: Any) -> bytes:
        arguments = {"context": context, "tag": tag, "public_key": public, **changes}
        return seal_records(records, **arguments)

    def case(name: str, records: list[Record]) -> dict[str, Any]:
        message = sealed_for(records)
        pairs = [[q, u if isinstance(u, str) else None] for q, u in records]
        return {"name": name, **base, "public_key": public.hex(), "records": pairs, "message": message.hex()}

    good = [
        case("one record", [Record("weather", "http://weather.example")]),
        case("without a URL", [Record("weather")]),
        case("three records", RECORDS),
        case("beyond ASCII", [Record("météo ⋆ 天気", "http://例え.example/ü?a=%20")]),
        case("a larger bucket", [Record("x" * 400, "http://long.example")]),
    ]
    message = bytes.fromhex(good[0]["message"])
    flipped = bytearray(message)
    flipped[-1] ^= 1
    bad: list[tuple[str, bytes, str]] = [
        ("truncated", message[:-1], "malformed"),
        ("version 1, which was bound to nobody", b"\1" + message[1:], "malformed"),
        ("a later version", b"\3" + message[1:], "malformed"),
        ("another consent", message[:2] + b"\0" * 32 + message[34:], "wrong-consent"),
        ("changed", bytes(flipped), "not sealed"),
        ("sealed for another round", sealed_for(RECORDS, context=replace(context, round=8)), "not sealed"),
        ("sealed for another task", sealed_for(RECORDS, context=replace(context, task=bytes(16))), "not sealed"),
        (
            "a copy of somebody else's",
            sealed_for(RECORDS, tag=context.tag_of("sbe_somebody-else-of-the-task")),
            "not sealed",
        ),
        (
            "one's own of another round",
            sealed_for(RECORDS, tag=replace(context, round=6).tag_of(credential)),
            "not sealed",
        ),
        ("sealed to another key", sealed_for(RECORDS, public_key=new_round_key()[1]), "not sealed"),
        ("four records of three", sealed_for([*RECORDS, RECORDS[0]]), "records"),
        ("a query that is not normalized", sealed_for([Record("Weather")]), "normalized"),
    ]
    return good, [{"name": name, **base, "message": text.hex(), "says": says} for name, text, says in bad]


def manifest_document(**changes: Any) -> dict[str, Any]:
    return {
        "format": "searchblend-manifest",
        "version": 1,
        "minor": 1,
        "task": TASK.hex(),
        "name": "searches",
        "engine": "example",
        "market": "en-GB",
        "sequence": 5,
        "issued": 1_800_000_000,
        "expires": 1_800_604_800,
        "phase": "client",
        "round": 7,
        "killed": False,
        "min_device_version": "0.1",
        "silent_devices": "skip",
        "method": "best",
        "epsilon": "4.0",
        "delta": "1e-05",
        "records_per_client": 1,
        "records_per_optin": 1,
        "optin": None,
        "client": {
            "artifact": "ab" * 32,
            "digest": HEAD.digest,
            "mechanism": SINK_SETS,
            "report_bytes": 73,
            "opens": 1_800_000_000,
            "closes": 1_800_400_000,
        },
        "pack": None,
        **changes,
    }


def manifests() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    keys = [SigningKey.new(), SigningKey.new()]
    pinned = {key.key_id: key.public_point.hex() for key in keys[:1]}
    optin = _optin_part()
    earlier = {name: optin[name] for name in ("public_key", "consent", "closes")}
    delta = {"base": "12" * 32, "artifact": "34" * 32, "bytes": 4_000}
    pack = {"artifact": "ab" * 32, "bytes": 30_000, "round": 6, "deltas": []}
    documents = {
        "client phase": manifest_document(),
        "opt-in phase": manifest_document(phase="opt-in", optin=optin, client=None),
        "opt-in phase of minor version 0": manifest_document(minor=0, phase="opt-in", optin=earlier, client=None),
        "fields of a later minor version": {**manifest_document(minor=MANIFEST_MINOR + 1), "later": 1},
        "with tokens": _with_tokens(),
        "with the keys of a gateway": manifest_document(minor=2, gateway=["ab" * 32, "cd" * 32]),
        "without a gateway": manifest_document(minor=2),
        "with a gateway that has no key": manifest_document(minor=2, gateway=[]),
        "idle": manifest_document(phase="idle", client=None),
        "killed": manifest_document(phase="idle", client=None, killed=True),
        "with a pack": manifest_document(pack=pack),
        "with a pack and deltas": manifest_document(
            phase="idle", client=None, pack={**pack, "deltas": [delta, {**delta, "base": "56" * 32}]}
        ),
        "names beyond ASCII": manifest_document(name='Suche ⋆ ü\u2028"\\\t'),
    }
    good = []
    for name, document in documents.items():
        message = encode_signed(sign_manifest(_payload(document), keys))
        good.append({"name": name, "pinned": pinned, "message": message.decode(), "manifest": document})
    text = good[0]["message"]
    envelope = json.loads(text)
    bad: list[tuple[str, str, str]] = [
        ("not JSON", text[:-1], "JSON object"),
        ("no signature", json.dumps({**envelope, "signatures": []}), "1 to 8 signatures"),
        ("signed by a stranger", _signed(documents["client phase"], [SigningKey.new()]), "pinned key"),
        ("a changed payload", text.replace('\\"round\\":7', '\\"round\\":8'), "pinned key"),
        ("more fields", json.dumps({**envelope, "extra": 1}), "payload and signatures"),
        ("another algorithm", text.replace("ES256", "none"), "algorithm"),
        *(
            (f"{field}: {value!r}", _signed_raw({**manifest_document(), field: value}, keys), says)
            for field, value, says in (
                ("format", "other", "expected searchblend-manifest"),
                ("version", 2, "version 1"),
                ("round", "7", "round: wrong type"),
                ("round", True, "round: wrong type"),
                ("round", -1, "0 or more"),
                ("epsilon", "NaN", "epsilon"),
                ("phase", "opt-in", "exactly in phase"),
                ("task", "xyz", "hexadecimal"),
                ("unknown", 1, "wrong fields"),
                ("silent_devices", "always", "silent_devices"),
                ("gateway", [], "wrong fields: gateway"),
                ("pack", {key: value for key, value in pack.items() if key != "deltas"}, "pack: wrong fields: deltas"),
                ("pack", {**pack, "deltas": None}, "deltas: wrong type"),
                ("pack", {**pack, "deltas": ["x"]}, "deltas: expected at most 8 objects"),
                ("pack", {**pack, "deltas": [{**delta, "base": f"{i:064x}"} for i in range(9)]}, "at most 8 objects"),
                ("pack", {**pack, "deltas": [{**delta, "base": "AB" * 32}]}, "64 hexadecimal digits"),
                ("pack", {**pack, "deltas": [{**delta, "artifact": ""}]}, "64 hexadecimal digits"),
                ("pack", {**pack, "deltas": [{**delta, "bytes": -1}]}, "0 or more"),
                ("pack", {**pack, "deltas": [{"base": "12" * 32}]}, "wrong fields: artifact, bytes"),
                ("pack", {**pack, "deltas": [delta, delta]}, "a base twice"),
                ("pack", {**pack, "artifact": "xyz"}, "64 hexadecimal digits"),
            )
        ),
        *(
            (f"gateway: {name}", _signed_raw(manifest_document(minor=2, gateway=value), keys), says)
            for name, value, says in (
                ("a text", "ab" * 32, "gateway: wrong type"),
                ("a number", [7], "gateway: expected at most 4"),
                ("too short", ["ab" * 31], "gateway: expected at most 4"),
                ("too many", [f"{i:064x}" for i in range(5)], "gateway: expected at most 4"),
            )
        ),
        *(
            (
                f"opt-in phase, {name}",
                _signed_raw(manifest_document(phase="opt-in", client=None, optin=part), keys),
                says,
            )
            for name, part, says in (
                ("no signature of a curator", earlier, "optin: wrong fields: curator, settings"),
                ("settings: not hexadecimal", {**optin, "settings": "xyz"}, "settings: expected 64 hexadecimal digits"),
                ("curator: a text", {**optin, "curator": "x"}, "optin: curator: wrong type"),
                (
                    "curator: no algorithm",
                    {**optin, "curator": {"key_id": "ab" * 8, "signature": ""}},
                    "optin: curator",
                ),
                ("curator: another algorithm", _with_curator(optin, algorithm="none"), "algorithm ES256"),
                ("curator: a short signature", _with_curator(optin, signature="AA"), "64 bytes in base64url"),
            )
        ),
        *(
            (f"tokens: {field}: {str(value)[:20]}", _signed_raw(_with_tokens(**{field: value}), keys), says)
            for field, value, says in (
                ("issuer", "http://issuer.example", "tokens: issuer: expected https://HOST"),
                ("issuer", "https://issuer.example/path", "tokens: issuer: expected https://HOST"),
                ("request", "https://other.example/token-request", "tokens: request: expected a path"),
                ("request", "/token-request?account=1", "tokens: request: expected a path"),
                ("key", "A" * 455, "tokens: key: expected 342 bytes"),
                ("key", 1, "tokens: key: wrong type"),
            )
        ),
        ("blanks in the payload", _signed_blanks(keys), "canonical"),
    ]
    return good, [{"name": name, "pinned": pinned, "message": text, "says": says} for name, text, says in bad]


def _optin_part(curator: SigningKey | None = None, **changes: Any) -> dict[str, Any]:
    """Signed by a curator, with whatever changes after it has signed."""
    optin = {"public_key": "cd" * 32, "consent": "ef" * 32, "closes": 1_800_000_000, "settings": "01" * 32}
    document = manifest_document(phase="opt-in", client=None, optin=optin)
    signature = (curator or SigningKey.new()).sign(RoundKey.of_manifest(decode(Manifest, document)).signed_bytes)
    return {**optin, "curator": encode(signature), **changes}


def _with_tokens(**changes: Any) -> dict[str, Any]:
    """Reports are paid for."""
    key = TokenKey.read(bytes.fromhex(json.loads((HERE / "token.json").read_text())["cases"][0]["key"])).text
    tokens = {"issuer": "https://issuer.example", "request": "/token-request", "key": key, **changes}
    document = manifest_document(minor=2, min_device_version="0.2")
    return {**document, "client": {**document["client"], "tokens": tokens}}


def _with_curator(optin: dict[str, Any], **changes: str) -> dict[str, Any]:
    return {**optin, "curator": {**optin["curator"], **changes}}


def round_keys() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Manifests whose round the pinned curator has signed, and such that it has not."""
    curators = [SigningKey.new(), SigningKey.new()]
    pinned = {key.key_id: key.public_point.hex() for key in curators}
    optin = _optin_part(curators[0])
    document = manifest_document(phase="opt-in", client=None, optin=optin)
    signed = RoundKey.of_manifest(decode(Manifest, document)).signed_bytes.hex()
    good = [
        {"name": "the curator's", "pinned": pinned, "manifest": document, "signed": signed},
        {"name": "published again later", "pinned": pinned, "manifest": {**document, "sequence": 9}, "signed": signed},
    ]
    stranger = _optin_part(SigningKey.new())
    earlier = {name: optin[name] for name in ("public_key", "consent", "closes")}
    bad = {
        "a key put in its place": {**document, "optin": {**optin, "public_key": "ce" * 32}},
        "another consent": {**document, "optin": {**optin, "consent": "ee" * 32}},
        "open for longer": {**document, "optin": {**optin, "closes": optin["closes"] + 1}},
        "other settings": {**document, "optin": {**optin, "settings": "02" * 32}},
        "another round": {**document, "round": 8},
        "another task": {**document, "task": "ff" * 16},
        "a larger epsilon": {**document, "epsilon": "8.0"},
        "a larger delta": {**document, "delta": "0.001"},
        "more records": {**document, "records_per_optin": 2},
        "signed by a stranger": {**document, "optin": stranger},
        "a stranger's signature under the curator's id": {
            **document,
            "optin": _with_curator(stranger, key_id=curators[0].key_id),
        },
        "one curator's signature under another's id": {
            **document,
            "optin": _with_curator(optin, key_id=curators[1].key_id),
        },
        "minor version 0": {**document, "minor": 0, "optin": earlier},
    }
    return good, [{"name": name, "pinned": pinned, "manifest": changed} for name, changed in bad.items()]


def enrolments() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Links and files to join a list, and such as name the field that is wrong in both languages."""
    key, other = "04" + "ab" * 64, "04" + "0c" * 64
    least = {"server": "https://lists.example", "task": "0123456789abcdef" * 2, "keys": [key]}
    most = {
        **least,
        "server": "https://lists.example:8443/below/v1.0",
        "keys": [key, other],
        "curators": [other],
        "consent": "I am of age.\nJ'accepte \u2026 \u00e4\u00f6\u00fc",
        "has_urls": False,
    }
    here = {**least, "server": "http://127.0.0.1:8470"}

    def link(document: Any, page: str = "https://lists.example/enrol/x") -> str:
        return f"{page}#{_base64url(json.dumps(document).encode())}"

    whole = enrolment_link("https://lists.example/enrol/x", decode(EnrolmentDocument, most))
    texts = {
        "link": (whole, most),
        "link broken by a mail program": (f" {whole[:90]}\r\n {whole[90:]}\n", most),
        "the part after the #": (whole.partition("#")[2], most),
        "link with a page of any address": (link(least, "anything#at all"), least),
        "file": (json.dumps(most, indent=2), most),
        "file with the least": (json.dumps(least), least),
        "with a relay": (json.dumps({**least, "relay": "https://relay.example/lists"}), None),
        "http on this machine": (json.dumps(here), here),
        "http on this machine by name": (json.dumps({**here, "server": "http://localhost"}), None),
        "http on this machine over IPv6": (json.dumps({**here, "server": "http://[::1]:9"}), None),
    }
    good = [
        {"name": name, "text": text, "document": encode(decode(EnrolmentDocument, document or json.loads(text)))}
        for name, (text, document) in texts.items()
    ]
    changes: dict[str, tuple[str, Any]] = {
        "no scheme": ("server", "lists.example"),
        "plain http": ("server", "http://lists.example"),
        "http to a name that begins like this machine": ("server", "http://localhost.example"),
        "a user in the address": ("server", "https://ann:secret@lists.example"),
        "no host": ("server", "https://"),
        "a broken host": ("server", "https://[lists"),
        "capitals in the host": ("server", "https://Lists.example"),
        "a port that is a word": ("server", "https://lists.example:port"),
        "a port that is too large": ("server", "https://lists.example:65536"),
        "port 0": ("server", "https://lists.example:0"),
        "a query": ("server", "https://lists.example?a=b"),
        "a fragment": ("server", "https://lists.example#a"),
        "a slash at the end": ("server", "https://lists.example/"),
        "a path upwards": ("server", "https://lists.example/../x"),
        "a line break after the server": ("server", "https://lists.example\n"),
        "a server that is a number": ("server", 3),
        "a relay over plain http": ("relay", "http://relay.example"),
        "a relay that is null": ("relay", None),
        "a relay that is empty": ("relay", ""),
        "a short task": ("task", "0" * 31),
        "a long task": ("task", "0" * 33),
        "a task in capitals": ("task", "AB" * 16),
        "no keys": ("keys", []),
        "a key that is no list": ("keys", key),
        "a short key": ("keys", [key[:-2]]),
        "a compressed key": ("keys", ["02" + "ab" * 32]),
        "a key that is a number": ("keys", [4]),
        "too many keys": ("keys", [key] * 17),
        "a bad curator": ("curators", [key, "04"]),
        "too many curators": ("curators", [key] * 17),
        "curators that are null": ("curators", None),
        "consent that is a list": ("consent", ["I agree."]),
        "a lone surrogate": ("consent", "\ud800"),
        "has_urls that is a word": ("has_urls", "no"),
        "an extra field": ("note", "for the reader"),
        "a name that every object has": ("__proto__", {}),
    }
    bad = [
        {"name": name, "text": link({**least, field: value}), "says": field} for name, (field, value) in changes.items()
    ]
    bad += [
        {"name": f"without {field}", "text": json.dumps({k: v for k, v in least.items() if k != field}), "says": field}
        for field in least
    ]
    for name, text in {
        "empty": "",
        "a link without a document": "https://lists.example/enrol/x",
        "a link with an empty document": "https://lists.example/enrol/x#",
        "not base64url": "https://lists.example/enrol/x#a+b/",
        "not UTF-8": f"#{_base64url(bytes([255, 254]))}",
        "not JSON": f"#{_base64url(b'enrol')}",
        "a list": f"#{_base64url(b'[]')}",
        "half a file": '{"server": "https://lists.example"',
    }.items():
        bad.append({"name": name, "text": text, "says": "enrolment"})
    return good, bad


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _payload(document: dict[str, Any]) -> bytes:
    """Canonical, and a manifest that devices accept."""
    payload = canonical_json(document)
    decode_payload(payload)
    return payload


def _signed(document: dict[str, Any], keys: list[SigningKey]) -> str:
    return encode_signed(sign_manifest(_payload(document), keys)).decode()


def _signed_raw(document: dict[str, Any], keys: list[SigningKey]) -> str:
    payload = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return encode_signed(sign_manifest(payload, keys)).decode()


def _signed_blanks(keys: list[SigningKey]) -> str:
    return encode_signed(sign_manifest(json.dumps(manifest_document()).encode(), keys)).decode()


def main() -> None:
    good_sealed, bad_sealed = sealed()
    good_manifests, bad_manifests = manifests()
    good_round_keys, bad_round_keys = round_keys()
    good_enrolments, bad_enrolments = enrolments()
    assert all(decode_signed(case["message"].encode()) for case in good_manifests)
    made: dict[str, Callable[[], list[dict[str, Any]]] | list[dict[str, Any]]] = {
        "report_bytes": reports(),
        "report_shape": shapes(),
        "bad_report_bytes": bad_reports(),
        "sealed_record": good_sealed,
        "bad_sealed_record": bad_sealed,
        "manifest": good_manifests,
        "bad_manifest": bad_manifests,
        "round_key": good_round_keys,
        "bad_round_key": bad_round_keys,
        "enrolment": good_enrolments,
        "bad_enrolment": bad_enrolments,
    }
    for name, cases in made.items():
        text = json.dumps({"version": 1, "cases": cases}, ensure_ascii=False, indent=1)
        (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
