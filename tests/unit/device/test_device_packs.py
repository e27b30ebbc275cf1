"""The pack that a manifest names reaches the device whole or by a delta; a wrong one replaces nothing."""

from __future__ import annotations

import hashlib

import pytest

from device_parts import TASK, device
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, encode_pack
from searchblend.search.pack_delta import encode_delta


def pack(number: int, task: str = TASK) -> Pack:
    """A list that changes little from round to round."""
    entries = [PackEntry(f"query {n}", 5, 9, (PackUrl(f"https://x{n}.example", 5, 9),)) for n in range(10, 60)]
    entries.append(PackEntry("weather", 5, 9 + number, (PackUrl("https://weather.example", 5, 9),)))
    return Pack(encode_pack(PackInfo("best", 4.0, 1e-5, bytes.fromhex(task), number), entries))


def publish(service, task, made: Pack, base: Pack | None = None, **changes) -> dict:
    """An idle manifest with this pack; the files are online unless a test takes them away."""
    content = bytes(made.content)
    part = {"artifact": made.digest, "bytes": len(content), "round": made.info.round, "deltas": []}
    service.artifacts[made.digest] = content
    if base is not None:
        delta = encode_delta(base, made)
        name = hashlib.sha256(delta).hexdigest()
        service.artifacts[name] = delta
        part["deltas"] = [{"base": base.digest, "artifact": name, "bytes": len(delta)}]
    service.manifest = task.manifest("idle", made.info.round, pack={**part, **changes})
    return part


def test_whole_then_by_a_difference(tmp_path, service, task):
    with device(tmp_path, service, task) as agent:
        assert agent.pack() is None
        service.manifest = task.manifest("idle")
        assert agent.sync().pack == "none is published"
        publish(service, task, pack(1))
        assert agent.sync().pack == "updated to round 1"
        assert agent.sync().pack == "up to date"
        asked = len(service.asked)
        part = publish(service, task, pack(2), pack(1))
        assert "by a difference" in agent.sync().pack
        fetched = [path.rpartition("/artifacts/") for path in service.asked[asked:]]
        assert [name for _, below, name in fetched if below] == [part["deltas"][0]["artifact"]]
        assert agent.pack().digest == pack(2).digest


def test_a_wrong_difference_is_replaced_by_the_whole(tmp_path, service, task):
    with device(tmp_path, service, task) as agent:
        publish(service, task, pack(1))
        agent.sync()
        part = publish(service, task, pack(2), pack(1))
        service.artifacts[part["deltas"][0]["artifact"]] = b"SBPD nonsense"
        assert agent.sync().pack == "updated to round 2"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"bytes": 1 << 30}, "larger than this device takes"),
        ({"bytes": 10}, "too-large"),
        ({"round": 7}, "another task or round"),
        ({"artifact": "00" * 32}, "404"),
    ],
)
def test_the_last_good_pack_stays(tmp_path, service, task, change, says):
    with device(tmp_path, service, task) as agent:
        publish(service, task, pack(1))
        agent.sync()
        publish(service, task, pack(2), **change)
        outcome = agent.sync()
        assert outcome.pack.startswith("not updated")
        assert says in outcome.pack
        assert (outcome.status, outcome.ok) == ("idle", True)
        assert agent.pack().digest == pack(1).digest


def test_damaged_foreign_and_older_packs(tmp_path, service, task):
    with device(tmp_path, service, task) as agent:
        publish(service, task, pack(3))
        agent.sync()
        service.artifacts[pack(4).digest] = b""
        publish(service, task, pack(4))
        service.artifacts[pack(4).digest] = bytes(pack(4).content)[:-1] + b"x"
        assert "not the file" in agent.sync().pack
        foreign = pack(5, "ff" * 16)
        publish(service, task, foreign)
        assert "another task" in agent.sync().pack
        publish(service, task, pack(6))
        assert agent.sync().pack == "updated to round 6"
        part = publish(service, task, pack(2))
        service.manifest = task.manifest("idle", 7, pack=part)
        assert "older" in agent.sync().pack
        assert agent.pack().info.round == 6
        agent.leave()
    assert list((tmp_path / "pack").iterdir()) == []
