"""A relay that drops, repeats, holds back and reorders what devices send: after retries each report counts once."""

from __future__ import annotations

import http.client
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from relay_parts import SmallServer
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import text_of
from searchblend.device.state import DeviceState
from searchblend.files.sqlite import IN_MEMORY
from searchblend.service.clock import SystemClock
from searchblend.wire.ohttp import GATEWAY_PATH, REQUEST_MEDIA_TYPE
from service_parts import Service, enough_to_answer, people
from service_process import ServerProcess, running

DEVICES = 60


class HostileRelay:
    """Of every ten requests it drops two, drops the answers to two, brings two twice, and repeats old ones."""

    def __init__(self, service: str) -> None:
        self._to = urlsplit(service)
        self._random, self._lock = random.Random(5), threading.Lock()
        self.kept: list[bytes] = []
        self.mischief = {"dropped": 0, "unanswered": 0, "twice": 0, "old": 0}

    def get(self) -> tuple[int, str, bytes]:
        return self._ask("GET", b"")

    def post(self, message: bytes) -> tuple[int, str, bytes] | None:
        with self._lock:
            draw, self.kept = self._random.random(), [*self.kept, message]
            old = self._random.choice(self.kept)
        if draw < 0.2:
            self.mischief["dropped"] += 1
            return None
        if draw < 0.4:
            self.mischief["unanswered"] += 1
            self._ask("POST", message)
            return None
        if draw < 0.6:
            self.mischief["twice"] += 1
            self._ask("POST", message)
        if draw > 0.8:
            self.mischief["old"] += 1
            self._ask("POST", old)
        return self._ask("POST", message)

    def again(self) -> None:
        """Everything once more, in another order."""
        for message in self._random.sample(self.kept, len(self.kept)):
            self._ask("POST", message)

    def _ask(self, method: str, message: bytes) -> tuple[int, str, bytes]:
        line = http.client.HTTPConnection(self._to.hostname or "", self._to.port, timeout=240)
        try:
            line.request(method, GATEWAY_PATH, message, {"Content-Type": REQUEST_MEDIA_TYPE})
            answer = line.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read()
        finally:
            line.close()


def test_a_relay_that_drops_repeats_and_reorders_loses_nothing_and_adds_nothing(tmp_path):
    parts = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    seconds = {"client_seconds": 100_000, "optin_seconds": 100_000, "shred_seconds": 200_000}
    task = parts.task(max_head_queries=30, **seconds)
    parts.contribute(parts.open(task), [*people(399, seed=1), *enough_to_answer()])
    with running(ServerProcess(tmp_path, str(tmp_path / "service.db"), "--demo-server")) as server:
        found = parts.head_list(task)
        point = parts.signing_keys.all()[0].public_point.hex()
        hostile = HostileRelay(server.address)
        with SmallServer(hostile.get, hostile.post) as relay:

            def take_part(number: int) -> int:
                """How many syncs it took."""
                with DeviceAgent(DeviceState(IN_MEMORY), clock=SystemClock().now) as agent:
                    agent.enrol("https://lists.example", task.task, [point], relay=relay.address)
                    agent.consent("local", text_of("local"))
                    agent.record("weather", "http://weather.example/a")
                    for tries in range(1, 100):
                        if agent.sync(immediately=True).status == "reported":
                            return tries
                raise AssertionError(f"device {number} was never answered")

            with ThreadPoolExecutor(4) as pool:
                tries = list(pool.map(take_part, range(DEVICES)))
            assert max(tries) > 1
            assert all(hostile.mischief.values())
            assert parts.store.reports.n_seen(found.key) == DEVICES
            hostile.again()
            assert parts.store.reports.n_seen(found.key) == DEVICES
        cells = parts.store.database.execute("SELECT SUM(n) FROM counts WHERE round_key = ?", (found.key,))
        per_report = parts.store.database.execute("SELECT COUNT(*) FROM seen WHERE round_key = ?", (found.key,))
        assert per_report[0][0] == DEVICES
        assert cells[0][0] % DEVICES == 0
