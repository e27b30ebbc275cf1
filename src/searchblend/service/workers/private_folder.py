"""Folders that nobody but the service reads."""

from __future__ import annotations

from pathlib import Path

from searchblend.core.errors import OutputError


def make_private_folder(folder: Path) -> None:
    """Make it with its parents, if it is not there; ``OutputError`` names the one that cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from error
