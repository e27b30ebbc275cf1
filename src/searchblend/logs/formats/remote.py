"""Files of object stores, HDFS and web servers, by filesystems of fsspec.

Who may read them is decided where the stores' own tools look (environment, profiles, roles): nothing of it is an option
here, and an error shows a URL without what may be secret in it.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from searchblend.core.errors import InputError, UsageError

_PACKAGES: Final = {
    "s3": "searchblend[s3]",
    "gs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "hdfs": "fsspec pyarrow",
    "http": "searchblend[http]",
    "https": "searchblend[http]",
}
"""scheme of a URL → what pip installs to read it; extras are what our tests try"""
_WEB: Final = ("http", "https")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_BLOCK: Final = 1 << 22
"""How much is asked for at a time."""
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_NOT_ALLOWED: Final = (401, 403)
_NOT_FOUND: Final = (404, 410)


@dataclass(frozen=True)
class RemoteFile:
    """A file that is read over the network. It is named like a path, and shown without passwords and signatures."""

    url: str

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        if parts.scheme not in _WEB:
            return self.url
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"RemoteFile({str(self)!r})"

    @property
    def name(self) -> str:
        if urlsplit(self.url).scheme in _WEB:
            return PurePosixPath(unquote(urlsplit(self.url).path)).name
        return PurePosixPath(self.url).name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix


LogFile = Path | RemoteFile


def is_remote(name: str) -> bool:
    """Whether a name is a URL of a store; one of another kind is refused."""
    scheme = _SCHEME.match(name)
    if scheme is None or scheme[1].lower() == "file":
        return False
    if scheme[1].lower() not in _PACKAGES:
        raise InputError(f"{scheme[1]}://…", f"expected a path, or a URL of {', '.join(_PACKAGES)}")
    try:
        urlsplit(name)
    except ValueError:
        raise InputError(f"{scheme[1]}://…", "expected an IPv6 address in brackets in its URL") from None
    return True


def expand_remote(url: str) -> list[RemoteFile]:
    """The files behind a URL, a pattern or a folder of a store, in the order of their names."""
    if urlsplit(url).scheme.lower() in _WEB:  # no web server lists its files, and a ? is not a pattern
        return [RemoteFile(url)]
    shown = RemoteFile(url)
    with in_our_words(shown):
        store, path = _filesystem(url)
        if store.isfile(path):
            files = [path]
        elif glob.has_magic(path):
            files = [name for name, info in store.glob(path, detail=True).items() if info["type"] == "file"]
            if not files:
                raise InputError(shown, "no file matches")
        elif store.isdir(path):
            _refuse_table(store, path, shown)
            files = list(_inside(store, path))
            if not files:
                raise InputError(shown, "the directory holds no files")
        else:
            raise InputError(shown, "no such file")
        _refuse_tables(store, files)
    return [RemoteFile(store.unstrip_protocol(file)) for file in sorted(files)]


def _inside(store: Any, folder: str) -> Iterator[str]:
    """The files in a folder, and in folders of it that are called ``name=value``, as partitions are."""
    for info in store.ls(folder, detail=True):
        name = PurePosixPath(info["name"]).name
        if name.startswith((".", "_")) or info["name"].rstrip("/") == folder.rstrip("/"):
            continue
        if info["type"] == "file":
            yield info["name"]
        elif is_partition(name):
            yield from _inside(store, info["name"])


def is_partition(name: str) -> bool:
    """Whether a folder is one of a table in Hive's layout."""
    return bool(name.partition("=")[1])


def partition_values(file: LogFile) -> dict[str, str]:
    """name in lower case → value, of the folders called ``name=value`` that a file was given in."""
    folders = [folder.partition("=") for folder in PurePosixPath(str(file)).parts[:-1] if is_partition(folder)]
    return {name.casefold(): "" if value == _NO_VALUE else unquote(value) for name, _, value in folders}


def size_of_remote(file: RemoteFile) -> int:
    """0 if the server does not say."""
    with in_our_words(file):
        store, path = _filesystem(file.url)
        return int(store.size(path) or 0)


@contextmanager
def opened_remote(file: RemoteFile) -> Iterator[Any]:
    """The bytes of a file; an object that ends before its stated end is an ``InputError``."""
    with in_our_words(file):
        store, path = _filesystem(file.url)
        with store.open(path, "rb", block_size=_BLOCK, cache_type="readahead") as raw:
            yield _Whole(raw, file)


class _Whole:
    """A file that does not end early without a word."""

    def __init__(self, raw: Any, file: RemoteFile) -> None:
        self._raw, self._file = raw, file
        self._size: int | None = getattr(raw, "size", None)

    def read(self, size: int = -1, /) -> bytes:
        with in_our_words(self._file):
            block: bytes = self._raw.read(size)
        if not block and size and self._size is not None and self._raw.tell() < self._size:
            raise InputError(self._file, "the file ended early: it is cut off, or the connection was")
        return block

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return int(self._raw.seek(offset, whence))

    def tell(self) -> int:
        return int(self._raw.tell())

    def seekable(self) -> bool:
        return bool(self._raw.seekable())

    @property
    def closed(self) -> bool:
        return bool(self._raw.closed)

    def close(self) -> None:
        self._raw.close()


def _filesystem(url: str) -> tuple[Any, str]:
    """What reads a URL, and the name of the file to it."""
    packages = _PACKAGES[urlsplit(url).scheme.lower()]
    try:
        import fsspec.core

        store, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise UsageError(f"{url.partition('://')[0]}:// needs more packages: pip install {packages}") from error
    return store, path


@contextmanager
def in_our_words(file: RemoteFile) -> Iterator[None]:
    """Whatever goes wrong in a store's library, and there are many kinds, is one line about the file."""
    try:
        yield
    except (InputError, UsageError):
        raise
    except Exception as error:
        raise InputError(file, _problem(error)) from error


def _problem(error: Exception) -> str:
    status = getattr(error, "status", None)
    if isinstance(error, FileNotFoundError) or status in _NOT_FOUND:
        return "no such file"
    if isinstance(error, PermissionError) or status in _NOT_ALLOWED or "Credential" in type(error).__name__:
        return "may not be read: the store refuses these credentials, or there are none"
    return f"cannot be read ({type(error).__name__})"


# --- tables whose files are not all of them valid --------------------------------------------------------------------

_MARKS: Final = {
    "_delta_log": "a Delta Lake table",
    ".hoodie": "a Hudi table",
    ".hoodie_partition_metadata": "part of a Hudi table",
    "ducklake-*.parquet": "part of a DuckLake table",
}
_INSIDE: Final = {
    "metadata": (("version-hint.text", "*.metadata.json*", "*.avro"), "an Iceberg table"),
    "snapshot": (("snapshot-*",), "a Paimon table"),
    "manifest": (("manifest-*",), "a Paimon table"),
}


def _refuse_tables(store: Any, files: Iterable[str]) -> None:
    folders = dict.fromkeys(str(folder) for file in files for folder in PurePosixPath(file).parents)
    for folder in folders:
        if folder not in (".", "/"):
            _refuse_table(store, folder, RemoteFile(store.unstrip_protocol(folder)))


def _refuse_table(store: Any, folder: str, shown: RemoteFile) -> None:
    kind = table_kind(lambda part: _names(store, f"{folder.rstrip('/')}/{part}".rstrip("/")))
    if kind is not None:
        advice = "its files hold deleted and replaced rows too: export the table to plain Parquet and read that"
        raise InputError(shown, f"is {kind}, and {advice}")


def table_kind(names: Callable[[str], set[str]]) -> str | None:
    """What a folder is by the names in it, and in folders of it, if its files are not all of them valid."""
    own = names("")
    for mark, kind in _MARKS.items():
        if any(fnmatchcase(name, mark) for name in own):
            return kind
    for part, (patterns, kind) in _INSIDE.items():
        if part in own and any(fnmatchcase(name, pattern) for name in names(part) for pattern in patterns):
            return kind
    return None


def _names(store: Any, folder: str) -> set[str]:
    """A folder that may not be listed holds nothing that could be told."""
    try:
        return {PurePosixPath(name).name for name in store.ls(folder, detail=False)}
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return set()
