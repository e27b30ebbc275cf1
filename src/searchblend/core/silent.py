"""The default of every callback."""

from __future__ import annotations

from typing import Final


class _Silent:
    """Is told everything and does nothing. Unlike a lambda it has a name that ``help`` can show."""

    def __call__(self, *told: object) -> None:
        pass

    def __repr__(self) -> str:
        return "SILENT"


SILENT: Final = _Silent()
