"""What the service's commands share: where it is, who is acting, how results are printed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pwd
from collections.abc import Iterator
from typing import Any

from searchblend.cli.tables import output, say
from searchblend.core.errors import UsageError
from searchblend.service.api.failed_sign_ins import record_failures
from searchblend.service.clock import SystemClock
from searchblend.service.settings import ServeSettings, load_settings
from searchblend.service.workers.private_folder import make_private_folder
from searchblend.store.private_file import read_private
from searchblend.store.service_store import ServiceStore, open_store
from searchblend.store.tokens import OS_USER


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


def os_user() -> str:
    """Who is acting, as the audit log will say: the account that runs this process, whatever its environment says."""
    uid = os.getuid()
    try:
        return f"{OS_USER}{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"{OS_USER}{uid}"


def actor_of(options: argparse.Namespace, store: ServiceStore, role: str) -> str:
    """Who is acting, proven: the name of the token in ``--token-file``, else the account on this machine.

    Nobody can give a name of their own, and a review needs a token: else one person could be two.
    """
    if options.token_file is None:
        if role == "reviewer":
            raise UsageError("expected --token-file with a reviewer's token; `searchblend keys token` makes one")
        return os_user()
    try:
        token = read_private(options.token_file).decode("utf-8", "replace").strip()
    except OSError as error:
        raise UsageError(f"{options.token_file}: cannot be read: {error.strerror}") from error
    admin = store.tokens.admin(token)
    if admin is None:
        record_failures(store, {"command line": 1}, SystemClock().now())
        raise UsageError(f"{options.token_file}: no such token, or revoked")
    if admin.role != role:
        raise UsageError(f"{options.token_file}: expected the token of role {role}, this is one of role {admin.role}")
    return admin.name


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
