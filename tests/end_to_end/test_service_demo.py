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
from searchblend.cli.commands.serve import _people
from searchblend.synthetic.world import ranked_query

USERS_OF_FIVE_QUERIES = """
from searchblend.cli.commands import serve
from searchblend.cli.main import entry_point
from searchblend.core.records import Record

serve._people = lambda n: [Record(f"query {i % 5}", f"https://site.example/{i % 5}") for i in range(n)]
entry_point()
"""
"""eighty opt-in users of each: no noise keeps all of these queries off the list"""


def play_demo(program, folder, *arguments):
    """What a demo that ends by itself prints, after the checks that hold for any."""
    command = [sys.executable, *program, "serve", "--demo", "--once", "--json", "--data-dir", str(folder / "data")]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=560)
    assert done.returncode == 0, done.stderr
    assert "clients randomize and report" in done.stderr
    assert '"event": "stopped"' in (folder / "data" / "server.log").read_text()
    result = json.loads(done.stdout)
    assert result["conservation"]["holds"]
    return result


@pytest.mark.parametrize("kind", DATABASES)
def test_a_small_demo(kind, tmp_path):
    """On the population below so few users have no frequent query, and noise may leave nothing to list."""
    where = fresh_database(kind, tmp_path)
    database = ("--database", where) if kind == "postgresql" else ()
    method = "best" if kind == "sqlite" else "paper"
    program = ("-c", USERS_OF_FIVE_QUERIES)
    result = play_demo(program, tmp_path, "--users", "1600", "--method", method, *database)
    assert (result["opt_in_users"], result["reports_counted"]) == (400, 1200)
    assert {f"query {i}" for i in range(5)} & {row["query"] for row in result["trends"]}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["best", "paper"])
def test_a_demo_with_its_own_population(method, tmp_path):
    """Five thousand opt-in users: the most frequent query is far above what is listed."""
    result = play_demo(("-m", "searchblend.cli"), tmp_path, "--method", method)
    assert (result["opt_in_users"], result["reports_counted"]) == (5000, 15_000)
    assert {ranked_query(rank) for rank in range(30)} & {row["query"] for row in result["trends"]}


def test_the_demos_users_ask_what_the_population_asks():
    found = [record.query for record in _people(2000)]
    assert len(found) == 2000
    assert {ranked_query(rank) for rank in range(30)} & set(found)


@contextlib.contextmanager
def demo(folder, *arguments):
    """A demo that stays up, and its server process."""
    command = [sys.executable, "-m", "searchblend.cli", "serve", "--demo", "--users", "1000"]
    log = (folder / "parent.log").open("wb")
    parent = subprocess.Popen([*command, "--data-dir", str(folder / "data"), *arguments], stderr=log, stdout=log)
    children = []
    try:
        deadline = time.monotonic() + 240
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
        assert httpx2.get(f"http://127.0.0.1:{address}/healthz", timeout=240).status_code == 200
        parent.send_signal(signal.SIGKILL)
        parent.wait(240)
        server.wait(240)  # raises if it goes on


@pytest.mark.parametrize("arguments", [(), ("--by-hand",)])
def test_a_demo_that_is_terminated_ends_its_server(tmp_path, arguments):
    """A demo by hand ends in order once it waits for people, and as interrupted before that."""
    with demo(tmp_path, *arguments) as (parent, server):
        address = wait_for(lambda: listening(server))
        assert httpx2.get(f"http://127.0.0.1:{address}/healthz", timeout=240).status_code == 200
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(240) in ({0, 130} if arguments else {130})
        server.wait(240)


def listening(process):
    found = [one for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN]
    return found[0].laddr.port if found else None


def wait_for(look, seconds=240):
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found
    return found
