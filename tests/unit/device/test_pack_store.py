"""The pack on disk: exchanged whole, checked before, the last good one kept."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from searchblend.core.errors import MessageError, OutputError
from searchblend.device.packs import Packs
from searchblend.device.policy import POLICY
from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, encode_pack
from searchblend.search.pack_delta import encode_delta

TASK = bytes(range(16))


def pack(n_round, task=TASK):
    entry = PackEntry("weather", 5, 9, (PackUrl(f"http://round{n_round}.example", 5, 9),))
    return Pack(encode_pack(PackInfo("best", 4.0, 1e-5, task, n_round), [entry]))


def put(store, made):
    return store.put(made.content, artifact=made.digest, round_number=made.info.round)


@pytest.fixture
def store(tmp_path):
    return Packs(tmp_path / "packs", TASK.hex(), POLICY)


def test_nothing_at_first(store):
    assert store.current() is None
    with pytest.raises(MessageError, match="no pack to start from"):
        store.apply(b"", artifact="", round_number=1)


def test_packs_follow_each_other_whole_and_by_delta(store, tmp_path):
    put(store, pack(1))
    assert SearchIndex(store.current()).urls_for("Weather") == ["http://round1.example"]
    store.apply(encode_delta(pack(1), pack(2)), artifact=pack(2).digest, round_number=2)
    assert store.current().content == pack(2).content
    put(store, pack(3))
    kept = {path.stem for path in (tmp_path / "packs").glob("*.sbpack")}
    assert kept == {pack(2).digest, pack(3).digest}
    put(store, pack(3))
    assert store.current().info.round == 3
    store.erase()
    assert store.current() is None
    assert list((tmp_path / "packs").iterdir()) == []


def test_what_the_manifest_does_not_name_is_refused(store):
    put(store, pack(2))
    refused = [
        (pack(3).content[:-1], pack(3).digest, 3, "manifest names"),
        (pack(3).content, pack(4).digest, 3, "manifest names"),
        (pack(3).content, pack(3).digest, 4, "another task or round"),
        (pack(3, bytes(15) + b"\1").content, pack(3, bytes(15) + b"\1").digest, 3, "another task or round"),
        (pack(1).content, pack(1).digest, 1, "older"),
        (b"SBPK", hashlib.sha256(b"SBPK").hexdigest(), 3, "truncated"),
    ]
    for content, artifact, number, says in refused:
        with pytest.raises(MessageError, match=says):
            store.put(content, artifact=artifact, round_number=number)
    assert store.current().content == pack(2).content


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "empty"])
def test_a_damaged_pack_gives_way_to_the_one_before(store, tmp_path, damage):
    put(store, pack(1))
    put(store, pack(2))
    path = tmp_path / "packs" / f"{pack(2).digest}.sbpack"
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes({"cut": content[:-1], "changed": content[:-1] + b"!", "empty": b""}[damage])
    assert store.current().content == pack(1).content
    put(store, pack(2))
    assert store.current().content == pack(2).content


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", json.dumps(["../../etc/passwd"])])
def test_a_damaged_name_is_no_pack(store, tmp_path, text):
    put(store, pack(1))
    (tmp_path / "packs" / "current").write_text(text)
    assert store.current() is None


class Killed(BaseException):
    pass


@pytest.mark.parametrize("name", ["fsync", "replace"])
@pytest.mark.parametrize("last", range(1, 6))
def test_killed_at_any_step_one_of_both_packs_is_there(store, monkeypatch, name, last):
    """Every sync and every rename may be the last thing that happens."""
    put(store, pack(1))
    real, calls = getattr(os, name), []

    def dying(*arguments, **named):
        calls.append(name)
        if len(calls) == last:
            raise Killed
        return real(*arguments, **named)

    monkeypatch.setattr(os, name, dying)
    killed = False
    try:
        put(store, pack(2))
    except Killed:
        killed = True
    monkeypatch.undo()
    assert killed == (last <= (4 if name == "fsync" else 2))
    content = store.current().content
    assert content in (pack(1).content, pack(2).content)
    assert killed or content == pack(2).content
    put(store, pack(2))
    assert store.current().content == pack(2).content


def test_an_unwritable_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        put(Packs(tmp_path / "file", TASK.hex(), POLICY), pack(1))


def test_packs_that_cannot_be_removed_are_told(store, tmp_path):
    put(store, pack(1))
    (tmp_path / "packs" / "folder.sbpack").mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        put(store, pack(2))
    assert store.current().content == pack(2).content
    with pytest.raises(OutputError, match="cannot be erased"):
        store.erase()


def test_a_list_of_packs_that_nobody_wrote(store, tmp_path):
    put(store, pack(1))
    (tmp_path / "packs" / "current").write_text("[" * 100_000)
    assert store.current() is None
