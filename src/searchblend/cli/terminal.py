"""A Rich console that shows strings of other people safely."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console
from rich.text import Text

from searchblend.core.visible import visible

_PLAIN: Final = str.maketrans(
    {
        "ε": "eps",
        "δ": "delta",
        "τ": "tau",
        "⋆": "*",
        "▲": "^",
        "–": "-",
        "—": "-",
        "…": "...",
        "→": "->",
        "≥": ">=",
        "≤": "<=",
        "≠": "!=",
        "±": "+/-",
        "×": "x",
        "²": "^2",
        "∞": "inf",
        "“": '"',
        "”": '"',
    }
)
"""our own signs, where the encoding of the terminal lacks them"""


class Terminal(Console):
    """Shows what others wrote, such as a pack's queries, without obeying it: no cursor or direction of theirs."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(self.plain(visible(text)), **options)

    def plain(self, text: str) -> str:
        """The text in signs that the terminal's encoding has, as far as we have others."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return text.translate(_PLAIN)
        return text
