"""What can be checked about a running service: chains, the conservation law, deadlines, keys, signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from searchblend.errors import SearchblendError
from searchblend.server.clock import Clock
from searchblend.server.curator_key import curator_points
from searchblend.server.publisher import has_refused_key
from searchblend.server.round_model import is_signed_by_curator, shape_of
from searchblend.server.serve_settings import ServeSettings
from searchblend.server.vault import Vault
from searchblend.store.schema import SCHEMA_VERSION, schema_version
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, HOLDS_RAW, State

_MOST_ATTEMPTS: Final = 5
_DAY: Final = 86_400


@dataclass(frozen=True)
class Finding:
    """One check and how it went."""

    check: str
    fine: bool
    detail: str

    def as_json(self) -> dict[str, Any]:
        return {"check": self.check, "fine": self.fine, "detail": self.detail}


def check_up(store: ServiceStore, clock: Clock, settings: ServeSettings) -> list[Finding]:
    """All checks. Opening the store has already refused an unsafe database."""
    return [
        Finding("durability", True, f"{store.database.dialect}: commits reach the disk before they return"),
        _schema(store),
        _chain("audit log", lambda: store.audit.verify()),
        _chain("ledger", lambda: store.ledger.check()),
        *_rounds(store, clock),
        _jobs(store),
        *_manifests(store, clock),
        _keys(store, settings),
        *_round_keys(store, settings),
    ]


def gauges(store: ServiceStore, clock: Clock) -> dict[str, float]:
    """Numbers for alarms, cheap enough for every look at the metrics. None of them is about one person."""
    now, rounds = clock.now(), store.rounds.rounds()
    manifests = [store.artifacts.manifest(task.task) for task in store.rounds.tasks() if not task.killed]
    waiting = store.jobs.waiting()
    states = {f'rounds{{state="{state}"}}': float(sum(found.state is state for found in rounds)) for state in State}
    return {
        **states,
        "shredding_overdue": sum(
            found.state in HOLDS_RAW and found.shred_by is not None and now > found.shred_by for found in rounds
        ),
        "oldest_unfinished_round_seconds": max(
            (now - found.changed for found in rounds if found.state not in ENDED), default=0
        ),
        "signature_expires_seconds": min((latest[1] - now for latest in manifests if latest), default=0),
        "round_keys_refused": sum(has_refused_key(store, found) for found in rounds),
        "jobs_waiting": len(waiting),
        "jobs_stuck": sum(attempts > _MOST_ATTEMPTS for _, _, attempts in waiting),
    }


def _schema(store: ServiceStore) -> Finding:
    version = schema_version(store.database)
    return Finding("schema", version == SCHEMA_VERSION, f"version {version}")


def _chain(name: str, check: Callable[[], object]) -> Finding:
    try:
        check()
    except SearchblendError as error:
        return Finding(name, False, str(error))
    return Finding(name, True, "the chain is whole")


def _rounds(store: ServiceStore, clock: Clock) -> Iterator[Finding]:
    for found in store.rounds.rounds():
        if found.shape:
            law = store.reports.conservation(found.key, shape_of(found).counts_per_report, found.reports)
            detail = f"{law.counted} counts, {law.expected} expected"
            yield Finding(f"conservation {found.task[:8]}/{found.number}", law.holds, detail)
        if found.state not in HOLDS_RAW:
            left = store.contributions.count(found.key)
            if left:
                yield Finding(f"shredding {found.task[:8]}/{found.number}", False, f"{left} sealed records are left")
        elif found.shred_by is not None and clock.now() > found.shred_by:
            late = clock.now() - found.shred_by
            yield Finding(f"shredding {found.task[:8]}/{found.number}", False, f"overdue by {late} s")


def _jobs(store: ServiceStore) -> Finding:
    stuck = [f"{kind} ({attempts} attempts)" for _, kind, attempts in store.jobs.waiting() if attempts > _MOST_ATTEMPTS]
    return Finding("jobs", not stuck, ", ".join(stuck) or f"{len(store.jobs.waiting())} waiting")


def _manifests(store: ServiceStore, clock: Clock) -> Iterator[Finding]:
    for task in store.rounds.tasks():
        latest = store.artifacts.manifest(task.task)
        if latest is None:
            yield Finding(f"manifest {task.task[:8]}", False, "never signed: is the publisher running?")
        else:
            left = latest[1] - clock.now()
            yield Finding(f"manifest {task.task[:8]}", left > _DAY, f"expires in {left // 3600} h")


def _keys(store: ServiceStore, settings: ServeSettings) -> Finding:
    """Keys that outlived their round; where the curator runs elsewhere there are none to look at."""
    if not settings.vault_folder.is_dir():
        return Finding("round keys", True, "none on this machine")
    states = {(found.task, found.number): found.state for found in store.rounds.rounds()}
    held = Vault(settings.vault_folder).held()
    late = [key for key in held if states.get(key) not in HOLDS_RAW | {State.DRAFT}]
    return Finding("round keys", not late, f"{len(held)} held, {len(late)} of them past their round")


def _round_keys(store: ServiceStore, settings: ServeSettings) -> Iterator[Finding]:
    """Rounds whose key, or anything else that the curator signed, is not as the curator opened them."""
    curators = curator_points(settings)
    if not curators:
        yield Finding("curator's key", True, "not known on this machine; --curator-key names it")
        return
    for found in store.rounds.rounds(states=HOLDS_RAW):
        if found.public_key is not None:
            fine = is_signed_by_curator(found, curators)
            detail = "signed by the curator" if fine else "not signed by the curator: the round was changed"
            yield Finding(f"curator's signature {found.task[:8]}/{found.number}", fine, detail)
