"""The collection service: durable reports a second against the same server without storage, in one run.

    python benchmarks/service.py [--databases sqlite,postgresql] [--seconds 3] [--runs 5] [--json] [--soak 120]

Each figure is the median of alternated runs (none, sqlite, postgresql, none, …). Where there are two cores, the server runs
on the first and the load generator on the second; PostgreSQL is not pinned. ``none`` decodes and validates every report
and answers without a commit. The last column is the latency at half of the measured rate.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
import uvicorn
import uvloop

from databases import fresh_database
from searchblend.service.api.app import build_app
from searchblend.service.clock import SystemClock
from searchblend.service.services import Services
from searchblend.store.reports import ReportOutcome
from service_parts import Service, people

CONNECTIONS = 64
BATCH = 1000
TARGETS = {"single": 0.5, "batch": 0.1, "p99/p50": 20.0}


def serve(where: str, storage: str) -> None:
    """The child: the real application; without storage only the writer's commit is left out."""
    pin(0)
    services = Services(where, clock=SystemClock())
    if storage == "none":

        async def add(arrivals: object) -> ReportOutcome:
            return ReportOutcome.TAKEN

        services.writer.add = add  # type: ignore[method-assign]
    config = uvicorn.Config(
        build_app(services, "collector"),
        port=0,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="critical",
    )
    server = uvicorn.Server(config)

    async def run() -> None:
        task = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await task

    uvloop.run(run())


def pin(core: int) -> None:
    if len(os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})


class Load(asyncio.Protocol):
    """One connection that sends the next request when the last was answered, or when its time has come."""

    def __init__(self, requests, latencies, due=None):
        self.requests, self.latencies, self.due = requests, latencies, due
        self.ok = self.failed = 0
        self.buffer = b""

    def connection_made(self, transport):
        self.transport = transport
        self.send()

    def send(self):
        request = next(self.requests, None)
        if request is None:
            self.transport.close()
            return
        if self.due is not None:
            wait = next(self.due) - time.perf_counter()
            if wait > 0:
                asyncio.get_running_loop().call_later(wait, self.write, request)
                return
        self.write(request)

    def write(self, request):
        self.sent = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data):
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        if not end or (length and len(body) < int(length[1])):
            return
        self.buffer = b""
        if head.startswith(b"HTTP/1.1 200"):
            self.ok += 1
        else:
            self.failed += 1
        self.latencies.append(time.perf_counter() - self.sent)
        self.send()


def made_reports(payloads: list[bytes], n: int):
    """Reports with fresh nonces on real payloads: distinct ids, the work of a real decoder."""
    nonces = os.urandom(16 * n)
    for i in range(n):
        payload, nonce = payloads[i % len(payloads)], nonces[16 * i : 16 * i + 16]
        yield payload + nonce + hashlib.sha256(nonce + payload).digest()[:16]


def request_bytes(path: str, media: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def drive(port: int, requests, connections: int, seconds: float, rate: float | None = None):
    """Requests for some seconds; how many a second were answered with 200, and the latencies."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    start = time.perf_counter()

    def until():
        for request in requests:
            if time.perf_counter() - start > seconds:
                return
            yield request

    shared = until()
    due = None
    if rate:

        def times():
            n = 0
            while True:
                yield start + n / rate
                n += 1

        due = times()
    protocols = []
    for _ in range(connections):
        _, protocol = await loop.create_connection(lambda: Load(shared, latencies, due), "127.0.0.1", port)
        protocols.append(protocol)
    while any(not protocol.transport.is_closing() for protocol in protocols):
        await asyncio.sleep(0.02)
    took = time.perf_counter() - start
    assert not sum(protocol.failed for protocol in protocols), "a request was refused"
    return sum(protocol.ok for protocol in protocols) / took, latencies


class Bench:
    """One prepared round in one database, and servers on it."""

    def __init__(self, kind: str, folder: Path) -> None:
        folder.mkdir()
        self.kind = kind
        self.where = fresh_database("sqlite" if kind == "none" else kind, folder)
        parts = Service.start(self.where, folder, SystemClock())
        task = parts.task(client_seconds=10**6)
        parts.contribute(parts.open(task), people(400, seed=1))
        found = parts.head_list(task)
        self.payloads = [message[:-32] for message in parts.messages(found, people(500, seed=2))]
        self.path = f"/v1/tasks/{found.task}/rounds/{found.number}"
        parts.store.close()
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", self.where, "--storage", kind], stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())

    def singles(self, n: int):
        media = "application/vnd.searchblend.report"
        return (request_bytes(f"{self.path}/reports", media, report) for report in made_reports(self.payloads, n))

    def batches(self, n: int):
        media = "application/vnd.searchblend.reports"
        for _ in range(n):
            yield request_bytes(f"{self.path}/report-batches", media, b"".join(made_reports(self.payloads, BATCH)))

    def measure(self, seconds: float) -> dict[str, float]:
        single, _ = uvloop.run(drive(self.port, iter(list(self.singles(int(12_000 * seconds)))), CONNECTIONS, seconds))
        prepared = list(self.batches(int(60 * seconds)))
        batched, _ = uvloop.run(drive(self.port, iter(prepared), 8, seconds))
        requests = iter(list(self.singles(int(single * seconds))))
        _, latencies = uvloop.run(drive(self.port, requests, CONNECTIONS, seconds, rate=single / 2))
        latencies.sort()
        p50, p99 = (latencies[int(len(latencies) * q)] for q in (0.5, 0.99))
        return {"single": single, "batch": batched * BATCH, "p50": p50, "p99": p99}

    def soak(self, seconds: float) -> dict[str, float]:
        """Memory of the server while it is kept busy; the first quarter is warming up."""
        process, sizes, start = psutil.Process(self.process.pid), [], time.monotonic()
        while time.monotonic() - start < seconds:
            uvloop.run(drive(self.port, iter(list(self.singles(20_000))), CONNECTIONS, 3))
            uvloop.run(drive(self.port, iter(list(self.batches(20))), 8, 3))
            sizes.append((time.monotonic() - start, process.memory_info().rss / 2**20))
        steady = [size for when, size in sizes if when > seconds / 4]
        return {"first_mib": steady[0], "last_mib": steady[-1], "highest_mib": max(steady), "lowest_mib": min(steady)}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--soak", type=float, default=0, help="seconds of full load, watching memory")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--storage", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.storage)
        return
    pin(1)
    kinds = options.databases.split(",")
    with tempfile.TemporaryDirectory(prefix="searchblend-bench-") as folder:
        names = kinds if options.soak else ["none", *kinds]
        benches = {kind: Bench(kind, Path(folder) / kind) for kind in names}
        try:
            document = run_soak(benches, options) if options.soak else run_rates(benches, options)
        finally:
            for bench in benches.values():
                bench.stop()
    if options.json:
        print(json.dumps(document, indent=2))
    if not document["met"]:
        sys.exit("service: a target was missed")


def run_rates(benches: dict[str, Bench], options: argparse.Namespace) -> dict[str, object]:
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in benches}
    for _ in range(options.runs):
        for kind, bench in benches.items():
            found[kind].append(bench.measure(options.seconds))
    medians = {
        kind: {name: statistics.median(row[name] for row in rows) for name in rows[0]} for kind, rows in found.items()
    }
    met = True
    if not options.json:
        print(
            f"{'storage':12}{'single/s':>10}{'ratio':>7}{'batched/s':>12}{'ratio':>7}{'p50 ms':>8}{'p99 ms':>8}{'p99/p50':>9}"
        )
    for kind, row in medians.items():
        for name in ("single", "batch"):
            row[f"{name}_ratio"] = row[name] / medians["none"][name]
        row["p99/p50"] = row["p99"] / row["p50"]
        good = row["single_ratio"] >= TARGETS["single"] and row["batch_ratio"] >= TARGETS["batch"]
        met &= kind == "none" or (good and row["p99/p50"] <= TARGETS["p99/p50"])
        if not options.json:
            print(
                f"{kind:12}{row['single']:10.0f}{row['single_ratio']:7.2f}{row['batch']:12.0f}{row['batch_ratio']:7.2f}"
                f"{1e3 * row['p50']:8.1f}{1e3 * row['p99']:8.1f}{row['p99/p50']:9.1f}"
            )
    if not options.json:
        print(f"targets: single ≥ {TARGETS['single']}, batched ≥ {TARGETS['batch']}, p99 ≤ {TARGETS['p99/p50']} × p50")
    return {"runs": options.runs, "medians": medians, "met": met}


def run_soak(benches: dict[str, Bench], options: argparse.Namespace) -> dict[str, object]:
    document: dict[str, object] = {"met": True}
    for kind, bench in benches.items():
        row = bench.soak(options.soak)
        flat = row["highest_mib"] <= 1.1 * row["first_mib"] and row["lowest_mib"] >= 0.9 * row["first_mib"]
        document[kind] = {**row, "flat": flat}
        document["met"] = bool(document["met"]) and flat
        if not options.json:
            print(f"{kind}: {row['first_mib']:.0f} MiB, later {row['lowest_mib']:.0f} to {row['highest_mib']:.0f} MiB")
    return document


if __name__ == "__main__":
    main()
