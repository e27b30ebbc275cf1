"""A real server under attack: its staff and devices over HTTP, and an intruder who writes to its database."""

from __future__ import annotations

import contextlib
import html
import os
import re
import secrets
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar
from unittest import mock

import httpx2
import psutil
import psycopg

from searchblend.core.records import Record
from searchblend.service.demo import device_report
from searchblend.service.workers.signing_keys import SigningKeys
from searchblend.store.service_store import open_store
from searchblend.store.tokens import ROLES
from searchblend.wire import sealed
from searchblend.wire.head_list import decode_head_list
from searchblend.wire.report import ReportShape
from searchblend.wire.sealed import SealingContext, seal_records
from searchblend.wire.signing import verify_manifest
from service_parts import SMALL
from service_process import REPORT, ServerProcess

SEALED = "application/vnd.searchblend.sealed"
SECONDS = 90
"""to wait for what an idle machine does in one or two"""
DAY = 86_400
TASK: dict[str, object] = {
    **SMALL,
    "delta": 1e-7,
    "optin_seconds": DAY,
    "client_seconds": DAY,
    "shred_seconds": 14 * DAY,
}
"""one user's own record is listed with probability 1e-7 at most"""
COMMON = [
    Record("weather", "http://weather.example/a"),
    Record("news", "http://news.example/a"),
    Record("maps", "http://maps.example/a"),
]


Result = TypeVar("Result")


def wait_for(ask: Callable[[], Result | None], what: str, seconds: float = SECONDS) -> Result:
    """The first true result."""
    deadline = time.monotonic() + seconds
    while not (result := ask()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)
    return result


class Http(Protocol):
    """A client of one server, or of a service of several."""

    def request(
        self,
        method: str,
        path: str,
        /,
        *,
        content: bytes | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response: ...

    def get(self, path: str, /) -> httpx2.Response: ...

    def post(self, path: str, /, *, content: bytes, headers: Mapping[str, str]) -> httpx2.Response: ...

    def close(self) -> None: ...


class AttackedService:
    """``searchblend serve`` over one database, with a token for each role."""

    http: Http

    def __init__(self, folder: Path, where: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder, self.where = folder, where
        self.server = ServerProcess(folder, where, *arguments, is_patient=False)
        self.environment = environment
        keys = SigningKeys(folder / "signing")
        keys.add_if_none()
        self.pinned = {key.key_id: key.public_point for key in keys.all()}
        with open_store(where) as store:
            self.tokens = {role: store.tokens.add_admin(role, role, actor="test", now=1) for role in ROLES}

    # The staff.

    def start(self) -> AttackedService:
        with changed_environment(self.environment or {}):
            self.server.start()
        self.http = httpx2.Client(base_url=self.server.address, timeout=SECONDS)
        return self

    def stop(self) -> None:
        self.http.close()
        if self.server.is_running:
            self.server.kill()

    def admin(self, method: str, path: str, role: str = "operator", **document: object) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.tokens[role]}"}
        content = document if method in ("POST", "PUT") else None
        return self.http.request(method, f"/admin/v1{path}", headers=headers, json=content)

    def done(self, method: str, path: str, role: str = "operator", **document: object) -> dict[str, Any]:
        answer = self.admin(method, path, role, **document)
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    def task(self, **changes: object) -> str:
        name = f"searches {secrets.token_hex(4)}"
        settings = {**TASK, "name": name, "population": name, **changes}
        task: str = self.done("POST", "/tasks", "operator", **settings)["task"]
        return task

    def codes(self, task: str, n: int) -> list[str]:
        codes: list[str] = self.done("POST", f"/tasks/{task}/enrolments", count=n)["codes"]
        return codes

    def round(self, task: str, number: int | None = None) -> dict[str, Any]:
        rounds: list[dict[str, Any]] = self.done("GET", f"/tasks/{task}/rounds")["rounds"]
        return rounds[-1] if number is None else next(row for row in rounds if row["round"] == number)

    def draft(self, task: str) -> int:
        number: int = self.done("POST", f"/tasks/{task}/rounds")["round"]
        return number

    def open_round(self, task: str) -> Mapping[str, Any]:
        """The verified manifest of a new round that takes opt-in records."""
        number = self.draft(task)
        self.done("POST", f"/tasks/{task}/rounds/{number}/open")
        return self.manifest(task, "opt-in", number)

    def act(self, task: str, action: str, role: str = "operator", **document: object) -> dict[str, Any]:
        number = self.round(task)["round"]
        return self.done("POST", f"/tasks/{task}/rounds/{number}/{action}", role, **document)

    def wait_state(self, task: str, *states: str) -> dict[str, Any]:
        def round_there() -> dict[str, Any] | None:
            round_ = self.round(task)
            assert round_["state"] in states or round_["state"] != "ABORTED", self.audit()[-1]
            return round_ if round_["state"] in states else None

        return wait_for(round_there, " or ".join(states))

    def audit(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.done("GET", "/audit", "auditor")["rows"]
        return rows

    def ports(self) -> list[int]:
        """Where the server listens, the address that it prints first."""
        process = psutil.Process(self.server.process.pid)
        ports = {one.laddr.port for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN}
        first = int(self.server.address.rpartition(":")[2])
        return [first, *sorted(ports - {first})]

    def health(self, path: str, seconds: float = 10.0) -> httpx2.Response:
        """The answer of whichever port of the server has it: health has a port of its own."""
        answers = []
        for port in reversed(self.ports()):
            with contextlib.suppress(httpx2.HTTPError):
                answers.append(httpx2.get(f"http://127.0.0.1:{port}{path}", timeout=seconds))
        known = [answer for answer in answers if answer.status_code != 404]
        assert known, f"no port answers {path}"
        return known[0]

    def doctor(self) -> tuple[int, str]:
        """Exit code and output of ``searchblend doctor``."""
        command = [sys.executable, "-m", "searchblend.cli", "doctor", "--data-dir", str(self.folder), "--json"]
        command += ["--database", self.where] if self.where.startswith("postgresql") else []
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        return ended.returncode, ended.stdout + ended.stderr

    def console(self, role: str = "operator") -> httpx2.Client:
        """A browser in which this role has signed in."""
        client = httpx2.Client(base_url=self.server.address, timeout=SECONDS)
        form = re.search(r'name="form" value="([^"]+)"', client.get("/console/sign-in").text)
        assert form, "the page has no form"
        fields = {"form": html.unescape(form[1]), "token": self.tokens[role], "next": "/console"}
        assert client.post("/console/sign-in", data=fields).status_code == 303
        return client

    # The devices.

    def raw_manifest(self, task: str) -> httpx2.Response:
        return self.http.get(f"/v1/tasks/{task}/manifest")

    def manifest(self, task: str, phase: str | None = None, number: int | None = None) -> Mapping[str, Any]:
        """The manifest that a device believes, once it announces this phase."""

        def announced() -> Mapping[str, Any] | None:
            answer = self.raw_manifest(task)
            if answer.status_code != 200:
                return None
            manifest = verify_manifest(answer.content, self.pinned).document
            fits = phase in (None, manifest["phase"]) and number in (None, manifest["round"])
            return manifest if fits else None

        return wait_for(announced, f"a manifest of phase {phase}")

    def seal(
        self, manifest: Mapping[str, Any], records: Sequence[Record], code: str, content: bytes | None = None
    ) -> bytes:
        """A sealed record; a hostile device seals any bytes as its content."""
        optin = manifest["optin"]
        context = SealingContext(bytes.fromhex(manifest["task"]), manifest["round"], bytes.fromhex(optin["consent"]))
        with contextlib.ExitStack() as stack:
            if content is not None:
                stack.enter_context(mock.patch.object(sealed, "_content", return_value=content))
            return seal_records(records, context, context.tag_of(code), bytes.fromhex(optin["public_key"]))

    def send_sealed(
        self, manifest: Mapping[str, Any], sealed: bytes, code: str, method: str = "POST"
    ) -> httpx2.Response:
        path = f"/v1/tasks/{manifest['task']}/rounds/{manifest['round']}/contributions"
        headers = {"authorization": f"Bearer {code}", "content-type": SEALED}
        return self.http.request(method, path, content=sealed, headers=headers)

    def contribute(self, manifest: Mapping[str, Any], records: Sequence[Record], codes: Sequence[str]) -> list[bytes]:
        """One record of each, honestly; what was sent."""
        messages = [self.seal(manifest, [record], code) for record, code in zip(records, codes, strict=True)]
        with ThreadPoolExecutor(4) as threads:
            pairs = zip(messages, codes, strict=True)
            answers = list(threads.map(lambda pair: self.send_sealed(manifest, *pair), pairs))
        assert {answer.status_code for answer in answers} <= {200}, {answer.text for answer in answers}
        return messages

    def messages(self, manifest: Mapping[str, Any], records: Sequence[Record]) -> list[bytes]:
        """One randomized report of each."""
        content = self.http.get(f"/v1/artifacts/{manifest['client']['artifact']}").json()
        message, task = decode_head_list(content), bytes.fromhex(manifest["task"])
        shape = ReportShape.of(task, manifest["round"], message.head, message.params, message.design)
        return [device_report(record, message, shape) for record in records]

    def send_report(self, manifest: Mapping[str, Any], message: bytes) -> httpx2.Response:
        path = f"/v1/tasks/{manifest['task']}/rounds/{manifest['round']}/reports"
        return self.http.post(path, content=message, headers={"content-type": REPORT})

    def report(self, manifest: Mapping[str, Any], records: Sequence[Record]) -> None:
        messages = self.messages(manifest, records)
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda message: self.send_report(manifest, message), messages))
        assert {answer.status_code for answer in answers} == {200}

    def play_optin(
        self, task: str, records: Sequence[Record], codes: Sequence[str] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Open a round, let every user contribute, close it: the candidate list and the audit row of the draw."""
        manifest = self.open_round(task)
        self.contribute(manifest, records, codes or self.codes(task, len(records)))
        return self.draw(task)

    def draw(self, task: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Close the opt-in window: what the reviewer sees, and what the audit log says about the draw."""
        self.act(task, "close-opt-in")
        number = self.wait_state(task, "SHREDDED")["round"]
        candidate = self.done("GET", f"/tasks/{task}/rounds/{number}/candidate", "reviewer")
        return candidate, self.drawn(task, number)

    def drawn(self, task: str, number: int) -> dict[str, Any]:
        moves: list[dict[str, Any]] = [row["detail"] for row in self.audit() if row["action"] == "round moved"]
        return next(
            move for move in moves if (move["task"], move["round"], move["to"]) == (task, number, "HEADLIST_READY")
        )

    def finish(self, task: str, records: Sequence[Record] | None = None) -> dict[str, bytes]:
        """From the review to the publication: the published files by name."""
        self.act(task, "review", "reviewer")
        number = self.wait_state(task, "CLIENT_OPEN")["round"]
        self.report(self.manifest(task, "client", number), records or COMMON * 30)
        self.act(task, "close-clients")
        self.act(task, "end-grace")
        self.wait_state(task, "PUBLISHED")
        files = self.done("GET", f"/tasks/{task}/rounds/{number}")["files"]
        return {name: self.http.get(f"/v1/artifacts/{digest}").content for name, digest in files.items()}

    # The intruder.

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What an intruder with a password of the database can do behind the service's back."""
        if self.where.startswith("postgresql"):
            with psycopg.connect(self.where, autocommit=True) as connection:
                cursor = connection.execute(statement.replace("?", "%s"), values)
                return cursor.fetchall() if cursor.description else []
        with contextlib.closing(sqlite3.connect(self.where, timeout=SECONDS, isolation_level=None)) as database:
            return database.execute(statement, values).fetchall()

    def round_key(self, task: str, number: int | None = None) -> int:
        number = number or self.round(task)["round"]
        key: int = self.sql("SELECT round_key FROM rounds WHERE task = ? AND number = ?", task, number)[0][0]
        return key


def queries(candidate: Mapping[str, Any]) -> list[str]:
    """The listed queries of a candidate document."""
    return [query for query, _ in candidate["head"]]


@contextlib.contextmanager
def attacked(
    folder: Path, where: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[AttackedService]:
    folder.mkdir(exist_ok=True)
    service = AttackedService(folder, where, *arguments, environment=environment).start()
    try:
        yield service
    finally:
        service.stop()


@contextlib.contextmanager
def changed_environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
