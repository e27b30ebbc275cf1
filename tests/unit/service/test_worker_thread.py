"""A server does not listen without a worker that can work; whether it works can be asked."""

from __future__ import annotations

import contextlib
import io
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


def serve(*arguments):
    command = [sys.executable, "-m", "searchblend.cli", "serve", "--port", "0", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("role", "option"), [("all", "--key-dir"), ("curator", "--key-dir"), ("publisher", "--signing-dir")]
)
def test_a_folder_of_keys_that_cannot_be_made_ends_the_process_before_it_listens(tmp_path, role, option):
    ended = serve("--data-dir", tmp_path, "--role", role, option, "/dev/null/k")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "/dev/null/k: cannot be made: Not a directory" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.thorough
def test_tls_files_are_checked_before_it_listens(tmp_path):
    (tmp_path / "junk.pem").write_text("junk")
    (tmp_path / "junk.pem").chmod(0o600)
    for certificate, says in (("none.pem", "none.pem: cannot be read"), ("junk.pem", "expected a certificate")):
        ended = serve(
            "--data-dir", tmp_path, "--tls-certificate", tmp_path / certificate, "--tls-key", tmp_path / "junk.pem"
        )
        assert (ended.returncode, ended.stdout) == (2, "")
        assert says in ended.stderr
        assert "Traceback" not in ended.stderr
