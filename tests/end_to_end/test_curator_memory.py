"""After shredding, no process of the service holds a raw record or a round's private key in its memory."""

from __future__ import annotations

import os
import secrets
import sys
import time

import httpx2
import psutil
import pytest

from databases import DATABASES, fresh_database
from process_memory import found_in_memory
from searchblend.core.records import Record
from searchblend.service.clock import SystemClock
from searchblend.store.states import State
from service_parts import Service, people
from service_process import ServerProcess, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def wait_for(parts, task, state):
    deadline = time.monotonic() + 240
    while parts.current(task).state is not state:
        assert time.monotonic() < deadline, parts.current(task)
        time.sleep(0.05)
    return parts.current(task)


@pytest.mark.parametrize("kind", DATABASES)
def test_after_shredding_no_process_holds_a_raw_record_or_the_rounds_key(kind, tmp_path):
    query = f"planted {secrets.token_hex(8)}"
    url = f"http://planted.example/{secrets.token_hex(8)}"
    where = fresh_database(kind, tmp_path)
    parts = Service.start(where, tmp_path, SystemClock())
    task = parts.task(client_seconds=100_000, optin_seconds=100_000, shred_seconds=200_000)
    token = parts.store.tokens.add_admin("ann", "operator", actor="t", now=1)
    headers = {"authorization": f"Bearer {token}"}
    server = ServerProcess(tmp_path, where)
    with running(server):
        with httpx2.Client(base_url=server.address, headers=headers, timeout=240) as client:
            at = f"/admin/v1/tasks/{task.task}/rounds"
            assert client.post(at).status_code == 200
            assert client.post(f"{at}/1/open").status_code == 200
            round_ = wait_for(parts, task, State.OPTIN_OPEN)
            (held,) = (tmp_path / "keys").glob("*.key")
            private = held.read_bytes()
            parts.contribute(round_, [*people(300, seed=1), Record(query, url)])
            assert client.post(f"{at}/1/close-opt-in").status_code == 200
            wait_for(parts, task, State.SHREDDED)
        secret = [query.encode(), url.encode(), private, private.hex().encode()]
        process = psutil.Process(server.process.pid)
        deadline = time.monotonic() + 240
        while process.children(recursive=True):  # the job that has just shredded may be on its way out
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert found_in_memory(process.pid, secret) == set()
        # The search is not blind: what must be there is found, here and there.
        assert found_in_memory(process.pid, [task.task.encode()])
        assert found_in_memory(os.getpid(), secret) >= {query.encode(), private}
        assert server.terminate() == 0
    parts.store.close()
