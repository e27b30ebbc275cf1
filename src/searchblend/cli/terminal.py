"""A Rich console that shows strings of other people safely."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from searchblend.core.visible import visible


class Terminal(Console):
    """Shows what others wrote, such as a pack's queries, without obeying it: no cursor or direction of theirs."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)
