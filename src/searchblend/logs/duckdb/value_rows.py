"""Rows of (user, value) in text files, for tables that are not a search log.

They pass the same gate and the same scans as the lines of a log, with the value where a log has its query; but a value
is not brought into any normal form, so that all strings but the empty one are values.
"""

# ruff: noqa: S608  every string in the SQL is a literal of ours, a name of ours, or quoted

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from searchblend.logs.duckdb.feed import Feeder, Known, WrongGuess
from searchblend.logs.duckdb.load import Loaded, feed_layout, reading_of, scan_layout
from searchblend.logs.duckdb.scan import Scan
from searchblend.logs.duckdb.session import DuckDBSession, quoted
from searchblend.logs.engine import Reading
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.judge import PROBLEMS
from searchblend.logs.formats.layout import Source

VALUE_ROWS: Final = "value_rows"
"""the table (problem, person, held); what is missing of person and held is NULL"""
_USED: Final = f"FROM {VALUE_ROWS} WHERE problem = 0 AND person IS NOT NULL AND held IS NOT NULL"


def load_values(session: DuckDBSession, sources: Sequence[Source], on_bytes: OnBytes) -> Reading:
    """Makes the table of the rows, in one pass over the files."""
    try:
        reading = _load(session, sources, on_bytes)
    except WrongGuess as wrong:
        session.drop_all_tables()
        reading = _load(session, sources, on_bytes, wrong.known)
    return replace(reading, users=int(session.value(f"SELECT count(DISTINCT person) {_USED}")))


def _load(session: DuckDBSession, sources: Sequence[Source], on_bytes: OnBytes, known: Known | None = None) -> Reading:
    feeder = Feeder(session.directory, on_bytes, name=session.new_name("input"), known=known)
    feeds = [feed_layout(feeder, layout, paths) for layout, paths in sources]
    with feeder.running(session.interrupt):
        scans = [scan_layout(layout, feed) for (layout, _), feed in zip(sources, feeds, strict=True)]
        rows = " UNION ALL ".join(_rows(scan) for scan in scans)
        scanned = session.execute_counting(f"CREATE TEMP TABLE {VALUE_ROWS} AS {rows}")
    counts = session.rows(f"SELECT problem, count(*) FROM {VALUE_ROWS} WHERE problem > 0 GROUP BY problem")
    by_problem = Counter({PROBLEMS[number]: int(n) for number, n in counts})
    used = int(session.value(f"SELECT count(*) {_USED}"))
    return reading_of(session, sources, feeds, Loaded(scanned, used, 0, by_problem))


def _rows(scan: Scan) -> str:
    whens = " ".join(f"WHEN {condition} THEN {PROBLEMS.index(problem)}" for problem, condition in scan.broken)
    person, held = scan.roles["user"], scan.roles["query"]
    if scan.no_query is not None:
        held = f"nullif({held}, {quoted(scan.no_query)})"
    columns = f"nullif({person}, '') AS person, nullif({held}, '') AS held"
    return f"SELECT (CASE {whens} ELSE 0 END)::UTINYINT AS problem, {columns} FROM ({scan.select})"
