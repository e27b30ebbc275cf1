"""``searchblend backup``: copy a service's database while it runs, and put it back."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import add_actions, add_command
from searchblend.cli.service_options import add_place, opened, os_user, print_document, read_token
from searchblend.core.errors import UsageError
from searchblend.service.clock import SystemClock

EXAMPLES = """\
examples:
  searchblend backup write backup.db                   while the service runs; raw opt-in records are left out
  searchblend backup restore backup.db --data-dir new
  searchblend backup restore backup.db --token-file ann.token --token-file olga.token
  searchblend backup restore backup.db --database postgresql://db.internal/new
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    for name, what in (("write", "copy into a new file"), ("restore", "read a copy into a new database")):
        action = add_command(actions, name, what, EXAMPLES)
        action.add_argument("file", type=Path, metavar="FILE", help="the file of the backup")
        if name == "restore":
            action.add_argument(
                "--token-file",
                type=Path,
                action="append",
                default=[],
                metavar="FILE",
                help="an operator's token of the backup; twice, for two operators, where it holds those of several",
            )
        add_place(action)


def run(options: argparse.Namespace) -> None:
    from searchblend.service.restore import restore
    from searchblend.store.backup import write_backup

    if options.action == "write":
        with opened(options) as store:
            # Before the copy: whoever takes one is in the log, and in the copy's log, whatever happens then.
            store.audit.append(os_user(), "backup asked for", SystemClock().now(), {})
            rows = write_backup(store.database, options.file)
        print_document({"written": str(options.file), "rows": rows}, as_json=options.json)
        return
    if not options.file.is_file():
        raise UsageError(f"{options.file}: no such backup")
    with opened(options, create=True) as store:
        tokens = [read_token(path) for path in options.token_file]
        rows, ended = restore(store, SystemClock(), options.file, actor=os_user(), tokens=tokens)
    print_document({"restored": str(options.file), "rows": rows, "rounds_ended": ended}, as_json=options.json)
