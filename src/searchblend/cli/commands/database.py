"""``searchblend database``: the tables of a service's database, and who may do what with them."""

from __future__ import annotations

import argparse

from searchblend.cli.arguments import add_actions, add_command
from searchblend.cli.printing import write
from searchblend.cli.service_options import add_place, print_document, serve_settings
from searchblend.files.durable import make_private_folder
from searchblend.store.schema import migrate, schema_version

EXAMPLES = """\
examples:
  searchblend database migrate                         make or renew the tables; take a backup first
  searchblend database migrate --database postgresql://owner@db.internal/searchblend
  searchblend database grants curator --user sb_curator | psql postgresql://owner@db.internal/searchblend
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    add_place(add_command(actions, "migrate", "make the tables, or bring them to this version", EXAMPLES))
    grants = add_command(actions, "grants", "print what a role may do in PostgreSQL, as SQL", EXAMPLES)
    grants.add_argument("grants_of", metavar="ROLE", help="a role of `serve`, or backup or auditor")
    grants.add_argument("--user", required=True, metavar="NAME", help="the database user that the role logs in as")
    grants.add_argument("--schema", default="public", metavar="NAME", help="where the tables are (public)")


def run(options: argparse.Namespace) -> None:
    from searchblend.store.schema import grant_statements
    from searchblend.store.service_store import open_database

    if options.action == "grants":
        statements = grant_statements(options.grants_of, options.user, options.schema)
        write("\n".join(statements) + "\n")
        return
    settings = serve_settings(options)
    if not settings.database:
        make_private_folder(settings.folder)
    database = open_database(settings.where)
    try:
        before = schema_version(database)
        migrate(database)
        after = schema_version(database)
    finally:
        database.close()
    print_document({"version": after, "before": before}, as_json=options.json)
