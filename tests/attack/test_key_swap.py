"""Key swap: an intruder at the database puts his own public key in the place of the round's."""

from __future__ import annotations

import json

import pytest

from attack_service import COMMON, SECONDS, queries, wait_for
from searchblend.core.documents import encode
from searchblend.core.errors import MessageError
from searchblend.service.round_model import round_key_of
from searchblend.service.workers.signing_keys import SigningKeys
from searchblend.store.service_store import open_store
from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import decode_payload, decode_signed, encode_signed
from searchblend.wire.sealed import new_round_key
from searchblend.wire.signing import SigningKey, sign_manifest, verify_manifest

HONEST = COMMON * 20


def believed_keys(service, task, look_for=4.0):
    """Every public key that a device would seal to while the publisher works on, in so many of its passes."""
    keys, looks = set(), []

    def look():
        looks.append(1)
        answer = service.raw_manifest(task)
        if answer.status_code == 200:
            try:
                manifest = verify_manifest(answer.content, service.pinned).document
            except MessageError:
                return False
            keys.update([manifest["optin"]["public_key"]] if manifest["optin"] else [])
        return len(looks) >= look_for / 0.05

    wait_for(look, "manifests", SECONDS)
    return keys


def swap(service, task, public):
    service.sql("UPDATE rounds SET public_key = ? WHERE round_key = ?", public, service.round_key(task))


def test_a_swapped_round_key_is_never_announced(service):
    task = service.task()
    before = service.open_round(task)["optin"]["public_key"]
    swap(service, task, new_round_key()[1])
    assert believed_keys(service, task) <= {before}


def test_a_key_that_was_swapped_before_the_first_manifest_is_never_announced(service):
    """The publisher sees the round for the first time when the swap is done."""
    task = service.task()
    service.draft(task)
    public = new_round_key()[1]
    key = service.round_key(task)
    service.act(task, "open")
    for _ in range(2000):
        service.sql("UPDATE rounds SET public_key = ? WHERE round_key = ? AND public_key IS NOT NULL", public, key)
        if service.round(task)["state"] == "OPTIN_OPEN":
            break
    service.sql("UPDATE rounds SET public_key = ? WHERE round_key = ?", public, key)
    assert public.hex() not in believed_keys(service, task)


def test_a_key_that_waits_in_a_draft_is_replaced_by_the_curators(service):
    task = service.task()
    service.draft(task)
    public = new_round_key()[1]
    swap(service, task, public)
    service.act(task, "open")
    manifest = service.manifest(task, "opt-in")
    assert manifest["optin"]["public_key"] != public.hex()
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    _, drawn = service.draw(task)
    assert drawn["records"] == len(HONEST)


@pytest.mark.parametrize("way", ["his own key", "the curator's key id", "nonsense", "none"])
def test_a_swap_with_a_signature_of_the_intruders_own_is_never_announced(service, way):
    task = service.task()
    before = service.open_round(task)["optin"]["public_key"]
    swap(service, task, new_round_key()[1])
    signature = intruders_signature(service, task)
    if way == "the curator's key id":
        signature["key_id"] = json.loads(stored(service, task, "key_signature"))["key_id"]
    text = {"nonsense": "{", "none": None}.get(way, json.dumps(signature))
    service.sql("UPDATE rounds SET key_signature = ? WHERE round_key = ?", text, service.round_key(task))
    assert believed_keys(service, task) <= {before}
    assert_refused(service, task)


def test_the_key_and_signature_of_another_task_are_never_announced(service):
    """Both are the curator's own, but for another round."""
    one, other = service.task(), service.task()
    service.open_round(one)
    before = service.open_round(other)["optin"]["public_key"]
    for column in ("public_key", "key_signature"):
        value = stored(service, one, column)
        service.sql(f"UPDATE rounds SET {column} = ? WHERE round_key = ?", value, service.round_key(other))
    assert believed_keys(service, other) <= {before}
    assert_refused(service, other)


def test_the_key_and_signature_of_an_earlier_round_are_never_announced(service):
    """Of the same task, whose private key the intruder may have stolen since."""
    task = service.task()
    service.open_round(task)
    old = {column: stored(service, task, column) for column in ("public_key", "key_signature")}
    service.act(task, "abort")
    before = service.open_round(task)["optin"]["public_key"]
    for column, value in old.items():
        service.sql(f"UPDATE rounds SET {column} = ? WHERE round_key = ?", value, service.round_key(task))
    assert believed_keys(service, task) <= {before, bytes(old["public_key"]).hex()}
    assert service.manifest(task)["optin"]["public_key"] == before
    assert_refused(service, task)


@pytest.mark.parametrize("change", [{"epsilon": 60.0}, {"delta": 0.1}, {"min_optin": 2}, {"consent": "I agree to all"}])
def test_settings_that_were_changed_after_the_opening_are_never_drawn_with(service, change):
    """The noise, the threshold and the consent are those that devices were told."""
    task = service.task()
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    settings = json.loads(stored(service, task, "settings"))
    service.sql(
        "UPDATE rounds SET settings = ? WHERE round_key = ?",
        json.dumps({**settings, **change}, sort_keys=True),
        service.round_key(task),
    )
    service.act(task, "close-opt-in")
    wait_for(lambda: service.round(task)["state"] == "ABORTED", "the end of the altered round")
    assert not any(
        row["detail"].get("to") == "HEADLIST_READY" and row["detail"]["task"] == task for row in service.audit()
    )
    assert service.sql("SELECT COUNT(*) FROM contributions WHERE round_key = ?", service.round_key(task))[0][0] == 0


def test_doctor_and_readiness_notice_a_swapped_key(own_service):
    service = own_service
    task = service.task()
    service.open_round(task)
    code, text = service.doctor()
    assert code == 0, text
    swap(service, task, new_round_key()[1])
    code, text = service.doctor()
    assert code == 1, "doctor calls a service healthy whose round key was swapped"
    assert "key" in text


def test_after_a_swap_and_its_undoing_the_round_goes_on(service):
    task = service.task()
    manifest = service.open_round(task)
    own = bytes.fromhex(manifest["optin"]["public_key"])
    swap(service, task, new_round_key()[1])
    believed_keys(service, task, look_for=1.0)
    swap(service, task, own)
    service.manifest(task, "opt-in")
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    candidate, drawn = service.draw(task)
    assert drawn["records"] == len(HONEST)
    assert set(queries(candidate)) <= {record.query for record in COMMON}


@pytest.mark.parametrize("keys", ["none of the pinned", "no signature"])
def test_a_manifest_that_the_intruder_writes_himself_is_believed_by_no_device(service, tmp_path, keys):
    task = service.task()
    service.open_round(task)
    public = new_round_key()[1].hex()
    payload = dict(decode_payload(decode_signed(service.raw_manifest(task).content).payload).document)
    payload["optin"]["public_key"] = public
    payload["sequence"] += 1000
    signers = [SigningKeys(tmp_path / "intruder").add()] if keys == "none of the pinned" else []
    forged = sign_manifest(canonical_json(payload), signers)
    content = encode_signed(forged) if signers else json.dumps(payload).encode()
    service.sql(
        "INSERT INTO manifests (task, sequence, expires, content) VALUES (?, ?, ?, ?)",
        task,
        payload["sequence"],
        payload["expires"],
        content,
    )
    assert public not in believed_keys(service, task)


def intruders_signature(service, task):
    """The round as the intruder has changed it, signed in the right form with a key of his own."""
    with open_store(service.where) as store:
        round_ = store.rounds.round(task, service.round(task)["round"])
    return encode(SigningKey.new().sign(round_key_of(round_).signed_bytes))


def stored(service, task, column):
    return service.sql(f"SELECT {column} FROM rounds WHERE round_key = ?", service.round_key(task))[0][0]


def assert_refused(service, task):
    """Somebody is told: the audit log, and whoever watches the metrics."""
    assert any(row["action"] == "round key refused" and row["detail"]["task"] == task for row in service.audit())
    assert "round_keys_refused 0" not in service.health("/metrics").text
