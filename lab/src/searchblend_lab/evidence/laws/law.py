"""What a law in the tables is: a check, what it must accept, and what it must reject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Law:
    """A check, what it must accept, and what it must reject at every one of its settings."""

    name: str
    check: Callable[[Any, Any], None]
    """(subject, setting); raises AssertionError"""
    shipped: Any
    faults: Mapping[str, Any]
    settings: Sequence[Any]
    cost: float = 0.1
    """about how many seconds one subject takes at all settings"""

    def accepts(self, subject: Any) -> bool:
        return not any(self.rejects_at(subject, setting) for setting in self.settings)

    def rejects(self, subject: Any) -> bool:
        """At every setting: a fault that one of them lets pass is not seen there."""
        return all(self.rejects_at(subject, setting) for setting in self.settings)

    def rejects_at(self, subject: Any, setting: Any) -> bool:
        try:
            self.check(subject, setting)
        except AssertionError:
            return True
        return False
