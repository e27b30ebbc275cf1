"""The public log under attack: a forged checkpoint, and a second history for one person."""

from __future__ import annotations

from attack_service import wait_for
from searchblend.device.agent import DeviceAgent
from searchblend.service.log_audit import LogTrouble, read_log
from searchblend.service.workers.signing_keys import SigningKeys
from searchblend.wire.merkle import leaf_hash, root_of
from searchblend.wire.signing import SigningKey, sign_checkpoint
from searchblend.wire.transparency import Checkpoint, decode_checkpoint, encode_checkpoint

ENTRIES = "SELECT content FROM documents WHERE round_key = 0 AND name LIKE 'log entry %' ORDER BY name"


def checkpoint_over(service, key):
    """What the rows say now, signed by whoever holds this key."""
    leaves = [leaf_hash(bytes(content)) for (content,) in service.sql(ENTRIES)]
    known = decode_checkpoint(service.http.get("/v1/log/checkpoint").content)
    return encode_checkpoint(sign_checkpoint(Checkpoint(known.origin, len(leaves), root_of(leaves)), [key]))


def put_checkpoint(service, note):
    service.sql("UPDATE documents SET content = ? WHERE round_key = 0 AND name = 'log checkpoint'", note)


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
        put_checkpoint(service, checkpoint_over(service, SigningKey.new()))
        wait_for(lambda: agent.sync().status == "log-forged", "a refusal")


def test_a_second_history_by_a_thief_of_the_signing_key_is_detected(own_service, tmp_path):
    """With database and key a thief can write a log without the round; not one that anyone takes for the first."""
    service, task = own_service, own_service.task()
    service.open_round(task)
    [key] = SigningKeys(tmp_path / "signing").all()
    with device_of(service, tmp_path / "device", task) as agent:
        assert agent.sync().status == "search-only"
        shown = copy_of(service).checkpoint
        service.sql("DELETE FROM documents WHERE round_key = 0 AND name = 'log entry 000000000001'")
        service.sql("UPDATE documents SET name = 'log entry 000000000001' WHERE name = 'log entry 000000000000'")
        service.sql("UPDATE documents SET content = ? WHERE name = 'log entry 000000000001'", b"{}")
        put_checkpoint(service, checkpoint_over(service, key))
        wait_for(lambda: agent.sync().status in ("log-forked", "not-logged"), "a refusal")
    try:
        copy_of(service).check_earlier(shown)
    except LogTrouble:
        return
    raise AssertionError("the second history passed for the first")
