"""Where results go when they are saved or drawn.

Files and plots are made above the results, which import neither. The root package, which is above everything and always
loaded, says who makes them (``provide``); results ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class PathLike(Protocol):
    """What names a file or folder besides a string."""

    def __fspath__(self) -> str: ...


Where = str | PathLike
HowRead = Mapping[str, str | bool]
"""how a log was read, for a statement: ``SearchLog.decided``"""


class Outlet(Protocol):
    """Writes results to folders, and draws them."""

    def save(self, result: Any, folder: Where, *, log: HowRead, html: bool, replace: bool) -> None:
        """Write the folder of a result; the arguments are those of ``ReleasedTables.save``."""

    def plot(self, result: Any, file: Where | None) -> Any:
        """A figure of a result, also written to ``file`` if there is one."""


_provider: list[Callable[[], Outlet]] = []


def provide(load: Callable[[], Outlet]) -> None:
    """Called once, by the root package."""
    _provider[:] = [load]


def outlet() -> Outlet:
    return _provider[0]()
