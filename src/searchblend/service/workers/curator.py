"""The curator's jobs: make a round's key, draw the head list once, destroy the key. The only code that opens records.

It listens on no port. The head list, its debit and the state change are one commit. What was drawn is kept beside the
key before that: whoever has the job run again, by a crash or by a row of the database that was set back, gets the same
list. A crash before it was kept leaves nothing that anyone saw, so that drawing again is sound.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from searchblend.accounting.spend import Spend
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.release import HeadFigures
from searchblend.core.admission import admit
from searchblend.core.errors import MessageError
from searchblend.core.privacy import Neighbors
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.records import WILDCARD, Record
from searchblend.service.caps import set_asked_cap
from searchblend.service.clock import Clock
from searchblend.service.lifecycle import CANDIDATE, OPENED_BY, OPTIN_RESULT
from searchblend.service.round_model import (
    decode_figures,
    drawn_by,
    encode_figures,
    is_signed_by_curator,
    method_of,
    round_key_of,
    sealing_context,
    settings_of,
)
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.vault import HeldKey, KeyLost, Vault, each_alone
from searchblend.service.workers.worker import RoundJobs
from searchblend.store.errors import BudgetExceeded, StoreError, StoreUnavailable
from searchblend.store.jobs import LeasedJob
from searchblend.store.rounds import Round
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import HOLDS_RAW, State
from searchblend.wire.canonical import json_bytes
from searchblend.wire.optin_result import certify, encode_optin_result
from searchblend.wire.sealed import TAG_BYTES, Opener, encapsulation
from searchblend.wire.signing import SigningKey

CURATOR: Final = "curator"
HOLDER: Final = "curator"
"""the inner document that says which folder has the round's key"""
_WITHDRAWN: Final = "withdrawn"
"""why a record is refused that someone wrote back after its withdrawal"""


@dataclass(frozen=True)
class DrawnList:
    """What came of opening a round's records, once."""

    figures: HeadFigures | None
    """None: there were too few for a list"""
    records: int
    refused: Mapping[str, int]
    dropped: Mapping[str, int]
    """records that no device may keep, by reason; their total is among ``refused``"""

    @property
    def numbers(self) -> dict[str, int]:
        """For the audit log."""
        restored = {_WITHDRAWN: self.refused[_WITHDRAWN]} if _WITHDRAWN in self.refused else {}
        return {"records": self.records, "refused": sum(self.refused.values()), **restored}

    def json_bytes(self) -> bytes:
        figures = None if self.figures is None else encode_figures(self.figures).decode()
        return json.dumps({**vars(self), "figures": figures}).encode()

    @classmethod
    def of_bytes(cls, content: bytes) -> DrawnList:
        document = json.loads(content)
        figures = document["figures"]
        return cls(**{**document, "figures": None if figures is None else decode_figures(figures.encode())})


class Curator(RoundJobs):
    """Runs the jobs that need a round's private key."""

    def __init__(
        self,
        store: ServiceStore,
        clock: Clock,
        vault: Vault,
        signer: SigningKey,
        randomness: Randomness | None = None,
        *,
        anonymous_intake: bool = False,
    ) -> None:
        steps = {"open": self._open, "head-list": self._head_list, "shred": self._shred}
        super().__init__(store, clock, CURATOR, steps)
        self._vault, self._signer, self._anonymous_intake = vault, signer, anonymous_intake
        self._randomness = randomness or SystemRandomness()

    def excluded_jobs(self) -> list[tuple[int, str]]:
        """Jobs that need a key in another curator's folder: this one cannot do them, and must not call the key lost."""
        held = self._vault.held()
        return [
            (round_.key, kind)
            for round_ in self._store.rounds.rounds(states=HOLDS_RAW)
            if self._is_held_elsewhere(round_, held)
            for kind in ("head-list", "shred")
        ]

    def _is_held_elsewhere(self, round_: Round, held: Iterable[HeldKey]) -> bool:
        """A row that cannot be read is its own round's trouble: its job is taken, and fails alone."""
        try:
            if round_.public_key is None:
                return False
            if any(key[:2] == (round_.task, round_.number) and key.is_for(round_.public_key) for key in held):
                return False
            return self._store.artifacts.kept(round_.key, HOLDER) not in (None, self._vault.identity.encode())
        except StoreUnavailable:
            raise
        except Exception:  # SQLite keeps values of any type in any column
            return False

    def remember_withdrawals(self) -> int:
        """Whose records were taken back of the rounds whose keys are here; of how many rounds there are new ones.

        Rows are not believed when the list is drawn: whoever kept the bytes of a withdrawn record can write them back.
        """
        return each_alone(self._remember_withdrawals, self._vault.held())

    def _remember_withdrawals(self, held: HeldKey) -> bool:
        tags = self._store.contributions.withdrawn(held.task, held.number)
        return self._vault.remember_withdrawn(held, {tag for tag in tags if len(tag) == TAG_BYTES})

    def set_asked_cap(self) -> int:
        """A cap that an operator asked for in the console, which must not write the ledger; how many: 0 or 1."""
        return set_asked_cap(self._store, actor=CURATOR, now=self._clock.now())

    def destroy_overdue(self) -> int:
        """Keys past the deadline with which this curator made them; how many. Asks no database, which may be away."""
        return each_alone(self._destroy, self._vault.overdue(self._clock.now()))

    def destroy_leftovers(self) -> int:
        """Keys that no round needs any more, or never did (a crash, or another curator was faster); how many."""
        return each_alone(self._destroy_leftover, self._vault.held())

    def _destroy_leftover(self, held: HeldKey) -> bool:
        facts = self._store.rounds.key_facts(held.task, held.number)
        if held.is_needed(facts, self._clock.now()) and not self._is_overtaken(held):
            return False
        return self._destroy(held)

    def _destroy(self, held: HeldKey) -> bool:
        self._vault.destroy_file(held)
        return True

    def _is_overtaken(self, held: HeldKey) -> bool:
        """Whether the round was opened with another key, by this curator's own word: rows can be changed."""
        try:
            round_ = self._store.rounds.round(held.task, held.number)
        except StoreError:
            return False
        return round_.public_key is not None and not held.is_for(round_.public_key) and self._is_as_opened(round_)

    def _open(self, job: LeasedJob, round_: Round) -> None:
        settings, now = settings_of(round_), self._clock.now()
        shred_by = now + settings.shred_seconds
        public_key = self._vault.create(round_.task, round_.number, destroy_by=shred_by)
        self._store.on_point("open: key written")
        with self._store.transaction():
            self._store.jobs.finish(job)
            opened_by = self._store.artifacts.kept(round_.key, OPENED_BY) or b""
            closes = now + settings.optin_seconds
            opened = replace(round_, public_key=public_key, optin_closes=closes)
            self._store.artifacts.keep(round_.key, HOLDER, self._vault.identity.encode())
            self._store.rounds.advance(
                round_,
                State.OPTIN_OPEN,
                actor=CURATOR,
                now=now,
                opened_by=opened_by.decode(),
                public_key=public_key,
                key_signature=json_bytes(self._signer.sign(round_key_of(opened).signed_bytes)).decode(),
                optin_closes=closes,
                shred_by=shred_by,
            )

    def _head_list(self, job: LeasedJob, round_: Round) -> None:
        if not self._is_as_opened(round_):
            self._give_up(job, round_, "altered-round")
            return
        try:
            assert round_.public_key is not None
            key = self._vault.private_key(round_.task, round_.number, round_.public_key)
        except KeyLost:
            self._give_up(job, round_, "key-lost")
            return
        kept = self._vault.drawn(round_.task, round_.number, round_.public_key)
        if kept is None:
            self._announce_opening(job, round_)
            drawn = self._draw(round_, key)
            kept = self._vault.keep_drawn(round_.task, round_.number, round_.public_key, drawn.json_bytes())
        self._store.on_point("head list: drawn")
        drawn = DrawnList.of_bytes(kept)
        if drawn.figures is None:
            self._give_up(job, round_, "too-few-usable-records", drawn.numbers)
            return
        try:
            self._commit_head_list(job, round_, drawn, drawn.figures)
        except BudgetExceeded:
            self._give_up(job, round_, "budget-exceeded", drawn.numbers)  # no one saw what was drawn

    def _draw(self, round_: Round, key: bytes) -> DrawnList:
        users, refused, dropped = self._opened(round_, key)
        settings, n = settings_of(round_), len(users)
        figures = None
        if n >= settings.min_optin:
            # The only place of the service where noise is drawn; what it is drawn from goes on record with the list.
            group = InMemoryGroup.from_users(users, randomness=self._randomness)
            figures = method_of(settings).list_head(group, settings.params, randomness=self._randomness)
        return DrawnList(figures, n, refused, dropped)

    def _commit_head_list(self, job: LeasedJob, round_: Round, drawn: DrawnList, figures: HeadFigures) -> None:
        settings = settings_of(round_)
        spend = Spend.generic(settings.params.budget, Neighbors.REPLACE_ONE, f"head list, method {settings.method}")
        now = self._clock.now()
        window = settings.window_at(now)
        with self._store.transaction():
            self._store.jobs.finish(job)
            self._store.ledger.debit(f"{round_.name}/opt-in", settings.population, window, spend, role_in=round_.name)
            ready = self._store.rounds.advance(
                round_,
                State.HEADLIST_READY,
                actor=CURATOR,
                now=now,
                budget_window=window,
                detail={
                    **drawn.numbers,
                    **({"not_admitted": drawn.dropped} if drawn.dropped else {}),
                    # No digest: with the published list at hand it would confirm a guess at what a reviewer removes.
                    "queries": len(figures.head),
                },
            )
            if len(figures.head) < settings.min_queries:
                # Seen by the operator, so it is paid for; nothing is published.
                self._lifecycle.abort(ready, actor=CURATOR, reason="too-few-queries")
            else:
                self._store.artifacts.keep(round_.key, CANDIDATE, encode_figures(figures))
                self._store.artifacts.keep(round_.key, OPTIN_RESULT, self._certified(round_, figures))
                self._store.jobs.add(round_.key, "shred", self._clock.now())
            if drawn.refused:
                self._store.reports.refuse({(round_.key, reason): n for reason, n in drawn.refused.items()})
            self._store.on_point("head list: before commit")
        self._store.on_point("head list: after commit")

    def _certified(self, round_: Round, figures: HeadFigures) -> bytes:
        """Devices answer about nothing that this key has not named. Its salts are never a test's."""
        signer, source = self._signer, SystemRandomness()
        result = certify(figures.head, drawn_by(round_), signer.sign, signer.public_point, source)
        return json_bytes(encode_optin_result(result))

    def _shred(self, job: LeasedJob, round_: Round) -> None:
        """Key first: from then on not even this program can read a record, whatever is still on some disk."""
        self._vault.destroy(round_.task, round_.number)
        self._store.on_point("shred: key destroyed")
        with self._store.transaction():
            n = self._store.contributions.shred(round_.key)
            if round_.state is State.HEADLIST_READY:
                self._store.rounds.advance(
                    round_, State.SHREDDED, actor=CURATOR, now=self._clock.now(), detail={"deleted": n}
                )
            else:
                note = {"task": round_.task, "round": round_.number, "deleted": n}
                self._store.audit.append(CURATOR, "raw records shredded", self._clock.now(), note)
            self._store.jobs.finish(job)
        if self._store.database.dialect == "sqlite":
            self._store.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _is_as_opened(self, round_: Round) -> bool:
        """Whether the row says what this curator signed: records were sealed under these settings and no others."""
        own = {self._signer.key_id: self._signer.public_point}
        return is_signed_by_curator(round_, own)

    def _announce_opening(self, job: LeasedJob, round_: Round) -> None:
        """Committed before the first record is opened: whatever stops this attempt, the log has it."""
        note = {
            "task": round_.task,
            "round": round_.number,
            "attempt": job.attempts,
            "records": self._store.contributions.count(round_.key),
        }
        self._store.audit.append(CURATOR, "opening records", self._clock.now(), note)

    def _opened(self, round_: Round, key: bytes) -> tuple[list[list[Record]], Counter[str], Counter[str]]:
        """All users' records in memory; what was refused, by reason; and which records are what no device keeps.

        Rows are not believed: whoever can write to the database can copy them. A record opens under the tag that it was
        sealed for and under no other, a tag and an encapsulation count once, a tag is that of an enrolled code, and a
        tag that was once seen withdrawn stays so.
        """
        settings, context = settings_of(round_), sealing_context(round_)
        opener = Opener(key, context, at_most=settings.records_per_optin)
        enrolled = {context.tag_of_hash(code_hash) for code_hash in self._store.tokens.enrolled(round_.task)}
        withdrawn = self._vault.withdrawn(round_.task, round_.number)
        users: list[list[Record]] = []
        tags: set[bytes] = set()
        encapsulations: set[bytes] = set()
        refused: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        for tag, sealed in self._store.contributions.all(round_.key):
            enc = encapsulation(sealed)
            if tag not in enrolled and not self._anonymous_intake:
                refused["bad-credential"] += 1
            elif tag in withdrawn:
                refused[_WITHDRAWN] += 1
            elif tag in tags or enc in encapsulations:
                refused["conflicting-contribution"] += 1
            elif (records := _opened_records(opener, sealed, tag, settings)) is None:
                refused["malformed"] += 1
            else:
                tags.add(tag)
                encapsulations.add(enc)
                if kept := _admitted(records, dropped):
                    users.append(kept)
        if dropped:
            refused["not-admitted"] = dropped.total()
        return users, refused, dropped


def _opened_records(opener: Opener, sealed: bytes, tag: bytes, settings: TaskSettings) -> list[Record] | None:
    try:
        records = opener.open(sealed, tag)
    except MessageError:
        return None
    return records if all((record.url is not WILDCARD) == settings.has_urls for record in records) else None


def _admitted(records: Iterable[Record], dropped: Counter[str]) -> list[Record]:
    """The records that a device may keep, as it would keep them; each of the others is dropped alone, and counted."""
    kept = []
    for query, url in records:
        admission = admit(str(query), url if isinstance(url, str) else None)
        if admission.reason is None:
            kept.append(Record(admission.query, WILDCARD if admission.url is None else admission.url))
        else:
            dropped[admission.reason] += 1
    return kept
