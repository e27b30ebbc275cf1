"""A whole service in one process, without HTTP: its parts, a clock moved by hand, and synthetic people."""

from __future__ import annotations

import hashlib
import io
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from searchblend.blender.best.subset_report import subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.release import HeadFigures
from searchblend.core.documents import decode
from searchblend.core.records import Record
from searchblend.device.policy import POLICY
from searchblend.service.clock import Clock
from searchblend.service.lifecycle import REVIEWED, Lifecycle
from searchblend.service.round_model import decode_figures, sealing_context, settings_of, shape_of
from searchblend.service.task_settings import TaskSettings
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.service.workers.curator import Curator
from searchblend.service.workers.estimator import Estimator
from searchblend.service.workers.publisher import Publisher
from searchblend.service.workers.signing_keys import SigningKeys, adopt_keys, make_curator_key
from searchblend.service.workers.vault import Vault
from searchblend.service.workers.worker import Worker
from searchblend.store.reports import Arrivals, ReportOutcome
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore, open_store
from searchblend.store.states import State
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report
from searchblend.wire.report_batch import decode_reports
from searchblend.wire.sealed import seal_records
from searchblend.wire.signing import SigningKey

SMALL: dict[str, object] = {
    "name": "searches",
    "epsilon": 4.0,
    "delta": 1e-4,
    "max_head_queries": 10,
    "records_per_optin": 1,
    "min_optin": 50,
    "min_clients": 50,
    "min_queries": 2,
    "expected_clients": 500,
    "optin_seconds": 100,
    "client_seconds": 100,
    "grace_seconds": 10,
    "shred_seconds": 1000,
    "head_fraction": 0.5,
    "uncapped": True,
}
QUERIES = ["weather", "news", "maps", "mail", "video"]


class ManualClock:
    def __init__(self, now: int = 1_800_000_000) -> None:
        self.time = now

    def now(self) -> int:
        return self.time


def people(n: int, *, seed: int, urls: bool = True) -> list[Record]:
    """One record each: a few common ones, and a tail that no one else holds."""
    generator = random.Random(seed)
    weights = [10, 6, 4, 3, 2]
    made = []
    for i in range(n):
        if generator.random() < 0.1:
            made.append(Record(f"rare {seed} {i}", f"http://rare.example/{i}") if urls else Record(f"rare {seed} {i}"))
        else:
            query = generator.choices(QUERIES, weights)[0]
            url = f"http://{query}.example/{generator.choices('ab', [3, 1])[0]}"
            made.append(Record(query, url) if urls else Record(query))
    return made


def enough_to_answer(holders: int = 16) -> list[Record]:
    """People with other common queries: with those of ``people`` a list that devices do not find too short.

    With ε = 4 for one record and δ = 1e-5 a query of 16 people falls below its threshold of 7 once in 5 · 10⁸ draws.
    """
    others = range(POLICY.fewest_queries - len(QUERIES) + 1)
    return [Record(f"common {i}", f"http://common{i}.example/a") for i in others for _ in range(holders)]


def crowd(*, seed: int, urls: bool = True) -> list[Record]:
    """A hundred people for tests of what happens to a round, not of its numbers: they are soon sealed and opened.

    Each of the five queries has 18. With ε = 4 for one record a query falls below its threshold of 6 with probability
    exp(-2 · 13) / (1 + exp(-2)): one list in 4 · 10¹⁰ has fewer than five queries, and fewer still less than two.
    """
    made = [Record(query, f"http://{query}.example/a") for query in QUERIES for _ in range(18)]
    made += [Record(f"rare {seed} {i}", f"http://rare.example/{i}") for i in range(10)]
    random.Random(seed).shuffle(made)
    return made if urls else [Record(record.query) for record in made]


@dataclass
class Service:
    """Store, keys and workers over one database and one folder."""

    store: ServiceStore
    clock: Clock
    folder: Path
    log: io.StringIO

    @classmethod
    def start(
        cls,
        where: str,
        folder: Path,
        clock: Clock | None = None,
        on_point: Callable[[str], None] = lambda point: None,
    ) -> Service:
        """The parts over a new or an old database.

        Args:
            where: What ``open_store`` takes.
            folder: For the keys.
            clock: A manual one unless given.
            on_point: Called with the name of each step of a transaction, where a test may crash it.
        """
        service = cls(open_store(where, on_point=on_point), clock or ManualClock(), folder, io.StringIO())
        if not service.signing_keys.all():
            service.signing_keys.add()
        return service

    @property
    def signing_keys(self) -> SigningKeys:
        return SigningKeys(self.folder / "signing")

    @property
    def curator_key(self) -> SigningKey:
        return make_curator_key(self.folder / "keys")

    @property
    def vault(self) -> Vault:
        return Vault(self.folder / "keys")

    @property
    def lifecycle(self) -> Lifecycle:
        return Lifecycle(self.store, self.clock)

    @property
    def publisher(self) -> Publisher:
        signer = self.curator_key
        return Publisher(self.store, self.clock, self.signing_keys, {signer.key_id: signer.public_point})

    @property
    def worker(self) -> Worker:
        curator, publisher = Curator(self.store, self.clock, self.vault, self.curator_key), self.publisher
        return Worker(
            self.store,
            self.clock,
            [curator, publisher, Estimator(self.store, self.clock)],
            tick=True,
            first=[curator.destroy_overdue, curator.remember_withdrawals],
            each_time=[
                self.store.artifacts.wipe,
                curator.destroy_leftovers,
                curator.set_asked_cap,
                publisher.refresh_manifests,
            ],
            logbook=Logbook(self.log),
            metrics=ServiceMetrics(),
        )

    def adopt_keys(self) -> None:
        ids = [key.key_id for key in self.signing_keys.all()]
        adopt_keys(self.store, ids, actor="ann", now=self.clock.now())

    def work(self) -> None:
        self.worker.run_once()

    def task(self, **changes: object) -> Task:
        return self.lifecycle.add_task(decode(TaskSettings, {**SMALL, **changes}), actor="ann")

    def current(self, task: Task) -> Round:
        return self.store.rounds.rounds(task.task)[-1]

    def open(self, task: Task) -> Round:
        round_ = self.lifecycle.draft_round(self.store.rounds.task(task.task), actor="ann")
        self.lifecycle.request_open(round_, actor="ann")
        self.work()
        return self.current(task)

    def contribute(self, round_: Round, records: Iterable[Record], first: int = 0) -> str:
        """What became of the first one; if it was taken, the others follow it in a single statement.

        The tests of the routes and of the store send them one by one.
        """
        context = sealing_context(round_)
        assert round_.public_key is not None, "the round has no key"
        rows = []
        held = list(records)
        for code, record in zip(self.codes_of(round_.task, range(first, first + len(held))), held, strict=True):
            tag = context.tag_of(code)
            rows.append((round_.key, tag, seal_records([record], context, tag, round_.public_key)))
        answer = self.store.contributions.add(*rows[0], self.clock.now())
        if answer == "taken" and rows[1:]:
            statement = "INSERT INTO contributions (round_key, tag, sealed) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            with self.store.transaction():
                self.store.database.execute_many(statement, rows[1:])
        return answer

    def code_of(self, task: str, person: int) -> str:
        return self.codes_of(task, [person])[0]

    def codes_of(self, task: str, people: Iterable[int]) -> list[str]:
        """The enrolment codes of synthetic people, the same in every round and after a restart."""
        codes = [f"sbe_person-{person:012d}" for person in people]
        with self.store.transaction():
            self.store.database.execute_many(
                "INSERT INTO enrolments (task, code_hash, created) VALUES (?, ?, 0) ON CONFLICT DO NOTHING",
                [(task, hashlib.sha256(code.encode()).hexdigest()) for code in codes],
            )
        return codes

    def head_list(self, task: Task) -> Round:
        """From OPTIN_OPEN to CLIENT_OPEN, with everything approved."""
        self.lifecycle.close_optin(self.current(task), actor="ann")
        self.work_until(task, State.SHREDDED)
        self.lifecycle.review(self.current(task), actor="rob")
        self.work_until(task, State.CLIENT_OPEN)
        return self.current(task)

    def work_until(self, task: Task, state: State) -> None:
        """A server beside this one may have taken the job and be at it: then its end is waited for.

        What it commits last is the state, and the manifest that says so comes after: so there is work once more.
        """
        self.work()
        end = time.monotonic() + 240
        while self.current(task).state in _AT_WORK and self.current(task).state is not state and time.monotonic() < end:
            time.sleep(0.05)
            self.work()
        self.work()

    def messages(self, round_: Round, records: Iterable[Record]) -> list[bytes]:
        reviewed = self.store.artifacts.kept(round_.key, REVIEWED)
        assert reviewed is not None, "the list was not reviewed"
        return device_messages(decode_figures(reviewed), settings_of(round_), shape_of(round_), records)

    def count(self, round_: Round, messages: Iterable[bytes]) -> list[ReportOutcome]:
        batch = decode_reports(b"".join(messages), shape_of(round_))
        assert not batch.refused
        return self.store.reports.add([Arrivals(round_.key, batch.ids, batch.counters)], self.clock.now())

    def finish(self, task: Task) -> Round:
        self.lifecycle.close_clients(self.current(task), actor="ann")
        self.lifecycle.end_grace(self.current(task), actor="ann")
        self.work()
        return self.current(task)


_AT_WORK = (State.OPTIN_CLOSED, State.HEADLIST_READY, State.REVIEWED, State.CLOSED, State.ESTIMATED)
"""states that a job ends"""


def device_messages(
    figures: HeadFigures, settings: TaskSettings, shape: ReportShape, records: Iterable[Record]
) -> list[bytes]:
    params, head = settings.params, figures.head
    made = []
    for record in records:
        if figures.design is None:
            parts = cells_as_parts(local_report([record], head, params))
        else:
            parts = subset_report([record], head, figures.design, params)
        made.append(encode_report(parts, shape))
    return made
