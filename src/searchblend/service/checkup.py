"""What can be checked about a running service: chains, the conservation law, deadlines, keys, signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from searchblend.core.errors import SearchblendError
from searchblend.files.durable import others_may_use, others_may_write_in
from searchblend.service.clock import DAY, Clock
from searchblend.service.round_model import is_signed_by_curator, settings_of, shape_of, shredding_deadline
from searchblend.service.settings import ServeSettings
from searchblend.service.workers.publisher import MANIFEST_SECONDS, has_refused_key, why_it_waits
from searchblend.service.workers.signing_keys import SigningKeys, curator_points, keys_trouble
from searchblend.service.workers.vault import Vault
from searchblend.store.reports import ConservationLaw
from searchblend.store.rounds import Round, Task
from searchblend.store.schema import SCHEMA_VERSION, schema_version
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, HOLDS_RAW, State

STUCK_ATTEMPTS: Final = 5
"""more than this, and a job is called stuck"""
SHAPE_TROUBLE: Final = "the shape of its reports cannot be read"
_SHREDDING_SLACK: Final = 15
"""seconds that the clock's arrow and the curator's job may take after a deadline"""


@dataclass(frozen=True)
class CheckResult:
    """One check and how it went."""

    check: str
    fine: bool
    detail: str


def check_up(store: ServiceStore, clock: Clock, settings: ServeSettings) -> list[CheckResult]:
    """All checks. Opening the store has already refused an unsafe database."""
    return [
        CheckResult("durability", True, f"{store.database.dialect}: commits reach the disk before they return"),
        *_database_file(settings),
        _schema(store),
        _chain("audit log", lambda: store.audit.verify()),
        _chain("ledger", lambda: store.ledger.check()),
        *_unreadable(store),
        *_overdue(store, clock),
        *_rounds(store),
        _jobs(store),
        *_manifests(store, clock),
        *_vault(store, clock, settings),
        *_round_keys(store, settings),
        *_signing_keys(store, settings),
    ]


def trouble(store: ServiceStore, clock: Clock) -> str | None:
    """Why a server should not be called ready: what must not wait has waited too long. Names no task."""
    late = overdue_shredding(store, clock.now() - _SHREDDING_SLACK)
    return f"shredding is overdue in {len(late)} rounds" if late else None


def overdue_shredding(store: ServiceStore, now: int) -> list[tuple[str, int, int]]:
    """Task, number and lateness of rounds whose raw records or private key have outlived their deadline, as far as the
    database tells: a process without the curator's folder knows no more."""
    deadlines = [(shredding_deadline(left), left) for left in store.rounds.raw_left()]
    late = [(now - moment, left) for moment, left in deadlines if moment is not None and moment < now]
    return [(left.task, left.number, seconds) for seconds, left in sorted(late, reverse=True)]


def keys_overdue(vault: Vault, clock: Clock) -> str | None:
    """The same by the vault's own files, which no writer of the database can change."""
    late = vault.overdue(clock.now() - _SHREDDING_SLACK)
    return f"{len(late)} round keys are past their deadline" if late else None


def gauges(store: ServiceStore, clock: Clock, vault: Vault | None = None) -> dict[str, float]:
    """Numbers for alarms, cheap enough for every scrape of the metrics. None of them is about one person.

    ``vault``: the round keys of this process, if its role has them; then their own deadlines count too.
    """
    now, rounds = clock.now(), store.rounds.rounds()
    late = {(task, number) for task, number, _ in overdue_shredding(store, now)}
    late |= {(held.task, held.number) for held in (vault.overdue(now) if vault else [])}
    manifests = [store.artifacts.manifest(task.task) for task in store.rounds.tasks() if not task.killed]
    waiting = store.jobs.waiting()
    states = {f'rounds{{state="{state}"}}': float(sum(round_.state is state for round_ in rounds)) for state in State}
    return {
        **states,
        "shredding_overdue": len(late),
        "oldest_unfinished_round_seconds": max(
            (now - round_.changed for round_ in rounds if round_.state not in ENDED), default=0
        ),
        "signature_expires_seconds": min((latest[1] - now for latest in manifests if latest), default=0),
        "round_keys_refused": sum(has_refused_key(store, round_) for round_ in rounds),
        "rounds_waiting_for_issuer": sum(why_it_waits(store, round_) is not None for round_ in rounds),
        "jobs_waiting": len(waiting),
        "jobs_stuck": sum(attempts > STUCK_ATTEMPTS for _, _, attempts in waiting),
    }


def _database_file(settings: ServeSettings) -> Iterator[CheckResult]:
    """Whether anyone but its owner may read, change or replace the SQLite file, which is made for its owner alone."""
    if settings.database:
        return
    path = Path(settings.where)
    loose = [file for suffix in ("", "-wal", "-shm") if _is_loose(file := path.with_name(path.name + suffix))]
    advice = [f"chmod 600 {' '.join(map(str, loose))}"] if loose else []
    advice += [f"chmod go-w {path.parent}"] if others_may_write_in(path.parent) else []
    detail = f"other users may use it; run `{' && '.join(advice)}`" if advice else "its owner's alone"
    yield CheckResult("database file", not advice, detail)


def _is_loose(path: Path) -> bool:
    return path.exists() and others_may_use(path)


def _schema(store: ServiceStore) -> CheckResult:
    version = schema_version(store.database)
    return CheckResult("schema", version == SCHEMA_VERSION, f"version {version}")


def _chain(name: str, check: Callable[[], object]) -> CheckResult:
    try:
        check()
    except SearchblendError as error:
        return CheckResult(name, False, str(error))
    return CheckResult(name, True, "the chain is whole")


def _unreadable(store: ServiceStore) -> Iterator[CheckResult]:
    """Rows of another version, or damaged. Others go on without them; the operator has to look at these."""
    for task in store.rounds.tasks():
        if why := settings_trouble(task):
            yield CheckResult(f"task {task.task[:8]}", False, f"its settings cannot be read: {why}")
    for task_id, number in store.rounds.unreadable():
        yield CheckResult(f"round {task_id[:8]}/{number}", False, "is in a state that this version does not know")


def settings_trouble(row: Task | Round) -> str | None:
    """Why the settings of a task or round cannot be read, if so."""
    try:
        settings_of(row)
    except (SearchblendError, TypeError, ValueError) as error:
        return str(error) if isinstance(error, SearchblendError) else type(error).__name__
    return None


def _overdue(store: ServiceStore, clock: Clock) -> Iterator[CheckResult]:
    for task, number, late in overdue_shredding(store, clock.now()):
        yield CheckResult(f"shredding {task[:8]}/{number}", False, f"overdue by {late} s")


def _rounds(store: ServiceStore) -> Iterator[CheckResult]:
    counted, contributed = store.reports.counted_by_round(), store.contributions.count_by_round()
    for round_ in store.rounds.rounds():
        name = f"{round_.task[:8]}/{round_.number}"
        if round_.shape:
            law = conservation(round_, counted)
            detail = f"{law.counted} counts, {law.expected} expected" if law else SHAPE_TROUBLE
            yield CheckResult(f"conservation {name}", law is not None and law.holds, detail)
        if why := why_it_waits(store, round_):
            yield CheckResult(f"opening {name}", False, f"waits: {why}")
        if round_.state not in HOLDS_RAW and (left := contributed.get(round_.key, 0)):
            yield CheckResult(f"shredding {name}", False, f"{left} sealed records are left")


def conservation(round_: Round, counted: Mapping[int, tuple[int, int]]) -> ConservationLaw | None:
    """The law of a round that has a head list, by ``Reports.counted_by_round``; None if its shape cannot be read."""
    counts, ids = counted.get(round_.key, (0, 0))
    try:
        per_report = shape_of(round_).counts_per_report
    except (TypeError, ValueError, KeyError):
        return None
    return ConservationLaw.of(counts, per_report * (ids if round_.reports is None else round_.reports))


def _jobs(store: ServiceStore) -> CheckResult:
    waiting = store.jobs.waiting()
    stuck = [f"{kind} ({attempts} attempts)" for _, kind, attempts in waiting if attempts > STUCK_ATTEMPTS]
    return CheckResult("jobs", not stuck, ", ".join(stuck) or f"{len(waiting)} waiting")


def _manifests(store: ServiceStore, clock: Clock) -> Iterator[CheckResult]:
    for task in store.rounds.tasks():
        latest = store.artifacts.manifest(task.task)
        if latest is None:
            yield CheckResult(f"manifest {task.task[:8]}", False, "never signed: is the publisher running?")
        else:
            left = latest[1] - clock.now()
            early = left > MANIFEST_SECONDS + DAY
            detail = "signed for a later time: a clock is or was wrong" if early else f"expires in {left // 3600} h"
            yield CheckResult(f"manifest {task.task[:8]}", left > DAY and not early, detail)


def _vault(store: ServiceStore, clock: Clock, settings: ServeSettings) -> Iterator[CheckResult]:
    """Keys that outlived their round, and withdrawals that were undone; none where the curator runs elsewhere."""
    if not settings.vault_folder.is_dir():
        yield CheckResult("round keys", True, "none on this machine")
        return
    try:
        vault = Vault(settings.vault_folder)
    except SearchblendError as error:
        yield CheckResult("round keys", False, str(error))
        return
    held = vault.held()
    late = [key for key in held if not key.is_needed(store.rounds.key_facts(key.task, key.number), clock.now())]
    yield CheckResult("round keys", not late, f"{len(held)} held, {len(late)} of them past their round")
    yield from _undone_withdrawals(store, vault)


def _undone_withdrawals(store: ServiceStore, vault: Vault) -> Iterator[CheckResult]:
    """Of rounds that still have their records: where these were destroyed, their withdrawals were too."""
    for task, number in dict.fromkeys((round_.task, round_.number) for round_ in store.rounds.rounds(states=HOLDS_RAW)):
        name = f"withdrawals {task[:8]}/{number}"
        try:
            undone = vault.withdrawn(task, number) - store.contributions.withdrawn(task, number)
        except SearchblendError as error:
            yield CheckResult(name, False, str(error))
            continue
        if undone:
            detail = f"{len(undone)} were undone in the database; the curator does not count these records"
            yield CheckResult(name, False, detail)


def _round_keys(store: ServiceStore, settings: ServeSettings) -> Iterator[CheckResult]:
    """Rounds whose key, or anything else that the curator signed, is not as the curator opened them."""
    try:
        curators = curator_points(settings)
    except SearchblendError as error:
        yield CheckResult("curator's key", False, str(error))
        return
    if not curators:
        yield CheckResult("curator's key", True, "not known on this machine; --curator-key names it")
        return
    for round_ in store.rounds.rounds(states=HOLDS_RAW):
        if round_.public_key is not None:
            fine = is_signed_by_curator(round_, curators)
            detail = "signed by the curator" if fine else "not signed by the curator: the round was changed"
            yield CheckResult(f"curator's signature {round_.task[:8]}/{round_.number}", fine, detail)


def _signing_keys(store: ServiceStore, settings: ServeSettings) -> Iterator[CheckResult]:
    """Whether the folder's keys are those on record; there are none where the publisher runs elsewhere."""
    try:
        ids = [key.key_id for key in SigningKeys.of(settings).all()]
    except SearchblendError as error:
        yield CheckResult("signing keys", False, str(error))
        return
    if ids:
        why = keys_trouble(store, ids)
        yield CheckResult("signing keys", why is None, why or f"{len(ids)}, those on record")
