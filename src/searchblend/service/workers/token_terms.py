"""What pays for the reports of a round: read from the issuer's own directory when the round opens to clients."""

from __future__ import annotations

import http.client
from typing import Final
from urllib.parse import urlsplit

from searchblend.core.errors import MessageError
from searchblend.service.workers.worker import Postponed
from searchblend.wire.manifest import TokenPart
from searchblend.wire.tokens import DIRECTORY_MEDIA_TYPE, DIRECTORY_PATH, terms_of_directory

_SECONDS: Final = 10.0
_LARGEST: Final = 64 << 10


def fetch_terms(issuer: str, now: int) -> TokenPart:
    """The issuer's key of now. ``Postponed`` if it does not answer, or with nothing that can be used.

    A round must not end because another company's server is away: it opens to clients when that is back.
    """
    try:
        return terms_of_directory(issuer, _directory(issuer), now)
    except (OSError, http.client.HTTPException) as error:
        raise Postponed(f"the issuer of tokens does not answer: {type(error).__name__}") from None
    except MessageError as error:
        raise Postponed(f"the issuer of tokens has no directory that can be used: {error}") from None


def _directory(issuer: str) -> bytes:
    """Redirections are not followed: who answers is who was named."""
    parts = urlsplit(issuer)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request("GET", DIRECTORY_PATH, headers={"Accept": DIRECTORY_MEDIA_TYPE})
        answer = connection.getresponse()
        content = answer.read(_LARGEST + 1)
    finally:
        connection.close()
    if answer.status != 200 or len(content) > _LARGEST:
        raise MessageError(f"issuer directory: status {answer.status}")
    return content
