"""The service's log: every manifest and key is in it, anyone can check all of it, no one can rewrite it unnoticed."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json

import pytest

from searchblend.cli.main import main
from searchblend.service.log_audit import LogTrouble, read_log
from searchblend.wire.manifest import decode_payload, decode_signed
from searchblend.wire.merkle import TILE, leaf_hash, root_of, tile_at
from searchblend.wire.signing import SigningKey, read_public_point, sign_checkpoint, verify_checkpoint, witnesses_of
from searchblend.wire.transparency import Checkpoint, decode_checkpoint, decode_entry, encode_checkpoint
from service_http import http_service
from service_parts import Service


@pytest.fixture
def http(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as made:
        yield made


def pinned(service):
    return {key.key_id: key.public_point for key in service.signing_keys.all()}


def fetch_of(client):
    def fetch(path, most):
        answer = client.get(f"/v1/log/{path}")
        assert answer.status_code == 200, path
        assert len(answer.content) <= most
        return answer.content

    return fetch


def command(*arguments, fails=0):
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        code = main(["log", *map(str, arguments), "--json"])
    assert code == fails, errors.getvalue()
    return json.loads(printed.getvalue()) if printed.getvalue() else errors.getvalue()


def test_every_manifest_and_key_is_in_the_log(http):
    service = http.parts
    tasks = [service.task(name=name, population=name) for name in ("one", "other")]
    service.open(tasks[0])
    service.work()
    copy = read_log(fetch_of(http.client), pinned(service))
    kinds = [entry.kind for entry in copy.entries]
    assert kinds[:2] == ["signing-key", "curator-key"]
    assert copy.entries[1].value == service.curator_key.public_point.hex()
    for task in tasks:
        sequence, _, message = service.store.artifacts.manifest(task.task)
        payload = decode_signed(message).payload
        [entry] = [entry for entry in copy.entries if (entry.task, entry.sequence) == (task.task, sequence)]
        assert entry.value == hashlib.sha256(payload).hexdigest()
        published = http.client.get(f"/v1/artifacts/{entry.value}").content
        assert decode_payload(published) == decode_payload(payload)


def test_tiles_are_those_of_the_tree(http):
    service = http.parts
    service.task()
    service.work()
    entries = service.store.log.entries()
    assert http.client.get("/v1/log/tile/entries/000.p/1").content[2:] == entries[0]
    assert http.client.get(f"/v1/log/tile/0/000.p/{len(entries)}").content == b"".join(map(leaf_hash, entries))
    too_far = [f"0/000.p/{len(entries) + 1}", "0/000", "0/001.p/1", "1/000.p/1", "2/000", "0/0", "0/000.p/0", "x/000"]
    for path in too_far:
        assert http.client.get(f"/v1/log/tile/{path}").status_code == 404, path


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8, TILE - 1, TILE, TILE + 1, 3 * TILE + 77])
def test_the_root_is_that_of_rfc_6962(size):
    """Against the definition: split at the largest power of two below the size."""

    def defined(leaves):
        if len(leaves) < 2:
            return leaves[0] if leaves else hashlib.sha256(b"").digest()
        k = 1
        while 2 * k < len(leaves):
            k *= 2
        return hashlib.sha256(b"\1" + defined(leaves[:k]) + defined(leaves[k:])).digest()

    leaves = [leaf_hash(bytes([i % 256, i // 256])) for i in range(size)]
    full = size // TILE
    tiles = [tile_at(leaves, 1, 0)[32 * i : 32 * i + 32] for i in range(full)]
    assert root_of(leaves) == defined(leaves) == root_of(leaves[full * TILE :], tiles)


def rewrite(service, position, entry):
    """What the owner of the tables can do."""
    own_the_tables(service)
    service.store.database.execute("UPDATE log_entries SET content = ? WHERE position = ?", (entry, position))


def own_the_tables(service):
    """Their owner can let rows be changed that no role may change."""
    for verb in ("update", "delete"):
        service.store.database.execute(f"DROP TRIGGER IF EXISTS log_entries_no_{verb}")


def test_a_publisher_signs_no_history_that_was_rewritten(tmp_path):
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    service.task()
    service.work()
    before = service.store.log.checkpoint()
    rewrite(service, 1, service.store.log.entries()[0])
    service.clock.time += 5 * 86_400
    service.work()
    assert service.store.log.checkpoint() == before
    assert "worker failed" in service.log.getvalue()
    service.store.close()


def test_what_was_signed_before_there_was_a_log_is_logged(tmp_path):
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    task = service.task()
    service.work()
    sequence = service.store.artifacts.manifest(task.task)[0]
    own_the_tables(service)
    service.store.database.execute("DELETE FROM log_entries")
    service.store.database.execute("DELETE FROM log_checkpoint")
    service.work()
    entries = [decode_entry(entry) for entry in service.store.log.entries()]
    assert [(entry.task, entry.sequence) for entry in entries if entry.task] == [(task.task, sequence)]
    assert service.store.artifacts.manifest(task.task)[0] == sequence
    service.store.close()


def test_a_new_signing_key_signs_the_checkpoint_too(tmp_path):
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    service.task()
    service.work()
    added = service.signing_keys.add()
    service.adopt_keys()
    service.work()
    checkpoint = decode_checkpoint(service.store.log.checkpoint())
    assert added.key_id in {signature.key_id for signature in checkpoint.signatures(pinned(service))}
    service.store.close()


def test_a_mirror_verifies_a_split_view_is_shown_and_a_witness_cosigns(http, tmp_path):
    service = http.parts
    service.task()
    service.work()
    [key] = service.signing_keys.all()
    mirror, point = tmp_path / "mirror", key.public_point.hex()
    for name, content in read_log(fetch_of(http.client), pinned(service)).files.items():
        (mirror / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror / name).write_bytes(content)
    first = tmp_path / "first.txt"
    first.write_bytes(service.store.log.checkpoint())
    found = command("verify", mirror, "--key", point, "--checkpoint", first, "--save", tmp_path / "copy")
    assert found["entries"] == {"signing-key": 1, "curator-key": 1, "manifest": 1}
    assert command("verify", tmp_path / "copy", "--key", point)["root"] == found["root"]

    # The same key signs another log for someone else.
    known = decode_checkpoint(first.read_bytes())
    other = sign_checkpoint(Checkpoint(known.origin, 2, root_of([b"x" * 32] * 2)), [key])
    (tmp_path / "other.txt").write_bytes(encode_checkpoint(other))
    assert "SPLIT VIEW" in command("verify", mirror, "--key", point, "--checkpoint", tmp_path / "other.txt", fails=1)

    witness = ("--name", "w.example", "--witness-key", tmp_path / "w.pem", "--state", tmp_path / "w.txt")
    given = command("cosign", mirror, "--key", point, *witness)
    place = ("--data-dir", tmp_path)
    command("attach", tmp_path / "w.txt", "--witness", given["witness"], *place)
    cosigned = decode_checkpoint(http.client.get("/v1/log/checkpoint").content)
    assert witnesses_of(cosigned, dict([read_public_point(given["witness"], "witness")]))
    service.work()  # nothing new: the witness' signature stays
    assert decode_checkpoint(service.store.log.checkpoint()).lines == cosigned.lines

    own_the_tables(service)
    service.store.database.execute("DELETE FROM log_entries WHERE position = 2")  # an older backup
    assert command("restore", mirror, "--key", point, *place)["added"] == 1
    service.work()
    assert service.store.log.checkpoint() == (mirror / "checkpoint").read_bytes()
    rewrite(service, 1, service.store.log.entries()[0])
    assert "not the beginning" in command("restore", mirror, "--key", point, *place, fails=1)

    (tmp_path / "w.txt").write_bytes(encode_checkpoint(other))
    assert "SPLIT VIEW" in command("cosign", mirror, "--key", point, *witness, fails=1)
    tile = mirror / "tile" / "entries" / "000.p" / "3"
    tile.write_bytes(tile.read_bytes().replace(b'"kind"', b'"kine"'))
    assert "log entry" in command("verify", mirror, "--key", point, fails=1)
    (mirror / "checkpoint").write_bytes(b"{}")
    assert "signed note" in command("verify", mirror, "--key", point, fails=1)


def test_a_witness_adds_one_line_and_cannot_make_the_checkpoint_unreadable(tmp_path):
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    service.task()
    service.work()
    present = decode_checkpoint(service.store.log.checkpoint())
    witness, stranger = SigningKey.new(), SigningKey.new()
    given = present
    for i in range(30):  # as many names as there are lines
        given = given.with_cosignature(f"w{i}.example", witness.public_point, witness.sign(given.cosigned_bytes(7)), 7)
    given = given.with_cosignature("s", stranger.public_point, stranger.sign(given.cosigned_bytes(7)), 7)
    path, point = tmp_path / "w.txt", witness.public_point.hex()
    path.write_bytes(encode_checkpoint(given))
    for _ in range(2):
        command("attach", path, "--witness", point, "--data-dir", tmp_path)
        cosigned = decode_checkpoint(service.store.log.checkpoint())
        assert len(cosigned.lines) == len(present.lines) + 1
        assert witnesses_of(cosigned, {key.key_id: key.public_point for key in (witness, stranger)}) == {witness.key_id}
    assert verify_checkpoint(service.store.log.checkpoint(), pinned(service)) == present
    service.store.close()


def test_a_log_that_says_it_is_endless_keeps_no_witness_busy(tmp_path):
    key = SigningKey.new()
    endless = sign_checkpoint(Checkpoint("searchblend/x", 10**14, root_of([])), [key])
    asked = []

    def fetch(path, most):
        asked.append(path)
        return encode_checkpoint(endless)

    with pytest.raises(LogTrouble, match="more than any device reads"):
        read_log(fetch, {key.key_id: key.public_point})
    assert asked == ["checkpoint"]


def test_two_manifests_of_one_number_are_found(http):
    service = http.parts
    service.task()
    service.work()
    last = service.store.log.entries()[-1]
    document = json.loads(last)
    twin = json.dumps({**document, "sha256": "00" * 32}, sort_keys=True, separators=(",", ":")).encode()
    entries = [*service.store.log.entries(), twin]
    service.store.log.append(twin, len(entries) - 1)
    keys = service.signing_keys.all()
    known = decode_checkpoint(service.store.log.checkpoint())
    grown = Checkpoint(known.origin, len(entries), root_of([leaf_hash(entry) for entry in entries]))
    service.store.log.keep_checkpoint(encode_checkpoint(sign_checkpoint(grown, keys)))
    with pytest.raises(LogTrouble, match="two manifests"):
        read_log(fetch_of(http.client), pinned(service))
