"""System calls of a real server process: the disk (or PostgreSQL) has it before the sender hears of it.

A kill cannot show this: what the kernel holds survives a process. The trace shows the order itself.
"""

from __future__ import annotations

import re
import shutil
import time

import httpx2
import pytest

from databases import DATABASES, fresh_database
from searchblend.service.clock import SystemClock
from service_parts import Service, people
from service_process import REPORT, ServerProcess

CALLS = "fsync,fdatasync,write,writev,sendto,sendmsg,recvfrom,recvmsg,read,poll"
N = 20


def traced_events(kind, folder):
    """What the server did while N reports were sent one after another: 'disk' and 'answer', in order."""
    if shutil.which("strace") is None:
        pytest.fail("this test needs strace: install it (Debian: apt-get install strace)")
    where = fresh_database(kind, folder)
    parts = Service.start(where, folder, SystemClock())
    task = parts.task(client_seconds=100_000)
    parts.contribute(parts.open(task), people(200, seed=1))
    found = parts.head_list(task)
    messages = parts.messages(found, people(N + 1, seed=2))
    parts.store.close()
    server = ServerProcess(folder, where, "--role", "collector")
    trace = folder / "trace.txt"
    server._command = [
        "strace",
        "-D",
        "-f",
        "-y",
        "-s",
        "80",
        "-e",
        f"trace={CALLS}",
        "-o",
        str(trace),
        *server._command,
    ]
    server.start()
    try:
        with httpx2.Client(base_url=server.address, timeout=240) as client:
            path = f"/v1/tasks/{found.task}/rounds/{found.number}/reports"
            for message in messages:
                assert client.post(path, content=message, headers={"content-type": REPORT}).status_code == 200
                time.sleep(0.01)
    finally:
        server.terminate()
    return events(trace.read_text(errors="replace").splitlines(), kind)


def events(lines, kind):
    found = []
    pending = {}
    for line in lines:
        thread, _, call = line.partition(" ")
        call = call.strip()
        if "unfinished ..." in call:
            pending[thread] = call
            if "HTTP/1.1 200" in call:
                found.append("answer")
            continue
        if call.startswith("<..."):
            call = pending.pop(thread, "") + call
            if "HTTP/1.1 200" in call.partition("unfinished")[0]:
                continue
        if "HTTP/1.1 200" in call:
            found.append("answer")
        elif is_commit(call, kind):
            found.append("disk")
    return found


def is_commit(call, kind):
    if kind == "sqlite":
        return re.match(r"f(data)?sync\(.*service\.db-wal", call) and call.endswith("= 0")
    return re.match(r"recv(from|msg)\(", call) and "COMMIT\\" in call


@pytest.mark.parametrize("kind", DATABASES)
def test_every_answer_comes_after_its_own_commit(kind, tmp_path):
    order = traced_events(kind, tmp_path)
    assert order.count("answer") == N + 1
    commits = 0
    for event in order:
        if event == "disk":
            commits += 1
        else:
            assert commits, "an answer without a commit since the one before"
            commits = 0


def test_the_reading_of_a_trace_tells_right_from_wrong():
    sync = "7 fdatasync(9</x/service.db-wal>) = 0"
    answer = '8 write(5<socket:[1]>, "HTTP/1.1 200 OK\\r\\n"..., 90) = 90'
    halves = ["7 fdatasync(9</x/service.db-wal> <unfinished ...>", "7 <... fdatasync resumed>) = 0"]
    assert events([sync, answer], "sqlite") == ["disk", "answer"]
    assert events([halves[0], answer, halves[1]], "sqlite") == ["answer", "disk"]
    assert events(["7 fdatasync(9</x/other>) = 0", answer], "sqlite") == ["answer"]
    received = '7 recvfrom(9<socket:[2]>, "C\\0\\0\\0\\vCOMMIT\\0Z\\0\\0\\0\\5I", 16384, 0, NULL, NULL) = 18'
    assert events([received, answer], "postgresql") == ["disk", "answer"]
