"""What the service's commands share: where it is, who is acting, how results are printed."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
from collections.abc import Iterator
from typing import Any

from searchblend.cli.tables import output, say
from searchblend.server.private_folder import make_private_folder
from searchblend.server.serve_settings import ServeSettings, load_settings
from searchblend.store.service_store import ServiceStore, open_store


def settings_of(options: argparse.Namespace) -> ServeSettings:
    return load_settings(vars(options), getattr(options, "config", None))


@contextlib.contextmanager
def opened(options: argparse.Namespace, *, create: bool = False) -> Iterator[ServiceStore]:
    """The store of the service that the options name."""
    settings = settings_of(options)
    if create:
        make_private_folder(settings.folder)
    with open_store(settings.where, create=create) as store:
        yield store


def actor_of(options: argparse.Namespace) -> str:
    """Who is acting, as the audit log will say."""
    if getattr(options, "actor", None):
        return str(options.actor)
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli"


def show(document: Any, *, as_json: bool) -> None:
    """One JSON document, or the same as lines for people."""
    if as_json:
        output.file.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
        return
    for line in _lines(document):
        say(line)


def _lines(document: Any, indent: str = "") -> Iterator[str]:
    if isinstance(document, dict):
        for name, value in document.items():
            if isinstance(value, dict | list) and value:
                yield f"{indent}{name}:"
                yield from _lines(value, indent + "  ")
            else:
                yield f"{indent}{name}: {_word(value)}"
    elif isinstance(document, list):
        for value in document:
            if isinstance(value, dict):
                yield indent + ", ".join(f"{name} {_word(inner)}" for name, inner in value.items())
            else:
                yield f"{indent}{_word(value)}"
    else:
        yield f"{indent}{_word(document)}"


def _word(value: Any) -> str:
    if value in (None, [], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
