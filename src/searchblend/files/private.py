"""Files that hold a private key: read only if nobody else could have read or replaced them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError

_ROOT: Final = 0
_OF_OTHERS: Final = 0o077
_OF_OTHERS_IF_ROOTS: Final = 0o037
"""a file of root's may be read by a group that this process is in, as certificate tools set it up"""


def read_private(path: Path) -> bytes:
    """The file's bytes. ``InputError`` if others may use it, with the command that ends this; ``OSError`` as usual."""
    with path.open("rb") as file:
        _refuse_loose(path, os.fstat(file.fileno()))
        return file.read()


def _refuse_loose(path: Path, found: os.stat_result) -> None:
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise InputError(path, f"a private key that belongs to another user; run `chown {os.geteuid()} {path}`")
    is_own = found.st_uid == os.geteuid()
    if stat.S_IMODE(found.st_mode) & (_OF_OTHERS if is_own else _OF_OTHERS_IF_ROOTS):
        raise InputError(
            path, f"a private key that other users may use; run `chmod {'600' if is_own else '640'} {path}`"
        )
