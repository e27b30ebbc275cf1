"""What only the publisher of a release knows: given by them, or marked as open."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Final

from searchblend.core.errors import InvalidParameter

PURPOSES: Final = ("registry", "nist", "dpia", "readme", "dataset")
"""what a paper may be for"""
_MARK: Final = "TO BE FILLED IN"
_DOI: Final = re.compile(r"10\.[0-9]{4,9}/\S.*")


@dataclass(frozen=True)
class Publication:
    """Who publishes a release, and what for. What is None stands in the papers as an open field."""

    publisher: str | None = None
    contact: str | None = None
    purpose: str | None = None
    period: str | None = None
    licence: str | None = None
    region: str | None = None
    doi: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (not value.strip() or _MARK in value):
                raise InvalidParameter(field.name, "expected a text; leave the option out if it is not known")
        if self.doi is not None and not _DOI.fullmatch(self.doi):
            raise InvalidParameter("doi", "expected a DOI without an address in front of it, such as 10.5281/zenodo.1")

    def stated(self, name: str) -> str:
        """What was given, or the open field that asks for it."""
        value: str | None = getattr(self, name)
        return open_field(f"{ASKED[name]} (--{name})") if value is None else value


ASKED: Final = {
    "publisher": "who publishes",
    "contact": "whom to ask, with an address",
    "purpose": "what the release is for",
    "period": "the days that the data are from",
    "licence": "what readers may do with it",
    "region": "the region that the data describe, or whose law applies",
    "doi": "its DOI, if it has one",
}
"""field → what it asks"""


def open_field(asked: str) -> str:
    """The mark of a field that no file of a release can fill."""
    return f"{{{_MARK}: {asked}}}"


def open_fields(document: str) -> int:
    """How many fields of a document are open."""
    return document.count(f"{_MARK}: ")
