"""Small groups of people, and a source of randomness that makes every noise zero."""

from __future__ import annotations

from collections.abc import Mapping

from searchblend.blender.groups import InMemoryGroup
from searchblend.core.records import Record


class Quiet:
    """All bits set: discrete Laplace noise of 0, a shuffle that keeps the order, a client that lies."""

    cryptographic = True

    def take(self, n_bytes: int) -> bytes:
        return b"\xff" * n_bytes


def people(counts: Mapping[Record | tuple[str, str] | str, int]) -> InMemoryGroup:
    """As many people as the count says, each with that record alone; a text is a query without URL."""
    users = []
    for key, n in counts.items():
        record = Record(key) if isinstance(key, str) else Record(*key)
        users += [[record]] * n
    return InMemoryGroup.from_users(users)
