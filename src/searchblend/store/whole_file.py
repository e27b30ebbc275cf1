"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from searchblend.core.errors import OutputError


def refuse_existing(path: Path, *, replace: bool) -> None:
    """Find out before the work is done that a file is in the way."""
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
    folder = paths[0].parent
    staging: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{paths[0].name}.partial-", dir=folder))
        partial = [staging / path.name for path in paths]
        yield partial
        for name, path in zip(partial, paths, strict=True):
            _settle(name)
            name.replace(path)
    except OSError as error:
        raise OutputError(f"{paths[0]}: cannot be written: {error.strerror or error}") from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)


def _settle(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
