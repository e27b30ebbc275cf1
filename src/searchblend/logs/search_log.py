"""A search log that was read: what was in it, and its people in two groups."""

from __future__ import annotations

import math
from typing import Final, Self

from searchblend.blender.groups import UserGroup
from searchblend.errors import InvalidParameter
from searchblend.logs.duckdb_engine import DuckDBEngine
from searchblend.logs.duckdb_session import DuckDBSession
from searchblend.logs.summary import InputSummary

_HASH_DIGITS: Final = 13
"""Hexadecimal digits of a person's hash that place them in [0, 1): 52 bits, exact in a double."""


class SearchLog:
    """One random record of each user of a log, and what the log held. Close it, or use it in a ``with``."""

    def __init__(self, engine: DuckDBEngine, session: DuckDBSession, summary: InputSummary, *, by_column: bool) -> None:
        self._engine, self._session, self._by_column = engine, session, by_column
        self.summary: Final = summary
        """What was read. NOT FOR RELEASE."""

    @property
    def has_urls(self) -> bool:
        return self._engine.has_urls

    def split(self, *, optin_fraction: float | None = None) -> tuple[UserGroup, UserGroup]:
        """Opt-in users and clients: a fraction of the users by a keyed hash, or by the opt-in column of the log.

        By column, a user has opted in if every usable line of theirs says so.
        """
        if (optin_fraction is None) is not self._by_column:
            raise InvalidParameter("opt-in", "expected either a fraction or a column of the log, not both or none")
        if optin_fraction is None:
            return self._engine.group("optin"), self._engine.group("NOT optin")
        if not 0 < optin_fraction < 1:
            raise InvalidParameter("opt-in", f"expected a share in (0, 1), found {optin_fraction!r}")
        cut = f"{math.ceil(optin_fraction * 16**_HASH_DIGITS):0{_HASH_DIGITS}x}"
        inside = f"left(md5('opt-in' || person), {_HASH_DIGITS}) < '{cut}'"
        return self._engine.group(inside), self._engine.group(f"NOT {inside}")

    def close(self) -> None:
        """Forget everything, and remove the temporary files."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SearchLog({self.summary.format})"
