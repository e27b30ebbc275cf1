"""searchblend: the head of a search log, computed privately.

The public surface is in ``__init__.pyi``; everything else may change. Names are loaded when first used, so that a
device that needs ``local_report`` alone loads nothing but the standard library.
"""

from pathlib import Path
from typing import Any

from searchblend.core.by_name import attribute_of
from searchblend.core.outlet import Outlet, provide

_STUB = Path(f"{__file__}i").read_text(encoding="utf-8").splitlines()
_MODULE_OF = {line.split()[3]: line.split()[1] for line in _STUB if line.startswith("from ")}
__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return attribute_of("importlib.metadata", "version")("searchblend")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = attribute_of(_MODULE_OF[name], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})


def _outlet() -> Outlet:
    """What saves and draws results: loaded when a result is saved or drawn."""
    from searchblend.releases import save_and_plot

    return save_and_plot


provide(_outlet)
