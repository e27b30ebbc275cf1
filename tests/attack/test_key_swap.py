"""Key swap: an intruder at the database puts his own public key in the place of the round's."""

from __future__ import annotations

import json
import secrets

import pytest

from attack_service import COMMON, SECONDS, queries, wait_for
from searchblend.errors import MessageError
from searchblend.server.publisher import SigningKeys
from searchblend.wire.manifest import decode_payload, decode_signed, encode_manifest, encode_signed
from searchblend.wire.sealed import new_round_key
from searchblend.wire.signing import sign_manifest, verify_manifest

HONEST = COMMON * 20


def believed_keys(service, task, look_for=4.0):
    """Every public key that a device would seal to while the publisher works on, in so many of its passes."""
    keys, looks = set(), []

    def look():
        looks.append(1)
        answer = service.raw_manifest(task)
        if answer.status_code == 200:
            try:
                manifest = verify_manifest(answer.content, service.pinned)
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


def test_a_swap_with_a_signature_of_the_intruders_own_is_never_announced(service):
    """Whatever column or document holds the curator's signature: the intruder writes his own there."""
    task = service.task()
    before = service.open_round(task)["optin"]["public_key"]
    forge_signature(service, task, new_round_key()[1])
    assert believed_keys(service, task) <= {before}


def test_the_key_and_signature_of_another_task_are_never_announced(service):
    """Both are the curator's own, but for another round."""
    one, other = service.task(), service.task()
    service.open_round(one)
    before = service.open_round(other)["optin"]["public_key"]
    copy_signature(service, one, other)
    assert believed_keys(service, other) <= {before}


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
    payload = decode_payload(decode_signed(service.raw_manifest(task).content).payload)
    payload["optin"]["public_key"] = public
    payload["sequence"] += 1000
    signers = [SigningKeys(tmp_path / "intruder").add()] if keys == "none of the pinned" else []
    forged = sign_manifest(encode_manifest(payload), signers)
    content = encode_signed(forged) if signers else json.dumps(payload).encode()
    service.sql(
        "INSERT INTO manifests (task, sequence, expires, content) VALUES (?, ?, ?, ?)",
        task,
        payload["sequence"],
        payload["expires"],
        content,
    )
    assert public not in believed_keys(service, task)


def forge_signature(service, task, public):
    """The round's key and every signature of it that the database has, replaced by the intruder's."""
    key = service.round_key(task)
    service.sql("UPDATE rounds SET public_key = ? WHERE round_key = ?", public, key)
    for column in signature_columns(service):
        service.sql(f"UPDATE rounds SET {column} = ? WHERE round_key = ?", secrets.token_bytes(64), key)


def copy_signature(service, one, other):
    for column in ("public_key", *signature_columns(service)):
        value = service.sql(f"SELECT {column} FROM rounds WHERE round_key = ?", service.round_key(one))[0][0]
        service.sql(f"UPDATE rounds SET {column} = ? WHERE round_key = ?", value, service.round_key(other))


def signature_columns(service):
    """Columns that a mend may have added for the curator's signature."""
    if service.where.startswith("postgresql"):
        rows = service.sql(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_name = 'rounds' AND table_schema = current_schema()"
        )
    else:
        rows = service.sql("SELECT name FROM pragma_table_info('rounds')")
    return [name for (name,) in rows if "sign" in name]
