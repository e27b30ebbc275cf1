"""The curator's signing key, for the rounds that it opens; in its key folder, which nobody else reads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, InvalidParameter, MessageError, OutputError, UsageError
from searchblend.files.durable import keep_first_secret, make_private_folder, read_private
from searchblend.service.settings import ServeSettings
from searchblend.wire.signing import SigningKey, key_id

FILE: Final = "curator.pem"
_POINT_BYTES: Final = 65


def read_curator_key(folder: Path) -> SigningKey | None:
    """The key of this folder, if there is one."""
    path = folder / FILE
    try:
        return SigningKey.of_pem(read_private(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from error
    except MessageError as error:
        raise InputError(path, str(error)) from error


def make_curator_key(folder: Path) -> SigningKey:
    """The key of this folder; made if there is none. It appears complete, and the first of two makers wins."""
    known = read_curator_key(folder)
    if known is not None:
        return known
    make_private_folder(folder)
    path = folder / FILE
    try:
        keep_first_secret(path, SigningKey.new().as_pem())
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    key = read_curator_key(folder)
    assert key is not None
    return key


def curator_points(settings: ServeSettings) -> dict[str, bytes]:
    """The curators whose rounds are believed here, by key id: those that were named, or the one of this key folder.

    A publisher of its own reads no folder of the curator's, wherever it is.
    """
    if settings.curator_key:
        return dict(_point(text) for text in settings.curator_key.replace(",", " ").split())
    key = None if settings.role == "publisher" else read_curator_key(settings.vault_folder)
    return {} if key is None else {key.key_id: key.public_point}


def require_curator(settings: ServeSettings) -> None:
    """A publisher that knows no curator could sign no round's key."""
    if not curator_points(settings):
        raise UsageError(
            "curator_key: expected the curator's public key; `searchblend keys curator` shows it where the curator runs"
        )


def _point(text: str) -> tuple[str, bytes]:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != _POINT_BYTES or raw[0] != 4:
        raise InvalidParameter("curator_key", "expected uncompressed P-256 points: 130 hexadecimal digits from 04 each")
    return key_id(raw), raw
