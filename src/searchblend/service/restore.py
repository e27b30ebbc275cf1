"""A backup becomes a service's database: read, and made safe to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from searchblend.service.clock import Clock
from searchblend.service.lifecycle import Lifecycle
from searchblend.store.backup import read_backup
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import HOLDS_RAW, State

_SKIPPED: Final = 1000
"""round numbers that may have been given out after the backup was made"""


def restore_backup(store: ServiceStore, file: Path, clock: Clock, *, actor: str) -> tuple[int, int]:
    """How many rows, and how many rounds were ended because their raw records are in no backup.

    One transaction: whatever stops it, the database is still empty and the restore can be repeated.
    """
    lifecycle = Lifecycle(store, clock)
    with store.transaction():
        rows = read_backup(file, store.database)
        held = store.rounds.rounds(states=HOLDS_RAW | {State.DRAFT})
        for round_ in held:
            lifecycle.abort(round_, actor=actor, reason="restored")
        store.rounds.skip_numbers(_SKIPPED)
        store.audit.append(actor, "restored from a backup", clock.now(), {"rows": rows})
    return rows, len(held)
