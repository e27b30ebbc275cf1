"""``searchblend backup``: copy a service's database while it runs, and put it back."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import actor_of, opened, show
from searchblend.errors import UsageError
from searchblend.server.clock import SystemClock
from searchblend.server.restore import restore_backup
from searchblend.store.backup import write_backup


def run(options: argparse.Namespace) -> None:
    if options.action == "write":
        with opened(options) as store:
            rows = write_backup(store.database, options.file)
        show({"written": str(options.file), "rows": rows}, as_json=options.json)
        return
    if not options.file.is_file():
        raise UsageError(f"{options.file}: no such backup")
    with opened(options, create=True) as store:
        rows, ended = restore_backup(store, options.file, SystemClock(), actor=actor_of(options))
    show({"restored": str(options.file), "rows": rows, "rounds_ended": ended}, as_json=options.json)
