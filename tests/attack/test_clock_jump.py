"""Clock jump: the server's clock is wrong by a month for a few seconds. Rounds go on, and devices believe manifests."""

from __future__ import annotations

import time

import pytest

from attack_child import WrongClock
from attack_service import COMMON, DAY, attacked, wait_for
from databases import DATABASES, fresh_database
from searchblend.core.documents import decode
from searchblend.device.policy import POLICY, LastManifest, check_manifest
from searchblend.wire.manifest import Manifest

HONEST = COMMON * 20
JUMPS = [30 * DAY, -30 * DAY, 3650 * DAY]


@pytest.fixture(scope="module", params=DATABASES)
def service(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    clock = WrongClock(folder)
    with attacked(folder, fresh_database(request.param, folder), environment=clock.environment) as running:
        running.clock = clock
        yield running
        clock.move(0)


def jump(service, seconds):
    """Wrong until the workers have looked at it dozens of times, then right again."""
    service.clock.move(seconds)
    service.clock.wait_seen()
    service.clock.move(0)
    service.clock.wait_seen()


class Device:
    """What a device remembers between two looks at the manifest."""

    def __init__(self, service, task):
        self._service, self._task, self._last = service, task, LastManifest()

    def believes(self, phase):
        """The manifest of this phase, which a device with a right clock takes part in."""
        manifest = self._service.manifest(self._task, phase)
        now = int(time.time())
        read = decode(Manifest, manifest)
        self._last = check_manifest(read, task=self._task, last=self._last, now=now, policy=POLICY)
        part = manifest["optin" if phase == "opt-in" else "client"]
        assert part.get("opens", 0) <= now + POLICY.clock_skew_seconds
        assert part["closes"] > now
        return manifest


@pytest.mark.parametrize("seconds", JUMPS)
def test_a_jump_in_the_opt_in_window_ends_no_round(service, seconds):
    task = service.task()
    service.open_round(task)
    device = Device(service, task)
    device.believes("opt-in")
    jump(service, seconds)
    manifest = device.believes("opt-in")
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    _, drawn = service.draw(task)
    assert drawn["records"] == len(HONEST)


@pytest.mark.parametrize("seconds", JUMPS)
def test_a_jump_in_the_clients_window_ends_no_round(service, seconds):
    task = service.task()
    service.play_optin(task, HONEST)
    service.act(task, "review", "reviewer")
    service.wait_state(task, "CLIENT_OPEN")
    device = Device(service, task)
    device.believes("client")
    jump(service, seconds)
    service.report(device.believes("client"), HONEST)
    service.act(task, "close-clients")
    service.act(task, "end-grace")
    service.wait_state(task, "PUBLISHED")


@pytest.mark.parametrize("seconds", JUMPS)
def test_a_round_that_is_opened_while_the_clock_is_wrong_harms_no_device(service, seconds):
    """Opened or not: once the clock is right, the next round of the task is one that devices believe."""
    task = service.task()
    device = Device(service, task)
    service.clock.move(seconds)
    try:
        service.draft(task)
        service.admin("POST", f"/tasks/{task}/rounds/1/open")
        service.clock.wait_seen()
    finally:
        service.clock.move(0)
    service.clock.wait_seen()
    if service.round(task)["state"] == "DRAFT":
        service.admin("POST", f"/tasks/{task}/rounds/1/open")

    def reaches_a_round():
        state = service.round(task)["state"]
        if state == "ABORTED":
            service.open_round(task)
        return state == "OPTIN_OPEN" and service.manifest(task, "opt-in")["optin"]["closes"] > time.time()

    wait_for(reaches_a_round, "an open round")
    device.believes("opt-in")


def test_keys_and_records_outlive_no_deadline_whatever_the_clock_did(service):
    """A jump must not put off what has to be destroyed."""
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    jump(service, -30 * DAY)
    jump(service, 30 * DAY)
    assert service.round(task)["state"] == "OPTIN_OPEN"
    service.sql("UPDATE rounds SET shred_by = ? WHERE task = ?", int(time.time()) - 1, task)
    wait_for(lambda: service.round(task)["state"] == "ABORTED", "the deadline")
    wait_for(lambda: not list((service.folder / "keys").glob(f"{task}*.key")), "the end of the key")


def test_staff_stay_signed_in_and_jobs_are_not_doubled(service):
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    service.act(task, "close-opt-in")
    jump(service, 30 * DAY)
    number = service.wait_state(task, "SHREDDED")["round"]
    draws = [row for row in service.audit() if row["detail"].get("to") == "HEADLIST_READY"]
    assert sum((row["detail"]["task"], row["detail"]["round"]) == (task, number) for row in draws) == 1
