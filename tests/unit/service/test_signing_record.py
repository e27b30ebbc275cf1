"""One set of signing keys signs; a publisher with others says so and leaves the manifests alone."""

from __future__ import annotations

import io
import json

import pytest

from searchblend.service.checkup import check_up
from searchblend.service.settings import ServeSettings
from searchblend.service.workers.publisher import MANIFEST_SECONDS
from searchblend.service.workers.signing_keys import OtherSigningKeys, keys_on_record
from service_parts import Service


@pytest.fixture
def service(tmp_path):
    made = Service.start(str(tmp_path / "service.db"), tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def other(service, tmp_path):
    """A publisher with a folder of its own, and so with keys of its own."""
    made = Service(service.store, service.clock, tmp_path / "other", io.StringIO())
    made.signing_keys.add()
    return made


def signers(service, task):
    document = json.loads(service.store.artifacts.manifest(task.task)[2])
    return [signature["key_id"] for signature in document["signatures"]]


def test_two_publishers_with_keys_of_their_own_do_not_sign_over_each_other(service, other):
    task = service.task()
    service.work()
    first = service.store.artifacts.manifest(task.task)
    for _ in range(3):
        with pytest.raises(OtherSigningKeys):
            other.publisher.refresh_manifests()
        service.work()
    assert service.store.artifacts.manifest(task.task) == first
    service.lifecycle.kill(task, actor="ann")
    other.work()
    assert service.store.artifacts.manifest(task.task) == first
    assert "OtherSigningKeys" in other.log.getvalue()
    service.work()
    assert service.store.artifacts.manifest(task.task)[0] > first[0]


def test_the_doctor_says_that_a_folders_keys_are_not_those_on_record(service, other):
    service.work()

    def signing_keys(data_dir):
        findings = check_up(service.store, service.clock, ServeSettings(data_dir=str(data_dir)))
        return next(finding for finding in findings if finding.check == "signing keys")

    assert signing_keys(service.folder).fine
    assert not signing_keys(other.folder).fine
    assert "keys adopt" in signing_keys(other.folder).detail


def test_adopted_keys_sign_from_then_on(service, other):
    task = service.task()
    service.work()
    other.adopt_keys()
    other.work()
    assert signers(service, task) == keys_on_record(service.store) == [other.signing_keys.all()[0].key_id]
    with pytest.raises(OtherSigningKeys):
        service.publisher.refresh_manifests()


def test_a_manifest_from_a_future_that_did_not_come_is_signed_anew(service):
    """It was signed while a clock was thirty days ahead; devices would refuse it for a month."""
    task = service.task()
    service.clock.time += 30 * 86_400
    service.work()
    ahead = service.store.artifacts.manifest(task.task)
    service.clock.time -= 30 * 86_400
    service.work()
    sequence, expires, _ = service.store.artifacts.manifest(task.task)
    assert sequence > ahead[0]
    assert expires == service.clock.now() + MANIFEST_SECONDS
