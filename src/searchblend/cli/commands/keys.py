"""``searchblend keys``: signing keys of manifests and of the curator, and admin tokens."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import add_actions, add_command, positive_int
from searchblend.cli.service_options import add_passphrase, add_place, opened, os_user, print_document, serve_settings
from searchblend.core.errors import UsageError
from searchblend.service.clock import SystemClock

if TYPE_CHECKING:
    from searchblend.service.workers.signing_keys import SigningKeys
    from searchblend.wire.signing import SigningKey

_MOST_DAYS = 3650
_NO_PASSPHRASE = "none"  # noqa: S105  # the word for storing keys in the clear
EXAMPLES = """\
examples:
  searchblend keys list                                ids and public points of the signing keys, and admin tokens
  searchblend keys add                                 one more signing key; from now on all of them sign
  searchblend keys remove 0123456789abcdef
  searchblend keys protect --new-passphrase file:/root/phrase          the files are worth nothing without it
  searchblend keys adopt                               after a key file was put there by hand, or the keys were lost
  searchblend keys token ann operator                  an admin token, shown once; keep it in a file of mode 600
  searchblend keys token rob reviewer --days 30        one that holds for a month
  searchblend keys revoke ann
  searchblend keys revoke sso:ann@example.com          ends the sessions of someone who signs in at an issuer
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    for name, what in (
        ("list", "what there is"),
        ("add", "make one more signing key"),
        ("remove", "remove a signing key"),
        ("protect", "encrypt the signing keys and the curator's key with a new passphrase"),
        ("adopt", "put the folder's signing keys on record: from now on they sign, and no others"),
        ("curator", "the curator's public key, for publishers and devices; makes it if there is none"),
        ("token", "make an admin token"),
        ("revoke", "revoke an admin token, or end the sessions of someone who signs in at an issuer"),
    ):
        action = add_command(actions, name, what, EXAMPLES)
        if name == "remove":
            action.add_argument("key_id", metavar="ID", help="the key's id: 16 hexadecimal digits")
        if name in ("token", "revoke"):
            action.add_argument("name", metavar="NAME", help="whose token")
        if name == "token":
            action.add_argument(
                "token_role",
                choices=["viewer", "operator", "reviewer", "auditor"],
                metavar="ROLE",
                help="what its holder may do",
            )
            action.add_argument(
                "--days", type=positive_int, default=365, metavar="N", help="days for which it holds (365)"
            )
        if name == "protect":
            action.add_argument(
                "--new-passphrase",
                required=True,
                metavar="SOURCE",
                help="file:PATH, env:NAME or fd:NUMBER; none to store the keys in the clear",
            )
        add_place(action)
        add_passphrase(action)
        action.add_argument("--signing-dir", metavar="DIR", help="the manifests' signing keys")
        action.add_argument("--key-dir", metavar="DIR", help="the curator's keys")


def run(options: argparse.Namespace) -> None:
    print_document(_act(options), as_json=options.json)


def _act(options: argparse.Namespace) -> Any:
    from searchblend.service.workers.signing_keys import (
        SigningKeys,
        adopt_keys,
        make_curator_key,
        protect_keys,
        read_curator_key,
    )
    from searchblend.store.tokens import SSO_USER

    now = SystemClock().now()
    settings = serve_settings(options)
    keys = SigningKeys.of(settings)
    if options.action == "add":
        with _kept_on_record(options, keys):
            added = keys.add()
        return _public(added)
    if options.action == "curator":
        return _public(make_curator_key(settings.vault_folder, settings.key_passphrase))
    if options.action == "protect":
        new = "" if options.new_passphrase == _NO_PASSPHRASE else options.new_passphrase
        return {"protected" if new else "in_the_clear": protect_keys(settings, new)}
    if options.action == "remove":
        with _kept_on_record(options, keys):
            keys.remove(options.key_id)
        return {"removed": options.key_id}
    if options.action == "adopt":
        ids = _ids(keys)
        if not ids:
            raise UsageError("no signing key is there; add one first")
        with opened(options) as store:
            adopt_keys(store, ids, actor=os_user(), now=now)
        return {"on_record": ids}
    with opened(options, create=options.action == "token") as store:
        if options.action == "token":
            if options.days > _MOST_DAYS:
                raise UsageError(f"--days: expected at most {_MOST_DAYS}")
            expires = now + options.days * 86_400
            token = store.tokens.add_admin(options.name, options.token_role, actor=os_user(), now=now, expires=expires)
            return {"name": options.name, "role": options.token_role, "token": token, "expires": expires}
        if options.action == "revoke":
            if options.name.startswith(SSO_USER):
                if not store.sessions.end_all(options.name, actor=os_user(), now=now):
                    raise UsageError("no one of this name has signed in at an issuer")
                return {"sessions_ended": options.name}
            if not store.tokens.revoke_admin(options.name, actor=os_user(), now=now):
                raise UsageError("no such token, or revoked already")
            return {"revoked": options.name}
        curator = read_curator_key(settings.vault_folder, settings.key_passphrase)
        return {
            "signing_keys": [_public(key) for key in keys.all()],
            "curator_keys": [_public(curator)] if curator is not None else [],
            "admin_tokens": [
                {
                    "name": admin.name,
                    "role": admin.role,
                    "revoked": admin.revoked,
                    "expires": admin.expires,
                    "used": admin.used,
                }
                for admin in store.tokens.admins()
            ],
        }


def _public(key: SigningKey) -> dict[str, str]:
    return {"key_id": key.key_id, "public_point": key.public_point.hex()}


@contextlib.contextmanager
def _kept_on_record(options: argparse.Namespace, keys: SigningKeys) -> Iterator[None]:
    """Change the folder whose keys are on record, and the record with it; other folders are not put on record."""
    from searchblend.service.workers.signing_keys import adopt_keys, keys_on_record
    from searchblend.store.service_store import is_service_database

    if not is_service_database(serve_settings(options).where):
        yield
        return
    with opened(options) as store:
        is_on_record = keys_on_record(store) == _ids(keys)
        yield
        if is_on_record:
            adopt_keys(store, _ids(keys), actor=os_user(), now=SystemClock().now())


def _ids(keys: SigningKeys) -> list[str]:
    return sorted(key.key_id for key in keys.all())
