"""A page that searches a local-search pack: the pack and the program inside, no network.

The program is the same JavaScript that the browser extension runs (``extension/src/core``). Its modules go into the
page as an import map, each under a name of its own, since a page opened from a disk may not load files beside it. The
policy allows scripts that are inside the page and nothing that could reach a network.
"""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from searchblend.core.errors import OutputError
from searchblend.pages.layout import Assets, asset, render, script_hash

_ENTRY: Final = "search.js"
_ENTRIES: Final = (_ENTRY, "visible.js")
_IMPORT: Final = re.compile(r'^((?:import|export)\b[^"]*?from )"\./([a-z0-9_]+\.js)";$', re.MULTILINE)


def pack_page(pack: bytes, title: str, about: str) -> str:
    """The whole file. ``about`` is one sentence on what is in the pack."""
    names = json.dumps({"imports": {f"core/{name}": _as_url(text) for name, text in sorted(core_modules().items())}})
    style, script = asset("page.css") + asset("pack_page.css"), asset("pack_page.js")
    policy = (
        f"default-src 'none'; style-src '{script_hash(style)}'; "
        f"script-src '{script_hash(names)}' '{script_hash(script)}' data:; base-uri 'none'; form-action 'none'"
    )
    return render(
        "pack.html",
        title=title,
        about=about,
        assets=Assets(style, script, policy),
        modules=names,
        pack=base64.b64encode(pack).decode(),
    )


@cache
def core_modules() -> dict[str, str]:
    """The modules that searching needs, with their imports written as names of the import map."""
    wanted, modules = [*_ENTRIES], {}
    while wanted:
        name = wanted.pop()
        if name not in modules:
            text = _core().joinpath(name).read_text(encoding="utf-8")
            wanted += [match[2] for match in _IMPORT.finditer(text)]
            modules[name] = _IMPORT.sub(r'\1"core/\2";', text)
    return modules


def _core() -> Traversable:
    """The JavaScript core: inside an installed package, beside the sources in a checkout."""
    packaged = files("searchblend.pages").joinpath("core")
    if packaged.joinpath(_ENTRY).is_file():
        return packaged
    checkout = Path(__file__).parents[3] / "extension" / "src" / "core"
    if (checkout / _ENTRY).is_file():
        return checkout
    raise OutputError("the JavaScript core is missing from this installation")


def _as_url(text: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"
