"""From the options of a command to the settings of a log."""

from __future__ import annotations

import argparse

from searchblend.core.errors import UsageError
from searchblend.releases.log_settings import LogSettings


def log_settings(options: argparse.Namespace, *, optin_column: str | None = None) -> LogSettings:
    if options.master and options.engine != "spark":
        raise UsageError("--master: only with --engine spark")
    return LogSettings(
        paths=(options.log,),
        format=options.format,
        columns=options.columns,
        optin_column=optin_column,
        urls=not options.no_urls,
        quoted_line_feeds=options.quoted_line_feeds,
        host_only=options.host_only,
        strict=options.strict,
        engine=options.engine,
        master=options.master,
        memory=options.memory,
        threads=options.threads,
        temp_directory=options.temp_directory,
    )
