"""Which log to read, and how: what every command that reads one has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from searchblend.logs.engines import OnNotice
from searchblend.logs.read import DEFAULT_MEMORY, OnProgress, read_log
from searchblend.logs.search_log import SearchLog


@dataclass(frozen=True)
class LogSettings:
    """A log and the way to read it."""

    paths: tuple[str, ...]
    format: str = "auto"
    columns: Mapping[str, str] = field(default_factory=dict)
    optin_column: str | None = None
    urls: bool = True
    quoted_line_feeds: bool = False
    host_only: bool = False
    strict: bool = False
    engine: str = "duckdb"
    master: str | None = None
    memory: str | None = DEFAULT_MEMORY
    threads: int | None = None
    temp_directory: Path | None = None

    def open(
        self,
        *,
        draws: int = 1,
        picks: int = 1,
        keep_lines: bool = False,
        searches_only: bool = False,
        key: bytes | None = None,
        on_progress: OnProgress | None = None,
        on_notice: OnNotice = lambda text: None,
    ) -> SearchLog:
        return read_log(
            list(self.paths),
            format=self.format,
            columns=self.columns,
            optin_column=self.optin_column,
            urls=self.urls,
            quoted_line_feeds=self.quoted_line_feeds,
            host_only=self.host_only,
            strict=self.strict,
            draws=draws,
            picks=picks,
            keep_lines=keep_lines,
            searches_only=searches_only,
            key=key,
            memory=self.memory,
            threads=self.threads,
            temp_directory=self.temp_directory,
            engine=self.engine,
            master=self.master,
            on_progress=on_progress,
            on_notice=on_notice,
        )
