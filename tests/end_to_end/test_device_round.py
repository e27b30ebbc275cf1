"""Whole rounds of Python devices against a real server process: both groups, the pack, and an answer offline."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import time

import pytest

from device_population import Law, covered, play_round, take_part
from searchblend.cli.main import main
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import text_of
from searchblend.service.clock import SystemClock
from searchblend.store.states import State
from service_parts import Service, enough_to_answer, people
from service_process import ServerProcess, running


def in_a_process(state, *arguments: str, fails: bool = False):
    """``searchblend device … --json``: what it prints, read."""
    line = [sys.executable, "-m", "searchblend.cli", "device", *arguments, "--state", str(state), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=240, env=os.environ)
    assert done.returncode == (1 if fails else 0), done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout) if done.stdout else None


def in_this_process(state, *arguments: str, fails: bool = False):
    """The same command, without a Python that starts for it."""
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        code = main(["device", *arguments, "--state", str(state), "--json"])
    assert code == (1 if fails else 0), errors.getvalue()
    return json.loads(printed.getvalue()) if printed.getvalue() else None


def wait_for(parts, task, state: State) -> None:
    deadline = time.monotonic() + 240
    while parts.current(task).state is not state:
        assert time.monotonic() < deadline, parts.current(task).state
        time.sleep(0.05)


class FirstInAProcess:
    """A process for each device's first use of a subcommand; what it leaves is read by what follows, in this process.

    So each subcommand meets a state that another process wrote, and each that writes leaves one for another process.
    """

    def __init__(self):
        self._seen = set()

    def __call__(self, state, *arguments: str, fails: bool = False):
        use = state, arguments[0], fails
        if use in self._seen:
            return in_this_process(state, *arguments, fails=fails)
        self._seen.add(use)
        return in_a_process(state, *arguments, fails=fails)


@pytest.mark.parametrize("method", ["best", "paper"])
def test_a_round_from_consent_to_an_answer_without_a_network(method, tmp_path):
    command = FirstInAProcess() if method == "best" else in_this_process
    parts = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    seconds = {"client_seconds": 100_000, "optin_seconds": 100_000, "shred_seconds": 200_000}
    task = parts.task(method=method, max_head_queries=30, **seconds)
    # The printed method makes its list from half of them.
    others = enough_to_answer(16 if method == "best" else 48)
    parts.contribute(parts.open(task), [*people(399, seed=1), *others])
    point = parts.signing_keys.all()[0].public_point.hex()
    opt_in, state = tmp_path / "opt-in", tmp_path / "device"
    server = ServerProcess(tmp_path, str(tmp_path / "service.db"), "--demo-server")
    with running(server):
        enrolment = ("--server", server.address, "--task", task.task, "--key", point)
        command(opt_in, "enrol", *enrolment, "--code", "a code of sixteen signs")
        assert command(opt_in, "consent", "opt-in", "--agree")["agreed"]
        command(opt_in, "record", "weather", "--url", "http://weather.example/a")
        assert command(opt_in, "sync", "--now")["status"] == "reported"

        command(state, "enrol", *enrolment)
        assert command(state, "consent", "local")["agreed"] is False
        assert command(state, "status")["mode"] == "off"
        command(state, "consent", "local", "--agree")
        assert command(state, "record", "Weather", "--url", "http://weather.example/a#x")["kept"]
        assert command(state, "record", "ann@example.org")["reason"] == "e-mail"
        assert command(state, "sync", "--now")["status"] == "other-group"

        found = parts.head_list(task)
        assert command(opt_in, "sync", "--now")["status"] == "reported"
        assert command(state, "sync", "--now")["status"] == "reported"
        assert command(state, "sync", "--now")["status"] == "reported"
        (sent,) = command(state, "show")
        assert (sent["true"], sent["state"]) == ([["weather", "http://weather.example/a"]], "accepted")
        ended = take_part(server.address, task.task, point, people(99, seed=2))
        assert (ended["reported"], ended["paid"]) == (99, 99)
        assert parts.store.reports.n_seen(found.key) == 100

        parts.lifecycle.close_clients(parts.current(task), actor="ann")
        parts.lifecycle.end_grace(parts.current(task), actor="ann")
        wait_for(parts, task, State.PUBLISHED)
        deadline = time.monotonic() + 240
        while not command(state, "sync", "--now").get("pack", "").startswith("up"):
            assert time.monotonic() < deadline, "the pack never arrived"
        assert server.terminate() == 0

    answers = command(state, "search", "weather")["found"]
    assert (answers[0]["query"], answers[0]["kind"]) == ("weather", "exact")
    assert command(state, "search", "wheather")["found"][0]["kind"] == "typo"
    assert command(state, "sync", "--now", fails=True)["status"] == "no-answer"
    budget = command(state, "status")["budget"]
    assert budget["lifetime_epsilon"] == 4.0
    assert len(command(state, "export")["ledger"]) == 1
    command(state, "erase")
    assert command(state, "status")["searches"] == 0
    command(state, "leave")
    assert command(state, "status")["task"] is None
    parts.store.close()


def check_coverage(rates: dict[str, tuple[int, int]], low: float, high: float, at_least: int) -> None:
    held, n = (sum(column) for column in zip(*rates.values(), strict=True))
    print({kind: f"{held / n:.4f} of {n}" for kind, (held, n) in rates.items()}, f"pooled {held / n:.4f} of {n}")
    assert n >= at_least
    assert low <= held / n <= high


def check_everybody_was_counted_once(played, n_devices: int) -> None:
    assert played["ended"] == {"reported": n_devices, "paid": n_devices}
    assert played["counted"] == n_devices


def test_a_thousand_devices_and_their_intervals(tmp_path):
    """A rehearsal of the population below: few intervals, most of them near the threshold, so wide bounds.

    250 seeded draws of the noise gave 0.955 ± 0.0064 of about 310, within 0.935 and 0.972: both bounds are over six of
    these deviations away.
    """
    played = play_round(tmp_path, "best", 1_000, 6_000, 2)
    check_everybody_was_counted_once(played, 1_000)
    check_coverage(covered(played["result"], played["truth"], None), 0.85, 0.995, 100)


@pytest.mark.slow
def test_a_hundred_thousand_devices_and_their_intervals(tmp_path):
    """Method ``best``: the published intervals. Printed method: the clients' (test_coverage measures its blend)."""
    pooled = {}
    for method, column in (("best", None), ("paper", "client")):
        folder = tmp_path / method
        folder.mkdir()
        played = play_round(folder, method, 100_000, 30_000, 6)
        check_everybody_was_counted_once(played, 100_000)
        pooled |= {
            f"{method} {kind}": found for kind, found in covered(played["result"], played["truth"], column).items()
        }
        print(method, f"{played['seconds']:.0f} s")
    check_coverage(pooled, 0.92, 0.98, 1_000)


@pytest.mark.parametrize(("half_width", "is_accepted"), [(1.0, False), (1.96, True), (4.0, False)])
def test_intervals_that_are_too_narrow_or_too_wide_are_found_out(half_width, is_accepted):
    """Estimates with a known standard error, and intervals of so many of them."""
    law, generator, rows = Law(), random.Random(1), []
    for query, p in law.queries.items():
        estimate = p + 1e-4 * generator.gauss(0, 1)
        rows.append({"query": query, "interval": [estimate - half_width * 1e-4, estimate + half_width * 1e-4]})
    found = {"queries": covered({"trends": rows, "records": []}, law.queries, None)["queries"]}
    with contextlib.nullcontext() if is_accepted else pytest.raises(AssertionError):
        check_coverage(found, 0.92, 0.98, 100)


def test_an_opt_in_record_can_be_taken_back(tmp_path):
    parts = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    task = parts.task(optin_seconds=100_000, shred_seconds=200_000)
    found = parts.open(task)
    point = parts.signing_keys.all()[0].public_point.hex()
    server = ServerProcess(tmp_path, str(tmp_path / "service.db"), "--demo-server")
    with running(server), DeviceAgent.open(tmp_path / "device", create=True) as agent:
        agent.enrol(server.address, task.task, [point], code="a code of sixteen signs")
        agent.consent("opt-in", text_of("opt-in"))
        agent.record("weather", "http://weather.example/a")
        assert agent.sync(immediately=True).status == "reported"
        assert len(list(parts.store.contributions.all(found.key))) == 1
        assert agent.consent("local", text_of("local")).status == "withdrawn"
        assert list(parts.store.contributions.all(found.key)) == []
    parts.store.close()
