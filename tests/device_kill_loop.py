"""Devices, one after another, each killed again and again while it takes part in rounds.

A program of one thread, since it forks:

    python tests/device_kill_loop.py FOLDER KILLS SEED [MUTANT]

Prints one JSON document: how often it was killed and where, and everything that broke the promise. A service in a
process of its own appends each report to a file before it answers, in ways that devices must expect. After every kill
the device's ledger is read: a round of which the service saw anything must have been paid for, once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from unittest import mock

from device_parts import NOW, TASK, HandClock, MadeTask, PublicLog, device
from searchblend.blender.best.subset_report import SINK_SETS, ReportDesign
from searchblend.core.randomness import SystemRandomness
from searchblend.device.agent import DeviceAgent
from searchblend.device.device_errors import NoAnswer
from searchblend.device.make_report import Message
from searchblend.device.policy import POLICY
from searchblend.device.rounds import Participant
from searchblend.device.state import DeviceState, Group, Turn, TurnState
from searchblend.device.transport import Transport

EPSILON = 0.01
ANSWERS = ("ok", "ok", "ok", "lost", "busy", "cut")
POINTS = (
    "sync: begun",
    "manifest: believed",
    "manifest: remembered",
    "turn: begun",
    "turn: debited",
    "turn: randomized",
    "turn: before commit",
    "turn: committed",
    "send: before",
    "send: answered",
    "send: noted",
)
"""where a crash is tested"""
LATE_POINTS = POINTS[POINTS.index("turn: begun") :]


class Service:
    """Writes ``round<TAB>report`` to a file, then answers, or not. The current manifest is a file too."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.log, self.manifest, self.head_list = folder / "received.txt", folder / "manifest", folder / "head-list"
        self.checkpoint, self.tile, self.public_log = folder / "checkpoint", folder / "tile", PublicLog()
        self.log.write_text("")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._seed = seed

    def put(self, path: Path, content: bytes) -> None:
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.replace(path)

    def put_manifest(self, manifest: bytes) -> None:
        """With the log that it is in: one tile is enough."""
        self.public_log.add(manifest)
        self.put(self.tile, b"".join(self.public_log.leaves))
        self.put(self.checkpoint, self.public_log.checkpoint)
        self.put(self.manifest, manifest)

    def received(self) -> list[tuple[int, str]]:
        rows = [line.split("\t") for line in self.log.read_text().splitlines()]
        return [(int(number), report) for number, report in rows]

    def start(self) -> int:
        """In a process of its own; its id."""
        child = os.fork()
        if child:
            self._listener.close()
            return child
        try:
            self._serve()
        finally:
            os._exit(1)

    def _serve(self) -> None:
        service, generator = self, random.Random(self._seed)

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                name = "tile" if "/tile/" in self.path else self.path.rsplit("/", 1)[1]
                files = {"manifest": service.manifest, "checkpoint": service.checkpoint, "tile": service.tile}
                path = files.get(name, service.head_list)
                self._answer(200, path.read_bytes())

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    return  # killed between headers and body: no one takes that for a report
                with service.log.open("a") as log:
                    log.write(f"{self.path.split('/')[5]}\t{body.hex()}\n")
                kind = generator.choice(ANSWERS)
                if kind == "ok":
                    self._answer(200, b"")
                elif kind == "busy":
                    self._answer(503, b"")
                elif kind == "cut":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nConte")

            def _answer(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        class Server(HTTPServer):
            def handle_error(self, *_: object) -> None:
                pass

        server = Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = self._listener
        server.serve_forever()


def become(mutant: str) -> None:
    """A wrong device that this loop must detect."""
    if mutant == "sends before it keeps":
        keep = DeviceState.add_turn

        def send_then_keep(
            state: DeviceState,
            task: str,
            number: int,
            part: Group,
            message: Message,
            *,
            token: bytes | None = None,
            **times: int,
        ) -> None:
            sent = message.content
            turn = Turn(task, number, part, TurnState.MADE, sent, "", None, None, 0, 0, 0, 0, None, None, token)
            enrolment = state.enrolment()
            assert enrolment is not None
            participant = Participant(
                state,
                enrolment,
                Transport(enrolment.server),
                policy=POLICY,
                clock=HandClock(),
                randomness=SystemRandomness(),
                on_point=lambda point: None,
            )
            with contextlib.suppress(NoAnswer):
                participant._post(turn, message.content)
            keep(state, task, number, part, message, token=token, **times)

        mock.patch.object(DeviceState, "add_turn", send_then_keep).start()
    elif mutant == "makes it again after no answer":

        def forget(state: DeviceState, turn: Turn, answer: str, again_at: int) -> None:
            state.execute("DELETE FROM turns WHERE round = ?", (turn.round,))
            state.execute("DELETE FROM debits WHERE round = ?", (turn.round,))

        mock.patch.object(DeviceState, "note_try", forget).start()
    else:
        raise ValueError("no such mutant")


class Killer:
    """Starts syncs of the device in child processes and kills them."""

    def __init__(self, folder: Path, generator: random.Random, kills: Counter[str], endings: Counter[str]) -> None:
        self._folder, self._random = folder, generator
        self.kills, self.endings = kills, endings
        self._usual = 0.03

    def somehow(self) -> None:
        act = self._random.random()
        if act < 0.6:
            self.at_point(self._random.choice(LATE_POINTS if act < 0.5 else POINTS))
        elif act < 0.9:
            self.at_random()
        else:
            self.two_at_once(self._random.choice(POINTS))

    def at_point(self, point: str) -> None:
        self._ended(self._child(point), f"at {point}")

    def at_random(self) -> None:
        """SIGKILL from outside, at any instant of what a sync usually takes."""
        child = self._child(None)
        time.sleep(self._random.uniform(0, 1.2 * self._usual))
        os.kill(child, signal.SIGKILL)
        self._ended(child, "at a random instant")

    def two_at_once(self, point: str) -> None:
        """A second process of the same device works while the first is killed."""
        first, second = self._child(point), self._child(None)
        self._ended(first, f"at {point}, beside another process")
        self._ended(second, "")

    def undisturbed(self) -> str:
        begun = time.monotonic()
        ended = self._ended(self._child(None), "")
        self._usual = 0.7 * self._usual + 0.3 * (time.monotonic() - begun)
        return ended or ""

    def _child(self, point: str | None) -> int:
        child = os.fork()
        if child:
            return child
        try:

            def reached(name: str) -> None:
                if name == point:
                    os.kill(os.getpid(), signal.SIGKILL)

            with DeviceAgent.open(self._folder, clock=HandClock(), on_point=reached) as agent:
                status = agent.sync(immediately=True).status
            (self._folder / f"ended-{os.getpid()}").write_text(status)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(3)

    def _ended(self, child: int, what: str) -> str | None:
        """How a child ended: its status, or None if it was killed."""
        _, code = os.waitpid(child, 0)
        if os.WIFSIGNALED(code):
            self.kills[what] += 1
            return None
        if os.WEXITSTATUS(code):
            raise RuntimeError("a device failed otherwise than by a kill")
        note = self._folder / f"ended-{child}"
        status = note.read_text()
        note.unlink()
        self.endings[status] += 1
        return status


def broken_promises(service: Service, folder: Path) -> list[str]:
    """What must never be: two reports in a round, an unpaid report, a round paid twice."""
    reports: dict[int, set[str]] = {}
    for number, report in service.received():
        reports.setdefault(number, set()).add(report)
    with DeviceAgent.open(folder, clock=HandClock()) as agent:
        exported, spent = agent.export(), agent.status().budget.lifetime_epsilon
    paid = Counter(debit.round for debit in exported.ledger)
    kept = {turn.round: turn.bytes for turn in exported.sent}
    broken = [f"round {n}: {len(found)} different reports" for n, found in reports.items() if len(found) > 1]
    broken += [f"round {n}: reported and not paid" for n in reports if not paid[n]]
    broken += [f"round {n}: paid {times} times" for n, times in paid.items() if times > 1]
    broken += [f"round {n}: sent other bytes than it keeps" for n, found in reports.items() if found - {kept.get(n)}]
    if spent < EPSILON * len(reports) - 1e-9:
        broken.append("the ledger's sum is below what was reported")
    return broken


ROUNDS_PER_DEVICE = 20
"""then another device goes on: its whole ledger is read after every kill"""


class Loop:
    """Kills, and what was seen of each device until now."""

    def __init__(self, folder: Path, kills: int, seed: int) -> None:
        self._folder, self._kills, self._seed = folder, kills, seed
        self._random = random.Random(seed)
        self._task = MadeTask(epsilon=EPSILON, design=ReportDesign(10, 1, 2, SINK_SETS))
        self.kills: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.broken: list[str] = []
        self.rounds = self.devices = 0
        self.received: list[tuple[int, int, str]] = []

    @property
    def goes_on(self) -> bool:
        return sum(self.kills.values()) < self._kills and not self.broken

    def play(self) -> None:
        while self.goes_on:
            self.devices += 1
            folder = self._folder / str(self.devices)
            folder.mkdir()
            service = Service(folder, self._seed + self.devices)
            service.put(service.head_list, self._task.head_list())
            service.public_log.key = self._task.key
            service.put_manifest(self._task.manifest())
            server = service.start()
            try:
                self._play_device(service, folder / "device")
            finally:
                os.kill(server, signal.SIGKILL)
                os.waitpid(server, 0)
            self.received += [(self.devices, *row) for row in service.received()]

    def _play_device(self, service: Service, home: Path) -> None:
        killer = Killer(home, self._random, self.kills, self.endings)
        with device(home, service, self._task) as agent:
            agent.record("news", "https://news.example")
        for number in range(1, ROUNDS_PER_DEVICE + 1):
            if not self.goes_on:
                break
            self.rounds += 1
            service.put(service.head_list, self._task.head_list(number=number))
            service.put_manifest(self._task.manifest(number=number))
            for _ in range(self._random.randint(3, 7)):
                killer.somehow()
                self.broken += broken_promises(service, home)
            if not any(killer.undisturbed() == "reported" for _ in range(40)):
                self.broken.append(f"round {number}: never reported")
        self.broken += broken_promises(service, home)


def play(folder: Path, kills: int, seed: int) -> dict[str, object]:
    loop = Loop(folder, kills, seed)
    loop.play()
    return {
        "task": TASK,
        "started": NOW,
        "kills": sum(loop.kills.values()),
        "where": dict(sorted(loop.kills.items())),
        "endings": dict(loop.endings),
        "devices": loop.devices,
        "rounds": loop.rounds,
        "rounds_reported": len({(which, number) for which, number, _ in loop.received}),
        "reports_received": len(loop.received),
        "different_reports": len(set(loop.received)),
        "broken": loop.broken,
    }


if __name__ == "__main__":
    if len(sys.argv) > 4:
        become(sys.argv[4])
    sys.stdout.write(json.dumps(play(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])), indent=1) + "\n")
