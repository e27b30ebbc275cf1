"""What the people of a list give out to join it: one small document, as a file or in a link.

A link has the document after its ``#``, as base64url of the JSON, so that no server on the way learns it; what stands
before is a page for people, and is not believed. The same rules are in the extension (core/enrolment.js), and
vectors/v1/enrolment.json holds both to them. Standard library only: devices read it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from searchblend.core.documents import Matching, Strict, absent, check, decode, encode
from searchblend.core.errors import InvalidParameter
from searchblend.wire.addresses import Server, check_server
from searchblend.wire.base64url import decode_base64url, encode_base64url
from searchblend.wire.canonical import canonical_json

MOST_KEYS: Final = 16
LONGEST: Final = 200_000
"""characters of a link or a file"""
_LINK: Final = re.compile("(?:.*#)?([A-Za-z0-9_-]+)")
_BLANKS: Final = " \t\r\n"
TaskId: TypeAlias = Annotated[str, Matching("[0-9a-f]{32}", "32 hexadecimal digits")]
PublicKey: TypeAlias = Annotated[str, Matching("04[0-9a-f]{128}", "a public key: 04 and 128 hexadecimal digits")]


@dataclass(frozen=True)
class EnrolmentDocument(Strict):
    """Where a service is, and whose signatures its devices believe."""

    server: Server
    task: TaskId
    keys: tuple[PublicKey, ...]
    """one of them signs each manifest"""
    curators: tuple[PublicKey, ...] = ()
    """one of them signs each round's key; without any, the publisher is believed about it"""
    consent: str = ""
    """the operator's own words to opt-in users"""
    has_urls: bool = True
    """whether the list has web pages"""
    relay: Server | None = absent()
    """where requests go instead, sealed: an oblivious relay, which someone else runs"""

    def __post_init__(self) -> None:
        check(self)
        check_server("server", self.server)
        if self.relay is not None:
            check_server("relay", self.relay)
        if not 1 <= len(self.keys) <= MOST_KEYS:
            raise InvalidParameter("keys", f"expected 1 to {MOST_KEYS} public keys")
        if len(self.curators) > MOST_KEYS:
            raise InvalidParameter("curators", f"expected at most {MOST_KEYS} public keys")
        if re.search("[\ud800-\udfff]", self.consent):
            raise InvalidParameter("consent", "expected text without lone surrogates")


def enrolment_link(page: str, document: EnrolmentDocument) -> str:
    """The document in a link to this page."""
    content = encode_base64url(canonical_json(encode(document)))
    return f"{page}#{content}"


def read_enrolment(text: str) -> EnrolmentDocument:
    """The document of a link, of the part after its ``#``, or of a file; ``InvalidParameter`` names what is wrong."""
    given = text.strip(_BLANKS) if len(text) <= LONGEST else ""
    document = _parsed(given if given.startswith("{") else _of_link(given))
    if not isinstance(document, dict):
        raise InvalidParameter("enrolment", "expected an enrolment link, or the JSON of an enrolment file")
    return decode(EnrolmentDocument, document)


def _of_link(link: str) -> str:
    """Mail programs break long lines: blanks are left out."""
    match = _LINK.fullmatch(re.sub(f"[{_BLANKS}]", "", link))
    if match is None:
        return ""
    try:
        return decode_base64url(match[1]).decode("utf-8")
    except ValueError:
        return ""


def _parsed(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
