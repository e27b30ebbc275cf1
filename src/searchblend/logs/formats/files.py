"""Which files a log consists of, and their bytes: plain, or compressed with gzip, zstd, bzip2, xz or zip."""

from __future__ import annotations

import bz2
import glob
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeGuard
from urllib.parse import unquote

import zstandard

from searchblend.core.errors import InputError
from searchblend.logs.formats.archives import name_inside, opened_archive
from searchblend.logs.formats.encodings import ByteSource, in_utf8
from searchblend.logs.formats.layout import UTF_8
from searchblend.logs.formats.remote import (
    LogFile,
    expand_remote,
    is_partition,
    is_remote,
    opened_remote,
    size_of_remote,
)

Buffer: TypeAlias = bytes | memoryview
LogPaths = str | Path | Sequence[str | Path]
LogInput = LogPaths | object
"""files, or a table in memory (``TABLES_READ``)"""

TABLES_READ: Final = (
    "a file name, a list of them, a DataFrame of pandas or Polars (also lazy), a PyArrow table, dataset or reader, a"
    " DuckDB relation, a dict of NumPy arrays, or any object with an Arrow stream (__arrow_c_stream__)"
)

BOM: Final = b"\xef\xbb\xbf"
_COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz", ".zip": "zip"}
_ZIP: Final = "zip"
_OTHER_COMPRESSIONS: Final = {".lz4": "LZ4", ".br": "Brotli", ".lzma": "LZMA"}
_ARCHIVES: Final = {
    **dict.fromkeys((".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tzst"), "a tar archive"),
    ".7z": "a 7-Zip archive",
    ".rar": "a RAR archive",
}
_UTF_16: Final = "UTF-16: read it with --encoding utf-16"
_UTF_16_LE: Final = "UTF-16 without a byte-order mark: read it with --encoding utf-16-le"
_UTF_16_BE: Final = "UTF-16 without a byte-order mark: read it with --encoding utf-16-be"
_UTF_32: Final = "UTF-32: convert it to UTF-8 first"
_OTHER_BYTES: Final = {
    b"\x1f\x8b": "compressed with gzip: name it .gz, or decompress it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: name it .zst, or decompress it first",
    b"BZh": "compressed with bzip2: name it .bz2, or decompress it first",
    b"\xfd7zXZ\0": "compressed with xz: name it .xz, or decompress it first",
    b"\x5d\0\0": "compressed with LZMA, which is not read: decompress it first",
    b"PK\x03\x04": "a zip archive: name it .zip, or unpack it first",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive: unpack it first",
    b"Rar!\x1a\x07": "a RAR archive: unpack it first",
    b"\xff\xfe\0\0": _UTF_32,
    b"\0\0\xfe\xff": _UTF_32,
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
_TAR: Final = slice(257, 262)
DELTA_LAKE: Final = "a Delta Lake table"
ICEBERG: Final = "an Iceberg table"
_TABLES: Final = {
    "_delta_log": DELTA_LAKE,
    ".hoodie": "a Hudi table",
    ".hoodie_partition_metadata": "part of a Hudi table",
}
"""Folders whose log of changes decides which of their files count: name of that log → what the folder is."""
_ICEBERG: Final = ("metadata/version-hint.text", "metadata/*.metadata.json*", "metadata/*.avro")
"""what such a table has some of at all times"""
_PAIMON: Final = ("snapshot/snapshot-*", "manifest/manifest-*")
_PAIMON_FOLDERS: Final = ("snapshot", "manifest", "schema")
_DUCKLAKE: Final = ("ducklake-*.parquet",)
"""files of a table whose catalog is elsewhere"""
_CHUNK: Final = 1 << 20
_XZ_MEMORY: Final = 1 << 28
"""Four times what the strongest setting of xz needs; the header of a file could ask for gigabytes."""
_FILE_URL: Final = "file://"
_PROBLEMS: Final = {
    FileNotFoundError: "no such file",
    PermissionError: "may not be read",
    IsADirectoryError: "is a directory",
}


def are_paths(given: LogInput) -> TypeGuard[LogPaths]:
    """Whether files are named; anything else must be a table."""
    if isinstance(given, str | PathLike):
        return True
    return isinstance(given, Sequence) and all(isinstance(one, str | PathLike) for one in given)


def expand(paths: LogPaths) -> list[LogFile]:
    """The files behind paths, globs and directories, each once; the files of a glob or directory are sorted."""
    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    files = list(dict.fromkeys(file for one in given for file in _files_of(one)))
    if not files:
        raise InputError("log", "no file was given")
    refuse_tables(file for file in files if isinstance(file, Path))
    for file in files:
        _refuse_archive(file)
    return files


def expand_local(paths: LogPaths) -> list[Path]:
    """The same where only files of this machine are read."""
    files = expand(paths)
    local = [file for file in files if isinstance(file, Path)]
    if len(local) < len(files):
        raise InputError(next(file for file in files if not isinstance(file, Path)), "expected a file of this machine")
    return local


def _files_of(given: str | PathLike[str]) -> Sequence[LogFile]:
    name = fspath(given)
    return expand_remote(name) if is_remote(name) else _expand_one(local_path(given))


def _refuse_archive(file: LogFile) -> None:
    if other := _OTHER_COMPRESSIONS.get(file.suffix.lower()):
        raise InputError(
            file, f"is compressed with {other}, which is not read: decompress it, or use .gz, .zst, .bz2, .xz or .zip"
        )
    inner = file.stem if compression_of(file) else file.name  # log.tar.gz
    if archive := _ARCHIVES.get(Path(inner).suffix.lower()):
        raise InputError(file, f"is {archive}: unpack it first")


def local_path(given: str | PathLike[str]) -> Path:
    """The path of a name, which may be a ``file://`` URL of this machine."""
    name = fspath(given)
    if not name.startswith(_FILE_URL):
        return path_of(name, name)
    host, slash, path = name.removeprefix(_FILE_URL).partition("/")
    if host not in ("", "localhost") or not slash:
        raise InputError(name, "expected file:///PATH, a file of this machine")
    return path_of(unquote(slash + path), name)


def path_of(name: str, given: str) -> Path:
    """The path of a name that was given so; a NUL byte, which a URL can spell, ends every name of a file."""
    if "\0" in name:
        raise InputError(given.replace("\0", "%00"), "expected the name of a file, found a NUL byte in it")
    return Path(name)


def _expand_one(path: Path) -> list[Path]:
    if path.is_dir():
        _refuse_table(path)
        inside = sorted(_inside(path))
        if not inside:
            raise InputError(path, "the directory holds no files")
        return inside
    if _is_file(path) or not glob.has_magic(fspath(path)):
        return [path]
    matches = sorted(Path(match) for match in glob.glob(fspath(path), recursive=True))  # noqa: PTH207
    if not matches:
        raise InputError(path, "no file matches")
    return [file for file in matches if _is_file(file)]


def _inside(folder: Path) -> Iterator[Path]:
    """The files in a folder, and in folders of it that are called ``name=value``, as partitions are."""
    for path in folder.iterdir():
        if path.name.startswith((".", "_")):
            continue
        if _is_file(path):
            yield path
        elif is_partition(path.name):
            yield from _inside(path)


def _is_file(path: Path) -> bool:
    """``InputError`` if it is there and neither a file nor a folder: its lines would be left out in silence."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            path,
            "is a pipe or a device, and a log is read more than once: write it to a file first; - is standard input",
        )
    return path.is_file()


def refuse_tables(files: Iterable[Path]) -> None:
    """``InputError`` if a file is one of a table of Delta Lake, Hudi, Iceberg, Paimon or DuckLake, by whatever links.

    Whatever opens a user's file asks first.
    """
    ways = [way for file in files for way in (file.absolute(), file.resolve())]
    for folder in dict.fromkeys(way.parent for way in ways):
        if _has(folder, _DUCKLAKE):
            raise _table(folder, "part of a DuckLake table")
    for folder in dict.fromkeys(folder for way in ways for folder in way.parents):
        _refuse_table(folder)


def table_kinds(folder: Path) -> list[str]:
    """What a folder is, if its log of changes decides which of its files count."""
    kinds = [kind for mark, kind in _TABLES.items() if (folder / mark).exists()]
    if _has(folder, _ICEBERG):
        kinds.append(ICEBERG)
    if _has(folder, _PAIMON) or all((folder / part).is_dir() for part in _PAIMON_FOLDERS):
        kinds.append("a Paimon table")
    return kinds


def _refuse_table(folder: Path) -> None:
    for kind in table_kinds(folder):
        raise _table(folder, kind)


def _has(folder: Path, patterns: Sequence[str]) -> bool:
    return any(next(folder.glob(pattern), None) is not None for pattern in patterns)


def _table(folder: Path, kind: str) -> InputError:
    advice = "its files hold deleted and replaced rows too: export the table to plain Parquet and read that"
    if kind in (DELTA_LAKE, ICEBERG):
        advice += ", or name the table's own folder as the log"
    return InputError(folder, f"is {kind}, and {advice}")


@dataclass(frozen=True)
class Span:
    """A part of a plain file: the lines that begin at one of its bytes from ``start`` to before ``end``."""

    start: int = 0
    end: int | None = None
    """None: the end of the file, which may then be compressed"""


WHOLE: Final = Span()


class RawFile(Protocol):
    """A file as it is stored."""

    def read(self, size: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def tell(self) -> int: ...


def size_of(file: LogFile) -> int:
    """How many bytes a file has as it is stored; 0 if that cannot be told."""
    if not isinstance(file, Path):
        return size_of_remote(file)
    return file.stat().st_size if file.exists() else 0


class _Spanned:
    """The bytes of a span's lines. Where a line begins is decided by the line feed before it, wherever the cut is."""

    def __init__(self, raw: RawFile, start: int, end: int) -> None:
        self._raw, self._end = raw, end
        self._last = b"\n"
        if start:
            raw.seek(start - 1)
            self._rest_of_line(_CHUNK, keep=False)
        self._last = b"\n"

    def read(self, size: int, /) -> bytes:
        left = self._end - self._raw.tell()
        if left <= 0:
            return b"" if self._last == b"\n" else self._rest_of_line(size, keep=True)
        block = self._raw.read(min(size, left))
        self._last = block[-1:] or b"\n"
        return block

    def _rest_of_line(self, size: int, *, keep: bool) -> bytes:
        """Up to and with the next line feed: as much as ``size`` if the bytes are kept, else all of it."""
        while block := self._raw.read(size):
            line, feed, after = block.partition(b"\n")
            self._raw.seek(-len(after), io.SEEK_CUR)
            self._last = feed
            if keep or feed:
                return line + feed
        self._last = b"\n"
        return b""


class _Decompressor(Protocol):
    """What the objects of all four have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: Buffer, /) -> bytes: ...


class _Decompressed:
    """Decompresses as it reads, member after member, and notices a file that ends in the middle of one.

    Input goes in by small slices, so that a megabyte of one letter, a few bytes when compressed, never comes out
    as one huge piece.
    """

    def __init__(self, raw: RawFile, new_member: Callable[[], _Decompressor], slice_size: int) -> None:
        self._raw, self._new_member, self._slice_size = raw, new_member, slice_size
        self._member = new_member()
        self._pending = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        out: list[bytes] = []
        length = 0
        while length < size:
            if self._member.eof and not self._next_member():
                break
            if not self._pending and not self._refill():
                raise EOFError
            piece = self._member.decompress(self._pending[: self._slice_size])
            self._pending = self._pending[self._slice_size :]
            length += len(piece)
            out.append(piece)
        return b"".join(out)

    def _refill(self) -> bool:
        self._pending = memoryview(self._raw.read(_CHUNK))
        return bool(self._pending)

    def _next_member(self) -> bool:
        """Another member may follow, after zero bytes of padding."""
        rest = self._member.unused_data + self._pending
        while not (rest := rest.lstrip(b"\0")):
            if not self._refill():
                return False
            rest = bytes(self._pending)
        self._pending = memoryview(rest)
        self._member = self._new_member()
        return True


class _Bzip2:
    """Of a damaged file the library says no more than ``OSError``, as of a disk that cannot be read."""

    def __init__(self) -> None:
        self._decompressor = bz2.BZ2Decompressor()

    @property
    def eof(self) -> bool:
        return self._decompressor.eof

    @property
    def unused_data(self) -> bytes:
        return self._decompressor.unused_data

    def decompress(self, data: Buffer, /) -> bytes:
        try:
            return self._decompressor.decompress(data)
        except OSError as error:
            raise _Damaged from error


class _Damaged(Exception):
    """Not the bytes that a compressing program writes."""


_DECOMPRESSORS: Final[dict[str, tuple[Callable[[], _Decompressor], int]]] = {
    "gzip": (lambda: zlib.decompressobj(31), 1 << 14),
    "zstd": (lambda: zstandard.ZstdDecompressor().decompressobj(), 1 << 10),
    "bzip2": (_Bzip2, 1 << 6),  # forty bytes can hold 46 MB of one letter
    "xz": (lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY), 1 << 10),
}
"""what reads one member, and by how many bytes at a time"""


def compression_of(path: LogFile) -> str | None:
    """``gzip``, ``zstd``, ``bzip2``, ``xz``, ``zip`` or None, by the name: the first bytes may be a user's line."""
    return _COMPRESSIONS.get(path.suffix.lower())


def text_name(path: LogFile) -> str:
    """What a file would be called if it were not compressed; in a zip archive, what it is called there."""
    kind = compression_of(path)
    if kind != _ZIP:
        return path.stem if kind else path.name
    with open_raw(path) as raw:
        return name_inside(raw, path)


def other_than_text(start: bytes) -> str | None:
    """What a file is that begins with these bytes, if it is known and not UTF-8 text."""
    known = next((what for magic, what in _OTHER_BYTES.items() if start.startswith(magic)), None)
    if known is None and start[_TAR] == b"ustar":
        return "a tar archive: unpack it first"
    if known is None and b"\0\0\0" in (start[:3], start[1:4]):
        return _UTF_32
    if known is None and start[:4:2] == b"\0\0":
        return _UTF_16_BE
    if known is None and start[1:4:2] == b"\0\0":
        return _UTF_16_LE
    return known


@contextmanager
def open_raw(path: LogFile) -> Iterator[RawFile]:
    """The file's bytes; failures to open or read it become ``InputError``."""
    if not isinstance(path, Path):
        with opened_remote(path) as remote:
            yield remote
        return
    try:
        with path.open("rb", buffering=0) as raw:
            yield raw
    except OSError as error:
        problem = next((problem for kind, problem in _PROBLEMS.items() if isinstance(error, kind)), "cannot be read")
        raise InputError(path, problem) from error


@contextmanager
def open_text_bytes(path: LogFile, span: Span = WHOLE) -> Iterator[tuple[ByteSource, RawFile]]:
    """The decompressed bytes, and the file itself, whose position is how far the reading is."""
    kind = compression_of(path)
    with open_raw(path) as raw:
        if span.end is not None:
            yield _Spanned(raw, span.start, span.end), raw
            return
        if kind is None:
            yield raw, raw
            return
        try:
            if kind == _ZIP:
                with opened_archive(raw, path) as member:
                    yield member, raw
                return
            yield _Decompressed(raw, *_DECOMPRESSORS[kind]), raw
        except EOFError as error:
            raise InputError(path, f"the {kind} file is cut off: its end is missing") from error
        except (zlib.error, zstandard.ZstdError, lzma.LZMAError, _Damaged) as error:
            raise InputError(path, f"the {kind} file is damaged") from error


def first_lines(path: LogFile, limit: int = 1 << 16, *, encoding: str = UTF_8) -> bytes:
    """The beginning of the text in UTF-8, for its header."""
    with open_text_bytes(path) as (source, _):
        text = in_utf8(source, encoding, path)
        start = b""
        while len(start) < limit and (more := text.read(limit - len(start))):
            start += more
    return start
