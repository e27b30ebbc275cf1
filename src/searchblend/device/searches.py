"""Searches on their way into a device: one, or those of a file; each is brought into normal form, or dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from searchblend.core.admission import Admission, admit
from searchblend.core.errors import InputError
from searchblend.device.policy import Policy

_LONGEST_LINE: Final = 16 << 10


def searches_of_file(path: Path, policy: Policy) -> Iterator[Admission]:
    """Those of a file of JSON lines ``{"query": …, "url": …}``, each admitted or dropped."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise InputError(path, f"expected at most {_LONGEST_LINE} bytes", line=number)
                if line.strip():
                    yield _admit_line(line, path, number, policy)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from None


def _admit_line(line: bytes, path: Path, number: int, policy: Policy) -> Admission:
    try:
        document = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InputError(path, "expected a JSON object in UTF-8", line=number) from None
    if not isinstance(document, dict) or set(document) - {"query", "url"}:
        raise InputError(path, "expected an object with query and, if a result was chosen, url", line=number)
    query, url = document.get("query"), document.get("url")
    if not isinstance(query, str):
        raise InputError(path, "expected a string", line=number, field="query")
    if url is not None and not isinstance(url, str):
        raise InputError(path, "expected a string or null", line=number, field="url")
    return admit_search(query, url, policy)


def admit_search(query: str, url: str | None, policy: Policy) -> Admission:
    """Whether this device may keep a search, and in which form."""
    return admit(query, url, longest_query=policy.longest_query, longest_url=policy.longest_url)
