"""The privacy statement of a release of any kind: what it is made of, before and after it is a document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from searchblend.core.documents import JsonObject
from searchblend.core.errors import MessageError
from searchblend.core.privacy import StatedGuarantee

PAGE: Final = "index.html"
"""a release as one page for people, where its folder has one"""


@dataclass(frozen=True)
class FileEntry:
    """How a statement names a file."""

    sha256: str
    """empty, which no file has, where a statement that was read has none"""
    size: int
    """in bytes"""

    @classmethod
    def of(cls, content: bytes) -> FileEntry:
        return cls(hashlib.sha256(content).hexdigest(), len(content))


@dataclass(frozen=True)
class Statement:
    """``statement.json``: what was released, how, with what promise, and the hashes of its files."""

    kind: str
    method: str
    created: str
    """when, in ISO 8601"""
    parameters: JsonObject
    """all that is needed to compute (ε, δ) again; the kind of release decides which"""
    guarantee: StatedGuarantee | None
    """None: a statement that was read and has none that is whole"""
    public: Sequence[str]
    caveats: Sequence[str]
    software: Mapping[str, str]
    files: Mapping[str, FileEntry]
    notice: str | None = None
    """why this must not be released"""

    @property
    def promise(self) -> StatedGuarantee:
        """The guarantee, for readers that cannot do without one."""
        if self.guarantee is None:
            raise MessageError("statement: guarantee: expected one as searchblend writes it")
        return self.guarantee

    @property
    def private(self) -> bool:
        return self.notice is None

    def with_file(self, name: str, content: bytes) -> Statement:
        return replace(self, files={**self.files, name: FileEntry.of(content)})

    def without_file(self, name: str) -> Statement:
        return replace(self, files={other: entry for other, entry in self.files.items() if other != name})
