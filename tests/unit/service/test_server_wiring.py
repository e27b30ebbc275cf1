"""What a server process puts together: its worker overwrites and destroys in time, and readiness tells of trouble."""

from __future__ import annotations

import pytest

from searchblend.service.clock import SteadyClock
from searchblend.service.lifecycle import CANDIDATE, Lifecycle
from searchblend.service.serve import _add_troubles, make_worker
from searchblend.service.services import Services
from searchblend.service.settings import ServeSettings
from searchblend.service.telemetry import Logbook
from searchblend.store.errors import StoreUnavailable
from service_http import http_service
from service_parts import SMALL, ManualClock, Service

DAY = 86_400
REMOVED = b"planted text that a reviewer removed"


@pytest.fixture
def service(tmp_path):
    made = Service.start(str(tmp_path / "service.db"), tmp_path)
    yield made
    made.store.close()


def worker_of(service):
    """As ``searchblend serve`` makes it, not as these tests' own parts do."""
    settings = ServeSettings(data_dir=str(service.folder))
    services = Services(settings.where, clock=service.clock, logbook=Logbook(service.log))
    return make_worker(settings, service.store, service.clock, services)


def test_a_servers_worker_leaves_removed_text_in_no_file(service):
    service.store.artifacts.keep(1, CANDIDATE, REMOVED)
    service.store.artifacts.drop(1, CANDIDATE)

    def found():
        return [path.name for path in service.folder.glob("service.db*") if REMOVED in path.read_bytes()]

    assert found() == ["service.db-wal"]
    worker_of(service).run_once()
    assert found() == []


def test_a_servers_worker_destroys_a_key_at_its_deadline_before_it_asks_the_database(service, monkeypatch):
    service.open(service.task())
    service.clock.time += SMALL["shred_seconds"]

    def away(*arguments):
        raise StoreUnavailable("the database is out of reach")

    monkeypatch.setattr(Lifecycle, "tick", away)
    with pytest.raises(StoreUnavailable):
        worker_of(service).run_once()
    assert service.vault.held() == []


def test_a_servers_worker_destroys_a_key_that_no_round_needs(service):
    service.vault.create("ab" * 16, 1, destroy_by=service.clock.now() + DAY)
    worker_of(service).run_once()
    assert service.vault.held() == []


class Machine:
    """Its clock can be set."""

    def __init__(self):
        self.wrong = 0.0

    def clock(self):
        now = ManualClock().now()
        return SteadyClock(lambda: now + self.wrong, lambda: 0.0)


TROUBLES = {
    "its clock jumped": (lambda machine, parts: setattr(machine, "wrong", 30 * DAY), "clock has jumped"),
    "a round key is left past its deadline": (
        lambda machine, parts: parts.vault.create("ab" * 16, 1, destroy_by=parts.clock.now() - DAY),
        "1 round keys are past their deadline",
    ),
    "its signing keys are not those on record": (lambda machine, parts: parts.signing_keys.add(), "keys adopt"),
}


@pytest.mark.parametrize("what", TROUBLES)
def test_a_server_is_not_ready_when(tmp_path, what):
    machine, (act, says) = Machine(), TROUBLES[what]
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        _add_troubles(ServeSettings(data_dir=str(tmp_path)), machine.clock(), http.services)
        http.parts.work()
        assert http.health.get("/readyz").text == "ready\n"
        act(machine, http.parts)
        answer = http.health.get("/readyz")
        assert (answer.status_code, says in answer.text) == (503, True)
