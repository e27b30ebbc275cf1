"""A search log that was read: what was in it, and its people in two groups."""

from __future__ import annotations

from typing import Final, Self

from searchblend.blender.groups import UserGroup
from searchblend.clickgraph.release.click_log import ClickLog
from searchblend.core.errors import InvalidParameter
from searchblend.logs.activity import ActivityRules
from searchblend.logs.engine import LogEngine, Reading
from searchblend.logs.formats.layout import Layout
from searchblend.logs.options import ReadOptions
from searchblend.logs.summary import InputSummary, LogStatistics


class SearchLog:
    """One random record of each user of a log, and what the log held. Close it, or use it in a ``with``."""

    def __init__(
        self, engine: LogEngine, options: ReadOptions, reading: Reading, summary: InputSummary, layout: Layout
    ) -> None:
        """
        Args:
            engine: holds the records
            options: how the log was read
            reading: what the one pass over it counted
            summary: the same with the places of malformed lines
            layout: of the first file
        """
        self._engine, self._options, self._reading = engine, options, reading
        self.summary: Final = summary
        """What was read. NOT FOR RELEASE."""
        self.decided: Final = {
            "format": layout.format,
            "urls": layout.has_urls,
            "host_only": options.host_only,
            "quoted_line_feeds": options.quoted_line_feeds,
        }
        """How the log was read. It rests on names, headers and options alone, and may be published."""

    @property
    def has_urls(self) -> bool:
        return self._engine.has_urls

    def split(self, *, optin_fraction: float | None = None) -> tuple[UserGroup, UserGroup]:
        """Opt-in users and clients: a fraction of the users by a keyed hash, or by the opt-in column of the log.

        By column, a user has opted in if every usable line of theirs says so.
        """
        if (optin_fraction is None) is not (self._options.optin_column is not None):
            raise InvalidParameter("opt-in", "expected either a fraction or a column of the log, not both or none")
        if not self._options.draws:
            raise InvalidParameter("draws", "expected a log that was read with at least one draw per user")
        if optin_fraction is None:
            return self._engine.split_by_column()
        if not 0 < optin_fraction < 1:
            raise InvalidParameter("opt-in", f"expected a share in (0, 1), found {optin_fraction!r}")
        return self._engine.split_by_fraction(optin_fraction)

    def statistics(self) -> LogStatistics:
        """The columns of [BLJ] Fig. 8. NOT PRIVATE. The log must have been read with ``keep_lines``."""
        return self._engine.statistics(self._reading)

    def activity(self, rules: ActivityRules | None = None) -> ClickLog:
        """Searches and clicks, with each user's activity limited. The log must have been read with ``draws=0``."""
        return self._engine.activity(rules or ActivityRules())

    def close(self) -> None:
        """Forget everything, and remove the temporary files."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SearchLog({self.summary.format})"
