"""Which values of a column many people share: private selection from a plain table of (user, value) rows.

For tables that are not a search log: nothing but the two columns is read, and values are published as they are written.
One value of each user counts, or up to a stated number, drawn by a keyed hash among the user's different ones; every
value that occurs gets noise, and those that reach the threshold are named (``mechanisms/value_selection.py``).
``searchblend select`` and a session leave a folder or a debit (``run_selection``).
"""

# ruff: noqa: S608  every string in the SQL is a literal of ours, or quoted

from __future__ import annotations

import dataclasses
import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, Self

from searchblend.blender.guarantees import selection_guarantee
from searchblend.core.errors import InputError, InvalidParameter
from searchblend.core.privacy import ROW_UNIT, UNIT, Budget, Guarantee, Neighbors
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.silent import SILENT
from searchblend.core.tables import ROWS_SHOWN, ReleasedTables, chosen, html_table, short_promise
from searchblend.logs.duckdb.feed import Feeder
from searchblend.logs.duckdb.given import GivenTable
from searchblend.logs.duckdb.load import VALUE_ROWS, load_values, take_table
from searchblend.logs.duckdb.scan import Scan, column_texts, mended_rows, parquet_name, parquet_types, read_parquet
from searchblend.logs.duckdb.session import DatabaseError, DuckDBSession, quoted
from searchblend.logs.formats import judge
from searchblend.logs.formats.files import LogInput, size_of
from searchblend.logs.formats.gate import OnBytes
from searchblend.logs.formats.layout import PERSON, ROW, UTF_8, ColumnMap, Columns, Layout, Source
from searchblend.logs.formats.remote import LogFile
from searchblend.logs.formats.sources import decided_of, find_sources
from searchblend.logs.options import DEFAULT_MEMORY, ReadOptions
from searchblend.logs.read import refuse_useless, snapshot_of, summarize, unit_of
from searchblend.logs.relational import SqlTally
from searchblend.logs.summary import InputSummary
from searchblend.logs.tables.find import inputs_of
from searchblend.mechanisms.threshold import noisy_counts
from searchblend.mechanisms.value_selection import SelectionDesign
from searchblend.releases.make_release import (
    Cost,
    Files,
    LedgerEntry,
    WrittenRelease,
    make_release,
    now,
    of_each_row,
    refuse_large_delta,
)
from searchblend.releases.saved_release import SavedRelease
from searchblend.wire.values import encode_values


@dataclass(frozen=True, repr=False)
class HeavyValues(ReleasedTables[Literal["values"]]):
    """What was selected, and the promise under which."""

    counts: Mapping[str, int]
    """Noisy numbers of users, the largest first."""
    design: SelectionDesign
    """Noise and threshold, which follow from the parameters alone."""
    guarantee: Guarantee

    @property
    def threshold(self) -> int:
        """T: no count is below it."""
        return self.design.integer

    def columns(self, table: Literal["values"] | None = None) -> dict[str, list[str] | list[int]]:
        """Values and their noisy counts, the largest first."""
        chosen(table, "values")
        return {"value": list(self.counts), "count": list(self.counts.values())}

    def __repr__(self) -> str:
        return f"HeavyValues({len(self.counts)} values, threshold {self.threshold}, {short_promise(self.guarantee)})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = ((one, f"{n:,}") for one, n in islice(self.counts.items(), ROWS_SHOWN))
        title = f"Values of at least {self.threshold:,} users, with noise"
        return html_table(title, ("value", "users"), rows, len(self.counts), self.guarantee)


class ValueTable:
    """Rows of (user, value), as files or in memory. Close it, or use it in a ``with``."""

    def __init__(self, options: ReadOptions, on_bytes: OnBytes = lambda n: None) -> None:
        """Reads text into the database; Parquet and tables in memory are read when they are counted.

        ``options`` are those of a log, with columns called ``user`` and ``value``.
        """
        self._session = DuckDBSession(options.memory, options.threads, options.temp_directory)
        self._parquet: list[Source] = []
        self._given: list[GivenTable] = []
        self._summary: InputSummary | None = None
        self._n_files = self._n_bytes = 0
        self.n_users = 0
        """how many have a value, once they were counted"""
        self._each_row = options.unit == ROW
        try:
            layout, self._rows = self._open(options, on_bytes)
        except BaseException:
            self.close()
            raise
        self._format = layout.format
        self.decided: Final = {
            **decided_of(layout, values=True),
            "quoted_line_feeds": options.quoted_line_feeds,
            "encoding": options.encoding,
            **unit_of(options),
            **snapshot_of(layout),
        }
        """How the table was read. It rests on names, headers and options alone, and may be published."""

    def _open(self, options: ReadOptions, on_bytes: OnBytes) -> tuple[Layout, str]:
        """The layout of the first file, and SELECT of the rows."""
        session, columns = self._session, value_columns(options.columns, options.unit)
        files, tables = inputs_of(options)
        if tables:
            taken = [take_table(session, table, columns) for table in tables]
            self._given, layouts = [table for table, _ in taken], [layout for _, layout in taken]
            self._n_files, self._n_bytes = len(tables), sum(table.bytes for table in self._given)
            return layouts[0], " UNION ALL ".join(
                _rows(layout, str(layout.table), column_texts(layout)) for layout in layouts
            )
        sources = _sources(session, files, options, columns)
        if isinstance(sources[0][0], Columns):
            self._parquet, self._n_files = sources, len(files)
            self._n_bytes = sum(size_of(file) for file in files)
            return sources[0][0], _rows_of_parquet(session, sources)
        reading = load_values(session, sources, on_bytes, each_row=self._each_row)
        self._summary = summarize(sources, reading, host_only=False)
        refuse_useless(sources, self._summary, strict=options.strict)
        return sources[0][0], f"SELECT * EXCLUDE problem FROM {VALUE_ROWS} WHERE problem = 0"

    def count(self, key: str, values_per_user: int = 1) -> None:
        """How many users drew each value (``tally``), where the key decides the draws."""

        def count() -> tuple[SqlTally, int]:
            counted = _counted_rows(self._rows) if self._each_row else _counted(self._rows, key, values_per_user)
            tally = SqlTally(self._session, counted)
            if values_per_user == 1:
                return tally, sum(n * size for n, size in tally.sizes().items())
            return tally, int(self._session.value(f"SELECT count(DISTINCT person) FROM ({_whole(self._rows)})"))

        try:
            self.tally, self.n_users = self._given[0].read(count) if self._given else count()
            return
        except DatabaseError:
            if not self._parquet:  # text has passed the gate
                raise
        try:
            self._rows = _rows_of_parquet(self._session, self._parquet, mended=True)
            self.tally, self.n_users = count()
        except DatabaseError as error:
            damaged = self._parquet[0][1][0]
            raise InputError(damaged, "this Parquet file, or another of the table, is damaged") from error

    @property
    def summary(self) -> InputSummary:
        """What was read, once it was counted. NOT FOR RELEASE."""
        if self._summary is not None:
            return self._summary
        whole = "count(*) FILTER (person IS NOT NULL AND held IS NOT NULL)"
        [(lines, used)] = self._session.rows(f"SELECT count(*), {whole} FROM ({self._rows})")
        return InputSummary(self._format, self._n_files, self._n_bytes, lines, self.n_users, used, 0, {})

    def close(self) -> None:
        """Forget everything, and remove the temporary files."""
        self._session.close()
        judge.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def select_values(
    paths: LogInput,
    budget: Budget,
    *,
    user: str = "user",
    value: str = "value",
    format: str = "auto",
    delimiter: str | None = None,
    quoted_line_feeds: bool = False,
    encoding: str = UTF_8,
    unit: str = PERSON,
    neighbors: Neighbors = Neighbors.REPLACE_ONE,
    values_per_user: int = 1,
    memory: str | None = DEFAULT_MEMORY,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    randomness: Randomness | None = None,
) -> HeavyValues:
    """The values that enough users have, with noisy counts; (ε, δ)-private.

    Nothing keeps account of what this spends: ``Session.select_values`` does.

    Args:
        paths: files in any format of ``read_log`` but Yandex's, or a table in memory as for ``read_log``
        budget: (ε, δ) of each user
        user: the column of users, strings or whole numbers; rows without one, or with an empty one, are left out
        value: the column of values, likewise; AOL's and Excite's logs need no names, their values are the queries
        format: of files, as for ``read_log``
        delimiter: between the fields of CSV or TSV, as for ``read_log``
        quoted_line_feeds: of CSV, as for ``read_log``
        encoding: of text files, as for ``read_log``
        unit: ``row`` of a table without users: every row, or each of as many as its column ``count`` says, is a user of
            its own, and nothing is promised to a person
        neighbors: whether δ and ε bound what replacing a user may change, so that the number of users is public, or
            adding and removing one, which takes less noise at the same ε and promises about half as much
        values_per_user: how many different values of a user count, up to 100; more of them take more noise
        memory: limit of the database; the rest goes to ``temp_directory``
        threads: of the database; None: one for each core
        temp_directory: where the database spills; None: the system's
        randomness: the source of all noise, the operating system's unless a simulation gives another

    Example:
        ``sb.select_values("installed.parquet", sb.Budget(1.0, 1e-7), user="person", value="app")``
    """
    source = randomness or SystemRandomness()
    reading: dict[str, Any] = {
        "format": format,
        "delimiter": delimiter,
        "quoted_line_feeds": quoted_line_feeds,
        "encoding": encoding,
        "unit": unit,
    }
    reading |= {"memory": memory, "threads": threads, "temp_directory": temp_directory}
    selection = Selection.of(
        paths, budget, user=user, value=value, neighbors=neighbors, values_per_user=values_per_user, **reading
    )
    with selection.read(source) as table:
        return selection.draw(table, source)


@dataclass(frozen=True)
class Selection:
    """Which values to select from which table."""

    table: ReadOptions
    """as for a log, with columns called ``user`` and ``value``"""
    budget: Budget
    neighbors: Neighbors = Neighbors.REPLACE_ONE
    values_per_user: int = 1

    @classmethod
    def of(
        cls,
        table: LogInput,
        budget: Budget,
        *,
        user: str = "user",
        value: str = "value",
        neighbors: Neighbors = Neighbors.REPLACE_ONE,
        values_per_user: int = 1,
        **reading: Any,
    ) -> Selection:
        """From the arguments of ``select_values``."""
        both = {"value": value} if reading.get("unit") == ROW else {"user": user, "value": value}
        options = ReadOptions(table, columns=both, **reading)
        return cls(options, budget, neighbors, values_per_user)

    def __post_init__(self) -> None:
        if self.table.unit == ROW and self.values_per_user > 1:
            raise InvalidParameter("values-per-user", "a row has one value")
        _ = self.design  # a budget without a threshold is refused before anything is read or paid

    @property
    def cost(self) -> Cost:
        return Cost(self.budget, self.neighbors, "selection of values" + of_each_row(self.table))

    @cached_property
    def design(self) -> SelectionDesign:
        """Threshold and noise, which follow from the parameters alone."""
        return SelectionDesign.of(self.budget, self.neighbors, values_per_user=self.values_per_user)

    @contextmanager
    def read(self, source: Randomness) -> Iterator[ValueTable]:
        """How many users drew each value. No noise is drawn, so that what cannot be read costs nothing."""
        key = b64encode(source.take(15)).decode()
        with ValueTable(self.table) as table:
            table.count(key, self.values_per_user)
            yield table

    def draw(self, table: ValueTable, source: Randomness) -> HeavyValues:
        """The values whose noisy counts reach the threshold."""
        selected = noisy_counts(table.tally, self.design, randomness=source)
        counts = {str(record.query): n for record, n in selected.items()}
        ordered = sorted(counts, key=lambda one: (-counts[one], one.encode()))
        unit = ROW_UNIT if self.table.unit == ROW else UNIT
        promise = dataclasses.replace(selection_guarantee(self.design, source), unit=unit)
        return HeavyValues({one: counts[one] for one in ordered}, self.design, promise)


def run_selection(
    selection: Selection,
    output: Path | None = None,
    *,
    replace: bool = False,
    allow_large_delta: bool = False,
    ledger: LedgerEntry | None = None,
    created: str | None = None,
    on_step: Callable[[str], None] = SILENT,
) -> WrittenRelease[SavedRelease]:
    """Read the table, select, write the release.

    Args:
        selection: what to select from, and with which budget
        output: the folder, if one is wanted
        replace: whether another release in the folder may be replaced
        allow_large_delta: whether δ may reach 1/users, at which a mechanism may expose a user outright
        ledger: where the release is debited, before any noise is drawn
        created: when, in ISO 8601; now unless given
        on_step: called with the name of each step
    """
    source = SystemRandomness()

    @contextmanager
    def read() -> Iterator[ValueTable]:
        """What can go wrong with the input does so here, before anything is paid."""
        on_step("reading")
        with selection.read(source) as table:
            if selection.neighbors is Neighbors.REPLACE_ONE:  # elsewhere a refusal would tell of the number of users
                refuse_large_delta(selection.budget, table.n_users, allowed=allow_large_delta)
            yield table

    def make(table: ValueTable) -> tuple[SavedRelease, Files]:
        on_step("selecting")
        heavy = selection.draw(table, source)
        files = encode_values(
            heavy.counts, heavy.guarantee, design=heavy.design, created=created or now(), table=table.decided
        )
        return SavedRelease.of_files(files), files

    return make_release(
        output,
        selection.cost,
        open_log=read,
        make=make,
        summarize=lambda table: table.summary.as_json(),
        read=SavedRelease.of_files,
        replace=replace,
        ledger=ledger,
        on_step=on_step,
    )


def value_columns(named: Mapping[str, str], unit: str = PERSON) -> ColumnMap:
    """Which columns hold the user and the value; those called so need no map."""
    roles = {"user": "user", "value": "query", "count": "count"}
    others = {roles[name]: column for name, column in named.items() if column != name}
    return ColumnMap.of_rows(others, values=True) if unit == ROW else ColumnMap(others, values=True)


def value_tally(
    session: DuckDBSession, files: Sequence[LogFile], user: str, value: str, key: str, values_per_user: int = 1
) -> SqlTally:
    """How many users of Parquet files drew each value, where the key decides the draws."""
    columns = value_columns({"user": user, "value": value})
    sources = _sources(session, files, ReadOptions(files, format="parquet"), columns)
    return SqlTally(session, _counted(_rows_of_parquet(session, sources), key, values_per_user))


def _sources(
    session: DuckDBSession, files: Sequence[LogFile], options: ReadOptions, columns: ColumnMap
) -> list[Source]:
    return find_sources(files, options, columns, lambda path: parquet_types(session, path))


def _rows_of_parquet(session: DuckDBSession, sources: Sequence[Source], *, mended: bool = False) -> str:
    """SELECT of the rows, perhaps without the strings that are not UTF-8."""
    feeder, parts = Feeder(session.directory, name=session.new_name("input")), []
    for layout, paths in sources:
        if isinstance(layout, Columns):
            names = [parquet_name(session, feeder, path) for path in paths]
            texts = column_texts(layout)
            if mended:
                parts.append(_rows(layout, mended_rows(session, texts, names), {role: role for role in texts}))
            else:
                parts.append(_rows(layout, read_parquet(names), texts))
    return " UNION ALL ".join(parts)


def _rows(layout: Columns, table: str, texts: Mapping[str, str]) -> str:
    columns = {role: f"nullif({text}, '')" for role, text in texts.items()}
    columns |= {role: f"nullif({quoted(value)}, '')" for role, value in layout.in_folders.items()}
    count = f", {Scan('', columns).count()} AS n" if layout.in_folders.get("user") == ROW else ""
    return f"SELECT {columns['user']} AS person, {columns['query']} AS held{count} FROM {table}"


def _counted(rows: str, key: str, values_per_user: int) -> str:
    """SELECT of each value that some user drew, with its users.

    The hash reaches over the user too, so that users do not prefer the same values. A key of 20 letters leaves room for
    the rest in one block of MD5; without its last bit the number is one whose smallest DuckDB finds twice as fast.
    """
    score = f"(md5_number({quoted(key)} || person || chr(31) || held) >> 1)::HUGEINT"
    if values_per_user == 1:
        drawn = f"SELECT arg_min(held, {score}) AS held FROM ({_whole(rows)}) GROUP BY person"
    else:
        different = f"SELECT DISTINCT person, held FROM ({_whole(rows)})"
        chosen = f"SELECT arg_min(held, {score}, {values_per_user}) AS drawn FROM ({different}) GROUP BY person"
        drawn = f"SELECT unnest(drawn) AS held FROM ({chosen})"
    return f"SELECT held AS query, NULL::VARCHAR AS url, count(*) AS n FROM ({drawn}) GROUP BY held"


def _counted_rows(rows: str) -> str:
    """SELECT of each value of a table without users, with its rows."""
    total = "sum(n)::BIGINT AS n"
    return f"SELECT held AS query, NULL::VARCHAR AS url, {total} FROM ({_whole(rows)}) WHERE n > 0 GROUP BY held"


def _whole(rows: str) -> str:
    """SELECT of the rows that have a user and a value."""
    return f"SELECT * FROM ({rows}) WHERE held IS NOT NULL AND person IS NOT NULL"
