"""A server does not listen without a worker that can work; whether it works can be asked."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import threading
import time

import pytest

from searchblend.service.telemetry import Logbook
from searchblend.service.workers.worker import WorkerThread
from searchblend.store.errors import StoreUnavailable
from service_http import http_service


class PatientWorker:
    """Works until it is told to stop."""

    def run_until(self, stop: threading.Event, *, every: float) -> None:
        stop.wait(240)


def wait_for(condition) -> bool:
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def test_a_worker_that_cannot_begin_begins_later():
    attempts, log, reachable = [], io.StringIO(), threading.Event()

    @contextlib.contextmanager
    def begin():
        attempts.append(1)
        if not reachable.is_set():
            raise StoreUnavailable("out of reach")
        yield PatientWorker()

    thread = WorkerThread(begin, Logbook(log), every=0.01)
    assert not thread.is_working()
    with thread.running():
        assert wait_for(lambda: len(attempts) > 2)
        assert not thread.is_working()
        reachable.set()
        assert wait_for(thread.is_working)
    assert not thread.is_working()
    assert '"StoreUnavailable"' in log.getvalue()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_ended_for_good_does_not_work():
    @contextlib.contextmanager
    def begin():
        raise SystemExit
        yield

    thread = WorkerThread(begin, Logbook(io.StringIO()), every=0.01)
    with thread.running():
        assert wait_for(lambda: not thread._thread.is_alive())
        assert not thread.is_working()


def test_readiness_is_the_workers_too(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        assert http.health.get("/readyz").text == "ready\n"
        http.services.is_working = lambda: False
        answer = http.health.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "the worker does not run\n")
        assert http.health.get("/healthz").text == "ok\n"


ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from searchblend.cli.main import main
for arguments in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def serve(*commands: list[object]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of servers that must not start, one after another in one process."""
    given = [["serve", "--port", "0", *map(str, arguments)] for arguments in commands]
    program = [sys.executable, "-c", ONE_AFTER_ANOTHER]
    ended = subprocess.run(program, input=json.dumps(given), capture_output=True, text=True, timeout=240, check=True)
    return [tuple(json.loads(line)) for line in ended.stdout.splitlines()]


@pytest.mark.thorough
def test_a_server_whose_files_cannot_be_used_ends_before_it_listens(tmp_path):
    """Folders of keys that cannot be made, and TLS files that are none."""
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    junk.chmod(0o600)
    no_folder = "/dev/null/k: cannot be made: Not a directory"
    cases = [
        (["--role", "all", "--key-dir", "/dev/null/k"], 1, no_folder),
        (["--role", "curator", "--key-dir", "/dev/null/k"], 1, no_folder),
        (["--role", "publisher", "--signing-dir", "/dev/null/k"], 1, no_folder),
        (["--tls-certificate", tmp_path / "none.pem", "--tls-key", junk], 2, "none.pem: cannot be read"),
        (["--tls-certificate", junk, "--tls-key", junk], 2, "expected a certificate"),
    ]
    folders = [tmp_path / str(n) for n in range(len(cases))]
    for folder in folders:
        folder.mkdir()
    ends = serve(*(["--data-dir", folder, *given] for folder, (given, _, _) in zip(folders, cases, strict=True)))
    for (code, output, errors), (given, expected, says) in zip(ends, cases, strict=True):
        assert (code, output) == (expected, ""), given
        assert says in errors
        assert "Traceback" not in errors
