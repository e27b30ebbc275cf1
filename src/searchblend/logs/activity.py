"""How a log's lines become searches and clicks with a place in time: the rules that all engines follow.

- The *moment* of a line is its time in seconds. A date ``2006-03-01 07:17:12`` (a T instead of the blank is fine) is
  taken as UTC; a number is seconds, from 10^11 on milliseconds, from 10^14 on microseconds. A time that is neither has
  no moment and comes after all that have one, in the order of its text (``late``); lines without a time come last. So
  do clicks whose rank is no number.
- Lines of one user with the same query and time are one search with several clicks; a line without a time is a search
  of its own.
- A user's searches are ordered by moment, then ``late``, then the keyed MD5 of the query; clicks of one search by rank,
  then the keyed MD5 of the URL, and so are searches of one query without a time.
- A line with a URL is a click on it. A line without one but with a suggested query is a click on that query in normal
  form; a suggestion that is no usable query is none.
- A synonym map is applied to queries in normal form, suggested ones too, before anything is counted. It must come from
  outside the log.
- A window keeps the lines with first ≤ moment < last, and no line without a moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from searchblend.core.errors import InvalidParameter

MILLISECONDS_FROM: Final = 1e11
MICROSECONDS_FROM: Final = 1e14
DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


@dataclass(frozen=True)
class ActivityRules:
    """What is left out and merged before anything is counted; fixed in advance, not by looking at the log."""

    first_moment: float | None = None
    """seconds; lines before it are left out"""
    last_moment: float | None = None
    """seconds; lines from it on are left out"""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """query in normal form → the query it is counted as"""

    def __post_init__(self) -> None:
        first, last = self.first_moment, self.last_moment
        if first is not None and last is not None and not first < last:
            raise InvalidParameter("window", "expected a first moment before the last")
