"""Zip archives with one file in them, which is read as if it stood alone."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, Any, Final

from searchblend.core.errors import InputError

_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Of the others a few bytes could come out as one piece of gigabytes."""
_ENCRYPTED: Final = 1
_OF_MACOS: Final = "__MACOSX/"
"""where the archiver of macOS keeps what it knows of each file"""


@contextmanager
def opened_archive(raw: Any, path: object) -> Iterator[IO[bytes]]:
    """The bytes of the one file in an archive."""
    try:
        with zipfile.ZipFile(raw) as archive, archive.open(_only_file(archive, path)) as member:
            yield member
    except zipfile.BadZipFile as error:
        raise InputError(path, "the zip file is damaged or cut off") from error


def name_inside(raw: Any, path: object) -> str:
    """What the one file in an archive is called."""
    try:
        with zipfile.ZipFile(raw) as archive:
            return PurePosixPath(_only_file(archive, path).filename).name
    except zipfile.BadZipFile as error:
        raise InputError(path, "the zip file is damaged or cut off") from error


def _only_file(archive: zipfile.ZipFile, path: object) -> zipfile.ZipInfo:
    files = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith(_OF_MACOS)]
    if len(files) != 1:
        raise InputError(path, f"expected one file in the zip archive, found {len(files)}: unpack it first")
    [only] = files
    if only.flag_bits & _ENCRYPTED:
        raise InputError(path, "the zip archive is encrypted: unpack it first")
    if only.compress_type not in _METHODS:
        raise InputError(path, "expected a zip archive that is stored or deflated: unpack it first")
    return only
