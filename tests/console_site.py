"""A running service with a history: published rounds, one under way, one under review, one that ended; and people."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from searchblend.accounting.totals import BudgetCap
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.service.api.app import build_app
from searchblend.service.console.planner_page import Planner
from searchblend.service.enrolment import EnrolmentOffer
from searchblend.service.review import Position, Review
from searchblend.service.services import Services
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook
from searchblend.store.rounds import Round, Task
from searchblend.store.tokens import ROLES
from service_parts import ManualClock, Service

SCRIPT = "<script>window.hacked = 1</script>"
BAD_URL = "http://bad.example/'\"><script>window.hacked=1</script>/5550123"
"""its seven digits are a filter's hit"""
NUMBER = "call 555 0123"
QUERIES = ["weather", "news", "maps", "mail", "video", "translate", "recipes", "train times", "bank", "football"]
SETTINGS: dict[str, object] = {
    "max_head_queries": 20,
    "min_optin": 50,
    "min_clients": 50,
    "min_queries": 2,
    "expected_clients": 1000,
    "optin_seconds": 3 * 86_400,
    "client_seconds": 3 * 86_400,
    "grace_seconds": 3600,
    "shred_seconds": 5 * 86_400,
    "epsilon": 4.0,
    "delta": 1e-4,
}
_WEEK = 7 * 86_400


def searchers(n: int, *, seed: int, news: float = 0.6, odd: bool = False) -> list[Record]:
    """One record each; ``news`` is how often news are asked for, compared with the weather."""
    generator = random.Random(seed)
    weights = [1.0, news, *(0.7**i for i in range(2, len(QUERIES)))]
    made = [
        Record(query, f"https://{query.replace(' ', '-')}.example/{generator.choices('ab', [3, 1])[0]}")
        for query in generator.choices(QUERIES, weights, k=n)
    ]
    if odd:
        made[: n // 8] = [Record(SCRIPT, BAD_URL)] * (n // 8)
        made[n // 8 : n // 8 + 60] = [Record(NUMBER, "https://mail.example/5550124")] * 60
    return made


class ConsoleSite:
    """A server on a port of its own, whose clock and workers are moved by hand."""

    def __init__(self, where: str, folder: Path, *, planner: Planner | None = None) -> None:
        self.clock = ManualClock()
        self.parts = Service.start(where, folder, self.clock)
        self.services = Services(where, clock=self.clock, logbook=Logbook(self.parts.log))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.services.offer = EnrolmentOffer(ServeSettings(data_dir=str(folder)), self.address)
        app = build_app(self.services, planner=planner)
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        now = self.clock.now()
        self.tokens = {
            role: self.parts.store.tokens.add_admin(f"{role} {i}", role, actor="test", now=now)
            for i, role in enumerate(ROLES)
        }

    def start(self) -> None:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(240)
        self.parts.store.close()

    def publish(
        self, task: Task, *, seed: int, news: float, optin: int = 500, clients: int = 800, odd: bool = False
    ) -> Round:
        """A whole round, a week after the one before.

        Args:
            task: Whose round it is.
            seed: Of the searches.
            news: How often news are asked for, compared with the weather.
            optin: How many opt-in users there are.
            clients: How many clients there are.
            odd: Whether some opt-in records are hostile, or look like personal data.
        """
        parts = self.parts
        self.clock.time += _WEEK
        round_ = parts.open(task)
        parts.contribute(round_, searchers(optin, seed=seed, news=news, odd=odd))
        self.clock.time += 2 * 86_400
        parts.lifecycle.close_optin(round_, actor="ann")
        parts.work()
        hits = parts.lifecycle.candidate(parts.current(task))[1]
        keep = tuple(Position(hit.query, hit.url) for hit in hits)
        parts.lifecycle.review(parts.current(task), Review(keep=keep), actor="rob")
        parts.work()
        round_ = parts.current(task)
        parts.count(round_, parts.messages(round_, searchers(clients, seed=seed + 1000, news=news)))
        self.clock.time += 2 * 86_400
        return parts.finish(task)

    def seed(self) -> dict[str, Task]:
        """Tasks by what they show."""
        parts = self.parts
        parts.store.ledger.set_cap(BudgetCap(window=Budget(16.0, 1e-3), lifetime=Budget(60.0, 1e-2)))
        lively = parts.task(**SETTINGS, name="Web searches, English")
        for i, news in enumerate((0.3, 0.5, 2.5)):
            self.publish(lively, seed=10 + i, news=news, odd=i == 2)
        review = parts.task(**SETTINGS, name="Image searches", population="image users")
        parts.contribute(parts.open(review), searchers(600, seed=77, odd=True))
        parts.lifecycle.close_optin(parts.current(review), actor="operator 1")
        parts.work()
        aborted = parts.task(**SETTINGS, name="A small pilot", population="pilot")
        parts.contribute(parts.open(aborted), searchers(20, seed=5))
        parts.lifecycle.close_optin(parts.current(aborted), actor="ann")
        parts.work()
        running = parts.task(**SETTINGS, name="Shopping", population="shoppers")
        parts.contribute(parts.open(running), searchers(500, seed=8))
        round_ = parts.head_list(running)
        parts.count(round_, parts.messages(round_, searchers(300, seed=9)))
        parts.store.reports.refuse({(round_.key, "malformed"): 25, (round_.key, "window-closed"): 8})
        parts.work()
        return {"lively": lively, "review": review, "aborted": aborted, "running": running}


@contextlib.contextmanager
def console_site(where: str, folder: Path, *, planner: Planner | None = None) -> Iterator[ConsoleSite]:
    site = ConsoleSite(where, folder, planner=planner)
    site.start()
    try:
        yield site
    finally:
        site.stop()
