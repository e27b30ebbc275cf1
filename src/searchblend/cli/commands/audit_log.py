"""``searchblend audit-log``: who did what to which round, and whether the log is what was written."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import add_actions, add_command
from searchblend.cli.service_options import add_place, opened, os_user, print_document
from searchblend.core.documents import encode
from searchblend.core.errors import OutputError
from searchblend.files.durable import write_new
from searchblend.service.clock import SystemClock
from searchblend.store.errors import CorruptAudit

EXAMPLES = """\
examples:
  searchblend audit-log verify                         the chain of hashes, from the first row to the last
  searchblend audit-log verify --head 3f5c…            a hash noted earlier must still be in the chain
  searchblend audit-log show --json > audit.json
  searchblend audit-log export audit.jsonl             JSON lines, for a log collector; the export is a row itself
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    for name, what in (
        ("verify", "check the chain"),
        ("show", "the rows"),
        ("export", "write the rows to a file, one JSON object a line"),
    ):
        action = add_command(actions, name, what, EXAMPLES)
        if name == "export":
            action.add_argument("file", type=Path, metavar="FILE", help="new file")
        add_place(action)
        if name == "verify":
            action.add_argument("--head", metavar="HASH", help="a hash noted earlier")


def run(options: argparse.Namespace) -> None:
    if options.action == "export":
        _export(options)
        return
    with opened(options) as store:
        rows = store.audit.rows()
        last = store.audit.verify()
    if options.action == "show":
        print_document({"rows": [encode(row.entry) for row in rows]}, as_json=options.json)
        return
    if options.head and options.head not in {row.hash for row in rows}:
        raise CorruptAudit(len(rows), "the hash noted earlier is not in the chain: rows were removed or rewritten")
    print_document({"rows": len(rows), "head": last.hash if last else None, "whole": True}, as_json=options.json)


def _export(options: argparse.Namespace) -> None:
    """The file appears when it is whole; the row about it is there before."""
    from searchblend.service.api.documents import audit_lines
    from searchblend.service.lifecycle import Lifecycle

    if options.file.exists():
        raise OutputError(f"{options.file}: exists; choose a new name")
    if not options.file.parent.is_dir():
        raise OutputError(f"{options.file}: cannot be written: there is no folder {options.file.parent}")
    with opened(options) as store:
        rows = Lifecycle(store, SystemClock()).export_audit("jsonl", actor=os_user())
    write_new(options.file, "".join(audit_lines(rows)).encode())
    print_document({"rows": len(rows), "head": rows[-1].hash, "file": str(options.file)}, as_json=options.json)
