"""How a log is read: one frozen object that travels from the command, or the caller, to the engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from searchblend.core.attributes import Attribute, check_attributes
from searchblend.core.errors import InvalidParameter
from searchblend.logs.formats.files import LogInput
from searchblend.logs.formats.layout import ENCODINGS, PERSON, ROW, UNITS, UTF_8, ColumnMap

DEFAULT_MEMORY: Final = "2GB"
"""What the database may use before it goes on in the temp directory."""


@dataclass(frozen=True)
class ReadOptions:
    """Which log to read, and how."""

    paths: LogInput = field(repr=False)
    """files, globs and directories, or URLs of them in a store; plain or compressed. Or one folder of a Delta Lake or
    Iceberg table, or the URL of a table in PostgreSQL or SQLite. Or a table in memory: a DataFrame
    of pandas or Polars, a PyArrow table, dataset or reader, a DuckDB relation, a dict of NumPy arrays, any object with
    an Arrow stream"""
    format: str = "auto"
    """a name among ``FORMATS``; ``auto`` detects it from names and headers. JSON lines under other names, Yandex,
    Excite and combined logs of web servers must be named"""
    columns: Mapping[str, str] = field(default_factory=dict)
    """our name (user, query, url, time, rank, suggestion; or query, url, count) → the name of the column in the files;
    or all by their numbers, ``#1``, ``#2``, …, in TSV or CSV without a header. A name that folders have, as in
    ``name=value``, is theirs. Of a combined log user alone: ``address`` or ``remote_user``"""
    delimiter: str | None = None
    """what stands between fields, if not the comma of CSV or the tab of TSV"""
    query_parameter: str | None = None
    """of a combined log: the parameter that holds the query in the addresses of searches, or that after a path, as in
    ``/search?q``"""
    optin_column: str | None = None
    """the column that holds whether the user has opted in; None where a fraction of the users does"""
    unit: str = PERSON
    """whom the promise is to: ``person``, or ``row`` of a table without users, where a column of our name ``count``
    says how many searches a line stands for, each of them a row. Nothing is then promised to a person"""
    urls: bool = True
    """whether URLs are read; without, the log is one of queries alone"""
    quoted_line_feeds: bool = False
    """whether a quoted CSV field may go on in the next line. Then the privacy promise rests on every line's quotes
    being well formed, and on no record being longer than 1 MiB: one person's line can swallow those of others. Else a
    record is one line, and one whose quotes do not balance is held back alone"""
    encoding: str = UTF_8
    """a name among ``ENCODINGS``, of text files"""
    host_only: bool = False
    """whether the host alone of every URL is kept"""
    strict: bool = False
    """whether the first malformed line refuses the log, instead of being counted"""
    draws: int = 1
    """records drawn of each user with replacement (m_C). 0 draws none and keeps every line, for ``activity``"""
    rows: bool = True
    """whether the usable lines are kept until the log is closed, so that all of a user's may count (m_O > 1); without,
    one record of each does"""
    keep_lines: bool = False
    """whether every usable line is kept until the log is closed, for ``statistics``; else only the drawn records are"""
    searches_only: bool = False
    """with ``draws=0``: keeps no more than each user's distinct queries, which is faster, and counts nothing else"""
    timed: bool = False
    """whether times are needed, so that a log without a column of them is refused"""
    attributes: Sequence[Attribute] = ()
    """with ``draws=0``: what is known of a search or click besides, by declared values, for counts by attribute"""
    key: bytes | None = field(default=None, repr=False)
    """decides every draw; None: 16 fresh bytes of the operating system"""
    memory: str | None = DEFAULT_MEMORY
    """memory limit of the database (None: 80 % of the machine's); the rest goes to ``temp_directory``"""
    threads: int | None = None
    """threads of the database; None: one for each core"""
    temp_directory: str | os.PathLike[str] | None = None
    """where the private directory of the reading is made; None: the system's"""
    engine: str = "duckdb"
    """``duckdb`` on this machine, or ``spark`` on a cluster; both draw the same records by the same key"""
    master: str | None = None
    """address of the Spark master; None: that of the environment, or this machine"""

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            raise InvalidParameter("encoding", f"expected one of {', '.join(ENCODINGS)}")
        if self.unit not in UNITS:
            raise InvalidParameter("unit", f"expected one of {', '.join(UNITS)}")
        if self.unit == ROW and self.engine != "duckdb":
            raise InvalidParameter("unit", f"{ROW}: only with the engine duckdb")
        if self.unit == ROW and self.optin_column is not None:
            raise InvalidParameter("unit", f"{ROW}: a table without users has no column of who opts in")
        if self.draws < 0:
            raise InvalidParameter("draws", f"expected a whole number of at least 0, found {self.draws!r}")
        if self.searches_only and (self.draws or self.keep_lines):
            raise InvalidParameter("searches_only", "expected with draws=0, and without keep_lines")
        if self.attributes and (self.draws or self.searches_only):
            raise InvalidParameter("attributes", "expected with draws=0, and without searches_only")
        if self.attributes and self.engine != "duckdb":
            raise InvalidParameter("attributes", "only with the engine duckdb; on a cluster releases have none yet")
        if self.timed and self.unit == ROW:
            raise InvalidParameter("unit", f"{ROW}: a table without users has no account of each for a month")
        if self.attributes and self.unit == ROW:
            raise InvalidParameter("unit", f"{ROW}: a table without users has no attributes of them")
        check_attributes(self.attributes)

    @property
    def column_map(self) -> ColumnMap:
        """What is stated of the columns of a log."""
        if self.unit == ROW:
            return ColumnMap.of_rows(self.columns, urls=self.urls)
        attributes = {attribute.name: attribute.column for attribute in self.attributes}
        return ColumnMap(self.columns, self.optin_column, self.urls, attributes=attributes, timed=self.timed)
