"""From the options of a command to how a log is read."""

from __future__ import annotations

import argparse

from searchblend.core.errors import UsageError
from searchblend.logs.options import ReadOptions


def read_options(options: argparse.Namespace, *, optin_column: str | None = None) -> ReadOptions:
    if options.master and options.engine != "spark":
        raise UsageError("--master: only with --engine spark")
    return ReadOptions(
        options.log,
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
