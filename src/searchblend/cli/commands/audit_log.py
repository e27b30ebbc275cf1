"""``searchblend audit-log``: who did what to which round, and whether the log is what was written."""

from __future__ import annotations

import argparse

from searchblend.cli.arguments import add_actions, add_command
from searchblend.cli.service_options import add_place, opened, print_document
from searchblend.core.documents import encode
from searchblend.store.errors import CorruptAudit

EXAMPLES = """\
examples:
  searchblend audit-log verify                         the chain of hashes, from the first row to the last
  searchblend audit-log verify --head 3f5c…            a hash noted earlier must still be in the chain
  searchblend audit-log show --json > audit.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    for name, what in (("verify", "check the chain"), ("show", "the rows")):
        action = add_command(actions, name, what, EXAMPLES)
        add_place(action)
        if name == "verify":
            action.add_argument("--head", metavar="HASH", help="a hash noted earlier")


def run(options: argparse.Namespace) -> None:
    with opened(options) as store:
        rows = store.audit.rows()
        last = store.audit.verify()
    if options.action == "show":
        print_document({"rows": [encode(row.entry) for row in rows]}, as_json=options.json)
        return
    if options.head and options.head not in {row.hash for row in rows}:
        raise CorruptAudit(len(rows), "the hash noted earlier is not in the chain: rows were removed or rewritten")
    print_document({"rows": len(rows), "head": last.hash if last else None, "whole": True}, as_json=options.json)
