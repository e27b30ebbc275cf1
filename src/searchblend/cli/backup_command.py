"""``searchblend backup``: copy a service's database while it runs, and put it back."""

from __future__ import annotations

import argparse

from searchblend.cli.service_options import actor_of, opened, show
from searchblend.errors import UsageError
from searchblend.server.clock import SystemClock
from searchblend.server.lifecycle import Lifecycle
from searchblend.store.backup import read_backup, write_backup
from searchblend.store.states import HOLDS_RAW, State

_SKIPPED = 1000
"""round numbers that may have been given out after the backup was made"""


def run(options: argparse.Namespace) -> None:
    if options.action == "write":
        with opened(options) as store:
            rows = write_backup(store.database, options.file)
        show({"written": str(options.file), "rows": rows}, as_json=options.json)
        return
    if not options.file.is_file():
        raise UsageError(f"{options.file}: no such backup")
    with opened(options, create=True) as store:
        rows = read_backup(options.file, store.database)
        lifecycle, actor = Lifecycle(store, SystemClock()), actor_of(options)
        ended = [
            lifecycle.abort(found, actor=actor, reason="restored")
            for found in store.rounds.rounds(states=HOLDS_RAW | {State.DRAFT})
        ]
        store.rounds.skip_numbers(_SKIPPED)
        store.audit.append(actor, "restored from a backup", SystemClock().now(), {"rows": rows})
    show({"restored": str(options.file), "rows": rows, "rounds_ended": len(ended)}, as_json=options.json)
