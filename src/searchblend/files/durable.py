"""Files and folders that appear whole or not at all, and are still there after a loss of power.

Whatever is written here is written beside its destination, brought to disk, moved into place in one step, and then the
folder that holds its new name is brought to disk too. No other module calls ``os.fsync``. Files with a private key are
read only if no one else could have read or replaced them, and a folder of such files is its owner's alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, OutputError, UsageError

_ROOT: Final = 0
_OF_OTHERS: Final = 0o077
_WRITABLE: Final = 0o022
_OF_OTHERS_IF_ROOTS: Final = 0o037
"""a file of root's may be read by a group that this process is in, as certificate tools set it up"""


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, or replace it: a reader sees the old content or the new. For its owner alone if it is new."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        _write(descriptor, content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_secret(path: Path, content: bytes) -> None:
    """A new file that only its owner can read. ``FileExistsError`` if the name is taken."""
    _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), content)
    sync(path.parent)


def keep_first_secret(path: Path, content: bytes) -> None:
    """A new file that only its owner can read, unless there is one: of several writers the first one stays."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(16)}")
    try:
        write_secret(unfinished, content)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(unfinished)
    finally:
        unfinished.unlink(missing_ok=True)
    sync(path.parent)


def replace_secret(path: Path, content: bytes) -> None:
    """A file that only its owner can read, in the place of the one of this name; there is always one of both."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(16)}")
    try:
        write_secret(unfinished, content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    sync(path.parent)


def read_private(path: Path) -> bytes:
    """The file's bytes. ``InputError`` if others may use or replace it, with the command that ends this; ``OSError`` as
    usual."""
    with path.open("rb") as file:
        _refuse_loose(path, os.fstat(file.fileno()))
        if others_may_write_in(path.parent):
            raise InputError(path, f"a private key that other users may replace; run `chmod go-w {path.parent}`")
        return file.read()


def read_key_file(path: Path) -> bytes:
    """The bytes of a private key's file; ``InputError`` if it cannot be read, or not by its owner alone."""
    try:
        return read_private(path)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error


def read_named_secret(file: str | Path) -> bytes:
    """A secret whose private file a setting or an option names, without the blanks around it."""
    try:
        return read_private(Path(file)).strip()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error


def _refuse_loose(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), _ROOT):
        raise InputError(path, f"a private key that belongs to another user; run `chown {os.geteuid()} {path}`")
    is_own = status.st_uid == os.geteuid()
    if stat.S_IMODE(status.st_mode) & (_OF_OTHERS if is_own else _OF_OTHERS_IF_ROOTS):
        raise InputError(
            path, f"a private key that other users may use; run `chmod {'600' if is_own else '640'} {path}`"
        )


def others_may_write_in(folder: Path) -> bool:
    """Whether they may remove and replace files of others in it, which a sticky folder (``/tmp``) does not allow."""
    mode = folder.stat().st_mode
    return bool(mode & _WRITABLE) and not mode & stat.S_ISVTX


def others_may_use(path: Path) -> bool:
    """Whether anyone but its owner may do anything with a file or folder."""
    return bool(path.stat().st_mode & _OF_OTHERS)


def refuse_loose_folder(folder: Path) -> None:
    """``InputError`` for a folder of private keys that others may list or change, with the command that ends this.

    One of root's may be listed, as a mounted secret: its files are checked when they are read.
    """
    owner = folder.stat().st_uid
    if owner not in (os.geteuid(), _ROOT):
        raise InputError(folder, f"private keys in another user's folder; run `chown {os.geteuid()} {folder}`")
    if others_may_use(folder) if owner == os.geteuid() else others_may_write_in(folder):
        raise InputError(folder, f"private keys in a folder that other users may use; run `chmod 700 {folder}`")


def make_key_folder(folder: Path) -> None:
    """A folder of private keys, made if it is not there.

    One that is open to others is closed while it is empty, and refused once it holds files: these were open as well.
    """
    make_private_folder(folder)
    try:
        if others_may_use(folder) and not any(folder.iterdir()):
            folder.chmod(0o700)
        refuse_loose_folder(folder)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be kept from others: {error.strerror}") from error


def destroy(path: Path, *, at_least: int) -> None:
    """Overwrite ``at_least`` this many bytes of a file, bring that to disk, remove the file; no error if it is gone."""
    with contextlib.suppress(FileNotFoundError):
        with path.open("r+b", buffering=0) as file:
            file.write(b"\0" * max(path.stat().st_size, at_least))
            os.fsync(file.fileno())
        path.unlink()
        sync(path.parent)


def create_private(path: Path) -> None:
    """An empty file for its owner alone; one that is there stays as it is."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def make_private_folder(folder: Path) -> None:
    """Make a folder for its owner alone, with its parents; one that is there stays as it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from error


def refuse_existing(path: Path, *, replace: bool) -> None:
    """Detect a file that is in the way before the work is done."""
    if path.is_dir():
        raise OutputError(f"{path}: is a directory")
    if path.exists() and not replace:
        raise OutputError(f"{path}: exists; choose another name or pass --force")


@contextlib.contextmanager
def whole_files(paths: Sequence[Path], *, replace: bool = False) -> Iterator[list[Path]]:
    """Names to write under, beside the destinations in one folder; moved there together at the end.

    When the block fails nothing is left behind, and earlier files stay as they were.
    """
    for path in paths:
        refuse_existing(path, replace=replace)
    with _staging(paths[0]) as staging:
        partial = [staging / path.name for path in paths]
        yield partial
        for name, path in zip(partial, paths, strict=True):
            sync(name)
            name.replace(path)
        sync(paths[0].parent)


def write_new(path: Path, content: bytes, *, replace: bool = False) -> None:
    """One file with a content that is at hand, as ``whole_files`` write theirs."""
    with whole_files([path], replace=replace) as (partial,):
        partial.write_bytes(content)


class ReleaseFolder:
    """Files gathered beside their destination, moved into place together at the end."""

    def __init__(self, staging: Path) -> None:
        self._staging = staging

    def write(self, name: str, content: bytes) -> None:
        _write(os.open(self._staging / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), content)


@contextlib.contextmanager
def release_folder(destination: Path, *, replace: bool = False) -> Iterator[ReleaseFolder]:
    """Open a release folder *before* the run: what cannot be written is detected before anything is spent.

    The destination must be absent or empty, or hold an earlier release that may be replaced. When the block
    fails nothing is left behind, and an earlier release stays as it was.
    """
    _refuse_occupied(destination, replace=replace)
    with _staging(destination) as staging:
        yield ReleaseFolder(staging)
        sync(staging)
        _move_into_place(staging, destination)
        sync(destination.parent)


@contextlib.contextmanager
def _staging(destination: Path) -> Iterator[Path]:
    """A folder beside the destination, gone at the end with whatever was not moved out of it."""
    staging: Path | None = None
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{destination.name}.partial-", dir=destination.parent))
        yield staging
    except OSError as error:
        raise OutputError(f"{destination}: cannot be written: {error.strerror or error}") from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)


def _refuse_occupied(destination: Path, *, replace: bool) -> None:
    if destination.exists() and not destination.is_dir():
        raise OutputError(f"{destination}: exists and is not a directory")
    if not destination.exists() or not any(destination.iterdir()):
        return
    if not (destination / "statement.json").is_file():
        raise OutputError(f"{destination}: holds other files; choose a new or empty directory")
    if not replace:
        raise OutputError(f"{destination}: holds an earlier release; choose another directory or pass --force")


def _move_into_place(staging: Path, destination: Path) -> None:
    staging.chmod(0o755)
    if destination.exists():
        earlier = Path(tempfile.mkdtemp(prefix=f".{destination.name}.earlier-", dir=destination.parent))
        destination.rename(earlier / "release")
        staging.rename(destination)
        shutil.rmtree(earlier, ignore_errors=True)
    else:
        staging.rename(destination)


def _write(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
