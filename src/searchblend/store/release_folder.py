"""A folder that appears complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from searchblend.core.errors import OutputError


class ReleaseFolder:
    """Files gathered beside their destination, moved into place together at the end."""

    def __init__(self, staging: Path) -> None:
        self._staging = staging

    def write(self, name: str, content: bytes) -> None:
        with (self._staging / name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


@contextlib.contextmanager
def release_folder(destination: Path, *, replace: bool = False) -> Iterator[ReleaseFolder]:
    """Open a release folder *before* the run: what cannot be written is found out before anything is spent.

    The destination must be absent or empty, or hold an earlier release that may be replaced. When the block
    fails nothing is left behind, and an earlier release stays as it was.
    """
    _refuse_occupied(destination, replace=replace)
    staging: Path | None = None
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{destination.name}.partial-", dir=destination.parent))
        folder = ReleaseFolder(staging)
        yield folder
        _move_into_place(staging, destination)
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
