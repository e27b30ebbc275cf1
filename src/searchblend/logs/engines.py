"""The engines by name: DuckDB on this machine, Apache Spark on a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.logs.duckdb.draws import Drawing
from searchblend.logs.duckdb.engine import DuckDBEngine
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.engine import LogEngine
from searchblend.logs.spark.session import SparkRunner

ENGINES: Final = ("duckdb", "spark")
OnNotice = Callable[[str], None]
"""Hears what a person should know of the engine: its version, what it runs on."""


def open_engine(
    name: str,
    drawing: Drawing,
    *,
    memory: str | None,
    threads: int | None,
    temp_directory: str | os.PathLike[str] | None,
    master: str | None,
    on_notice: OnNotice,
) -> LogEngine:
    """``memory`` and ``threads`` are DuckDB's: a cluster has its own settings. ``master`` is Spark's."""
    if name == "spark":
        runner = SparkRunner(master, temp_directory, on_notice)
        engine: LogEngine = import_module("searchblend.logs.spark.engine").SparkEngine(runner, drawing)  # needs PySpark
        return engine
    if name != "duckdb":
        raise InvalidParameter("engine", f"expected one of {', '.join(ENGINES)}")
    if master is not None:
        raise InvalidParameter("master", "only with the engine spark")
    return DuckDBEngine(DuckDBSession(memory, threads, temp_directory), drawing)
