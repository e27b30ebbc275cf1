"""The issuer's keys: one file each in a folder, named after the second from which it is used.

The newest is the one that rounds choose when they open to clients. An older one goes on signing for ``OVERLAP`` after
its successor began, so that devices of rounds that chose it still get their tokens; then it is destroyed.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPrivateNumbers

from searchblend.core.errors import InputError, MessageError, UsageError
from searchblend.files.durable import destroy, make_key_folder, read_key_file, write_secret
from searchblend.service.clock import DAY
from searchblend.wire.blind_rsa import blind_sign
from searchblend.wire.tokens import KEY_BITS, TokenKey, encode_directory, read_request

OVERLAP: Final = 30 * DAY
"""longer than the longest window that a round should have for its clients"""
_NAME: Final = re.compile(r"token-([0-9]{1,12})\.pem")
_EXPONENT: Final = 65_537


@dataclass(frozen=True)
class IssuerKey:
    """A key and from when it is used. ``repr`` does not show its private half."""

    start: int
    private: RSAPrivateNumbers

    @property
    def public(self) -> TokenKey:
        return TokenKey(self.private.public_numbers)

    def sign(self, blinded: bytes) -> bytes:
        return blind_sign(blinded, self.private)

    def __repr__(self) -> str:
        return f"IssuerKey({self.start})"


class IssuerKeys:
    """The keys in a folder that is the issuer's alone."""

    def __init__(self, folder: Path) -> None:
        make_key_folder(folder)
        self._folder = folder
        self._read: dict[Path, IssuerKey] = {}

    def in_use(self, now: int) -> list[IssuerKey]:
        """Those that sign now, the newest first."""
        keys = self._all()
        ends = [None, *(key.start + OVERLAP for key in keys)]
        return [key for key, end in zip(keys, ends, strict=False) if end is None or now < end]

    def rotate(self, now: int, *, at_once: bool = False) -> IssuerKey:
        """A new key, from now on. Those whose time is over are destroyed; ``at_once``: all others are."""
        others = [key for key in self._all() if not at_once]
        taken = {key.public.key_id[-1] for key in others}
        private = rsa.generate_private_key(_EXPONENT, KEY_BITS)
        while _key_of(now, private).public.key_id[-1] in taken:  # a request names its key by the last byte of the id
            private = rsa.generate_private_key(_EXPONENT, KEY_BITS)
        content = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        try:
            write_secret(self._path(now), content)
        except FileExistsError:
            raise UsageError("a key was made this second; its successor needs a second of its own") from None
        kept = [] if at_once else self.in_use(now)
        for key in self._all():
            if key.start != now and key not in kept:
                destroy(self._path(key.start), at_least=2 * KEY_BITS)
        return _key_of(now, private)

    def rotate_if_due(self, now: int, *, every: int) -> None:
        """The first key, and the next one when the newest is older than ``every``. Of several processes one makes it,
        or each one, which does no harm."""
        keys = self._all()
        if not keys or now - keys[0].start >= every:
            with contextlib.suppress(UsageError):
                self.rotate(now)

    def directory(self, now: int, request_path: str) -> bytes:
        return encode_directory([(key.public, key.start) for key in self.in_use(now)], request_path)

    def of_request(self, message: bytes, now: int) -> tuple[IssuerKey, bytes]:
        """The key that a token request names, and the message that it is to sign; ``MessageError`` if it cannot."""
        last_byte, blinded = read_request(message)
        for key in self.in_use(now):
            if key.public.key_id[-1] == last_byte and int.from_bytes(blinded) < key.private.public_numbers.n:
                return key, blinded
        raise MessageError("token request: for a key that is not in use")

    def _all(self) -> list[IssuerKey]:
        """The newest first. A file is read once: what is in it never changes."""
        paths = {path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)}
        self._read = {path: self._read.get(path) or _read(path) for path in paths}
        return sorted(self._read.values(), key=lambda key: key.start, reverse=True)

    def _path(self, start: int) -> Path:
        return self._folder / f"token-{start}.pem"


def _read(path: Path) -> IssuerKey:
    try:
        key = serialization.load_pem_private_key(read_key_file(path), None)
    except (TypeError, ValueError):
        raise InputError(path, "expected a private key in PEM, without a password") from None
    if not isinstance(key, RSAPrivateKey) or key.key_size != KEY_BITS:
        raise InputError(path, f"expected an RSA key of {KEY_BITS} bits")
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return _key_of(int(match[1]), key)


def _key_of(start: int, key: RSAPrivateKey) -> IssuerKey:
    return IssuerKey(start, key.private_numbers())
