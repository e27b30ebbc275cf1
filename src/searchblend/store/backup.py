"""A copy of everything that may outlive a round, as one SQLite file, from and to either database.

Sealed opt-in records are left out, and who took one back: a backup must not be a place where raw data survives. A
round that held some cannot go on after a restore and is ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from searchblend.core.errors import OutputError
from searchblend.files.durable import whole_files
from searchblend.files.sqlite import SqliteFile
from searchblend.store.database import Database, marks
from searchblend.store.database_sqlite import SqliteStore, open_to_read
from searchblend.store.errors import StoreError
from searchblend.store.schema import BACKED_UP, require_tables

_ROWS_AT_ONCE: Final = 5_000
_FILES_AT_ONCE: Final = 2
"""of tables whose rows are whole files"""


def write_backup(database: Database, path: Path) -> int:
    """Copy one moment of the database into a new file, which appears when it is complete; how many rows."""
    if path.exists():
        raise OutputError(f"{path}: exists; choose a new name")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: cannot be written: there is no folder {path.parent}")
    with whole_files([path]) as (partial,):
        target = SqliteStore(partial)
        try:
            require_tables(target)
            with one_moment(database), target.transaction():
                rows = sum(_copy(database, target, table, target) for table in BACKED_UP)
            target.execute("PRAGMA journal_mode = DELETE")
        finally:
            target.close()
    return rows


def read_backup(path: Path, database: Database) -> int:
    """Copy a backup, which stays as it is, into an empty database, in one transaction; how many rows."""
    source = open_to_read(path)
    try:
        require_tables(database)
        with database.transaction():
            if database.execute("SELECT 1 FROM tasks LIMIT 1") or database.execute("SELECT 1 FROM audit LIMIT 1"):
                raise StoreError("the database is not empty; a backup is read into a new one")
            return sum(_copy(source, database, table, source) for table in BACKED_UP)
    finally:
        source.close()


def _copy(source: Database, target: Database, table: str, file: SqliteFile) -> int:
    """``file``: that one of the two which is the backup, and names the columns."""
    columns = [name for (name,) in file.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    names = ", ".join(columns)
    copied = 0
    for rows in source.pages(f"SELECT {names} FROM {table}", _FILES_AT_ONCE if "content" in columns else _ROWS_AT_ONCE):
        target.execute_many(f"INSERT INTO {table} ({names}) VALUES ({marks(columns)})", rows)
        copied += len(rows)
    return copied


@contextlib.contextmanager
def one_moment(database: Database) -> Iterator[None]:
    """Reads see the database as it was at the first of them."""
    kind = "" if database.dialect == "sqlite" else " ISOLATION LEVEL REPEATABLE READ READ ONLY"
    database.execute(f"BEGIN{kind}")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
