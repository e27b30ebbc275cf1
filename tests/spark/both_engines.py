"""Reads a log with both engines and holds them to the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from searchblend.core.records import Record
from searchblend.logs.read import SearchLog, read_log
from searchblend.mechanisms.tally import Tally

KEY = bytes(range(16))
DRAWN = ("person", "draw", "query", "url")


def drawn_records(log: SearchLog) -> list[tuple[Any, ...]]:
    engine: Any = log._engine
    return sorted(engine._database.rows(f"SELECT {', '.join(DRAWN)} FROM {engine.drawn}"), key=repr)


def counts_of(tally: Tally) -> dict[Record, int]:
    """All records of a tally with their counts."""
    found = [(record, n) for n, records in tally.at_least(1).items() for record in records]
    assert len(dict(found)) == len(found)
    return dict(found)


@contextmanager
def read_with_both(paths: Any, **options: Any) -> Iterator[tuple[SearchLog, SearchLog]]:
    """The log in DuckDB and in Spark, after checking that both found the same lines and drew the same records."""
    with ExitStack() as stack:
        duckdb = stack.enter_context(read_log(paths, key=KEY, **options))
        spark = stack.enter_context(read_log(paths, key=KEY, engine="spark", **options))
        assert spark.summary.as_json() == duckdb.summary.as_json()
        if options.get("draws") != 0:
            drawn = drawn_records(spark)
            assert drawn == drawn_records(duckdb)
            assert len(drawn) >= spark.summary.users > 0
        yield duckdb, spark
