"""Very many devices against a real service process: each runs the agent's own code on a state of its own.

    python tests/device_population.py METHOD DEVICES OPT_IN_USERS WORKERS

prints one JSON document about one round: what became of the reports, and how many 95 % intervals of the published
result hold the shares of the law by which everybody searches (docs/explanation/method-best.md
says that this is what they are for). Manifest and head list come through a cache, as from the
content network that they are made for; every report is an HTTP request of its own.
"""

from __future__ import annotations

import bisect
import itertools
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from searchblend.core.records import Record
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import text_of
from searchblend.device.state import DeviceState
from searchblend.device.transport import Answer, Transport
from searchblend.service.clock import SystemClock
from searchblend.store.states import State
from service_parts import Service
from service_process import ServerProcess, running

QUERIES = 400
LISTED_MASS = 0.85
URL_SHARES = (0.7, 0.3)


class Law:
    """What a random person's record is: one of 400 queries (∝ 1/(rank + 5)) and its two URLs, or one of their own."""

    def __init__(self) -> None:
        weights = [1 / (rank + 5) for rank in range(QUERIES)]
        total = sum(weights) / LISTED_MASS
        self.queries = {f"query {rank}": weight / total for rank, weight in enumerate(weights)}
        self.records = {
            (query, f"https://site.example/{query.split()[1]}/{page}"): share * part
            for query, share in self.queries.items()
            for page, part in enumerate(URL_SHARES)
        }
        self._names = list(self.records)
        self._ends = list(itertools.accumulate(self.records.values()))

    def person(self, generator: random.Random, number: int) -> Record:
        place = bisect.bisect(self._ends, generator.random())
        if place == len(self._names):
            return Record(f"rare thing {number}", f"https://rare.example/{number}")
        return Record(*self._names[place])

    def people(self, n: int, seed: int) -> list[Record]:
        generator = random.Random(seed)
        return [self.person(generator, seed % 1000 * 10_000_000 + number) for number in range(n)]


class Cached(Transport):
    """Public files are fetched once for all devices; what they send goes through."""

    def __init__(self, address: str) -> None:
        super().__init__(address, seconds=240)
        self._kept: dict[str, Answer] = {}

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        at_most: int,
    ) -> Answer:
        if method != "GET":
            return super().send(method, path, body, headers=headers, at_most=at_most)
        if path not in self._kept:
            self._kept[path] = super().send(method, path, body, headers=headers, at_most=at_most)
        return self._kept[path]


def take_part(address: str, task: str, point: str, people: list[Record]) -> Counter[str]:
    """One device after another: enrol, consent, search, report."""
    ended: Counter[str] = Counter()
    transport = Cached(address)
    for query, url in people:
        assert isinstance(query, str)
        assert isinstance(url, str)
        state = DeviceState(":memory:")
        agent = DeviceAgent(state, transport=transport)
        agent.enrol(address, task, [point])
        agent.consent("local", text_of("local"))
        assert agent.record(query, url).kept
        outcome = agent.sync(immediately=True)
        while outcome.status == "unanswered":
            time.sleep(0.05)
            outcome = agent.sync(immediately=True)
        ended[outcome.status] += 1
        ended["paid"] += len(agent.export().ledger)
        state.close()
    transport.close()
    return ended


class Played(TypedDict):
    """One round: what became of the devices, and what was published about them."""

    ended: Counter[str]
    counted: int | None
    seconds: float
    result: dict[str, Any]
    truth: dict[Hashable, float]
    """the law's shares: where all people search alike, intervals from one record of each are exact"""


def play_round(
    folder: Path, method: str, n_devices: int, n_optin: int, workers: int, seed: int = 1, **settings: object
) -> Played:
    """One round with all of them.

    Args:
        folder: For the service.
        method: ``best`` or ``paper``.
        n_devices: How many clients report.
        n_optin: How many opt-in users contribute.
        workers: How many processes run the devices.
        seed: Of the people's records.
        **settings: Changes of the task's.
    """
    law = Law()
    parts = Service.start(str(folder / "service.db"), folder, SystemClock())
    task = parts.task(
        **{
            "name": f"population {method}",
            "method": method,
            "delta": 1e-5,
            "max_head_queries": QUERIES,
            "expected_clients": n_devices,
            "min_clients": n_devices // 2,
            "optin_seconds": 100_000,
            "client_seconds": 100_000,
            "shred_seconds": 1_000_000,
            "head_fraction": 0.9,
            **settings,
        }
    )
    optin_users = law.people(n_optin, seed)
    parts.contribute(parts.open(task), optin_users)
    round_ = parts.head_list(task)
    point = parts.signing_keys.all()[0].public_point.hex()
    people = law.people(n_devices, seed + 1)
    context = multiprocessing.get_context("spawn")
    with running(ServerProcess(folder, str(folder / "service.db"))) as server:
        jobs = [(server.address, task.task, point, people[i::workers]) for i in range(workers)]
        begun = time.monotonic()
        with context.Pool(workers) as pool:
            ended = sum(pool.starmap(take_part, jobs), Counter())
        seconds = time.monotonic() - begun
        parts.lifecycle.close_clients(parts.current(task), actor="ann")
        parts.lifecycle.end_grace(parts.current(task), actor="ann")
        published = _published(server.address, task.task, round_.number)
        final = parts.current(task)
    assert final.state is State.PUBLISHED
    parts.store.close()
    return {
        "ended": ended,
        "counted": final.reports,
        "seconds": seconds,
        "result": published,
        "truth": dict(itertools.chain(law.queries.items(), law.records.items())),
    }


def _published(address: str, task: str, number: int) -> dict[str, Any]:
    transport = Transport(address, seconds=240)
    try:
        for _ in range(3000):
            answer = transport.send("GET", f"/v1/tasks/{task}/rounds/{number}/files", at_most=1 << 20)
            if answer.status == 200:
                sha256 = json.loads(answer.body)["files"]["result.json"]
                content = transport.send("GET", f"/v1/artifacts/{sha256}", at_most=64 << 20).body
                document: dict[str, Any] = json.loads(content)
                return document
            time.sleep(0.1)
    finally:
        transport.close()
    raise AssertionError("the round was never published")


def covered(result: Mapping[str, Any], truth: Mapping[Any, float], column: str | None) -> dict[str, tuple[int, int]]:
    """How many intervals of listed queries and records hold the truth: {kind: (held, all)}. No column: the blend's."""
    kinds = {
        "queries": [(row, truth.get(row["query"])) for row in result["trends"]],
        "records": [(row, truth.get((row["query"], row["url"]))) for row in result["records"]],
    }
    counts = {}
    for kind, rows in kinds.items():
        shown = [(row if column is None else row[column], p) for row, p in rows if p]
        intervals = [(estimate["interval"], p) for estimate, p in shown if estimate]
        counts[kind] = (sum(low <= p <= high for (low, high), p in intervals), len(intervals))
    return counts


def main(method: str, n_devices: int, n_optin: int, workers: int) -> dict[str, object]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        played = play_round(Path(folder), method, n_devices, n_optin, workers)
    if keep := os.environ.get("KEEP_RESULT"):
        Path(keep).write_text(json.dumps(played["result"]))
    return {
        "method": method,
        "devices": n_devices,
        "opt_in_users": n_optin,
        "ended": played["ended"],
        "counted": played["counted"],
        "seconds": round(played["seconds"], 1),
        "listed_queries": len(played["result"]["trends"]) - 1,
        "blended": covered(played["result"], played["truth"], None),
        "client": covered(played["result"], played["truth"], "client"),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:])), indent=1) + "\n")
