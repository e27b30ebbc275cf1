"""The collection service as it is shipped: a server process on SQLite, spoken to over HTTP like anyone would.

Several rounds are played with people of whom it is known what they searched. How often the head list names what one
person alone has, and what just enough people have, must be what the curator's noise says. In the last round devices
report: what the service counted must be what was sent, each report once.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from searchblend.blender.best.stability_histogram import curator_design
from searchblend.blender.best.subset_report import SubsetReport, subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.wire.head_list import HeadListMessage, decode_head_list
from searchblend.wire.report import ReportShape, cells_as_parts, encode_report
from searchblend.wire.sealed import SealingContext, seal_records
from searchblend.wire.signing import verify_manifest
from searchblend_lab.evidence.bounds import lower_bound, two_sided
from searchblend_lab.evidence.evidence import REPLACE_ONE, Claim, Effort, Finding, judged
from searchblend_lab.evidence.randomness_source import MAIN, POISON

BUDGET: Final = Budget(2.0, 0.05)
_SECONDS: Final = 240.0
_THREADS: Final = 4
_ALONE: Final = 400
"""people of a round whose query no one else has"""
_COMMON: Final = 15
"""queries of a round that as many people have as the threshold asks for"""
_CLIENTS: Final = 120


def service(effort: Effort) -> list[Finding]:
    return audit_service("", effort)


def audit_service(plant: str, effort: Effort) -> list[Finding]:
    """Play the rounds; ``plant`` is code that the server process runs first, for planted faults."""
    rounds = max(4, min(effort.runs // 500, 10))
    with tempfile.TemporaryDirectory(prefix="searchblend-audit-") as folder:
        prepared = _prepare(folder)
        with _server(folder, plant) as address, contextlib.closing(_People(address, prepared)) as people:
            named = Counter[str]()
            for last in [False] * (rounds - 1) + [True]:
                named.update(people.opt_in_phase())
                if last:
                    reported = people.client_phase()
                else:
                    people.abort()
    return [*_judge_names(named, rounds, effort), _judge_reports(reported)]


def _judge_names(named: Mapping[str, int], rounds: int, effort: Effort) -> list[Finding]:
    threshold = curator_design(BlenderParams(BUDGET)).threshold.integer
    a = math.exp(-BUDGET.epsilon / 2)
    expected = {"alone": a ** (threshold - 1) / (1 + a), "common": 1 / (1 + a)}
    trials = {"alone": rounds * _ALONE, "common": rounds * _COMMON}
    claim = Claim.of(BUDGET, REPLACE_ONE)
    findings = []
    for kind, what in (("alone", "queries of one user"), ("common", f"queries of {threshold} users")):
        p = two_sided(named[kind], trials[kind], expected[kind])
        within = kind == "common" or lower_bound(named[kind], trials[kind], effort.level) <= BUDGET.delta
        detail = (
            f"{named[kind]:,} of {trials[kind]:,} named in {rounds} rounds, "
            f"{expected[kind] * trials[kind]:,.1f} expected: p = {p:.2g}"
        )
        verdict = judged(holds=p > effort.level and within)
        findings.append(Finding(f"HTTP service: {what}", verdict, detail, claim, trials=trials[kind]))
    return findings


@dataclass(frozen=True)
class _Reported:
    """What the service says of the reports it was sent."""

    sent: int
    counted: int
    repeated_status: int
    conflict_status: int
    conservation: Mapping[str, Any]


def _judge_reports(reported: _Reported) -> Finding:
    law = reported.conservation
    holds = (
        reported.sent == reported.counted
        and law["counted"] == law["expected"]
        and reported.repeated_status == 200
        and reported.conflict_status == 409
    )
    detail = (
        f"{reported.sent} reports sent, one of them twice, {reported.counted} counted; {law['counted']} counts for "
        f"{law['expected']}; a second opt-in record of one person is refused ({reported.conflict_status})"
    )
    return Finding("HTTP service: reports are counted once", judged(holds=holds), detail, trials=reported.sent)


# --- the server ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Prepared:
    task: str
    operator: str
    reviewer: str
    pinned: Mapping[str, bytes]


def _prepare(folder: str) -> _Prepared:
    """A task, tokens and a signing key, made with the commands that an operator uses."""
    key = _command("keys", "add", "--data-dir", folder)
    settings = {
        "epsilon": BUDGET.epsilon,
        "delta": BUDGET.delta,
        "has_urls": False,
        "max_head_queries": 1000,
        "expected_clients": 2,
        "records_per_optin": 1,
        "min_optin": 2,
        "min_clients": 2,
        "min_queries": 1,
        "uncapped": True,
    }
    path = Path(folder, "task.json")
    path.write_text(json.dumps({"name": "audit", **settings}))
    task = _command("task", "create", "audit", "--settings", str(path), "--data-dir", folder)
    tokens = [
        _command("keys", "token", name, role, "--data-dir", folder)["token"]
        for name, role in (("ann", "operator"), ("rob", "reviewer"))
    ]
    pinned = {key["key_id"]: bytes.fromhex(key["public_point"])}
    return _Prepared(task["task"], tokens[0], tokens[1], pinned)


def _command(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-m", "searchblend.cli", *arguments, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if done.returncode:
        raise AssertionError(f"{arguments[0]} {arguments[1]}: {done.stderr.strip()[-300:]}")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@contextlib.contextmanager
def _server(folder: str, plant: str) -> Iterator[str]:
    """``searchblend serve`` in processes of its own, every seedable generator poisoned.

    The curator's jobs run in processes that the server starts: ``sitecustomize`` reaches these too.
    """
    start = Path(folder, "start")
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(f"{POISON}\n{plant}\n")
    path = os.pathsep.join(filter(None, (str(start), os.environ.get("PYTHONPATH"))))
    arguments = ["serve", "--demo-server", "--data-dir", folder, "--port", "0"]
    arguments += ["--poll-seconds", "0.05", "--manifest-seconds", "1"]
    with Path(folder, "server.log").open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  # ourselves
            [sys.executable, "-c", MAIN, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    try:
        if process.stdout is None:
            raise AssertionError("expected a pipe")
        address = process.stdout.readline().strip()
        if not address or "sitecustomize" in Path(folder, "server.log").read_text():
            raise AssertionError(f"the server did not start: {Path(folder, 'server.log').read_text()[-300:]}")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


class _People:
    """Opt-in users, devices, an operator and a reviewer."""

    def __init__(self, address: str, prepared: _Prepared) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._prepared, self._local = prepared, threading.local()
        self._connections: list[http.client.HTTPConnection] = []
        self._round = 0
        self._threshold = curator_design(BlenderParams(BUDGET)).threshold.integer
        self._conflict = 0

    def close(self) -> None:
        """Close the connections of all threads, which their threads leave open."""
        for connection in self._connections:
            connection.close()

    def opt_in_phase(self) -> Counter[str]:
        """A new round up to its private list: how many names of each kind are on it."""
        at = f"/admin/v1/tasks/{self._prepared.task}/rounds"
        self._round = self._admin("POST", at)["round"]
        self._admin("POST", f"{at}/{self._round}/open")
        manifest = self._manifest("opt-in")
        self._contribute(manifest)
        self._admin("POST", f"{at}/{self._round}/close-opt-in")
        self._wait("SHREDDED")
        found = self._admin("GET", f"{at}/{self._round}/candidate", self._prepared.reviewer)
        return Counter(query.split()[0] for query, _ in found["head"])

    def abort(self) -> None:
        self._admin("POST", f"/admin/v1/tasks/{self._prepared.task}/rounds/{self._round}/abort")

    def client_phase(self) -> _Reported:
        """Devices report on the list; the round is published."""
        at = f"/admin/v1/tasks/{self._prepared.task}/rounds/{self._round}"
        self._admin("POST", f"{at}/review", self._prepared.reviewer)
        manifest = self._manifest("client")
        content = self._send("GET", f"/v1/artifacts/{manifest['client']['artifact']}")[1]
        message = decode_head_list(json.loads(content))
        shape = ReportShape.of(
            bytes.fromhex(self._prepared.task), self._round, message.head, message.params, message.design
        )
        reports = [encode_report(_said(Record(message.head.queries[0]), message), shape) for _ in range(_CLIENTS)]
        path = f"/v1/tasks/{self._prepared.task}/rounds/{self._round}/reports"
        for report in reports:
            self._accepted(path, report, "application/vnd.searchblend.report")
        again = self._send("POST", path, reports[0], "application/vnd.searchblend.report")[0]
        self._admin("POST", f"{at}/close-clients")
        self._admin("POST", f"{at}/end-grace")
        final = self._wait("PUBLISHED")
        return _Reported(len(reports), final["reports_counted"], again, self._conflict, final["conservation"])

    def _contribute(self, manifest: Mapping[str, Any]) -> None:
        optin = manifest["optin"]
        context = SealingContext(bytes.fromhex(self._prepared.task), self._round, bytes.fromhex(optin["consent"]))
        key = bytes.fromhex(optin["public_key"])
        path = f"/v1/tasks/{self._prepared.task}/rounds/{self._round}/contributions"
        queries = [f"alone {i}" for i in range(_ALONE)]
        queries += [f"common {i}" for i in range(_COMMON) for _ in range(self._threshold)]
        queries += ["sure 0"] * (self._threshold + 60)

        def contribute(query: str, code: str = "") -> int:
            code = code or secrets.token_urlsafe(16)
            sealed = seal_records([Record(query)], context, context.tag_of(code), key)
            return self._send("POST", path, sealed, "application/vnd.searchblend.sealed", code)[0]

        with ThreadPoolExecutor(_THREADS) as threads:
            if set(threads.map(contribute, queries)) != {200}:
                raise AssertionError("an opt-in record was refused")
        code = secrets.token_urlsafe(16)
        contribute("sure 0", code)
        self._conflict = contribute("sure 0", code)

    def _accepted(self, path: str, body: bytes, media_type: str) -> None:
        if (status := self._send("POST", path, body, media_type)[0]) != 200:
            raise AssertionError(f"a report was refused with status {status}")

    def _manifest(self, phase: str) -> dict[str, Any]:
        def current() -> dict[str, Any] | None:
            status, content = self._send("GET", f"/v1/tasks/{self._prepared.task}/manifest")
            found = dict(verify_manifest(content, self._prepared.pinned).document) if status == 200 else {}
            return found if (found.get("phase"), found.get("round")) == (phase, self._round) else None

        return self._until(current, f"the manifest of phase {phase}")

    def _wait(self, state: str) -> dict[str, Any]:
        def current() -> dict[str, Any] | None:
            found = self._admin("GET", f"/admin/v1/tasks/{self._prepared.task}/rounds/{self._round}")
            if found["state"] == "ABORTED":
                raise AssertionError("the round was aborted")
            return found if found["state"] == state else None

        return self._until(current, f"state {state}")

    def _until(self, current: Any, what: str) -> dict[str, Any]:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            if (found := current()) is not None:
                return dict(found)
            time.sleep(0.03)
        raise AssertionError(f"the service never reached {what}")

    def _admin(self, method: str, path: str, token: str = "") -> dict[str, Any]:
        status, content = self._send(method, path, credential=token or self._prepared.operator)
        if status != 200:
            raise AssertionError(f"{method} {path.rsplit('/', 1)[-1]}: status {status}")
        document: dict[str, Any] = json.loads(content)
        return document

    def _send(
        self, method: str, path: str, body: bytes = b"", media_type: str = "", credential: str = ""
    ) -> tuple[int, bytes]:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)
            self._connections.append(connection)
        headers = {"Content-Type": media_type} if media_type else {}
        headers |= {"Authorization": f"Bearer {credential}"} if credential else {}
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def _said(record: Record, message: HeadListMessage) -> Sequence[SubsetReport]:
    if message.design is None:
        return cells_as_parts(local_report([record], message.head, message.params))
    return subset_report([record], message.head, message.design, message.params)
