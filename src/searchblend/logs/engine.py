"""What an engine does with a log, and the rules that make all engines choose the same rows.

An engine reads the files of a log once and answers a few questions about the people in it. DuckDB is one, on this
machine; another may be a cluster. They agree to the last record because everything random is a hash of texts:

- The *digest* of a line is MD5 of ``key ␟ user ␟ time ␟ query ␟ url ␟ rank`` (␟ is U+001F; texts as they stand in the
  log, empty where there is none), its 16 bytes read as a little-endian number.
- A line that a user has n times has n *scores*: the digest, and for i = 2..n MD5 of ``h:i``, h the digest in 32
  hexadecimal digits. In draw d > 1 they are MD5 of ``h:i/d``, i = 1..n. All are read as numbers in the same way.
- In draw d a user's record is that of the line with the smallest score: uniform over the user's lines, so that
  repeats count. The picks without replacement are the smallest scores of draw 1.
- A *person* is MD5 of ``key ␟ person ␟ user`` in hexadecimal. Opted in by a fraction f are those for whom the first 13
  digits of MD5 of ``opt-in ␟ person`` are less than f · 16^13.

The key is 16 fresh bytes of the operating system in hexadecimal. MD5 orders lines at random here and protects
nothing; it is what every engine has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from searchblend.blender.groups import UserGroup
from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.core.randomness import SystemRandomness
from searchblend.logs.activity import ActivityRules
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.layout import Source
from searchblend.logs.options import ReadOptions
from searchblend.logs.summary import LogStatistics, Malformed

OPTIN_DIGITS: Final = 13
"""52 bits: exact in a double"""


@dataclass(frozen=True)
class Drawing:
    """Which records are drawn: ``draws`` of each user with replacement and ``picks`` without, by a key."""

    key: str = field(repr=False)
    draws: int = 1
    picks: int = 1
    host_only: bool = False

    @classmethod
    def of(cls, options: ReadOptions) -> Drawing:
        key = SystemRandomness().take(16) if options.key is None else options.key
        return cls(key.hex(), options.draws, options.picks, options.host_only)


@dataclass(frozen=True)
class Reading:
    """What one pass over a log counted."""

    bytes: int
    lines: int
    """data lines: no headers, no blank lines"""
    used: int
    without_url: int
    held_back: Mapping[str, Malformed]
    """malformed lines whose places are known: those that never came to be fields, and rows of Parquet"""
    in_fields: Counter[str] = field(default_factory=Counter)
    """other malformed lines, by reason: something is wrong in their fields, and their places are not known yet"""
    users: int = 0

    @property
    def malformed(self) -> int:
        return self.in_fields.total() + sum(kind.count for kind in self.held_back.values())


class LogEngine(Protocol):
    """A log that was read, and what can be asked of it."""

    @property
    def has_urls(self) -> bool: ...

    def column_types(self, path: Path) -> Mapping[str, str]:
        """The columns of a Parquet file and their types, in DuckDB's words."""
        ...

    def read(self, sources: Sequence[Source], on_bytes: OnBytes, on_fraction: Callable[[float], None]) -> Reading:
        """The one pass over the files; draws one record per user, and whatever else was asked for."""
        ...

    def split_by_fraction(self, fraction: float) -> tuple[UserGroup, UserGroup]:
        """Opted in, and not, by a keyed hash of the user."""
        ...

    def split_by_column(self) -> tuple[UserGroup, UserGroup]:
        """Opted in are those whose every usable line says so."""
        ...

    def statistics(self, reading: Reading) -> LogStatistics: ...

    def activity(self, rules: ActivityRules) -> ClickLog:
        """Searches and clicks with each user's activity limited, of a log read with ``draws=0``."""
        ...

    def close(self) -> None: ...
