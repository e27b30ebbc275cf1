"""``searchblend serve --demo --once``: a server, devices over HTTP and a whole round, on both databases."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time

import httpx2
import psutil
import pytest

from databases import DATABASES, fresh_database
from searchblend.synthetic.world import ranked_query


@pytest.mark.parametrize("kind", DATABASES)
def test_a_small_demo(kind, tmp_path):
    where = fresh_database(kind, tmp_path)
    command = [sys.executable, "-m", "searchblend.cli", "serve", "--demo", "--once", "--json", "--users", "6000"]
    command += ["--data-dir", str(tmp_path / "data"), "--method", "best" if kind == "sqlite" else "paper"]
    command += ["--database", where] if kind == "postgresql" else []
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=560)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["opt_in_users"], result["reports_counted"]) == (1500, 4500)
    assert result["conservation"]["holds"]
    # Which of them come first is up to the noise, but not that some of the most frequent do: all of these would have to
    # miss the list, or to be estimated below rarer ones, which has less than one chance in a million.
    assert {ranked_query(rank) for rank in range(30)} & {row["query"] for row in result["trends"]}
    assert "clients randomize and report" in done.stderr
    log = (tmp_path / "data" / "server.log").read_text()
    assert '"event": "stopped"' in log


@contextlib.contextmanager
def demo(folder, *arguments):
    """A demo that stays up, and its server process."""
    command = [sys.executable, "-m", "searchblend.cli", "serve", "--demo", "--users", "1000"]
    log = (folder / "parent.log").open("wb")
    parent = subprocess.Popen([*command, "--data-dir", str(folder / "data"), *arguments], stderr=log, stdout=log)
    children = []
    try:
        deadline = time.monotonic() + 120
        while not (children := psutil.Process(parent.pid).children()) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield parent, children[0]
    finally:
        log.close()
        for process in (parent, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        parent.wait()


def test_the_demos_server_ends_with_a_demo_that_is_killed(tmp_path):
    with demo(tmp_path, "--by-hand") as (parent, server):
        address = wait_for(lambda: listening(server))
        assert httpx2.get(f"http://127.0.0.1:{address}/healthz", timeout=60).status_code == 200
        parent.send_signal(signal.SIGKILL)
        parent.wait(60)
        server.wait(60)  # raises if it goes on
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(f"http://127.0.0.1:{address}/healthz", timeout=60)


def test_a_demo_that_is_terminated_ends_its_server(tmp_path):
    with demo(tmp_path) as (parent, server):
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(60) == 130
        server.wait(60)


def listening(process):
    found = [one for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
    return found[0].laddr.port if found else None


def wait_for(look, seconds=120):
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found
    return found
