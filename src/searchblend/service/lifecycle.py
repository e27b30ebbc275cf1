"""What people and the clock do to rounds, each in one transaction; what needs a key or noise becomes a job."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import fits
from searchblend.blender.method import HeadFigures
from searchblend.core.errors import InvalidParameter, SearchblendError
from searchblend.core.privacy import Neighbors
from searchblend.service.aggregate import read_counts
from searchblend.service.clock import Clock
from searchblend.service.filters import REASONS, check_head_list
from searchblend.service.round_model import (
    decode_figures,
    encode_figures,
    method_of,
    settings_of,
    shape_document,
    shape_of,
)
from searchblend.service.task_settings import TaskSettings
from searchblend.store.ledger_errors import BudgetExceeded
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, HOLDS_RAW, State
from searchblend.store.store_errors import StoreError, StoreUnavailable, WrongState
from searchblend.wire.report import ReportShape

CANDIDATE: Final = "candidate"
REVIEWED: Final = "reviewed"
CLOCK: Final = "clock"
SCHEDULE: Final = "schedule"
BLOCKLIST: Final = "blocklist"
NO_CAP: Final = (
    "no cap is on record, so nothing would bound what rounds cost together; set one (searchblend task cap "
    "--per-window EPSILON,DELTA), or let the task say so by name (uncapped=true)"
)
_TASK_BYTES: Final = 16
_Row = TypeVar("_Row", Round, Task)


class Lifecycle:
    """The arrows of rounds that somebody asks for, or that time brings."""

    def __init__(self, store: ServiceStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def add_task(self, settings: TaskSettings, *, actor: str) -> Task:
        settings.check_for_rounds()
        if self._store.ledger.book().cap is None and not settings.uncapped:
            raise InvalidParameter("uncapped", NO_CAP)
        task = secrets.token_hex(_TASK_BYTES)
        return self._store.rounds.add_task(task, settings.name, settings.as_json(), actor=actor, now=self._now)

    def draft_round(self, task: Task, *, actor: str) -> Round:
        """A new round with the task's settings as they are now; one at a time."""
        settings = TaskSettings.of_json(task.settings)
        settings.check_for_rounds()
        with self._store.transaction():
            if task.killed:
                raise WrongState("the task was stopped")
            if any(found.state not in ENDED for found in self._store.rounds.rounds(task.task)):
                raise WrongState("another round of the task has not ended")
            window = settings.window_at(self._now)
            return self._store.rounds.add_round(task.task, settings.as_json(), window, actor=actor, now=self._now)

    def request_open(self, found: Round, *, actor: str) -> None:
        """Ask the curator for a key; the round opens when it is there. Refused if the budget cannot pay the round."""
        with self._store.transaction():
            self._expect(found, State.DRAFT)
            self._refuse_unpayable(found)
            self._store.audit.append(actor, "opening asked for", self._now, {"task": found.task, "round": found.number})
            self._store.artifacts.keep(found.key, "opened_by", actor.encode())
            self._store.jobs.add(found.key, "open", self._now)

    def close_optin(self, found: Round, *, actor: str) -> Round:
        """No more opt-in records; the curator's job begins, or the round ends for want of people."""
        with self._store.transaction():
            self._expect(found, State.OPTIN_OPEN)
            n = self._store.contributions.count(found.key)
            closed = self._store.rounds.advance(
                found, State.OPTIN_CLOSED, actor=actor, now=self._now, detail={"records": n}
            )
            if n < settings_of(found).min_optin:
                return self.abort(closed, actor=actor, reason="too-few-opt-in-users")
            self._store.jobs.add(found.key, "head-list", self._now)
            return closed

    def look_at_candidate(self, found: Round, *, actor: str) -> tuple[HeadFigures, list[dict[str, Any]]]:
        """The list for somebody's eyes; the log has whose."""
        with self._store.transaction():
            candidate = self.candidate(found)
            self._store.audit.append(actor, "candidate list seen", self._now, _where(found))
            return candidate

    def candidate(self, found: Round) -> tuple[HeadFigures, list[dict[str, Any]]]:
        """What the reviewer looks at: the private list and the automatic filters' hits."""
        self._expect(found, State.SHREDDED)
        content = self._store.artifacts.kept(found.key, CANDIDATE)
        if content is None:
            raise StoreError("the candidate list is missing")
        figures = decode_figures(content)
        return figures, [hit.as_json() for hit in check_head_list(figures.head, self.blocklist())]

    def blocklist(self) -> list[str]:
        content = self._store.artifacts.kept(0, BLOCKLIST)
        return json.loads(content) if content else []

    def set_blocklist(self, words: Sequence[str], *, actor: str) -> None:
        """Words that no published entry may contain. The log says how many, not which."""
        with self._store.transaction():
            self._store.artifacts.keep(0, BLOCKLIST, json.dumps(list(words)).encode())
            self._store.audit.append(actor, "blocklist set", self._now, {"words": len(words)})

    def review(
        self,
        found: Round,
        *,
        actor: str,
        remove: Sequence[tuple[int, int | None, str]] = (),
        keep: Sequence[tuple[int, int | None]] = (),
    ) -> Round:
        """Approve the list without what is removed; filter hits go unless they are kept on purpose.

        The candidate is dropped with what was removed from it; the log holds reasons and numbers.
        """
        figures, hits = self.candidate(found)
        if actor == found.opened_by:
            raise WrongState("the reviewer must be somebody else than who opened the round")
        reasons = {(query, url): reason for query, url, reason in remove}
        kept = {(hit["query"], hit["url"]) for hit in hits} & set(keep)
        for hit in hits:
            if (hit["query"], hit["url"]) not in kept:
                reasons.setdefault((hit["query"], hit["url"]), hit["reason"])
        _check_positions(figures, reasons)
        settings = settings_of(found)
        reviewed = figures.without(list(reasons), settings.params)
        tally = {code: n for code in REASONS if (n := list(reasons.values()).count(code))}
        detail = {"removed": tally, "kept_hits": len(kept - set(reasons)), "queries": len(reviewed.head)}
        if len(reviewed.head) < settings.min_queries or reviewed.head.has_urls != figures.head.has_urls:
            return self.abort(found, actor=actor, reason="too-few-queries", detail=detail)
        # Seconds for a long list, so before the transaction, which keeps reports waiting and fails if the round moved.
        reviewed = _with_design(reviewed, settings)
        with self._store.transaction():
            self._store.artifacts.drop(found.key, CANDIDATE)
            self._store.artifacts.keep(found.key, REVIEWED, encode_figures(reviewed))
            after = self._store.rounds.advance(
                found,
                State.REVIEWED,
                actor=actor,
                now=self._now,
                detail={**detail, "digest": reviewed.head.digest},
                shape=shape_document(_shape(found, reviewed, settings)),
            )
            self._store.jobs.add(found.key, "client-open", self._now)
            return after

    def reject(self, found: Round, *, actor: str, reason: str) -> Round:
        """End the round at the review: the list as a whole should not be published. The log holds the reason's code."""
        with self._store.transaction():
            self._expect(found, State.SHREDDED)
            if actor == found.opened_by:
                raise WrongState("the reviewer must be somebody else than who opened the round")
            if reason not in REASONS:
                raise InvalidParameter("reason", f"expected one of {', '.join(REASONS)}")
            return self.abort(found, actor=actor, reason="rejected", detail={"code": reason})

    def close_clients(self, found: Round, *, actor: str) -> Round:
        """The window ends; what is on its way is still taken until the grace is over."""
        until = self._now + settings_of(found).grace_seconds
        return self._store.rounds.advance(
            found, State.CLIENT_GRACE, actor=actor, now=self._now, client_closes=self._now, grace_until=until
        )

    def end_grace(self, found: Round, *, actor: str) -> Round:
        """Nothing is taken any more; the estimator's job begins, or the round ends for want of people."""
        with self._store.transaction():
            # The round's row is taken first: reports that are being committed hold it, so the count is final after.
            self._store.rounds.lock(found)
            return self._close(found, self._store.reports.n_seen(found.key), actor=actor)

    def _close(self, found: Round, n: int, *, actor: str) -> Round:
        closed = self._store.rounds.advance(
            found, State.CLOSED, actor=actor, now=self._now, detail={"reports": n}, reports=n
        )
        if n < settings_of(found).min_clients:
            return self.abort(closed, actor=actor, reason="too-few-clients")
        self._store.jobs.add(found.key, "estimate", self._now)
        return closed

    def close_with_counts(self, found: Round, document: Any, *, actor: str) -> Round:
        """Close a round whose reports were counted from files; none may have been counted here."""
        with self._store.transaction():
            self._expect(found, State.CLIENT_GRACE)
            counts, n = read_counts(document, shape_of(found))
            self._store.rounds.lock(found)
            if self._store.reports.n_seen(found.key):
                raise WrongState(f"round {found.number}: has counted reports of its own; the two cannot be told apart")
            self._store.reports.load(found.key, counts)
            self._store.audit.append(actor, "counts loaded", self._now, {**_where(found), "reports": n})
            return self._close(found, n, actor=actor)

    def abort(self, found: Round, *, actor: str, reason: str, detail: Mapping[str, Any] | None = None) -> Round:
        """End a round without a result. Raw records go at once, the key as soon as the curator is there."""
        with self._store.transaction():
            after = self._store.rounds.advance(
                found,
                State.ABORTED,
                actor=actor,
                now=self._now,
                detail={"reason": reason, "reports": self._store.reports.n_seen(found.key), **(detail or {})},
                reports=0 if found.shape else None,
            )
            self._store.contributions.shred(found.key)
            self._store.reports.forget_all(found.key)
            for name in (CANDIDATE, REVIEWED):
                self._store.artifacts.drop(found.key, name)
            self._store.jobs.cancel(found.key)
            if found.public_key is not None:
                self._store.jobs.add(found.key, "shred", self._now)
            return after

    def kill(self, task: Task, *, actor: str) -> None:
        """Stop a task for good, and with it the round that runs."""
        with self._store.transaction():
            self._store.rounds.kill(task.task, actor=actor, now=self._now)
            for found in self._store.rounds.rounds(task.task):
                if found.state not in ENDED:
                    self.abort(found, actor=actor, reason="killed")

    def enrol(self, task: Task, n: int, *, actor: str) -> list[str]:
        """Enrolment codes for opt-in users, shown once."""
        return self._store.tokens.enrol(task.task, n, actor=actor, now=self._now)

    def figures(self, found: Round) -> dict[str, Any]:
        """Public numbers of a round: how many, why refused, and whether the law holds."""
        n_seen = self._store.reports.n_seen(found.key) if found.reports is None else found.reports
        per_report = shape_of(found).counts_per_report if found.shape else 0
        law = self._store.reports.conservation(found.key, per_report, found.reports)
        return {
            "opt_in_records": self._store.contributions.count(found.key),
            "reports_counted": n_seen,
            "refusals": self._store.reports.refusals(found.key),
            "conservation": {"counted": law.counted, "expected": law.expected, "holds": law.holds},
            "files": self._store.artifacts.of_round(found.key) if found.state is State.PUBLISHED else {},
        }

    def tick(self, on_failure: Callable[[Exception, str], None] = lambda error, task: None) -> int:
        """Take the arrows whose time has come; how many. A round or task that fails is told and holds up no other."""
        moved = 0
        for found in self._store.rounds.rounds(states=set(State) - ENDED):
            moved += _one(self._tick_round, found, on_failure)
        for task in self._store.rounds.tasks():
            moved += _one(self._tick_schedule, task, on_failure)
        return moved

    def _tick_round(self, found: Round) -> bool:
        now = self._now
        try:
            if found.state in HOLDS_RAW and found.shred_by is not None and now >= found.shred_by:
                self.abort(found, actor=CLOCK, reason="shredding-deadline")
            elif found.state is State.OPTIN_OPEN and found.optin_closes is not None and now >= found.optin_closes:
                self.close_optin(found, actor=CLOCK)
            elif found.state is State.CLIENT_OPEN and found.client_closes is not None and now >= found.client_closes:
                self.close_clients(found, actor=CLOCK)
            elif found.state is State.CLIENT_GRACE and found.grace_until is not None and now >= found.grace_until:
                self.end_grace(found, actor=CLOCK)
            else:
                return False
        except WrongState:
            return False  # another worker was faster
        return True

    def _tick_schedule(self, task: Task) -> bool:
        settings = TaskSettings.of_json(task.settings)
        rounds = self._store.rounds.rounds(task.task)
        if task.killed or not settings.repeat_seconds or not rounds or rounds[-1].state not in ENDED:
            return False
        last = rounds[-1]
        started = last.optin_closes - settings_of(last).optin_seconds if last.optin_closes else last.changed
        if self._now < started + settings.repeat_seconds:
            return False
        try:
            with self._store.transaction():
                self.request_open(self.draft_round(task, actor=SCHEDULE), actor=SCHEDULE)
        except (WrongState, BudgetExceeded, InvalidParameter):
            return False
        return True

    def _refuse_unpayable(self, found: Round) -> None:
        """Before anybody sends anything: both groups' debits must fit. The debits themselves come with the arrows."""
        settings, book = settings_of(found), self._store.ledger.book()
        if book.cap is None:
            if not settings.uncapped:
                raise BudgetExceeded(f"population {settings.population}: {NO_CAP}")
            return
        spend = Spend.generic(settings.params.budget, Neighbors.REPLACE_ONE, "planned round")
        first_debit = settings.window_at(self._now + settings.optin_seconds)
        for window, budget in ((first_debit, book.cap.window), (None, book.cap.lifetime)):
            spends = [*book.spends(settings.population, window), spend, spend]
            if budget and not fits(spends, budget, planned=book.cap.planned):
                raise BudgetExceeded(
                    f"population {settings.population}: the round costs ε = {spend.epsilon:g} for each group, "
                    "more than the cap has left; nothing was debited"
                )

    def _expect(self, found: Round, state: State) -> None:
        if found.state is not state:
            raise WrongState(f"round {found.number}: expected {state}, is {found.state}")

    @property
    def _now(self) -> int:
        return self._clock.now()


def _one(step: Callable[[_Row], bool], row: _Row, on_failure: Callable[[Exception, str], None]) -> bool:
    try:
        return step(row)
    except StoreUnavailable:
        raise
    except Exception as error:  # a row of another version, or damaged: the others' deadlines must be kept
        on_failure(error, row.task)
        return False


def _where(found: Round) -> dict[str, Any]:
    return {"task": found.task, "round": found.number}


def _check_positions(figures: HeadFigures, reasons: Mapping[tuple[int, int | None], str]) -> None:
    head = figures.head
    for (query, url), reason in reasons.items():
        if not 0 <= query < len(head) or (url is not None and not 0 <= url < len(head.urls(head.queries[query]))):
            raise InvalidParameter("remove", "expected positions of the candidate list")
        if reason not in REASONS:
            raise InvalidParameter("reason", f"expected one of {', '.join(REASONS)}")


def _with_design(figures: HeadFigures, settings: TaskSettings) -> HeadFigures:
    """Choose how clients report, from the reviewed list alone."""
    try:
        return method_of(settings).design_reports(figures, settings.params, settings.expected_clients)
    except SearchblendError as error:
        raise StoreError(f"no way of reporting fits this list: {error}") from error


def _shape(found: Round, figures: HeadFigures, settings: TaskSettings) -> ReportShape:
    return ReportShape.of(bytes.fromhex(found.task), found.number, figures.head, settings.params, figures.design)
