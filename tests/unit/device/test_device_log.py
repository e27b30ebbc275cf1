"""The public log as a device sees it: what is not in it is refused, and a log that is not the one before."""

from __future__ import annotations

import pytest

from device_parts import PublicLog, device, nothing_was_sent, sync
from searchblend.device.state import FILE, DeviceState
from searchblend.wire.merkle import TILE
from searchblend.wire.signing import SigningKey, sign_checkpoint
from searchblend.wire.transparency import (
    CURATOR_KEY,
    Checkpoint,
    LogEntry,
    decode_checkpoint,
    encode_checkpoint,
    encode_entry,
)


def other_entries(first, n):
    return [encode_entry(LogEntry(CURATOR_KEY, f"{i:0130x}")) for i in range(first, first + n)]


def refused(agent, reason):
    outcome = sync(agent)
    assert (outcome.status, outcome.ok) == (reason, False), outcome
    return True


def test_a_manifest_that_is_in_no_log(tmp_path, service, task):
    """A publisher with its keys shows one person a manifest that no one else can find."""
    service.serve(task)
    service.log.add = lambda manifest: None
    service.log.entries = other_entries(0, 3)
    with device(tmp_path, service, task) as agent:
        assert refused(agent, "not-logged")
        assert nothing_was_sent(service, agent)


def test_a_service_without_a_log(tmp_path, service, task):
    service.serve(task)
    service.log.answer = lambda path: None
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "no-answer"
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize("forgery", ["a stranger's key", "another root", "another size", "not a note", "too long"])
def test_a_forged_checkpoint(tmp_path, service, task, forgery):
    service.serve(task)
    with device(tmp_path, service, task) as agent:
        service.log.add(service.manifest)
        good = service.log.checkpoint
        if forgery == "a stranger's key":
            service.log.key = SigningKey.new()
            good = service.log.checkpoint
        text = good.decode()
        forged = {
            "a stranger's key": text,
            "another root": text.replace(text.splitlines()[2], "A" * 43 + "="),
            "another size": text.replace("\n1\n", "\n2\n", 1),
            "not a note": "{}",
            "too long": text + text.splitlines()[4] * 1000,
        }[forgery].encode()
        service.log.answer = lambda path: forged
        assert sync(agent).status in ("log-forged", "no-answer")
        assert nothing_was_sent(service, agent)


@pytest.mark.parametrize("before", [3, TILE - 1, TILE, TILE + 5, 3 * TILE + 7])
def test_a_split_view_is_detected(tmp_path, service, task, before):
    """The device was shown one log; then another one, which has the manifest of the day and is as long or longer."""
    service.serve(task, phase="idle")
    service.log.entries = other_entries(0, before)
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "idle"
        honest = list(service.log.entries)
        service.serve(task, phase="idle")
        service.log.entries = [*other_entries(10_000, 1), *honest[1:], *other_entries(20_000, 2)]
        assert refused(agent, "log-forked")
        service.log.entries = honest[:-1]
        assert refused(agent, "log-forked")
        service.log.origin = "searchblend/another"
        service.log.entries = [*honest, *other_entries(0, 1)]
        assert refused(agent, "log-forked")
        service.log.origin = "searchblend/tests"
        assert sync(agent).status == "idle"


def test_a_log_without_end_is_not_read(tmp_path, service, task):
    service.serve(task)
    endless = Checkpoint(service.log.origin, 10**14, b"r" * 32)
    with device(tmp_path, service, task) as agent:
        note = encode_checkpoint(sign_checkpoint(endless, [task.key]))
        service.log.answer = lambda path: note if path.endswith("checkpoint") else bytes(TILE * 32)
        assert refused(agent, "log-forked")
        assert not [path for path in service.asked if "/tile/" in path]


def test_a_log_that_grows_is_followed_tile_by_tile(tmp_path, service, task):
    """Requests say no more of the device than the number of its last full tile."""
    asked = []
    with device(tmp_path, service, task) as agent:
        for size in (1, TILE - 2, TILE, 2 * TILE + 9):
            service.serve(task, phase="idle")
            service.log.entries += other_entries(len(service.log.entries), size - len(service.log.entries))
            service.asked.clear()
            assert sync(agent).status == "idle"
            asked.append([path.partition("tile/0/")[2] for path in service.asked if "/tile/" in path])
    assert asked == [["000.p/2"], ["000.p/255"], ["000", "001.p/1"], ["001", "002.p/10"]]
    with DeviceState(tmp_path / FILE) as state:
        last = state.last_log(task.task)
        assert (last.size, len(last.tiles)) == (2 * TILE + 10, 2)


def test_a_manifest_of_an_earlier_tile_is_found_there(tmp_path, service, task):
    service.serve(task, phase="idle")
    with device(tmp_path, service, task) as agent:
        assert sync(agent).status == "idle"
        service.log.entries += other_entries(0, 2 * TILE)
        assert sync(agent).status == "idle"
        service.log.entries += other_entries(5_000, 1)
        assert sync(agent).status == "idle"


@pytest.mark.parametrize("forked", [False, True])
def test_the_log_of_a_pack_is_compared(tmp_path, service, task, forked):
    """Whoever made the pack was shown a log too: gossip that comes with what is fetched anyway."""
    service.log.entries = other_entries(0, TILE + 4)
    elsewhere = PublicLog()
    elsewhere.entries = other_entries(1 if forked else 0, TILE + 2)
    known = decode_checkpoint(elsewhere.checkpoint)
    pack = {"artifact": "00" * 32, "bytes": 1, "round": 1, "deltas": []}
    pack["log"] = {"size": known.size, "root": known.root.hex()}
    with device(tmp_path, service, task) as agent:
        for _ in range(2):  # the second time the tile is a full one that is known
            service.serve(task, phase="idle", pack=pack)
            assert sync(agent).status == ("log-forked" if forked else "idle")


def test_witnesses_that_must_have_cosigned(tmp_path, service, task):
    witnesses = [SigningKey.new() for _ in range(2)]
    service.serve(task, phase="idle")
    with device(tmp_path, service, task) as agent:
        points = [witness.public_point.hex() for witness in witnesses]
        agent.enrol(service.address, task.task, [task.point], witnesses=points, least_witnesses=2)
        assert refused(agent, "log-unwitnessed")
        note = decode_checkpoint(service.log.checkpoint)
        answer = service.log.answer
        for n, witness in enumerate([witnesses[0], SigningKey.new(), witnesses[1]]):
            signature = witness.sign(note.cosigned_bytes(1_800_000_000))
            note = note.with_cosignature(f"w{n}.example", witness.public_point, signature, 1_800_000_000)
            content = encode_checkpoint(note)
            service.log.answer = lambda path, c=content: c if path.endswith("checkpoint") else answer(path)
            if n < 2:
                assert refused(agent, "log-unwitnessed")
        assert sync(agent).status == "idle"
