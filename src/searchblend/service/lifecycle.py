"""What people and the clock do to rounds, each in one transaction; what needs a key or noise becomes a job."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final, TypeVar

from searchblend.blender.release import HeadFigures
from searchblend.core.documents import JsonObject, encode
from searchblend.core.errors import InvalidParameter, SearchblendError
from searchblend.core.records import HeadList
from searchblend.service.aggregate import read_counts
from searchblend.service.clock import DAY, Clock
from searchblend.service.review import REASONS, Hit, Review, suspicious_entries
from searchblend.service.round_model import (
    adjusted_name,
    decode_figures,
    encode_figures,
    method_of,
    settings_now,
    settings_of,
    shape_document,
    shape_of,
    shredding_deadline,
    task_now,
)
from searchblend.service.task_settings import ADJUSTABLE, TaskSettings
from searchblend.store.audit import AuditRow
from searchblend.store.errors import BudgetExceeded, StoreError, StoreUnavailable, WrongState
from searchblend.store.ledger_book import planned_round
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, HOLDS_RAW, State, may_follow
from searchblend.store.tokens import person_of
from searchblend.wire.canonical import json_bytes
from searchblend.wire.optin_result import decode_optin_result, encode_optin_result
from searchblend.wire.report import ReportShape

CANDIDATE: Final = "candidate"
OPTIN_RESULT: Final = "opt-in result"
"""the inner document with the curator's word for the list"""
REVIEWED: Final = "reviewed"
OPENED_BY: Final = "opened_by"
"""the inner document with the name of whoever asked for the opening"""
CLOCK: Final = "clock"
SCHEDULE: Final = "schedule"
BLOCKLIST: Final = "blocklist"
NO_CAP: Final = (
    "no cap is on record, so nothing would bound what rounds cost together; set one (searchblend task cap "
    "--per-window EPSILON,DELTA), or let the task say so by name (uncapped=true)"
)
_TASK_BYTES: Final = 16
ASKED_SECONDS: Final = DAY
"""how long the first of two people's wish holds"""
_ASKED: Final = "{} asked for"
_NOT_THE_OPENER: Final = "the reviewer must not be the person who opened the round"
_APPROVE_ALL: Final = Review()
_Row = TypeVar("_Row", Round, Task)


class Lifecycle:
    """The arrows of rounds that a person asks for, or that time brings."""

    def __init__(self, store: ServiceStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def add_task(self, settings: TaskSettings, *, actor: str) -> Task:
        settings.check_for_rounds()
        if self._store.ledger.book().cap is None and not settings.uncapped:
            raise InvalidParameter("uncapped", NO_CAP)
        task = secrets.token_hex(_TASK_BYTES)
        return self._store.rounds.add_task(task, settings.name, encode(settings), actor=actor, now=self._now)

    def task(self, name: str) -> Task:
        """By id, else by name: as its coming rounds see it."""
        return task_now(self._store, self._store.rounds.task(name))

    def adjust(self, task: Task, changes: JsonObject, *, actor: str) -> Task:
        """Other settings for rounds that are drafted from now on; those under way keep what they were drafted with."""
        if not changes:
            raise InvalidParameter("settings", "expected at least one")
        with self._store.transaction():
            task = self._store.rounds.task(task.task)
            if task.killed:
                raise WrongState("the task was stopped")
            made, before = encode(settings_of(task)), encode(settings_now(self._store, task))
            settings = settings_of(task).adjusted({name: before[name] for name in ADJUSTABLE} | dict(changes))
            settings.check_for_rounds()
            after = encode(settings)
            differs = {name: after[name] for name in ADJUSTABLE if after[name] != made[name]}
            self._store.artifacts.keep_json(0, adjusted_name(task), differs)
            changed = {name: [before[name], after[name]] for name in ADJUSTABLE if after[name] != before[name]}
            self._store.audit.append(actor, "task adjusted", self._now, {"task": task.task, "changes": changed})
        return self.task(task.task)

    def draft_round(self, task: Task, *, actor: str) -> Round:
        """A new round with the task's settings as they are now; one at a time."""
        settings = settings_now(self._store, self._store.rounds.task(task.task))
        settings.check_for_rounds()
        with self._store.transaction():
            if task.killed:
                raise WrongState("the task was stopped")
            if any(round_.state not in ENDED for round_ in self._store.rounds.rounds(task.task)):
                raise WrongState("another round of the task has not ended")
            window = settings.window_at(self._now)
            return self._store.rounds.add_round(task.task, encode(settings), window, actor=actor, now=self._now)

    def request_open(self, round_: Round, *, actor: str) -> Round:
        """Ask the curator for a key; the round opens when it is there. Refused if the budget cannot pay the round."""
        with self._store.transaction():
            self._expect(round_, State.DRAFT)
            self._refuse_unpayable(round_)
            self._store.audit.append(actor, "opening asked for", self._now, _where(round_))
            self._store.artifacts.keep(round_.key, OPENED_BY, actor.encode())
            self._store.jobs.add(round_.key, "open", self._now)
            return round_

    def close_optin(self, round_: Round, *, actor: str) -> Round:
        """No more opt-in records; the curator's job begins, or the round ends because too few people took part."""
        with self._store.transaction():
            self._expect(round_, State.OPTIN_OPEN)
            n = self._store.contributions.count(round_.key)
            closed = self._store.rounds.advance(
                round_, State.OPTIN_CLOSED, actor=actor, now=self._now, detail={"records": n}
            )
            if n < settings_of(round_).min_optin:
                return self.abort(closed, actor=actor, reason="too-few-opt-in-users")
            self._store.jobs.add(round_.key, "head-list", self._now)
            return closed

    def show_candidate(self, round_: Round, *, actor: str) -> tuple[HeadFigures, list[Hit]]:
        """The list for a reviewer; the audit log records who read it."""
        with self._store.transaction():
            candidate = self.candidate(round_)
            self._store.audit.append(actor, "candidate list seen", self._now, _where(round_))
            return candidate

    def export_audit(self, form: str, *, actor: str) -> list[AuditRow]:
        """The whole audit log to take away; its last row says who took it, and in which form."""
        with self._store.transaction():
            self._store.audit.append(actor, "audit log exported", self._now, {"form": form})
            return self._store.audit.rows()

    def candidate(self, round_: Round) -> tuple[HeadFigures, list[Hit]]:
        """What the reviewer looks at: the private list and the automatic filters' hits."""
        self._expect(round_, State.SHREDDED)
        content = self._store.artifacts.kept(round_.key, CANDIDATE)
        if content is None:
            raise StoreError("the candidate list is missing")
        figures = decode_figures(content)
        return figures, suspicious_entries(figures.head, self.blocklist())

    def blocklist(self) -> list[str]:
        return self._store.artifacts.kept_json(0, BLOCKLIST) or []

    def set_blocklist(self, words: Sequence[str], *, actor: str) -> None:
        """Words that no published entry may contain. The log says how many, not which."""
        with self._store.transaction():
            self._store.artifacts.keep_json(0, BLOCKLIST, list(words))
            self._store.audit.append(actor, "blocklist set", self._now, {"words": len(words)})

    def review(self, round_: Round, review: Review = _APPROVE_ALL, *, actor: str) -> Round:
        """Approve the list without what is removed; filter hits go unless they are kept on purpose.

        The candidate is dropped with what was removed from it; the log holds reasons and numbers.
        """
        figures, hits = self.candidate(round_)
        if is_opener(actor, round_):
            raise WrongState(_NOT_THE_OPENER)
        reasons = {(entry.query, entry.url): entry.reason for entry in review.remove}
        kept = {(hit.query, hit.url) for hit in hits} & {(entry.query, entry.url) for entry in review.keep}
        for hit in hits:
            if (hit.query, hit.url) not in kept:
                reasons.setdefault((hit.query, hit.url), hit.reason)
        _check_positions(figures, reasons)
        settings = settings_of(round_)
        reviewed = figures.without(list(reasons), settings.params)
        tally = {code: n for code in REASONS if (n := list(reasons.values()).count(code))}
        detail = {"removed": tally, "kept_hits": len(kept - set(reasons)), "queries": len(reviewed.head)}
        if len(reviewed.head) < settings.min_queries or reviewed.head.has_urls != figures.head.has_urls:
            return self.abort(round_, actor=actor, reason="too-few-queries", detail=detail)
        # Seconds for a long list, so before the transaction, which keeps reports waiting and fails if the round moved.
        reviewed = _with_design(reviewed, settings)
        document, shape = encode_figures(reviewed), shape_document(_shape(round_, reviewed, settings))
        with self._store.transaction():
            self._keep_optin_result(round_, figures.head, set(reasons))
            self._store.artifacts.drop(round_.key, CANDIDATE)
            self._store.artifacts.keep(round_.key, REVIEWED, document)
            after = self._store.rounds.advance(
                round_,
                State.REVIEWED,
                actor=actor,
                now=self._now,
                detail={**detail, "digest": reviewed.head.digest},
                shape=shape,
            )
            self._store.jobs.add(round_.key, "client-open", self._now)
            return after

    def _keep_optin_result(self, round_: Round, head: HeadList, removed: Set[tuple[int, int | None]]) -> None:
        """The curator's word without the salts of what was removed; a round drawn by an earlier version has none."""
        certified = self._store.artifacts.kept_json(round_.key, OPTIN_RESULT)
        if certified is None or not removed:
            return
        result = decode_optin_result(certified).without(head, removed)
        self._store.artifacts.drop(round_.key, OPTIN_RESULT)
        self._store.artifacts.keep(round_.key, OPTIN_RESULT, json_bytes(encode_optin_result(result)))

    def reject(self, round_: Round, *, actor: str, reason: str) -> Round:
        """End the round at the review: the list as a whole should not be published. The log holds the reason's code."""
        with self._store.transaction():
            self._expect(round_, State.SHREDDED)
            if is_opener(actor, round_):
                raise WrongState(_NOT_THE_OPENER)
            if reason not in REASONS:
                raise InvalidParameter("reason", f"expected one of {', '.join(REASONS)}")
            return self.abort(round_, actor=actor, reason="rejected", detail={"code": reason})

    def close_clients(self, round_: Round, *, actor: str) -> Round:
        """The window ends; what is on its way is still taken until the grace is over."""
        until = self._now + settings_of(round_).grace_seconds
        return self._store.rounds.advance(
            round_, State.CLIENT_GRACE, actor=actor, now=self._now, client_closes=self._now, grace_until=until
        )

    def extend_clients(self, round_: Round, hours: int, *, actor: str) -> Round:
        """Keep an open client window open for longer; devices read its new end from the next manifest.

        A device pays and reports once in a round, whenever that is, so nothing more is charged. An opt-in window cannot
        be extended: its end is part of what the curator signed, and how long raw records live counts from there.
        """
        self._expect(round_, State.CLIENT_OPEN)
        assert round_.client_closes is not None
        assert round_.grace_until is not None
        longer = hours * 3600
        return self._store.rounds.amend(
            round_,
            actor=actor,
            now=self._now,
            what="client window extended",
            detail={"hours": hours},
            client_closes=round_.client_closes + longer,
            grace_until=round_.grace_until + longer,
        )

    def end_grace(self, round_: Round, *, actor: str) -> Round:
        """Nothing is taken any more; the estimator's job begins, or the round ends because too few reported."""
        with self._store.transaction():
            # The round's row is taken first: reports that are being committed hold it, so the count is final after.
            self._store.rounds.lock(round_)
            return self._close(round_, self._store.reports.n_seen(round_.key), actor=actor)

    def _close(self, round_: Round, n: int, *, actor: str) -> Round:
        closed = self._store.rounds.advance(
            round_, State.CLOSED, actor=actor, now=self._now, detail={"reports": n}, reports=n
        )
        if n < settings_of(round_).min_clients:
            return self.abort(closed, actor=actor, reason="too-few-clients")
        self._store.jobs.add(round_.key, "estimate", self._now)
        return closed

    def close_with_counts(self, round_: Round, document: object, *, actor: str) -> Round:
        """Close a round whose reports were counted from files; none may have been counted here."""
        with self._store.transaction():
            self._expect(round_, State.CLIENT_GRACE)
            if settings_of(round_).token_issuer:
                raise WrongState(f"round {round_.number}: its reports are paid with tokens, which no file has checked")
            counts, n = read_counts(document, shape_of(round_))
            self._store.rounds.lock(round_)
            if self._store.reports.n_seen(round_.key):
                raise WrongState(
                    f"round {round_.number}: has counted reports of its own, which cannot be told apart from these"
                )
            self._store.reports.load(round_.key, counts)
            self._store.audit.append(actor, "counts loaded", self._now, {**_where(round_), "reports": n})
            return self._close(round_, n, actor=actor)

    def abort(self, round_: Round, *, actor: str, reason: str, detail: JsonObject | None = None) -> Round:
        """End a round without a result. Raw records go at once, the key as soon as the curator is there."""
        with self._store.transaction():
            after = self._store.rounds.advance(
                round_,
                State.ABORTED,
                actor=actor,
                now=self._now,
                detail={"reason": reason, "reports": self._store.reports.n_seen(round_.key), **(detail or {})},
                reports=0 if round_.shape else None,
            )
            self._store.contributions.shred(round_.key)
            self._store.reports.forget_all(round_.key)
            for name in (CANDIDATE, REVIEWED, OPTIN_RESULT):
                self._store.artifacts.drop(round_.key, name)
            self._store.jobs.cancel(round_.key)
            if round_.public_key is not None:
                self._store.jobs.add(round_.key, "shred", self._now)
            return after

    def ask_abort(self, round_: Round, *, actor: str) -> Round:
        """An operator wants a round ended; it is, once a second one wants the same."""
        with self._store.transaction():
            if not may_follow(round_.state, State.ABORTED):
                raise WrongState(f"round {round_.number}: has ended already")
            if not self._is_agreed(round_.key, "abort", _where(round_), actor):
                return round_
            return self.abort(round_, actor=actor, reason="operator")

    def ask_kill(self, task: Task, *, actor: str) -> Task:
        """An operator wants a task stopped; it is, once a second one wants the same."""
        with self._store.transaction():
            if not task.killed and not self._is_agreed(0, f"kill {task.task}", {"task": task.task}, actor):
                return task
            return self.kill(task, actor=actor)

    def asked_by(self, key: int, what: str) -> str | None:
        """Who has asked for a step that needs two people, as long as that holds."""
        asked = self._store.artifacts.kept_json(key, _ASKED.format(what))
        return asked["by"] if asked and 0 <= self._now - asked["when"] < ASKED_SECONDS else None

    def _is_agreed(self, key: int, what: str, where: JsonObject, actor: str) -> bool:
        """Whether two people want it; the first one's wish is noted, and holds for a day.

        Where only one person could, one is enough: no one is locked out of their own service.
        """
        others = {person_of(name) for name in self._store.tokens.holders("operator", self._now)} - {person_of(actor)}
        if not others:
            return True
        before = self.asked_by(key, what)
        if before is not None and person_of(before) != person_of(actor):
            self._store.artifacts.drop(key, _ASKED.format(what))
            return True
        if before is None:
            self._store.artifacts.keep_json(key, _ASKED.format(what), {"by": actor, "when": self._now})
            self._store.audit.append(actor, f"{what.split()[0]} asked for", self._now, where)
        return False

    def kill(self, task: Task, *, actor: str) -> Task:
        """Stop a task for good, and with it the round that runs."""
        with self._store.transaction():
            self._store.rounds.kill(task.task, actor=actor, now=self._now)
            for round_ in self._store.rounds.rounds(task.task):
                if round_.state not in ENDED:
                    self.abort(round_, actor=actor, reason="killed")
            return self._store.rounds.task(task.task)

    def enrol(self, task: Task, n: int, *, actor: str) -> list[str]:
        """Enrolment codes for opt-in users, shown once."""
        return self._store.tokens.enrol(task.task, n, actor=actor, now=self._now)

    def tick(self, on_failure: Callable[[Exception, str], None] = lambda error, task: None) -> int:
        """Take the arrows whose time has come; how many. A failure is reported, and holds up no other round or task."""
        moved = 0
        for round_ in self._store.rounds.rounds(states=set(State) - ENDED):
            moved += _one(self._tick_round, round_, on_failure)
        for task in self._store.rounds.tasks():
            moved += _one(self._tick_schedule, task, on_failure)
        return moved

    def _tick_round(self, round_: Round) -> bool:
        now = self._now
        try:
            shred_by = shredding_deadline(round_) if round_.state in HOLDS_RAW else None
            if shred_by is not None and now >= shred_by:
                self.abort(round_, actor=CLOCK, reason="shredding-deadline")
            elif round_.state is State.OPTIN_OPEN and round_.optin_closes is not None and now >= round_.optin_closes:
                self.close_optin(round_, actor=CLOCK)
            elif round_.state is State.CLIENT_OPEN and round_.client_closes is not None and now >= round_.client_closes:
                self.close_clients(round_, actor=CLOCK)
            elif round_.state is State.CLIENT_GRACE and round_.grace_until is not None and now >= round_.grace_until:
                self.end_grace(round_, actor=CLOCK)
            else:
                return False
        except WrongState:
            return False  # another worker was faster
        return True

    def _tick_schedule(self, task: Task) -> bool:
        settings = settings_now(self._store, task)
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

    def _refuse_unpayable(self, round_: Round) -> None:
        """Before anyone sends anything: the round must fit. The debits themselves come with the arrows."""
        settings, book = settings_of(round_), self._store.ledger.book()
        if book.cap is None and not settings.uncapped:
            raise BudgetExceeded(f"population {settings.population}: {NO_CAP}")
        first_debit = settings.window_at(self._now + settings.optin_seconds)
        if book.exceeded_by(planned_round(settings.population, first_debit, settings.params.budget)):
            raise BudgetExceeded(
                f"population {settings.population}: the round costs ε = {settings.epsilon:g} in each group, "
                "more than the cap has left; nothing was debited"
            )

    def _expect(self, round_: Round, state: State) -> None:
        if round_.state is not state:
            raise WrongState(f"round {round_.number}: expected {state}, is {round_.state}")

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


def is_opener(actor: str, round_: Round) -> bool:
    return person_of(actor) == person_of(round_.opened_by or "")


def _where(round_: Round) -> JsonObject:
    return {"task": round_.task, "round": round_.number}


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
        raise StoreError(f"no report design fits this list: {error}") from error


def _shape(round_: Round, figures: HeadFigures, settings: TaskSettings) -> ReportShape:
    return ReportShape.of(bytes.fromhex(round_.task), round_.number, figures.head, settings.params, figures.design)
