"""The relay: what it waits for, what it passes on and in which order, what it refuses."""

from __future__ import annotations

import asyncio
import io
import random

import pytest
from starlette.testclient import TestClient

from relay_parts import SmallServer
from searchblend.core.errors import InvalidParameter
from searchblend.service.relay import Batches, GatewayLine, Relay, RelaySettings
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.wire.ohttp import (
    KEYS_MEDIA_TYPE,
    LARGEST_REQUEST,
    REQUEST_MEDIA_TYPE,
    RESPONSE_MEDIA_TYPE,
    GatewayKey,
    encode_configurations,
)

FOREVER = 1e6
SEALED = {"content-type": REQUEST_MEDIA_TYPE}


async def arrive(batches, n):
    """``n`` requests in this order; the list of those that have left, in the order in which they did."""
    left = []

    async def one(number):
        await batches.turn()
        left.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(n)]
    await asyncio.sleep(0)
    return left, tasks


def test_a_batch_leaves_when_it_is_full_in_random_order_and_no_sooner():
    async def play():
        batches = Batches(32, FOREVER)
        left, tasks = await arrive(batches, 31)
        await asyncio.sleep(0)
        assert (left, len(batches)) == ([], 31)
        last = asyncio.create_task(batches.turn())
        await asyncio.gather(*tasks, last)
        assert len(batches) == 0
        return left

    left = asyncio.run(play())
    assert sorted(left) == list(range(31))
    assert left != sorted(left), "true of one order in 31!, that is 8 · 10³³"


def test_a_batch_that_is_not_full_leaves_in_time():
    async def play():
        batches = Batches(32, 0.0)
        left, tasks = await arrive(batches, 3)
        await asyncio.gather(*tasks)
        return sorted(left)

    assert asyncio.run(play()) == [0, 1, 2]


def test_at_the_end_nothing_waits():
    async def play():
        left_batches = []
        batches = Batches(32, FOREVER, lambda: left_batches.append(1))
        left, tasks = await arrive(batches, 3)
        batches.close()
        await asyncio.gather(*tasks)
        await batches.turn()
        return sorted(left), len(left_batches)

    assert asyncio.run(play()) == ([0, 1, 2], 2)


def test_a_request_that_has_gone_holds_up_no_other():
    async def play():
        batches = Batches(3, FOREVER)
        left, tasks = await arrive(batches, 2)
        tasks[0].cancel()
        await asyncio.sleep(0)
        await asyncio.gather(batches.turn(), tasks[1])
        return left

    assert asyncio.run(play()) == [1]


class MadeGateway:
    """Answers a sealed request with its bytes reversed; gives out another key each time."""

    def __init__(self):
        self.taken, self.keys_asked = [], 0
        self.answer = lambda message: (200, RESPONSE_MEDIA_TYPE, message[::-1])

    def keys(self):
        self.keys_asked += 1
        secret = random.Random(self.keys_asked).randbytes(32)
        return 200, KEYS_MEDIA_TYPE, encode_configurations([GatewayKey.of_bytes(secret).configuration])

    def take(self, message):
        self.taken.append(message)
        return self.answer(message)


@pytest.fixture
def relay():
    gateway = MadeGateway()
    with SmallServer(gateway.keys, gateway.take) as server:
        line = GatewayLine(f"{server.address}/gateway", 60.0)
        metrics, log = ServiceMetrics(), io.StringIO()
        made = Relay(line, Batches(1, 0.0), metrics, Logbook(log))
        with TestClient(made.app(), raise_server_exceptions=False) as client:
            yield client, gateway, metrics, log, made
        line.close()


def eventually_keys(client):
    """The key configuration, as soon as the relay has it."""
    for _ in range(100_000):
        answer = client.get("/")
        if answer.status_code == 200:
            return answer
    raise AssertionError("the relay never got the gateway's key")


def test_all_devices_get_the_same_key_and_asking_asks_no_gateway(relay):
    client, gateway, _, _, _ = relay
    first = eventually_keys(client)
    assert first.headers["content-type"] == KEYS_MEDIA_TYPE
    assert "set-cookie" not in first.headers
    assert {client.get("/").content for _ in range(5)} == {first.content}
    assert gateway.keys_asked == 1


def test_a_request_is_passed_on_and_its_answer_back_with_no_other_header(relay):
    client, gateway, metrics, log, _ = relay
    headers = {**SEALED, "x-forwarded-for": "192.0.2.7", "cookie": "who=me", "user-agent": "one device"}
    for n in range(3):
        answer = client.post("/", content=f"sealed {n}".encode(), headers=headers)
        assert (answer.status_code, answer.content) == (200, f"sealed {n}".encode()[::-1])
        assert set(answer.headers) == {"content-type", "content-length", "cache-control"}
    assert gateway.taken == [b"sealed 0", b"sealed 1", b"sealed 2"]
    assert 'relayed_total{result="passed on"}' in metrics.exposition()
    assert log.getvalue() == ""


@pytest.mark.parametrize(
    ("status", "media_type", "content", "expected"),
    [
        (400, "application/problem+json", b'{"type":"x"}', 400),
        (503, "application/problem+json", b"{}", 503),
        (200, "text/html", b"<p>", 503),
        (302, RESPONSE_MEDIA_TYPE, b"", 503),
        (500, "text/plain", b"trace", 503),
        (400, "application/problem+json", b" " * 5000, 503),
    ],
)
def test_of_the_gateways_errors_only_small_problem_documents_are_passed_on(
    relay, status, media_type, content, expected
):
    client, gateway, _, _, _ = relay
    gateway.answer = lambda message: (status, media_type, content)
    answer = client.post("/", content=b"sealed", headers=SEALED)
    assert answer.status_code == expected
    assert "set-cookie" not in answer.headers
    if expected == status:
        assert answer.content == content


def test_what_the_relay_itself_refuses(relay):
    client, gateway, _, _, _ = relay
    assert client.post("/", content=b"sealed").status_code == 415
    assert client.post("/", content=bytes(LARGEST_REQUEST + 1), headers=SEALED).status_code == 413
    assert client.post("/", content=iter([bytes(LARGEST_REQUEST), b"x"]), headers=SEALED).status_code == 413
    assert client.post("/elsewhere", content=b"sealed", headers=SEALED).status_code == 404
    assert client.put("/", content=b"sealed", headers=SEALED).status_code == 405
    assert gateway.taken == []


def test_a_gateway_that_is_away_is_told_and_noted_once(relay):
    client, gateway, _, log, made = relay
    eventually_keys(client)
    gateway.answer = lambda message: None
    for _ in range(2):
        answer = client.post("/", content=b"sealed", headers=SEALED)
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:searchblend:problem:overloaded")
        assert 1 <= int(answer.headers["retry-after"]) <= 5
    assert made.is_answered is False
    assert client.get("/").status_code == 200, "the key is still given out"
    gateway.answer = lambda message: (200, RESPONSE_MEDIA_TYPE, b"back")
    assert client.post("/", content=b"sealed", headers=SEALED).content == b"back"
    assert log.getvalue().count("does not answer") == log.getvalue().count("answers again") == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gateway": "http://lists.example/x"}, "gateway"),
        ({"gateway": "http://127.lists.example/x"}, "gateway"),
        ({"gateway": "lists.example"}, "gateway"),
        ({"gateway": "https://ann@lists.example"}, "gateway"),
        ({"gateway": "https://lists.example/x?y"}, "gateway"),
        ({"gateway": "https://lists.example:0/"}, "gateway"),
        ({"gateway": "https://lists.example:x/"}, "gateway"),
        ({"gateway": "https://lists.example/\r\nx"}, "gateway"),
        ({"delay": 11.0}, "delay"),
        ({"delay": float("nan")}, "delay"),
        ({"batch": 0}, "batch"),
        ({"connections": 1}, "connections"),
        ({"tls_key": "x"}, "tls_certificate"),
    ],
)
def test_settings_that_cannot_be_used_are_named(changes, field):
    with pytest.raises(InvalidParameter) as refusal:
        RelaySettings(**{"gateway": "https://lists.example/gateway", **changes})
    assert refusal.value.field == field
