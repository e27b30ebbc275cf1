"""``searchblend backup``: copy a service's database while it runs, and put it back."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import opened, os_user, show
from searchblend.core.errors import UsageError
from searchblend.service.clock import SystemClock
from searchblend.service.restore import restore_backup
from searchblend.store.backup import write_backup


def run(options: argparse.Namespace) -> None:
    if options.action == "write":
        with opened(options) as store:
            # Before the copy: whoever takes one is in the log, and in the copy's log, whatever happens then.
            store.audit.append(os_user(), "backup asked for", SystemClock().now(), {})
            rows = write_backup(store.database, options.file)
        show({"written": str(options.file), "rows": rows}, as_json=options.json)
        return
    if not options.file.is_file():
        raise UsageError(f"{options.file}: no such backup")
    with opened(options, create=True) as store:
        rows, ended = restore_backup(store, options.file, SystemClock(), actor=os_user())
    show({"restored": str(options.file), "rows": rows, "rounds_ended": ended}, as_json=options.json)
