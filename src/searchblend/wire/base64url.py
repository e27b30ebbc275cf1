"""Bytes as base64url without padding, as signatures, tokens and links carry them. Standard library only."""

from __future__ import annotations

import base64
import re
from typing import Final

_DIGITS: Final = re.compile("[A-Za-z0-9_-]*")


def encode_base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode_base64url(digits: str) -> bytes:
    """``ValueError`` if there is anything but digits, or a number of them that no bytes have."""
    if not _DIGITS.fullmatch(digits):
        raise ValueError("expected base64url without padding")
    return base64.urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
