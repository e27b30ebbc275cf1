"""A backup put back into an empty database, and made safe to go on with: a restore forgets debits and raw records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from searchblend.service.clock import Clock
from searchblend.service.lifecycle import Lifecycle
from searchblend.store.backup import read_backup
from searchblend.store.errors import WrongState
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import HOLDS_RAW, State
from searchblend.store.tokens import person_of

_SKIPPED: Final = 1000
"""round numbers that may have been given out after a backup was made"""


def restore(
    store: ServiceStore, clock: Clock, backup: Path, *, actor: str, tokens: Sequence[str] = ()
) -> tuple[int, int]:
    """How many rows were read, and how many rounds ended: those whose raw records are in no backup.

    One transaction: whatever stops it, the database is still empty and the restore can be repeated.

    Args:
        store: An empty database.
        clock: By which tokens are valid.
        backup: The file of the backup.
        actor: Who restores.
        tokens: Of two operators, where the backup holds valid tokens of two.
    """
    now, lifecycle = clock.now(), Lifecycle(store, clock)
    with store.transaction():
        rows = read_backup(backup, store.database)
        people = _two_operators(store, tokens, now)
        held = store.rounds.rounds(states=HOLDS_RAW | {State.DRAFT})
        for round_ in held:
            lifecycle.abort(round_, actor=actor, reason="restored")
        store.rounds.skip_numbers(_SKIPPED)
        store.audit.append(actor, "restored from a backup", now, {"rows": rows, "people": people})
    return rows, len(held)


def _two_operators(store: ServiceStore, tokens: Sequence[str], now: int) -> list[str]:
    """Whose tokens they are; refused where two operators could agree and have not."""
    given = [store.tokens.admin(token, now) for token in tokens]
    people = sorted({admin.name for admin in given if admin is not None and admin.role == "operator"})
    could = {person_of(name) for name in store.tokens.holders("operator", now, with_sso=False)}
    if len(could) > 1 and len({person_of(name) for name in people}) < 2:
        raise WrongState("the backup holds valid tokens of several operators: expected those of two of them")
    return people
