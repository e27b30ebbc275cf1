"""Names of tables that are no files of lines: what a path or a URL says before anything is opened.

Tables of databases are ``postgresql://HOST/DATABASE?table=NAME`` and ``sqlite:///PATH?table=NAME``, with one more ``/``
for a path from the root; data sets of the library ir_datasets are ``ir:NAME``. No name that is shown has credentials in
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

from searchblend.core.errors import UsageError
from searchblend.logs.formats.files import path_of
from searchblend.logs.formats.remote import RemoteFile, is_remote

ARROW_SUFFIXES: Final = {
    ".orc": "orc",
    ".avro": "avro",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
METADATA: Final = ".metadata.json"
"""how a description of an Iceberg table ends"""
_POSTGRESQL: Final = ("postgresql://", "postgres://")
_SQLITE: Final = "sqlite://"
_IR: Final = "ir:"
_TABLE: Final = "table"


def is_database(name: str) -> bool:
    """Whether a name is a URL of a database."""
    return name.startswith(_POSTGRESQL) or is_sqlite(name)


def is_named(name: str) -> bool:
    """Whether a name is of a table that is the same one wherever it is read: of a database or of ir_datasets."""
    return is_database(name) or is_ir(name)


def is_ir(name: str) -> bool:
    """Whether a name is of a data set of the library ir_datasets."""
    return name.startswith(_IR)


def ir_name(name: str) -> str:
    """What the library calls it."""
    return name.removeprefix(_IR)


def is_sqlite(name: str) -> bool:
    return name.startswith(_SQLITE)


def shown_log(name: str) -> str:
    """What a log is called where people see it. A table is the same one from wherever it is read.

    What stands before the last ``@`` is left out, wherever that is: a password may lack its percent signs.
    """
    if is_sqlite(name):
        return f"{_SQLITE}/{sqlite_path(name)}?{_TABLE}={table_in(name)}"
    if is_database(name):
        server = name.rpartition("?")[0] or name  # parameters may hold a password, and that an @
        place = server.partition("://")[2].rpartition("@")[2].partition("?")[0]
        if place.count("[") != place.count("]"):
            raise UsageError("LOG: expected an IPv6 address in brackets in the URL of a database")
        return f"postgresql://{place}?{_TABLE}={table_in(name)}"
    return str(RemoteFile(name)) if is_remote(name) else name


def table_in(url: str) -> str:
    """The name of the table in a URL of a database."""
    named = [unquote(value) for name, _, value in map(_parted, _parameters(url)) if name == _TABLE]
    if len(named) != 1 or not named[0]:
        raise UsageError(f"LOG: expected one ?{_TABLE}=NAME in the URL of a database")
    return named[0]


def sqlite_path(url: str) -> Path:
    """The file in a URL of SQLite."""
    slash, path = url[len(_SQLITE) :][:1], url[len(_SQLITE) + 1 :].partition("?")[0]
    if slash != "/" or not path:
        raise UsageError(f"LOG: expected {_SQLITE}/PATH?{_TABLE}=NAME, with one more / for a path from the root")
    return path_of(unquote(path), url).absolute()


def server_in(url: str) -> str:
    """A URL of PostgreSQL as its own programs take it: without the table."""
    others = "&".join(one for one in _parameters(url) if _parted(one)[0] != _TABLE)
    return url.rpartition("?")[0] + (f"?{others}" if others else "")


def _parameters(url: str) -> list[str]:
    return url.rpartition("?")[2].split("&") if "?" in url else []


def _parted(parameter: str) -> tuple[str, str, str]:
    return parameter.partition("=")
