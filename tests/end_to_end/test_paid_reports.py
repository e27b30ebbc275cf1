"""A round whose reports are paid with tokens: issuer, service, a second collector and devices, each in its process."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2

from searchblend.cli.main import main
from searchblend.service.clock import SystemClock
from searchblend.store.states import State
from searchblend.wire.tokens import token_header
from service_http import REPORT
from service_parts import Service, enough_to_answer, people
from service_process import ServerProcess, running

PATIENT = 240


def command(*arguments: str | Path, in_a_process: bool = False) -> dict:
    """What ``searchblend … --json`` prints; here, unless a process of its own is asked for."""
    words = [*map(str, arguments), "--json"]
    if in_a_process:
        line = [sys.executable, "-m", "searchblend.cli", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=PATIENT)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        return json.loads(done.stdout)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(words) == 0, printed.getvalue()
    return json.loads(printed.getvalue())


@contextlib.contextmanager
def issuer(folder: Path) -> Iterator[str]:
    line = [sys.executable, "-m", "searchblend.cli", "issuer", "serve", "--data-dir", str(folder), "--port", "0"]
    with (
        (folder.parent / "issuer.log").open("wb") as log,
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENT) == 0


def check_second_collector(address, found, message, stolen):
    """It was started without a word of tokens."""
    path = f"{address}/v1/tasks/{found.task}/rounds/{found.number}/reports"

    def send(**headers):
        return httpx2.post(path, content=message, headers={**REPORT, **headers}, timeout=PATIENT).status_code

    assert send() == 401
    assert send(authorization=token_header(stolen)) == 409


def test_a_round_whose_reports_are_paid_for(tmp_path):
    where, books, state = str(tmp_path / "service.db"), tmp_path / "issuer", tmp_path / "device"
    parts = Service.start(where, tmp_path, SystemClock())
    with issuer(books) as address:
        long = {"client_seconds": 100_000, "optin_seconds": 100_000, "shred_seconds": 200_000}
        task = parts.task(**long, max_head_queries=30, min_clients=2, token_issuer=address)
        parts.contribute(parts.open(task), [*people(399, seed=1), *enough_to_answer()])
        add = ("issuer", "add", "one", "two", "--address", address, "--data-dir", books)
        accounts = command(*add, in_a_process=True)["accounts"]
        point = parts.signing_keys.all()[0].public_point.hex()
        first, second = ServerProcess(tmp_path, where), ServerProcess(tmp_path, where, "--role", "collector")
        with running(first), running(second):
            found = parts.head_list(task)
            for number, account in enumerate(accounts):
                at = ("--state", state / str(number))
                command("device", "enrol", "--server", first.address, "--task", task.task, "--key", point, *at)
                command("device", "account", account["link"], *at)
                command("device", "consent", "local", "--agree", *at)
                command("device", "record", "weather", "--url", "http://weather.example/a", *at)
                assert command("device", "sync", "--now", *at, in_a_process=True)["status"] == "reported"
            [sent] = command("device", "show", "--state", state / "0")
            stolen = bytes.fromhex(sent["token"])
            check_second_collector(second.address, found, parts.messages(found, people(1, seed=5))[0], stolen)
            assert parts.store.reports.n_seen(found.key) == 2
            parts.lifecycle.close_clients(parts.current(task), actor="ann")
            parts.lifecycle.end_grace(parts.current(task), actor="ann")
            parts.work_until(task, State.PUBLISHED)  # the first server's worker may be at it
            assert parts.current(task).state is State.PUBLISHED
        listed = command("issuer", "accounts", "--data-dir", books)["accounts"]
    assert [account["name"] for account in listed] == ["one", "two"]
    assert all(account["issued"] <= 1 for account in listed)  # none if a week has begun meanwhile
    kept = b"".join(path.read_bytes() for path in books.rglob("*") if path.is_file())
    assert stolen[2:34] not in kept
    parts.store.close()
