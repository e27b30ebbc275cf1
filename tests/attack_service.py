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
from concurrent.futures import ThreadPoolExecutor
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
TASK = {**SMALL, "delta": 1e-7, "optin_seconds": DAY, "client_seconds": DAY, "shred_seconds": 14 * DAY}
"""one user's own record is listed with probability 1e-7 at most"""
COMMON = [
    Record("weather", "http://weather.example/a"),
    Record("news", "http://news.example/a"),
    Record("maps", "http://maps.example/a"),
]


def wait_for(look, what, seconds=SECONDS):
    """The first true result."""
    deadline = time.monotonic() + seconds
    while not (result := look()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.05)
    return result


class AttackedService:
    """``searchblend serve`` over one database, with a token for each role."""

    def __init__(self, folder, where, *arguments, environment=None):
        self.folder, self.where = folder, where
        self.server = ServerProcess(folder, where, *arguments)
        self.environment = environment
        keys = SigningKeys(folder / "signing")
        keys.add_if_none()
        self.pinned = {key.key_id: key.public_point for key in keys.all()}
        with open_store(where) as store:
            self.tokens = {role: store.tokens.add_admin(role, role, actor="test", now=1) for role in ROLES}

    # The staff.

    def start(self):
        with changed_environment(self.environment or {}):
            self.server.start()
        self.http = httpx2.Client(base_url=self.server.address, timeout=SECONDS)
        return self

    def stop(self):
        self.http.close()
        if self.server.is_running:
            self.server.kill()

    def admin(self, method, path, role="operator", **document):
        headers = {"authorization": f"Bearer {self.tokens[role]}"}
        content = {"json": document} if method in ("POST", "PUT") else {}
        return self.http.request(method, f"/admin/v1{path}", headers=headers, **content)

    def done(self, method, path, role="operator", **document):
        answer = self.admin(method, path, role, **document)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def task(self, **changes):
        name = f"searches {secrets.token_hex(4)}"
        return self.done("POST", "/tasks", **{**TASK, "name": name, "population": name, **changes})["task"]

    def codes(self, task, n):
        return self.done("POST", f"/tasks/{task}/enrolments", count=n)["codes"]

    def round(self, task, number=None):
        rounds = self.done("GET", f"/tasks/{task}/rounds")["rounds"]
        return rounds[-1] if number is None else next(row for row in rounds if row["round"] == number)

    def draft(self, task):
        return self.done("POST", f"/tasks/{task}/rounds")["round"]

    def open_round(self, task):
        """The verified manifest of a new round that takes opt-in records."""
        number = self.draft(task)
        self.done("POST", f"/tasks/{task}/rounds/{number}/open")
        return self.manifest(task, "opt-in", number)

    def act(self, task, action, role="operator", **document):
        number = self.round(task)["round"]
        return self.done("POST", f"/tasks/{task}/rounds/{number}/{action}", role, **document)

    def wait_state(self, task, *states):
        def look():
            found = self.round(task)
            assert found["state"] in states or found["state"] != "ABORTED", self.audit()[-1]
            return found if found["state"] in states else None

        return wait_for(look, " or ".join(states))

    def audit(self):
        return self.done("GET", "/audit", "auditor")["rows"]

    def ports(self):
        """Where the server listens, the address that it prints first."""
        process = psutil.Process(self.server.process.pid)
        ports = {one.laddr.port for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN}
        first = int(self.server.address.rpartition(":")[2])
        return [first, *sorted(ports - {first})]

    def health(self, path, seconds=10.0):
        """The answer of whichever port of the server has it: health has a port of its own."""
        answers = []
        for port in reversed(self.ports()):
            with contextlib.suppress(httpx2.HTTPError):
                answers.append(httpx2.get(f"http://127.0.0.1:{port}{path}", timeout=seconds))
        known = [answer for answer in answers if answer.status_code != 404]
        assert known, f"no port answers {path}"
        return known[0]

    def doctor(self):
        """Exit code and output of ``searchblend doctor``."""
        command = [sys.executable, "-m", "searchblend.cli", "doctor", "--data-dir", str(self.folder), "--json"]
        command += ["--database", self.where] if self.where.startswith("postgresql") else []
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        return ended.returncode, ended.stdout + ended.stderr

    def console(self, role="operator"):
        """A browser of somebody who has signed in."""
        client = httpx2.Client(base_url=self.server.address, timeout=SECONDS)
        form = html.unescape(re.search(r'name="form" value="([^"]+)"', client.get("/console/sign-in").text)[1])
        fields = {"form": form, "token": self.tokens[role], "next": "/console"}
        assert client.post("/console/sign-in", data=fields).status_code == 303
        return client

    # The devices.

    def raw_manifest(self, task):
        return self.http.get(f"/v1/tasks/{task}/manifest")

    def manifest(self, task, phase=None, number=None):
        """The manifest that a device believes, once it announces this phase."""

        def look():
            answer = self.raw_manifest(task)
            if answer.status_code != 200:
                return None
            manifest = verify_manifest(answer.content, self.pinned).document
            fits = phase in (None, manifest["phase"]) and number in (None, manifest["round"])
            return manifest if fits else None

        return wait_for(look, f"a manifest of phase {phase}")

    def seal(self, manifest, records, code, content=None):
        """A sealed record; a hostile device seals any bytes as its content."""
        optin = manifest["optin"]
        context = SealingContext(bytes.fromhex(manifest["task"]), manifest["round"], bytes.fromhex(optin["consent"]))
        hostile = mock.patch.object(sealed, "_content", return_value=content)
        with hostile if content is not None else contextlib.nullcontext():
            return seal_records(records, context, context.tag_of(code), bytes.fromhex(optin["public_key"]))

    def send_sealed(self, manifest, sealed, code, method="POST"):
        path = f"/v1/tasks/{manifest['task']}/rounds/{manifest['round']}/contributions"
        headers = {"authorization": f"Bearer {code}", "content-type": SEALED}
        return self.http.request(method, path, content=sealed, headers=headers)

    def contribute(self, manifest, records, codes):
        """One record of each, honestly; what was sent."""
        messages = [self.seal(manifest, [record], code) for record, code in zip(records, codes, strict=True)]
        with ThreadPoolExecutor(4) as threads:
            pairs = zip(messages, codes, strict=True)
            answers = list(threads.map(lambda pair: self.send_sealed(manifest, *pair), pairs))
        assert {answer.status_code for answer in answers} <= {200}, {answer.text for answer in answers}
        return messages

    def messages(self, manifest, records):
        """One randomized report of each."""
        content = self.http.get(f"/v1/artifacts/{manifest['client']['artifact']}").json()
        message, task = decode_head_list(content), bytes.fromhex(manifest["task"])
        shape = ReportShape.of(task, manifest["round"], message.head, message.params, message.design)
        return [device_report(record, message, shape) for record in records]

    def send_report(self, manifest, message):
        path = f"/v1/tasks/{manifest['task']}/rounds/{manifest['round']}/reports"
        return self.http.post(path, content=message, headers={"content-type": REPORT})

    def report(self, manifest, records):
        messages = self.messages(manifest, records)
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda message: self.send_report(manifest, message), messages))
        assert {answer.status_code for answer in answers} == {200}

    def play_optin(self, task, records, codes=None):
        """Open a round, let every user contribute, close it: the candidate list and the audit row of the draw."""
        manifest = self.open_round(task)
        self.contribute(manifest, records, codes or self.codes(task, len(records)))
        return self.draw(task)

    def draw(self, task):
        """Close the opt-in window: what the reviewer sees, and what the audit log says about the draw."""
        self.act(task, "close-opt-in")
        number = self.wait_state(task, "SHREDDED")["round"]
        candidate = self.done("GET", f"/tasks/{task}/rounds/{number}/candidate", "reviewer")
        return candidate, self.drawn(task, number)

    def drawn(self, task, number):
        moves = [row["detail"] for row in self.audit() if row["action"] == "round moved"]
        return next(
            move for move in moves if (move["task"], move["round"], move["to"]) == (task, number, "HEADLIST_READY")
        )

    def finish(self, task, records=None):
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

    def sql(self, statement, *values):
        """What somebody with a password of the database can do behind the service's back."""
        if self.where.startswith("postgresql"):
            with psycopg.connect(self.where, autocommit=True) as connection:
                cursor = connection.execute(statement.replace("?", "%s"), values)
                return cursor.fetchall() if cursor.description else []
        connection = sqlite3.connect(self.where, timeout=SECONDS, isolation_level=None)
        with contextlib.closing(connection):
            return connection.execute(statement, values).fetchall()

    def round_key(self, task, number=None):
        number = number or self.round(task)["round"]
        return self.sql("SELECT round_key FROM rounds WHERE task = ? AND number = ?", task, number)[0][0]


def queries(candidate):
    """The listed queries of a candidate document."""
    return [query for query, _ in candidate["head"]]


@contextlib.contextmanager
def attacked(folder, where, *arguments, **options):
    folder.mkdir(exist_ok=True)
    service = AttackedService(folder, where, *arguments, **options).start()
    try:
        yield service
    finally:
        service.stop()


@contextlib.contextmanager
def changed_environment(changes):
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
