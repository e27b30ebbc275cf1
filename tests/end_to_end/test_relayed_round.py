"""A whole round through a relay: device → relay process → gateway of a real server → a counted report.

Taps on both wires show all that the relay and the service could see.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import threading
import urllib.request

import pytest

from relay_parts import SmallServer, Tap
from relay_process import relaying
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import text_of
from searchblend.service.clock import SystemClock
from searchblend.wire.enrolment import read_enrolment
from searchblend.wire.ohttp import GATEWAY_PATH, KEYS_MEDIA_TYPE, RESPONSE_MEDIA_TYPE, GatewayKey, encode_configurations
from service_parts import Service, enough_to_answer, people
from service_process import ServerProcess, free_port

CODE = "a code of more than twenty-two signs"
ALLOWED = {b"host", b"content-type", b"content-length"}


def heads(wire):
    """Request line and header names of each request on a wire."""
    found = []
    for match in re.finditer(rb"(GET|POST) (\S+) HTTP/1\.1\r\n((?:[^\r\n]+\r\n)*)\r\n", bytes(wire)):
        names = {line.partition(b":")[0].lower() for line in match[3].splitlines()}
        found.append((match[1].decode(), match[2].decode(), names))
    return found


def test_a_round_through_a_relay(tmp_path):
    parts = Service.start(str(tmp_path / "service.db"), tmp_path, SystemClock())
    seconds = {"client_seconds": 100_000, "optin_seconds": 100_000, "shred_seconds": 200_000}
    task = parts.task(max_head_queries=30, **seconds)
    parts.contribute(parts.open(task), [*people(399, seed=1), *enough_to_answer()])
    with contextlib.ExitStack() as stack:
        port = free_port()
        to_gateway = stack.enter_context(Tap(f"http://127.0.0.1:{port}").running())
        # The relay is there before its gateway, and finds it when it comes.
        relay = stack.enter_context(relaying(tmp_path, to_gateway.address + GATEWAY_PATH, "--delay", "0.05"))
        to_relay = stack.enter_context(Tap(relay.address).running())
        server = ServerProcess(tmp_path, str(tmp_path / "service.db"), "--demo-server", "--relay", to_relay.address)
        server.start(port=port)
        stack.callback(lambda: server.is_running and server.kill())
        relay.wait_until_ready()

        with urllib.request.urlopen(f"{server.address}/v1/tasks/{task.task}/enrolment", timeout=60) as answer:
            enrolment = read_enrolment(answer.read().decode())
        assert enrolment.relay == to_relay.address
        opt_in, client = (
            stack.enter_context(DeviceAgent.open(tmp_path / name, create=True)) for name in ("opt-in", "client")
        )
        for agent, mode in ((opt_in, "opt-in"), (client, "local")):
            agent.enrol_with(enrolment, code=CODE)
            agent.consent(mode, text_of(mode))
            assert agent.record("weather", "http://weather.example/a").kept
        outcome = opt_in.sync(immediately=True)
        assert outcome.status == "reported", outcome
        assert opt_in.consent("off").status == "withdrawn"

        found = parts.head_list(task)
        outcome = client.sync(immediately=True)
        assert outcome.status == "reported", outcome
        assert parts.store.reports.n_seen(found.key) == 1
        (sent,) = client.sent()

        # What a careless device says of itself goes no further than the relay.
        careless = {"Content-Type": "message/ohttp-req", "User-Agent": "ann's telephone", "Cookie": "ann=1"}
        careless |= {"X-Forwarded-For": "192.0.2.7", "Forwarded": "for=192.0.2.7"}
        with contextlib.closing(http.client.HTTPConnection(*relay.address.removeprefix("http://").split(":"))) as line:
            line.request("POST", "/", b"not sealed", careless)
            refused = line.getresponse()
            assert (refused.status, json.loads(refused.read())["title"]) == (
                400,
                "The message does not have the form that the round asks for",
            )
        assert relay.terminate() == 0
        assert server.terminate() == 0

    seen_by_relay = bytes(to_relay.sent + to_relay.answered)
    for secret in (
        task.task.encode(),
        b"manifest",
        b"lists",
        b"weather",
        CODE.encode(),
        bytes.fromhex(sent.bytes),
        b"urn:searchblend",
    ):
        assert secret not in seen_by_relay
    assert {(method, path) for method, path, _ in heads(to_relay.sent)} == {("GET", "/"), ("POST", "/")}
    asked = heads(to_gateway.sent)
    assert {(method, path) for method, path, _ in asked} == {("GET", GATEWAY_PATH), ("POST", GATEWAY_PATH)}
    assert all(names <= ALLOWED for _, _, names in asked)
    for personal in (b"192.0.2.7", b"telephone", b"ann"):
        assert personal not in bytes(to_gateway.sent).replace(b"not sealed", b"")
    log = relay.log.read_text()
    assert "127.0.0.1" not in log
    assert {json.loads(line)["event"] for line in log.splitlines()} <= {
        "starting", "listening", "the gateway does not answer", "the gateway answers again", "stopped",
    }  # fmt: skip


def test_a_relay_that_is_ended_answers_what_it_took(tmp_path):
    arrived, go = threading.Event(), threading.Event()

    def take(message):
        arrived.set()
        go.wait(60)
        return 200, RESPONSE_MEDIA_TYPE, message[::-1]

    keys = encode_configurations([GatewayKey.of_bytes(bytes(range(32))).configuration])
    with (
        SmallServer(lambda: (200, KEYS_MEDIA_TYPE, keys), take) as gateway,
        relaying(tmp_path, gateway.address, "--batch", "1") as relay,
    ):
        relay.wait_until_ready()
        assert relay.status("/healthz") == 200
        answers = []

        def ask():
            with contextlib.closing(
                http.client.HTTPConnection(*relay.address.removeprefix("http://").split(":"), timeout=120)
            ) as line:
                line.request("POST", "/", b"sealed", {"Content-Type": "message/ohttp-req"})
                answers.append(line.getresponse().read())

        thread = threading.Thread(target=ask)
        thread.start()
        assert arrived.wait(240)
        assert "searchblend_connections 1" in relay.metrics()
        threading.Timer(0.2, go.set).start()
        assert relay.terminate() == 0
        thread.join(120)
        assert answers == [b"delaes"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--gateway", "http://lists.example/"], "--gateway"),
        (["--gateway", "https://lists.example/", "--listen", "8480"], "--listen"),
        (["--gateway", "https://lists.example/", "--delay", "60"], "--delay"),
        (["--gateway", "https://lists.example/", "--tls-certificate", "x"], "--tls-certificate"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(arguments, says, capsys):
    from searchblend.cli.main import main

    assert main(["relay", *arguments]) == 2
    errors = capsys.readouterr().err
    assert says in errors
    assert "Traceback" not in errors
