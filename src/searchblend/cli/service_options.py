"""What the service's commands share: where it is, who is acting, how results are printed."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from searchblend.cli.arguments import positive_int
from searchblend.cli.printing import print_json, print_line, word
from searchblend.core.errors import UsageError
from searchblend.files.durable import make_private_folder, read_named_secret
from searchblend.service.clock import SystemClock
from searchblend.service.settings import ServeSettings, load_settings

if TYPE_CHECKING:
    from searchblend.store.service_store import ServiceStore

Settings = TypeVar("Settings")
_MOMENTS: Final = (
    *("created", "expires", "since", "used", "when"),
    *("optin_closes", "shred_by", "client_closes", "grace_until", "changed"),
)
"""fields of printed documents that are seconds since 1970"""


def add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-dir", metavar="DIR", help="where the service keeps its files (searchblend-data)")
    parser.add_argument("--database", metavar="URL", help="postgresql://…; else a SQLite file in the data directory")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_passphrase(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--key-passphrase", metavar="SOURCE", help="passphrase of the signing keys: file:PATH, env:NAME or fd:NUMBER"
    )


def add_token_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="an admin token: whose it is acts (your account here)"
    )


def serve_settings(options: argparse.Namespace) -> ServeSettings:
    return load_settings(vars(options), getattr(options, "config", None))


def add_public_server(parser: argparse.ArgumentParser) -> None:
    """What every server of its own asks for, besides where it listens."""
    parser.add_argument(
        "--tls-certificate", metavar="FILE", help="certificate chain in PEM; without it put a proxy in front"
    )
    parser.add_argument("--tls-key", metavar="FILE", help="its private key in PEM")
    parser.add_argument("--connections", type=positive_int, metavar="N", help="connections open at once (4000)")
    parser.add_argument("--peer-seconds", type=float, metavar="S", help="seconds for a device to send or to read (30)")
    parser.add_argument("--stop-seconds", type=float, metavar="S", help="seconds to end after SIGTERM (30)")


def given_settings(kind: type[Settings], options: argparse.Namespace, **others: object) -> Settings:
    """The settings of a server: those that options state, and these others."""
    names = {field.name for field in fields(kind)} - set(others)  # type: ignore[arg-type]
    stated = {name: value for name, value in vars(options).items() if name in names and value is not None}
    return kind(**stated, **others)


def print_addresses(address: str, health: str) -> None:
    """One write: whoever started us may close the pipe after the first line."""
    print(f"{address}\nhealth: {health}" if health else address, flush=True)


@contextlib.contextmanager
def opened(options: argparse.Namespace, *, create: bool = False) -> Iterator[ServiceStore]:
    """The store of the service that the options name."""
    from searchblend.store.service_store import open_store

    settings = serve_settings(options)
    if create:
        make_private_folder(settings.folder)
    with open_store(settings.where, create=create) as store:
        yield store


def os_user() -> str:
    """Who is acting, as the audit log will say: the account that runs this process, whatever its environment says."""
    import pwd

    from searchblend.store.tokens import OS_USER

    uid = os.getuid()
    try:
        return f"{OS_USER}{pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"{OS_USER}{uid}"


def actor_of(options: argparse.Namespace, store: ServiceStore, role: str) -> str:
    """Who is acting, proven: the name of the token in ``--token-file``, else the account on this machine.

    The name cannot be chosen, and a review needs a token: else one person could be two.
    """
    from searchblend.service.failed_sign_ins import record_failures

    if options.token_file is None:
        if role == "reviewer":
            raise UsageError("expected --token-file with a reviewer's token; `searchblend keys token` makes one")
        return os_user()
    token = read_token(options.token_file)
    now = SystemClock().now()
    admin = store.tokens.admin(token, now)
    if admin is None:
        record_failures(store, {"command line": 1}, now)
        raise UsageError(f"{options.token_file}: no such token, or revoked, or expired")
    if admin.role != role:
        raise UsageError(f"{options.token_file}: expected the token of role {role}, this is one of role {admin.role}")
    return admin.name


def read_token(path: Path) -> str:
    """The admin token of a file that is its owner's alone."""
    return read_named_secret(path).decode("utf-8", "replace")


def print_document(document: Any, *, as_json: bool) -> None:
    """One JSON document, or the same as lines for people."""
    if as_json:
        print_json(document)
        return
    for line in _lines(document):
        print_line(line)


def _lines(document: Any, indent: str = "") -> Iterator[str]:
    if isinstance(document, dict):
        for name, value in document.items():
            if isinstance(value, dict | list) and value:
                yield f"{indent}{name}:"
                yield from _lines(value, indent + "  ")
            else:
                yield f"{indent}{name}: {_word(name, value)}"
    elif isinstance(document, list):
        for value in document:
            if isinstance(value, dict):
                nested = {name: inner for name, inner in value.items() if isinstance(inner, dict) and inner}
                words = [f"{name} {_word(name, inner)}" for name, inner in value.items() if name not in nested]
                yield indent + ", ".join(words)
                yield from _lines(nested, indent + "  ")
            else:
                yield f"{indent}{word(value)}"
    else:
        yield f"{indent}{word(document)}"


def _word(name: str, value: Any) -> str:
    """A moment as a date; in JSON it stays a number of seconds."""
    if name in _MOMENTS and isinstance(value, int) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return word(value)


def read_json(path: Path) -> Any:
    """A document that the person named."""
    import json

    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON") from error
