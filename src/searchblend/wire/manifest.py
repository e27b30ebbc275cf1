"""The manifest: what a task asks of devices now, signed. Standard library only; signatures are checked in ``signing``.

Served as ``{"payload": text, "signatures": [{"key_id", "algorithm", "signature"}, …]}``. The payload is the canonical
JSON of the manifest, carried as a string so that no one has to rebuild the bytes that were signed: signed is
``"searchblend manifest v1\\n"`` followed by the payload's UTF-8 bytes. Numbers that are not whole (ε, δ) are strings.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from searchblend.core.documents import JsonObject, absent, decode, encode
from searchblend.core.errors import MessageError, listed
from searchblend.wire.addresses import is_origin
from searchblend.wire.base64url import decode_base64url, encode_base64url
from searchblend.wire.canonical import canonical_json, parse_canonical

FORMAT: Final = "searchblend-manifest"
MANIFEST_VERSION: Final = 1
MANIFEST_MINOR: Final = 2
SIGNED_PREFIX: Final = b"searchblend manifest v1\n"
ALGORITHM: Final = "ES256"
LARGEST: Final = 64 * 1024
MOST_SIGNATURES: Final = 8
PHASES: Final = ("idle", "opt-in", "client")
MOST_DELTAS: Final = 8
MOST_GATEWAY_KEYS: Final = 4
MOST_RECORDS: Final = 20
"""m_C and m_O that devices take part in, compiled in; as many sealed records of up to 200 bytes fit into one message"""
LARGEST_EPSILON: Final = 4.0
"""ε of a round that devices take part in, compiled in"""
FEWEST_QUERIES: Final = 20
"""of a head list that devices answer about, compiled in"""
ROUNDS: Final = 1 << 32
"""a round's number has four bytes in reports, sealed records and packs"""
_HEX: Final = {
    ("task", None): 32,
    ("optin", "public_key"): 64,
    ("optin", "consent"): 64,
    ("client", "artifact"): 64,
    ("client", "digest"): 64,
    ("pack", "artifact"): 64,
}
DEVICE_VERSION: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}")
"""how ``min_device_version`` is written; a device takes anything else for a version newer than its own"""
TOKEN_PATH: Final = re.compile(r"/[A-Za-z0-9._~/-]{0,200}")
"""where an issuer takes requests"""
_TOKEN_KEY: Final = re.compile("[A-Za-z0-9_-]{456}")
_BASE64URL: Final = re.compile("[A-Za-z0-9_-]{86}")


@dataclass(frozen=True)
class Signature:
    """One signature over a manifest: 64 bytes r ‖ s in base64url without padding."""

    key_id: str
    signature: str
    algorithm: str = ALGORITHM

    @classmethod
    def of_bytes(cls, key_id: str, content: bytes) -> Signature:
        return cls(key_id, encode_base64url(content))

    @property
    def content(self) -> bytes:
        """r ‖ s."""
        return decode_base64url(self.signature)


@dataclass(frozen=True)
class ManifestEnvelope:
    """A manifest as it is served: the canonical JSON that was signed, as a string, and who signed it."""

    payload: str
    signatures: tuple[Signature, ...]


@dataclass(frozen=True)
class SignedManifest:
    """The payload's exact bytes and who signed them; nothing of it is to be believed before a signature was checked."""

    payload: bytes
    signatures: tuple[Signature, ...]

    @property
    def signed_bytes(self) -> bytes:
        return SIGNED_PREFIX + self.payload


@dataclass(frozen=True)
class OptinPart:
    """What opt-in users need: the key that records are sealed to, and the curator's word that it is the round's."""

    public_key: str
    consent: str
    closes: int
    settings: str | None = absent()
    curator: Signature | None = absent()


@dataclass(frozen=True)
class TokenPart:
    """What pays for a report: a token of this issuer, signed with this key."""

    issuer: str
    """its address, without a path"""
    request: str
    """the path at which it takes requests"""
    key: str
    """its public key, a SubjectPublicKeyInfo in base64url; all devices of a round have the same"""


@dataclass(frozen=True)
class ClientPart:
    """What clients need: the head list, the form of a report on it, and what pays for one."""

    artifact: str
    digest: str
    mechanism: str
    report_bytes: int
    opens: int
    closes: int
    tokens: TokenPart | None = absent()


@dataclass(frozen=True)
class PackDelta:
    """A way from an earlier pack to this one."""

    base: str
    artifact: str
    bytes: int


@dataclass(frozen=True)
class LogHead:
    """How long the transparency log was, and its root: what devices compare with the log that they were shown."""

    size: int
    root: str


@dataclass(frozen=True)
class PackPart:
    """The newest local-search pack."""

    artifact: str
    bytes: int
    round: int
    deltas: tuple[PackDelta, ...]
    log: LogHead | None = absent()
    """when the pack was published; packs of earlier versions have none"""


@dataclass(frozen=True)
class Manifest:
    """What a task asks of devices now."""

    format: str
    version: int
    minor: int
    task: str
    name: str
    engine: str
    market: str
    sequence: int
    issued: int
    expires: int
    phase: str
    round: int
    killed: bool
    min_device_version: str
    silent_devices: str
    method: str
    epsilon: str
    delta: str
    records_per_client: int
    records_per_optin: int
    optin: OptinPart | None
    client: ClientPart | None
    pack: PackPart | None
    gateway: tuple[str, ...] | None = absent()
    """SHA-256 of each key configuration of the oblivious gateway that devices may seal requests to"""
    received: JsonObject | None = field(default=None, init=False, compare=False, repr=False)
    """the document that it was read from, with the fields of later minor versions"""

    @property
    def document(self) -> JsonObject:
        return self.received if self.received is not None else encode(self)

    @property
    def digest(self) -> str:
        """SHA-256 of all that was signed; devices keep it to recognize a second manifest of the same number."""
        return hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()


_PARTS: Final = {"optin": OptinPart, "client": ClientPart, "pack": PackPart}
_SINCE: Final = {
    ("optin", "settings"): 1,
    ("optin", "curator"): 1,
    ("client", "tokens"): 2,
    ("pack", "log"): 2,
    ("manifest", "gateway"): 2,
}
"""the minor version that a field came with; earlier manifests do without"""
_OPTIONAL: Final = {("client", "tokens"), ("pack", "log"), ("manifest", "gateway")}
"""fields that need not be there"""


def encode_manifest(manifest: Manifest) -> bytes:
    """The payload of a manifest, checked the way a device checks it."""
    payload = canonical_json(encode(manifest))
    decode_payload(payload)
    return payload


def encode_signed(signed: SignedManifest) -> bytes:
    """The envelope; with more signatures than a device takes there is none."""
    if not 1 <= len(signed.signatures) <= MOST_SIGNATURES:
        raise MessageError(f"manifest: expected 1 to {MOST_SIGNATURES} signatures")
    return canonical_json(encode(ManifestEnvelope(signed.payload.decode("utf-8"), signed.signatures)))


def decode_signed(message: bytes) -> SignedManifest:
    """The envelope, strictly; the payload is still unread."""
    if len(message) > LARGEST:
        raise MessageError("manifest: larger than 64 KiB")
    try:
        document = json.loads(message.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise MessageError("manifest: expected a JSON object") from error
    if not isinstance(document, dict) or set(document) != {"payload", "signatures"}:
        raise MessageError("manifest: expected payload and signatures")
    payload, signatures = document["payload"], document["signatures"]
    if not isinstance(payload, str) or not isinstance(signatures, list) or not 1 <= len(signatures) <= MOST_SIGNATURES:
        raise MessageError(f"manifest: expected a payload and 1 to {MOST_SIGNATURES} signatures")
    try:
        content = payload.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MessageError("manifest: payload: a lone surrogate") from error
    return SignedManifest(content, tuple(decode_signature(entry, "manifest: signatures") for entry in signatures))


def decode_payload(payload: bytes) -> Manifest:
    """A manifest, each field of the right type and none more."""
    document = parse_canonical(payload, "manifest")
    if not isinstance(document, dict):
        raise MessageError("manifest: expected an object")
    _check_fields(document, _asked("manifest", Manifest, document), "manifest")
    if (document["format"], document["version"]) != (FORMAT, MANIFEST_VERSION):
        raise MessageError(f"manifest: expected {FORMAT} version {MANIFEST_VERSION}")
    for part, kind in _PARTS.items():
        if document[part] is not None:
            _check_fields(document[part], _asked(part, kind, document), f"manifest: {part}")
    _check_values(document)
    document = _without_later_tokens(document)
    manifest = decode(Manifest, _without_later_fields(document))
    object.__setattr__(manifest, "received", document)
    return manifest


def _asked(part: str, kind: Any, document: JsonObject) -> Mapping[str, tuple[type, ...]]:
    """The fields that a part has in the minor version of this manifest, each with its types."""
    types_of = _json_types(kind)
    return {name: types_of[name] for name in types_of if _is_asked(part, name, document)}


def _is_asked(part: str, name: str, document: JsonObject) -> bool:
    minor, given = document.get("minor"), document if part == "manifest" else document[part]
    version = minor if isinstance(minor, int) else MANIFEST_MINOR
    is_known = version >= _SINCE.get((part, name), 0)
    return is_known and ((part, name) not in _OPTIONAL or (isinstance(given, dict) and name in given))


def _without_later_tokens(document: JsonObject) -> JsonObject:
    """An earlier minor version asks for no tokens, whatever stands under that name; devices in JavaScript read the
    document itself, so that it must not stand there either."""
    if document["client"] is None or document["minor"] >= _SINCE["client", "tokens"]:
        return document
    client = {name: value for name, value in document["client"].items() if name != "tokens"}
    return {**document, "client": client}


def _without_later_fields(document: JsonObject) -> JsonObject:
    """An earlier minor version does not say what a part holds under the names of later fields: kept if it is one."""
    if document["optin"] is None or document["minor"] >= _SINCE["optin", "curator"]:
        return document
    optin = dict(document["optin"])
    if not isinstance(optin.get("settings"), str):
        optin.pop("settings", None)
    try:
        decode_signature(optin.get("curator"), "manifest: optin: curator")
    except MessageError:
        optin.pop("curator", None)
    return {**document, "optin": optin}


@cache
def _json_types(kind: Any) -> dict[str, tuple[type, ...]]:
    """What each field of a class is in JSON; a field that may be absent is never null."""
    hints = get_type_hints(kind)
    types = {each.name: hints[each.name] for each in fields(kind) if each.init}
    return {
        name: tuple(
            dict if is_dataclass(arm) else list if get_origin(arm) is tuple else arm
            for arm in (get_args(hint) if isinstance(hint, UnionType) else (hint,))
            if arm is not NoneType or name in _PARTS
        )
        for name, hint in types.items()
    }


def _check_fields(document: JsonObject, kinds: Mapping[str, tuple[type, ...]], where: str) -> None:
    missing, unknown = set(kinds) - set(document), set(document) - set(kinds)
    # A later minor version may add fields; it must not take any away.
    minor = document.get("minor")
    is_later = isinstance(minor, int) and minor > MANIFEST_MINOR
    if missing or (unknown and where == "manifest" and not is_later):
        raise MessageError(f"{where}: wrong fields: {listed(sorted(missing | unknown))}")
    for name, kind in kinds.items():
        value = document[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind != (bool,)):
            raise MessageError(f"{where}: {name}: wrong type")
        if isinstance(value, int) and value < 0:
            raise MessageError(f"{where}: {name}: expected 0 or more")


def _check_values(document: JsonObject) -> None:
    if document["phase"] not in PHASES:
        raise MessageError(f"manifest: phase: expected one of {', '.join(PHASES)}")
    if document["silent_devices"] not in ("skip", "report_wildcard"):
        raise MessageError("manifest: silent_devices: expected skip or report_wildcard")
    if document["method"] not in ("best", "paper"):
        raise MessageError("manifest: method: expected best or paper")
    if document["round"] >= ROUNDS:
        raise MessageError("manifest: round: expected a number below 2^32")
    for part, phase in (("optin", "opt-in"), ("client", "client")):
        if (document[part] is not None) != (document["phase"] == phase):
            raise MessageError(f"manifest: {part}: expected exactly in phase {phase}")
    for (outer, inner), length in _HEX.items():
        value = document[outer]
        value = value if inner is None else value and value[inner]
        if value is not None and not re.fullmatch(f"[0-9a-f]{{{length}}}", value):
            raise MessageError(f"manifest: {inner or outer}: expected {length} hexadecimal digits")
    if document["optin"] is not None and document["minor"] >= _SINCE["optin", "curator"]:
        _check_curator(document["optin"])
    if document["client"] is not None and _is_asked("client", "tokens", document):
        _check_tokens(document["client"]["tokens"])
    if _is_asked("manifest", "gateway", document) and not _are_digests(document["gateway"]):
        raise MessageError(f"manifest: gateway: expected at most {MOST_GATEWAY_KEYS} times 64 hexadecimal digits")
    if document["pack"] is not None:
        _check_deltas(document["pack"]["deltas"])
        _check_log_head(document["pack"].get("log"))
    for name in ("epsilon", "delta"):
        if not re.fullmatch(r"[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", document[name]):
            raise MessageError(f"manifest: {name}: expected a number written as a text")


def _are_digests(values: list[Any]) -> bool:
    are_texts = all(isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) for value in values)
    return are_texts and len(values) <= MOST_GATEWAY_KEYS


def _check_curator(optin: JsonObject) -> None:
    """Who opened the round; the signature itself is checked by those who know the curator's key."""
    if not re.fullmatch("[0-9a-f]{64}", optin["settings"]):
        raise MessageError("manifest: settings: expected 64 hexadecimal digits")
    decode_signature(optin["curator"], "manifest: optin: curator")


def _check_tokens(tokens: JsonObject) -> None:
    """Where tokens are to be had, and how they are signed; the key itself is read when one is asked for."""
    _check_fields(tokens, _json_types(TokenPart), "manifest: client: tokens")
    if not is_origin(tokens["issuer"]):
        raise MessageError("manifest: client: tokens: issuer: expected https://HOST, or http:// on this machine")
    if not TOKEN_PATH.fullmatch(tokens["request"]):
        raise MessageError("manifest: client: tokens: request: expected a path")
    if not _TOKEN_KEY.fullmatch(tokens["key"]):
        raise MessageError("manifest: client: tokens: key: expected 342 bytes in base64url")


def _check_log_head(head: JsonObject | None) -> None:
    if head is not None:
        if not isinstance(head, dict):
            raise MessageError("manifest: pack: log: wrong type")
        _check_fields(head, _json_types(LogHead), "manifest: pack: log")
        if not re.fullmatch("[0-9a-f]{64}", head["root"]):
            raise MessageError("manifest: pack: log: root: expected 64 hexadecimal digits")


def _check_deltas(deltas: list[Any]) -> None:
    """How a device may come from an earlier pack to this one."""
    if len(deltas) > MOST_DELTAS or not all(isinstance(delta, dict) for delta in deltas):
        raise MessageError(f"manifest: pack: deltas: expected at most {MOST_DELTAS} objects")
    for delta in deltas:
        _check_fields(delta, _json_types(PackDelta), "manifest: pack: deltas")
        if not all(re.fullmatch("[0-9a-f]{64}", delta[name]) for name in ("base", "artifact")):
            raise MessageError("manifest: pack: deltas: expected 64 hexadecimal digits")
    if len({delta["base"] for delta in deltas}) != len(deltas):
        raise MessageError("manifest: pack: deltas: a base twice")


def decode_signature(entry: Any, where: str) -> Signature:
    """One signature of a manifest or of a round's key, strictly."""
    if not isinstance(entry, dict) or set(entry) != {"key_id", "algorithm", "signature"}:
        raise MessageError(f"{where}: expected key_id, algorithm and signature")
    if not all(isinstance(value, str) for value in entry.values()) or entry["algorithm"] != ALGORITHM:
        raise MessageError(f"{where}: expected strings and algorithm {ALGORITHM}")
    if not re.fullmatch("[0-9a-f]{16}", entry["key_id"]) or not _BASE64URL.fullmatch(entry["signature"]):
        raise MessageError(f"{where}: expected a key id of 16 hexadecimal digits and 64 bytes in base64url")
    return Signature(entry["key_id"], entry["signature"])
