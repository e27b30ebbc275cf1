"""``searchblend issuer``: tokens that pay for reports, for those who have an account, and its keys."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import add_actions, add_command, positive_int
from searchblend.cli.service_options import add_public_server, given_settings, print_addresses, print_document
from searchblend.core.documents import encode
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.files.durable import make_private_folder
from searchblend.service.clock import SystemClock

if TYPE_CHECKING:
    from searchblend.service.issuer.books import IssuerBooks
    from searchblend.service.issuer.serve import IssuerSettings

EXAMPLES = """\
examples:
  searchblend issuer serve --tls-certificate chain.pem --tls-key key.pem --host 0.0.0.0 --port 443
  searchblend issuer add device-1 device-2 --address https://issuer.example     a link for each, shown once
  searchblend issuer end device-1                        no more tokens for it
  searchblend issuer rotate                              a new key; the old one signs on for 30 days
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    serve = add_command(actions, "serve", "run the issuer", EXAMPLES)
    serve.add_argument("--host", metavar="HOST", help="where to listen (127.0.0.1)")
    serve.add_argument("--port", type=int, metavar="PORT", help="port to listen on; 0 for any that is free (8490)")
    serve.add_argument("--per-week", type=positive_int, metavar="N", help="tokens of an account in a week (3)")
    serve.add_argument("--rotate-days", type=positive_int, metavar="N", help="age at which a key gets a successor (90)")
    add_public_server(serve)
    add = add_command(actions, "add", "make accounts, and print the link of each once", EXAMPLES)
    add.add_argument("names", nargs="+", metavar="NAME", help="by what you know the account")
    add.add_argument("--address", required=True, metavar="URL", help="where devices reach the issuer")
    end = add_command(actions, "end", "give an account no more tokens", EXAMPLES)
    end.add_argument("name", metavar="NAME", help="the account")
    accounts = add_command(actions, "accounts", "all accounts, and how many tokens each got this week", EXAMPLES)
    keys = add_command(actions, "keys", "the keys that sign now", EXAMPLES)
    rotate = add_command(actions, "rotate", "make a new key; the one before signs on for 30 days", EXAMPLES)
    rotate.add_argument(
        "--at-once", action="store_true", help="destroy all other keys now: open rounds give out no more tokens"
    )
    for action in (serve, add, end, accounts, keys, rotate):
        action.add_argument("--data-dir", metavar="DIR", help="where the issuer keeps its files (searchblend-issuer)")
    for action in (add, end, accounts, keys, rotate):
        action.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> None:
    from searchblend.service.issuer.serve import IssuerSettings

    settings = given_settings(IssuerSettings, options)
    if options.action == "serve":
        from searchblend.service.issuer.serve import run_issuer

        run_issuer(settings, on_ready=print_addresses)
        return
    print_document(_act(options, settings), as_json=options.json)


def _act(options: argparse.Namespace, settings: IssuerSettings) -> Any:
    now = SystemClock().now()
    if options.action != "add" and not settings.folder.is_dir():
        raise UsageError(f"--data-dir: {settings.folder}: no such folder; `issuer add` and `issuer serve` make it")
    if options.action in ("keys", "rotate"):
        return _keys(options, settings, now)
    if options.action == "add":
        return {"accounts": _add(options, settings, now)}
    with _books(settings) as books:
        if options.action == "accounts":
            return {"accounts": encode(books.accounts(now=now))}
        if not books.end(options.name, now=now):
            raise UsageError("no such account, or ended already")
        return {"ended": options.name}


def _add(options: argparse.Namespace, settings: IssuerSettings, now: int) -> list[dict[str, str]]:
    from searchblend.wire.addresses import is_origin
    from searchblend.wire.tokens import TokenAccount

    address = options.address.removesuffix("/")
    if not is_origin(address):
        raise InvalidParameter("address", "expected https://HOST, or http:// on this machine, without a path")
    with _books(settings) as books:
        new_secrets = books.add(options.names, now=now)
    links = [TokenAccount(address, secret).link for secret in new_secrets]
    return [{"name": name, "link": link} for name, link in zip(options.names, links, strict=True)]


def _keys(options: argparse.Namespace, settings: IssuerSettings, now: int) -> Any:
    from searchblend.service.issuer.keys import IssuerKeys

    make_private_folder(settings.folder)
    keys = IssuerKeys(settings.key_folder)
    if options.action == "rotate":
        keys.rotate(now, at_once=options.at_once)
    return {"keys": [{"key_id": key.public.key_id.hex(), "since": key.start} for key in keys.in_use(now)]}


@contextmanager
def _books(settings: IssuerSettings) -> Iterator[IssuerBooks]:
    from searchblend.service.issuer.books import IssuerBooks

    make_private_folder(settings.folder)
    with closing(IssuerBooks(settings.folder)) as books:
        yield books
