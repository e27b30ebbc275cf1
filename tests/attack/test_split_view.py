"""The public log under attack: a forged checkpoint, and a second history for one person."""

from __future__ import annotations

import pytest

from attack_service import wait_for
from searchblend.device.agent import DeviceAgent
from searchblend.service.log_audit import LogTrouble, read_log
from searchblend.service.workers.signing_keys import SigningKeys
from searchblend.store.errors import StoreError
from searchblend.wire.merkle import leaf_hash, root_of
from searchblend.wire.signing import SigningKey, sign_checkpoint
from searchblend.wire.transparency import Checkpoint, decode_checkpoint, encode_checkpoint
from service_parts import Service

ENTRIES = "SELECT content FROM log_entries ORDER BY position"


def checkpoint_over(service, key):
    """What the rows say now, signed by whoever holds this key."""
    leaves = [leaf_hash(bytes(content)) for (content,) in service.sql(ENTRIES)]
    known = decode_checkpoint(service.http.get("/v1/log/checkpoint").content)
    return encode_checkpoint(sign_checkpoint(Checkpoint(known.origin, len(leaves), root_of(leaves)), [key]))


def put_checkpoint(service, note):
    service.sql("UPDATE log_checkpoint SET content = ?", note)


def copy_of(service):
    return read_log(lambda path, most: service.http.get(f"/v1/log/{path}").content[:most], service.pinned)


def device_of(service, folder, task):
    agent = DeviceAgent.open(folder, create=True)
    points = [point.hex() for point in service.pinned.values()]
    agent.enrol(service.server.address, task, points)
    agent.consent("search")
    return agent


def test_a_forged_checkpoint_is_believed_by_no_device(own_service, tmp_path):
    service, task = own_service, own_service.task()
    service.open_round(task)
    with device_of(service, tmp_path / "device", task) as agent:
        assert agent.sync().status == "search-only"
        thief = SigningKey.new()

        def refused() -> bool:
            """Again and again: the publisher puts its own signature there with its next pass."""
            put_checkpoint(service, checkpoint_over(service, thief))
            return agent.sync().status == "log-forged"

        wait_for(refused, "a refusal")


def own_the_tables(service):
    """Only their owner may."""
    if service.where.startswith("postgresql"):
        service.sql("ALTER TABLE log_entries DISABLE TRIGGER USER")
    else:
        service.sql("DROP TRIGGER log_entries_no_delete")
        service.sql("DROP TRIGGER log_entries_no_update")


def test_an_older_checkpoint_that_is_put_back_begins_no_second_history(tmp_path):
    """Every checkpoint is genuine and public: who owns the tables can put one back, with the entries of its time."""
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    service.task()
    log, publisher = service.store.log, service.publisher
    publisher.refresh_manifests()
    older, n = log.checkpoint(), len(log.entries())
    service.clock.time += 5 * 86_400
    publisher.refresh_manifests()
    newest, entries = log.checkpoint(), log.entries()
    assert len(entries) == n + 1
    for statement in ("DROP TRIGGER log_entries_no_delete", f"DELETE FROM log_entries WHERE position = {n}"):
        service.store.database.execute(statement)
    log.keep_checkpoint(older)
    service.clock.time += 5 * 86_400
    with pytest.raises(StoreError, match="nothing is signed"):
        publisher.refresh_manifests()
    assert log.checkpoint() == older
    log.append(entries[n], n)
    log.keep_checkpoint(newest)
    publisher.refresh_manifests()
    assert log.entries()[: n + 1] == entries
    assert len(log.entries()) == n + 2, "the right one goes on"
    service.store.close()


def test_a_second_history_by_a_thief_of_the_signing_key_is_detected(own_service, tmp_path):
    """With database and key a thief can write a log without the round; not one that anyone takes for the first."""
    service, task = own_service, own_service.task()
    service.open_round(task)
    [key] = SigningKeys(tmp_path / "signing").all()
    with device_of(service, tmp_path / "device", task) as agent:
        assert agent.sync().status == "search-only"
        shown = copy_of(service).checkpoint
        own_the_tables(service)
        service.sql("DELETE FROM log_entries WHERE position = 1")
        service.sql("UPDATE log_entries SET position = 1, content = ? WHERE position = 0", b"{}")
        put_checkpoint(service, checkpoint_over(service, key))
        wait_for(lambda: agent.sync().status in ("log-forked", "not-logged"), "a refusal")
    try:
        copy_of(service).check_earlier(shown)
    except LogTrouble:
        return
    raise AssertionError("the second history passed for the first")
