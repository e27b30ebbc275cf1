"""A device that asks through a relay: sealed to a key that the manifest names, and to no other."""

from __future__ import annotations

import contextlib

import pytest

from device_parts import CODE, HandClock, MadeTask, RecordingService, nothing_was_sent, problem, sync
from relay_parts import MadeGateway, SmallServer
from searchblend.core.errors import InvalidParameter
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import OPT_IN, text_of
from searchblend.wire.enrolment import EnrolmentDocument
from searchblend.wire.ohttp import GatewayKey

OTHER = GatewayKey.of_bytes(bytes(reversed(range(32))))


@contextlib.contextmanager
def world(folder, *, mode="local", phase="client", gateway=None, **changes):
    """A service, its gateway, a relay and a device that knows the service by name alone."""
    task = MadeTask()
    with RecordingService() as service:
        made = MadeGateway(service.address)
        made.task = task
        keys = {"minor": 2, "gateway": made.digests if gateway is None else gateway, **changes}
        service.log.key = task.key
        service.serve(task, phase=phase, **keys)
        posts = []

        def post(message):
            posts.append(message)
            return relay.post(message)

        relay = Relay(made)
        with (
            SmallServer(lambda: relay.get(), post) as server,
            DeviceAgent.open(folder, create=True, clock=HandClock()) as agent,
        ):
            agent.enrol("https://lists.example", task.task, [task.point], code=CODE, relay=server.address)
            agent.consent(mode, task.consent if mode == OPT_IN else text_of(mode))
            assert agent.record("Weather", "https://weather.example/").kept
            yield agent, service, made, relay, posts


class Relay:
    """An honest one, until a test gives it another way to answer."""

    def __init__(self, gateway):
        self.get, self.post = gateway.keys, gateway.take


def test_a_report_arrives_and_shows_nothing_of_who_sent_it(tmp_path):
    with world(tmp_path) as (agent, service, gateway, _, posts):
        assert agent.status().relay.startswith("http://127.0.0.1")
        assert sync(agent).status == "reported"
        ((method, path, report),) = service.received
        assert (method, path.rpartition("/")[2]) == ("POST", "reports")
        assert {request.method for request in gateway.opened[:-1]} == {"GET"}
        assert all(request.authority == "lists.example" for request in gateway.opened)
        assert {request.fields for request in gateway.opened[:-1]} == {()}
        assert gateway.opened[-1].fields == (("content-type", "application/vnd.searchblend.report"),)
        assert {len(message) for message in posts} == {1024 + 55}, "the relay cannot tell a report from a question"
        assert not any(report in message or b"manifest" in message for message in posts)


def test_a_record_is_sealed_twice_and_can_be_taken_back(tmp_path):
    with world(tmp_path, mode=OPT_IN, phase="opt-in") as (agent, service, gateway, _, posts):
        assert sync(agent).status == "reported"
        assert gateway.opened[-1].fields[0] == ("content-type", "application/vnd.searchblend.sealed")
        assert ("authorization", f"Bearer {CODE}") in gateway.opened[-1].fields
        n_before = len(gateway.opened)
        assert agent.consent("off").status == "withdrawn"
        assert [request.method for request in gateway.opened[n_before:]] == ["DELETE"]
        assert service.received[-1][0] == "DELETE"
        assert not any(CODE.encode() in message for message in posts)


def test_a_device_that_starts_anew_sees_a_manifest_before_it_sends_its_code(tmp_path):
    with world(tmp_path, mode=OPT_IN, phase="opt-in") as (agent, _, gateway, _, _):
        assert sync(agent).status == "reported"
        agent.close()
        with DeviceAgent.open(tmp_path, clock=HandClock()) as again:
            assert again.consent("off").status == "withdrawn"
        assert [request.method for request in gateway.opened[-4:]] == ["GET", "GET", "GET", "DELETE"]
        assert [request.path.rpartition("/")[2] for request in gateway.opened[-4:-2]] == ["manifest", "checkpoint"]


@pytest.mark.parametrize("named", [[], [OTHER.configuration.digest]])
def test_a_key_that_no_manifest_names_gets_nothing_but_public_questions(tmp_path, named):
    with world(tmp_path, gateway=named) as (agent, service, gateway, _, _):
        outcome = sync(agent)
        assert (outcome.status, outcome.ok) == ("gateway-key", False)
        assert nothing_was_sent(service, agent)
        assert {(request.method, request.fields) for request in gateway.opened} == {("GET", ())}


def test_an_earlier_manifest_names_no_key(tmp_path):
    task = MadeTask()
    with world(tmp_path) as (agent, service, gateway, _, _):
        service.manifest = task.manifest()  # of minor version 1, by another key: not believed at all
        assert sync(agent).status == "forged"
        assert [request.method for request in gateway.opened] == ["GET"]


def test_a_relay_that_gives_out_its_own_key_does_not_see_a_code(tmp_path):
    """It reads along what anyone may ask, and no more: neither a record nor the request to take one back."""
    with world(tmp_path, mode=OPT_IN, phase="opt-in") as (agent, service, _, relay, _):
        assert sync(agent).status == "reported"
        agent.close()
        spy = MadeGateway(service.address, bytes(reversed(range(32))))
        relay.get, relay.post = spy.keys, spy.take
        with DeviceAgent.open(tmp_path, clock=HandClock()) as again:
            assert sync(again).status == "gateway-key"
            outcome = again.consent("off")
            assert (outcome.status, outcome.ok) == ("unanswered", False)
        assert {(request.method, request.fields) for request in spy.opened} == {("GET", ())}
        assert len(service.received) == 1


@pytest.mark.parametrize("why", ["rolled-back", "not-logged"])
def test_a_manifest_that_is_refused_vouches_for_no_key(tmp_path, monkeypatch, why):
    """Of a relay with a stolen key: an old manifest that named it, or one that was signed for this device alone."""
    with world(tmp_path, mode=OPT_IN, phase="opt-in", sequence=9) as (agent, service, gateway, relay, _):
        assert sync(agent).status == "reported"
        spy = MadeGateway(service.address, bytes(reversed(range(32))))
        relay.get, relay.post = spy.keys, spy.take
        number = 3 if why == "rolled-back" else 12
        service.manifest = gateway.task.manifest("opt-in", minor=2, sequence=number, gateway=spy.digests)
        if why == "not-logged":
            monkeypatch.setattr(service.log, "add", lambda manifest: None)
        assert sync(agent).status == why
        outcome = agent.consent("off")
        assert (outcome.status, outcome.ok) == ("unanswered", False)
        assert {(request.method, request.fields) for request in spy.opened} == {("GET", ())}
        assert len(service.received) == 1


def test_a_key_that_was_exchanged_meanwhile_is_asked_for_again(tmp_path):
    with world(tmp_path, gateway=[OTHER.configuration.digest]) as (agent, service, gateway, relay, _):
        stale = gateway.keys()
        gateway.key = OTHER
        asked = []

        def keys():
            asked.append(1)
            return stale if len(asked) == 1 else gateway.keys()

        relay.get = keys
        assert sync(agent).status == "reported"
        assert (len(asked), len(service.reports())) == (2, 1)


def test_a_relay_that_never_gives_out_the_gateways_key_is_no_answer(tmp_path):
    with world(tmp_path) as (agent, service, gateway, relay, posts):
        relay.get = MadeGateway(service.address, bytes(reversed(range(32)))).keys
        assert sync(agent).status == "no-answer"
        assert (len(posts), gateway.opened) == (2, [])


def test_what_was_dropped_on_the_way_is_sent_again_and_counts_once(tmp_path):
    with world(tmp_path) as (agent, service, gateway, relay, _):
        dropped = []

        def drop_the_answer_to_a_report(message):
            answer = gateway.take(message)
            if gateway.opened[-1].method == "POST" and len(dropped) < 2:  # after the first it is sent again at once
                dropped.append(message)
                return None
            return answer

        relay.post = drop_the_answer_to_a_report
        assert sync(agent).status == "unanswered"
        assert sync(agent).status == "reported"
        first, *others = service.reports()
        assert others == [first] * 2, "the same bytes, which a service counts once"
        relay.post(dropped[0])
        assert service.reports() == [first] * 4, "a relay that brings them again brings the same bytes"


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (200, "message/ohttp-res", b""),
        (200, "message/ohttp-res", bytes(1056)),
        (200, "text/html", b"sign in to this network"),
        (400, "application/problem+json", problem("malformed")),
        (503, "application/problem+json", problem("overloaded")),
        (200, "message/ohttp-res", bytes(4 << 20)),
    ],
    ids=["dropped", "empty", "not sealed", "a page", "refused", "overloaded", "too large"],
)
def test_an_answer_that_is_not_the_gateways_is_no_answer(tmp_path, answer):
    with world(tmp_path) as (agent, service, _, relay, _):
        relay.post = lambda message: answer
        outcome = sync(agent)
        assert (outcome.status, outcome.ok) == ("no-answer", False)
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize(
    "answer",
    [(200, "application/ohttp-keys", b"junk"), (503, "application/problem+json", b"{}"), (200, "text/html", b"")],
)
def test_a_relay_without_a_key_is_no_answer(tmp_path, answer):
    with world(tmp_path) as (agent, service, _, relay, posts):
        relay.get = lambda: answer
        assert sync(agent).status == "no-answer"
        assert not posts
        assert nothing_was_sent(service, agent)


def test_the_relay_comes_with_the_enrolment(tmp_path):
    document = EnrolmentDocument("https://lists.example", "00" * 16, ("04" + "ab" * 64,), relay="https://relay.example")
    with DeviceAgent.open(tmp_path, create=True) as agent:
        agent.enrol_with(document)
        assert agent.status().relay == "https://relay.example"
        with pytest.raises(InvalidParameter, match="relay: expected https"):
            agent.enrol("https://lists.example", "00" * 16, ["04" + "ab" * 64], relay="http://relay.example")
