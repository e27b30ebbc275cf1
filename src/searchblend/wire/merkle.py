"""The Merkle tree of a transparency log: the hashes of RFC 6962, in tiles of 256 as C2SP's tlog-tiles has them.

A device keeps the roots of full tiles and the last root. What comes later is fetched as tiles of leaf hashes: if the
tree of all of them had the last root, and has the new one, then the new log is the old one with more at its end. No
request says more of a device than the number of its last full tile. Pure; standard library only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

HASH_BYTES: Final = 32
TILE: Final = 256
"""leaves of a full tile"""
MOST_ENTRIES: Final = 1000 * TILE
"""of a log that anyone reads: no service can keep a device or a witness busy for ever"""
_TILE_LEVEL: Final = 8
EMPTY_ROOT: Final = hashlib.sha256(b"").digest()


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\0" + entry).digest()


def root_of(leaves: Sequence[bytes], tiles: Iterable[bytes] = ()) -> bytes:
    """The root of a tree with these full tiles' roots first, and then these leaves' hashes."""
    stack: list[tuple[int, bytes]] = []
    for level, nodes in ((_TILE_LEVEL, tiles), (0, leaves)):
        for node in nodes:
            stack.append((level, node))
            while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
                (depth, right), (_, left) = stack.pop(), stack.pop()
                stack.append((depth + 1, _parent(left, right)))
    if not stack:
        return EMPTY_ROOT
    root = stack.pop()[1]
    while stack:
        root = _parent(stack.pop()[1], root)
    return root


def tile_at(leaves: Sequence[bytes], level: int, number: int) -> bytes:
    """The hashes of a tile, full or as far as it goes: at level L one hash for each 256^L leaves."""
    span = TILE**level
    first = number * TILE * span
    nodes = (leaves[start : start + span] for start in range(first, min(first + TILE * span, len(leaves)), span))
    return b"".join(root_of(node) for node in nodes if len(node) == span)


def hashes_of(tile: bytes) -> list[bytes]:
    """The hashes that a tile is made of; a rest of fewer bytes is left out, and then roots differ."""
    return [tile[start : start + HASH_BYTES] for start in range(0, len(tile) - HASH_BYTES + 1, HASH_BYTES)]


def _parent(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
