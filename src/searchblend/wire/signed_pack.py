"""A pack that is moved by hand, with its signatures in front; the service signs packs by naming them in the manifest.

``"SBPS" ‖ version ‖ n ‖ n × (key id (8) ‖ r ‖ s (64)) ‖ pack``. Signed is ``"searchblend pack v1\\n"`` followed by the
pack, so that no signature over a manifest can stand for one over a pack. Standard library only: signatures are made
and checked in ``signing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.wire.manifest import Signature

MAGIC: Final = b"SBPS"
SIGNED_PACK_VERSION: Final = 1
SIGNED_PREFIX: Final = b"searchblend pack v1\n"
MOST_SIGNATURES: Final = 8
_START: Final = 6
_ONE: Final = 72


@dataclass(frozen=True)
class SignedPack:
    """A pack's bytes and who says to have signed them."""

    pack: bytes
    signatures: tuple[Signature, ...]

    @property
    def signed_bytes(self) -> bytes:
        return SIGNED_PREFIX + self.pack


def is_signed_pack(content: bytes) -> bool:
    """Whether it begins like a signed pack."""
    return content[:4] == MAGIC


def encode_signed_pack(pack: bytes, signatures: Sequence[Signature]) -> bytes:
    """The pack with its signatures in front."""
    if not 1 <= len(signatures) <= MOST_SIGNATURES:
        raise InvalidParameter("key", f"expected 1 to {MOST_SIGNATURES} signatures")
    return MAGIC + bytes([SIGNED_PACK_VERSION, len(signatures)]) + b"".join(map(_as_bytes, signatures)) + pack


def decode_signed_pack(content: bytes) -> SignedPack:
    """The envelope, strictly; nothing of the pack is to be believed before a signature was checked."""
    if len(content) < _START or content[:4] != MAGIC:
        raise MessageError("signed pack: expected a signed searchblend pack")
    if content[4] != SIGNED_PACK_VERSION:
        raise MessageError(f"signed pack: version {content[4]}, expected {SIGNED_PACK_VERSION}")
    n = content[5]
    if not 1 <= n <= MOST_SIGNATURES:
        raise MessageError(f"signed pack: expected 1 to {MOST_SIGNATURES} signatures")
    if len(content) < _START + n * _ONE:
        raise MessageError("signed pack: truncated: ends within the signatures")
    signatures = tuple(_of_bytes(content[_START + i * _ONE : _START + (i + 1) * _ONE]) for i in range(n))
    return SignedPack(content[_START + n * _ONE :], signatures)


def _as_bytes(signature: Signature) -> bytes:
    return bytes.fromhex(signature.key_id) + signature.content


def _of_bytes(content: bytes) -> Signature:
    return Signature.of_bytes(content[:8].hex(), content[8:])
