"""A round whose row was changed after the curator opened it: no device is told of it, and no record of it is opened."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import pytest

from databases import DATABASES, fresh_database
from searchblend.core.documents import decode
from searchblend.core.errors import InputError, InvalidParameter, UsageError
from searchblend.service.checkup import check_up, gauges
from searchblend.service.lifecycle import CANDIDATE, OPTIN_RESULT, REVIEWED
from searchblend.service.review import Removal, Review
from searchblend.service.round_model import drawn_by, is_signed_by_curator
from searchblend.service.serve import prepare_folders
from searchblend.service.settings import ServeSettings
from searchblend.service.workers.publisher import HEAD_LIST
from searchblend.service.workers.signing_keys import CURATOR_FILE, curator_points, make_curator_key, read_curator_key
from searchblend.store.states import State
from searchblend.wire.canonical import json_bytes
from searchblend.wire.head_list import decode_head_list
from searchblend.wire.manifest import Manifest
from searchblend.wire.sealed import new_round_key
from searchblend.wire.signing import SigningKey, is_drawn_by_curator, is_round_key_signed, verify_manifest
from service_parts import Service, crowd, people


@pytest.fixture(params=DATABASES)
def service(request, tmp_path):
    made = Service.start(fresh_database(request.param, tmp_path), tmp_path)
    yield made
    made.store.close()


def change(service, round_, **columns):
    """What a holder of the database's password can do."""
    for name, value in columns.items():
        service.store.database.execute(f"UPDATE rounds SET {name} = ? WHERE round_key = ?", (value, round_.key))


def settings_with(round_, **changes):
    return json.dumps({**round_.settings, **changes})


def manifest(service, task):
    pinned = {key.key_id: key.public_point for key in service.signing_keys.all()}
    return verify_manifest(service.store.artifacts.manifest(task.task)[2], pinned).document


def sign_again(service):
    """Make the publisher sign anew."""
    service.clock.time += 5 * 86_400
    service.work()


def actions(service):
    return [row.entry.action for row in service.store.audit.rows()]


def findings(service):
    settings = ServeSettings(data_dir=str(service.folder))
    return {found.check: found for found in check_up(service.store, service.clock, settings)}


LONG = {"optin_seconds": 30 * 86_400, "shred_seconds": 60 * 86_400}
CHANGES = {
    "the public key": lambda found: {"public_key": new_round_key()[1]},
    "no signature": lambda found: {"key_signature": None},
    "a signature that is none": lambda found: {"key_signature": "{"},
    "a stranger's signature": lambda found: {
        "key_signature": json_bytes(SigningKey.new().sign(b"anything")).decode(),
        "public_key": new_round_key()[1],
    },
    "when it closes": lambda round_: {"optin_closes": round_.optin_closes + 1},
    "epsilon": lambda found: {"settings": settings_with(found, epsilon=8.0)},
    "how many people it needs": lambda found: {"settings": settings_with(found, min_optin=50)},
    "the consent text": lambda found: {"settings": settings_with(found, consent="I agree to anything.")},
}


def test_the_manifest_carries_the_curators_signature(service):
    task = service.task()
    service.open(task)
    curator = service.curator_key
    assert is_round_key_signed(decode(Manifest, manifest(service, task)), {curator.key_id: curator.public_point})


@pytest.mark.parametrize("what", CHANGES)
def test_the_publisher_signs_no_round_that_was_changed(service, what):
    task, other = service.task(name="changed", **LONG, min_optin=100), service.task(name="left alone", **LONG)
    round_, _ = service.open(task), service.open(other)
    before = manifest(service, task)
    change(service, round_, **CHANGES[what](round_))
    for _ in range(2):
        sign_again(service)
    assert manifest(service, task) == before, "nothing was signed since"
    assert manifest(service, other)["issued"] == service.clock.now(), "one task's trouble is its own"
    assert actions(service).count("round key refused") == 1
    assert gauges(service.store, service.clock)["round_keys_refused"] == 1
    assert not findings(service)[f"curator's signature {task.task[:8]}/1"].fine
    assert findings(service)[f"curator's signature {other.task[:8]}/1"].fine


def test_a_change_that_is_undone_is_forgotten(service):
    task = service.task(**LONG)
    round_ = service.open(task)
    change(service, round_, public_key=new_round_key()[1])
    sign_again(service)
    change(service, round_, public_key=round_.public_key)
    sign_again(service)
    assert manifest(service, task)["issued"] == service.clock.now()
    assert gauges(service.store, service.clock)["round_keys_refused"] == 0
    service.contribute(round_, people(60, seed=1))
    service.lifecycle.close_optin(service.current(task), actor="ann")
    service.work()
    assert service.current(task).state is State.SHREDDED, "the right key outlived the swap"


@pytest.mark.parametrize("what", [what for what in CHANGES if what != "when it closes"])
def test_the_curator_opens_no_record_of_a_round_that_was_changed(service, what):
    """People sealed their records under the settings that the curator signed."""
    task = service.task(min_optin=100)
    round_ = service.open(task)
    service.contribute(round_, people(200, seed=1))
    service.lifecycle.close_optin(round_, actor="ann")
    change(service, round_, **CHANGES[what](round_))
    service.work()
    assert service.current(task).state is State.ABORTED
    assert service.store.audit.rows()[-1].entry.action == "raw records shredded"
    assert "altered-round" in [row.entry.detail.get("reason") for row in service.store.audit.rows()]
    assert "opening records" not in actions(service)
    assert service.vault.held() == []


def test_a_signature_of_one_round_is_none_of_the_next(service):
    task, other = service.task(name="one"), service.task(name="other")
    one, two = service.open(task), service.open(other)
    change(service, two, public_key=one.public_key, key_signature=one.key_signature)
    curators = {service.curator_key.key_id: service.curator_key.public_point}
    assert is_signed_by_curator(service.current(task), curators)
    assert not is_signed_by_curator(service.current(other), curators)


def test_doctor_says_that_it_knows_no_curator(service):
    service.open(service.task())
    (service.folder / "keys" / CURATOR_FILE).unlink()
    assert findings(service)["curator's key"].detail == "not known on this machine; --curator-key names it"


def test_the_curators_key_is_made_once_and_for_its_owner_alone(tmp_path):
    assert read_curator_key(tmp_path / "keys") is None
    first = make_curator_key(tmp_path / "keys")
    assert make_curator_key(tmp_path / "keys").key_id == first.key_id
    (file,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.chmod(0o644)
    with pytest.raises(InputError, match="other users"):
        read_curator_key(tmp_path / "keys")


def test_a_publisher_of_its_own_must_be_told_whose_rounds_to_believe(tmp_path):
    point = make_curator_key(tmp_path / "keys").public_point
    alone = ServeSettings(role="publisher", data_dir=str(tmp_path))
    assert curator_points(alone) == {}, "the curator's folder is the curator's"
    with pytest.raises(UsageError, match="searchblend keys curator"):
        prepare_folders(alone)
    other = SigningKey.new().public_point
    told = ServeSettings(role="publisher", data_dir=str(tmp_path), curator_key=f"{point.hex()},{other.hex()}")
    prepare_folders(told)
    assert set(curator_points(told).values()) == {point, other}
    assert set(curator_points(ServeSettings(data_dir=str(tmp_path))).values()) == {point}
    for wrong in ("04", "zz", point.hex()[2:]):
        with pytest.raises(InvalidParameter, match="curator_key"):
            curator_points(ServeSettings(role="publisher", curator_key=wrong))


def drawn_list(service, task):
    """A round at its review."""
    service.contribute(service.open(task), crowd(seed=1))
    service.lifecycle.close_optin(service.current(task), actor="ann")
    service.work()
    assert service.current(task).state is State.SHREDDED
    return service.current(task)


def published_list(service, round_):
    content, _ = service.store.artifacts.get(service.store.artifacts.of_round(round_.key)[HEAD_LIST])
    return decode_head_list(json.loads(content))


def is_drawn(service, round_, message):
    curator = service.curator_key
    pinned = {curator.key_id: curator.public_point}
    return is_drawn_by_curator(message.optin_result, message.head, drawn_by(round_), pinned)


def test_the_published_list_has_the_curators_word_and_nothing_of_what_was_removed(service):
    task = service.task(delta=1e-4)
    round_ = drawn_list(service, task)
    before = json.loads(service.store.artifacts.kept(round_.key, OPTIN_RESULT))
    removed = (Removal(0, None, "other"), Removal(1, 0, "other"))
    service.lifecycle.review(round_, Review(remove=removed), actor="rob")
    kept = service.store.artifacts.kept(round_.key, OPTIN_RESULT).decode()
    for salt in [*before["salts"][0], before["salts"][1][1]]:
        assert salt not in kept
    service.work()
    message = published_list(service, round_)
    assert len(message.optin_result.removed) == len(before["salts"][0]) + 1
    assert is_drawn(service, round_, message)
    assert not is_drawn(service, replace(round_, number=2), message)


@pytest.mark.parametrize("has_word", [True, False], ids=["", "without the curator's word"])
@pytest.mark.parametrize("when", [CANDIDATE, REVIEWED])
def test_a_query_that_was_written_into_the_list_is_asked_of_nobody(service, when, has_word):
    task = service.task(delta=1e-4)
    round_ = drawn_list(service, task)
    if when == REVIEWED:
        service.lifecycle.review(round_, actor="rob")
    content = json.loads(service.store.artifacts.kept(round_.key, when))
    content["head"][0][0] = "one person's own"
    service.store.artifacts.keep(round_.key, when, json.dumps(content).encode())
    if not has_word:  # as rounds of versions that drew without one
        service.store.artifacts.drop(round_.key, OPTIN_RESULT)
    if when == CANDIDATE:
        service.lifecycle.review(round_, actor="rob")
    service.work()
    assert service.current(task).state is State.ABORTED
    assert "altered-list" in [row.entry.detail.get("reason") for row in service.store.audit.rows()]
    assert service.store.artifacts.of_round(round_.key) == {}
    assert service.store.artifacts.kept(round_.key, OPTIN_RESULT) is None
