"""What many ask for alike is made once and held once: public files and pages; a published round changes them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from searchblend.service.api.answers import Refusal

MOST_BYTES: Final = 64 * 2**20
MOST_IN_THE_MAKING: Final = 8


class SharedAnswers:
    """The latest answers, by a key that says everything they depend on."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._made: OrderedDict[Hashable, bytes] = OrderedDict()
        self._making: dict[Hashable, asyncio.Task[bytes]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The answer; whoever asks while it is made waits for the same one. Too many that differ are turned away."""
        if key in self._made:
            self._made.move_to_end(key)
            return self._made[key]
        if key not in self._making:
            if len(self._making) >= MOST_IN_THE_MAKING:
                raise Refusal("overloaded")
            self._making[key] = asyncio.create_task(self._make(key, make))
        # Who leaves early must not take the answer away from the others.
        return await asyncio.shield(self._making[key])

    async def _make(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            content = await make()
        finally:
            del self._making[key]
        self._made[key] = content
        self._bytes += len(content)
        while self._bytes > self._most_bytes:
            self._bytes -= len(self._made.popitem(last=False)[1])
        return content
