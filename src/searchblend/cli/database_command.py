"""``searchblend database``: the tables of a service's database, and who may do what with them."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import settings_of, show
from searchblend.cli.tables import output
from searchblend.service.workers.private_folder import make_private_folder
from searchblend.store.grants import grant_statements
from searchblend.store.schema import migrate, schema_version
from searchblend.store.service_store import open_database


def run(options: argparse.Namespace) -> None:
    if options.action == "grants":
        statements = grant_statements(options.grants_of, options.user, options.schema)
        output.file.write("\n".join(statements) + "\n")
        return
    settings = settings_of(options)
    if not settings.database:
        make_private_folder(settings.folder)
    database = open_database(settings.where)
    try:
        before = schema_version(database)
        migrate(database)
        after = schema_version(database)
    finally:
        database.close()
    show({"version": after, "before": before}, as_json=options.json)
