"""Which values of a column many people share: private selection from a plain table of (user, value) rows.

For tables that are not a search log: nothing but the two columns is read, and values are published as they are written.
One value of each user counts, drawn by a keyed hash among the user's different ones; every value that occurs gets
noise, and those that reach the threshold are named with their noisy counts (proofs/stability_histogram.md).
"""

# ruff: noqa: S608  every string in the SQL is a literal of ours, or quoted

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.blender.guarantees import selection_guarantee
from searchblend.core.errors import InputError, InvalidColumns, listed
from searchblend.core.params import check_epsilon
from searchblend.core.privacy import Budget, Guarantee
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.tables import ROWS_SHOWN, ReleasedTables, chosen, html_table, short_promise
from searchblend.logs.duckdb.feed import Feeder
from searchblend.logs.duckdb.given import GivenTable
from searchblend.logs.duckdb.scan import parquet_types, read_parquet
from searchblend.logs.duckdb.session import DatabaseError, DuckDBSession, quoted, quoted_name
from searchblend.logs.formats.files import LogInput, are_paths, expand, open_raw
from searchblend.logs.formats.sources import PARQUET_MAGIC, STRING_OR_NUMBER
from searchblend.logs.options import DEFAULT_MEMORY
from searchblend.logs.relational import SqlTally
from searchblend.mechanisms.noisy_counts import noisy_counts


@dataclass(frozen=True, repr=False)
class HeavyValues(ReleasedTables[Literal["values"]]):
    """What was selected, and the promise under which."""

    counts: Mapping[str, int]
    """Noisy numbers of users, the largest first."""
    threshold: int
    """T: no count is below it."""
    guarantee: Guarantee

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


def select_values(
    paths: LogInput,
    budget: Budget,
    *,
    user: str = "user",
    value: str = "value",
    memory: str | None = DEFAULT_MEMORY,
    threads: int | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    randomness: Randomness | None = None,
) -> HeavyValues:
    """The values that enough users have, with noisy counts; (ε, δ)-private under replace-one.

    Nothing keeps account of what this spends: ``Session.select_values`` does.

    Args:
        paths: Parquet files, or a table in memory as for ``read_log``
        budget: (ε, δ) of each user
        user: the column of users, strings or whole numbers; rows without one are left out
        value: the column of values, likewise
        memory: limit of the database; the rest goes to ``temp_directory``
        threads: of the database; None: one for each core
        temp_directory: where the database spills; None: the system's
        randomness: the source of all noise, the operating system's unless a simulation gives another

    Example:
        ``sb.select_values("installed.parquet", sb.Budget(1.0, 1e-7), user="person", value="app")``
    """
    source = randomness or SystemRandomness()
    selection = Selection(paths, budget, user, value, memory, threads, temp_directory)
    with selection.read(source) as tally:
        return selection.draw(tally, source)


@dataclass(frozen=True)
class Selection:
    """Which values to select from which table; the arguments of ``select_values``."""

    table: LogInput = field(repr=False)
    budget: Budget
    user: str = "user"
    value: str = "value"
    memory: str | None = DEFAULT_MEMORY
    threads: int | None = None
    temp_directory: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.budget)
        _ = self.design  # a budget without a threshold is refused before anything is read or paid

    @cached_property
    def design(self) -> CuratorDesign:
        """Threshold and noise, which follow from the budget alone."""
        return CuratorDesign.of(self.budget)

    @contextmanager
    def read(self, source: Randomness) -> Iterator[SqlTally]:
        """How many users drew each value. No noise is drawn, so that what cannot be read costs nothing."""
        key = b64encode(source.take(15)).decode()
        with closing(DuckDBSession(self.memory, self.threads, self.temp_directory)) as session:
            if are_paths(self.table):
                yield _tally_of_files(session, expand(self.table), self.user, self.value, key)
            else:
                yield _tally_of_table(session, GivenTable(session, self.table), self.user, self.value, key)

    def draw(self, tally: SqlTally, source: Randomness) -> HeavyValues:
        """The values whose noisy counts reach the threshold."""
        passed = noisy_counts(tally, self.design.threshold, randomness=source)
        counts = {str(record.query): n for record, n in passed.items()}
        ordered = sorted(counts, key=lambda one: (-counts[one], one.encode()))
        return HeavyValues(
            {one: counts[one] for one in ordered},
            self.design.threshold.integer,
            selection_guarantee(self.budget, self.design, source),
        )


def _tally_of_files(session: DuckDBSession, files: Sequence[Path], user: str, value: str, key: str) -> SqlTally:
    try:
        return value_tally(session, files, user, value, key)
    except DatabaseError as error:
        raise InputError(files[0], "this Parquet file, or another of the table, is damaged") from error


def _tally_of_table(session: DuckDBSession, table: GivenTable, user: str, value: str, key: str) -> SqlTally:
    _check_columns(table.label, table.types, (user, value))
    table.keep((user, value))
    return table.read(lambda: SqlTally(session, _counted(_rows(user, value, table.name), key)))


def value_tally(session: DuckDBSession, files: Sequence[Path], user: str, value: str, key: str) -> SqlTally:
    """How many users drew each value, where the key decides the draws."""
    feeder = Feeder(session.directory)
    rows = []
    for path in files:
        with open_raw(path) as raw:
            if raw.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC:
                raise InputError(path, "expected a Parquet file")
        _check_columns(path, parquet_types(session, path), (user, value))
        rows.append(_rows(user, value, read_parquet([feeder.link(path)])))
    return SqlTally(session, _counted(" UNION ALL ".join(rows), key))


def _rows(user: str, value: str, table: str) -> str:
    return f"SELECT {quoted_name(user)}::VARCHAR AS person, {quoted_name(value)}::VARCHAR AS held FROM {table}"


def _check_columns(path: Path, types: Mapping[str, str], names: Sequence[str]) -> None:
    for name in names:
        if name not in types:
            raise InvalidColumns(f"{path}: no column '{name}': there are {listed(types)}")
        if not STRING_OR_NUMBER.fullmatch(types[name]):
            raise InvalidColumns(f"{path}: column '{name}' has type {types[name]}; expected strings or whole numbers")


def _counted(rows: str, key: str) -> str:
    """SELECT of each value that some user drew, with its users.

    The hash reaches over the user too, so that users do not prefer the same values. A key of 20 letters leaves room for
    the rest in one block of MD5; without its last bit the number is one whose smallest DuckDB finds twice as fast.
    """
    score = f"(md5_number({quoted(key)} || person || chr(31) || held) >> 1)::HUGEINT"
    whole = f"SELECT * FROM ({rows}) WHERE held IS NOT NULL AND person IS NOT NULL"
    drawn = f"SELECT arg_min(held, {score}) AS held FROM ({whole}) GROUP BY person"
    return f"SELECT held AS query, NULL::VARCHAR AS url, count(*) AS n FROM ({drawn}) GROUP BY held"
