"""``searchblend search`` and ``pack``: from a release folder to answers, and files that are not what they seem."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from made_click_graph import write_release as write_click_graph
from searchblend.blender.groups import InMemoryGroup
from searchblend.blender.pipeline import run_blender
from searchblend.blender.result import result_of
from searchblend.cli import printing
from searchblend.cli.main import main
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import Record
from searchblend.files.durable import release_folder
from searchblend.releases.hybrid import hybrid_files
from searchblend.search.pack import PackEntry, PackInfo, PackUrl, decode_pack, encode_pack
from searchblend.wire.signing import SigningKey


def write_release(folder, seed=0, notice=None):
    users = [[Record(f"query {(i * i + seed) % 5}", f"http://{i % 3}.example")] for i in range(6000)]
    optin, clients = InMemoryGroup.from_users(users).split(0.5)
    release = run_blender(optin, clients, BlenderParams(Budget(6.0, 1e-5)))
    result = result_of(release)
    if notice:
        result = replace(result, notice=notice)
    with release_folder(folder) as out:
        for name, content in hybrid_files(release, result, {}, created="2026-01-01").items():
            out.write(name, content)
    return folder


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    return write_release(folder / "one"), write_release(folder / "two", seed=1)


@pytest.fixture
def packs(releases, tmp_path):
    made = []
    for number, release in enumerate(releases, 1):
        path = tmp_path / f"{number}.sbpack"
        assert main(["pack", "build", str(release), "-o", str(path), "--json"]) == 0
        made.append(path)
    return made


def said(capsys):
    return json.loads(capsys.readouterr().out)


def test_a_terminal_obeys_nothing_of_a_pack(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    printing.output.cache_clear()
    entry = PackEntry("turned\u202edrow \x1b[31m", 40, 50, (PackUrl("t.example/\u202eg\x9b2J", 30, 40),))
    path = tmp_path / "odd.sbpack"
    path.write_bytes(encode_pack(PackInfo("best", 4.0, 1e-5, bytes(range(16)), 1), [entry]))
    assert main(["search", str(path), "turned"]) == 0
    printed = capsys.readouterr().out
    assert not {"\u202e", "\x1b", "\x9b"} & set(printed)
    assert "turned[U+202E]drow [U+001B][31m" in printed
    assert "t.example/[U+202E]g[U+009B]2J" in printed
    assert main(["search", str(path), "turned", "--json"]) == 0
    assert said(capsys)["found"][0]["query"] == entry.query


def test_from_a_release_to_answers(packs, releases, tmp_path, capsys):
    capsys.readouterr()
    assert main(["pack", "inspect", str(packs[0]), "--json"]) == 0
    about = said(capsys)
    pack = decode_pack(packs[0].read_bytes())
    assert (about["queries"], about["pairs"], about["epsilon"]) == (len(pack), pack.n_pairs, 6.0)
    assert (about["sha256"], about["task"], about["signed_by"]) == (pack.digest, None, [])
    best = next(pack.entries())
    assert main(["search", str(packs[0]), f"  {best.query.upper()}", "--json", "--limit", "1"]) == 0
    found = said(capsys)
    assert [item["query"] for item in found["found"]] == [best.query]
    assert [url["url"] for url in found["found"][0]["urls"]] == [url.url for url in best.urls]
    assert found["found"][0]["lower"] == best.lower * 2**-24
    assert main(["search", str(packs[0]), "qu", "--prefix"]) == 0
    assert best.query in capsys.readouterr().out
    assert main(["search", str(packs[0]), "qeury 1", "--prefix"]) == 0
    assert "Nothing in the pack fits" in capsys.readouterr().out
    same = tmp_path / "same.sbpack"
    assert main(["pack", "build", str(releases[0] / "result.json"), "-o", str(same)]) == 0
    assert same.read_bytes() == packs[0].read_bytes()


def test_diff_and_apply(packs, tmp_path, capsys):
    delta, made = tmp_path / "d.sbdelta", tmp_path / "made.sbpack"
    assert main(["pack", "diff", *map(str, packs), "-o", str(delta)]) == 0
    assert main(["pack", "apply", str(packs[0]), str(delta), "-o", str(made)]) == 0
    assert made.read_bytes() == packs[1].read_bytes()
    capsys.readouterr()
    assert main(["pack", "inspect", str(delta), "--json"]) == 0
    about = said(capsys)
    assert about["base"] == decode_pack(packs[0].read_bytes()).digest
    assert about["result"] == decode_pack(made.read_bytes()).digest
    assert main(["pack", "apply", str(packs[1]), str(delta), "-o", str(tmp_path / "no")]) == 1
    assert "d.sbdelta: pack delta: it starts from another pack" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_signed_packs_and_pins(releases, tmp_path, capsys):
    key, stranger = SigningKey.new(), SigningKey.new()
    pem, path = tmp_path / "key.pem", tmp_path / "signed.sbpack"
    pem.write_bytes(key.as_pem())
    pem.chmod(0o600)
    assert main(["pack", "build", str(releases[0]), "-o", str(path), "--key", str(pem)]) == 0
    capsys.readouterr()
    assert main(["search", str(path), "query", "--pin", key.public_point.hex(), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["found"]
    assert captured.err == ""
    assert main(["search", str(path), "query"]) == 0
    assert "it was not checked by whom" in capsys.readouterr().err
    assert main(["pack", "inspect", str(path), "--pin", key.public_point.hex(), "--json"]) == 0
    about = said(capsys)
    assert (about["signed_by"], about["signature_checked"]) == ([key.key_id], True)
    assert main(["search", str(path), "query", "--pin", stranger.public_point.hex()]) == 1
    assert "no valid signature of a pinned key" in capsys.readouterr().err
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert main(["search", str(path), "query", "--pin", key.public_point.hex()]) == 1
    assert "no valid signature" in capsys.readouterr().err


def test_a_pack_is_signed_with_an_encrypted_key(releases, tmp_path, capsys):
    key, phrase = SigningKey.new(), tmp_path / "phrase"
    pem, path = tmp_path / "key.pem", tmp_path / "signed.sbpack"
    for file, content in ((pem, key.as_pem(b"a phrase")), (phrase, b"a phrase\n")):
        file.write_bytes(content)
        file.chmod(0o600)
    build = ["pack", "build", str(releases[0]), "-o", str(path), "--key", str(pem)]
    assert main(build) == 1
    assert "is encrypted; expected its passphrase" in capsys.readouterr().err
    assert not path.exists()
    assert main([*build, "--key-passphrase", f"file:{phrase}"]) == 0
    assert main(["pack", "inspect", str(path), "--pin", key.public_point.hex(), "--json"]) == 0


def test_more_keys_than_a_pack_carries(releases, tmp_path, capsys):
    pem, path = tmp_path / "key.pem", tmp_path / "signed.sbpack"
    pem.write_bytes(SigningKey.new().as_pem())
    pem.chmod(0o600)
    assert main(["pack", "build", str(releases[0]), "-o", str(path), *["--key", str(pem)] * 9]) == 2
    assert "key: expected 1 to 8 signatures" in capsys.readouterr().err
    assert not path.exists()


def test_a_pin_asks_for_a_signature(packs, capsys):
    assert main(["search", str(packs[0]), "x", "--pin", SigningKey.new().public_point.hex()]) == 1
    assert "expected a signed" in capsys.readouterr().err
    assert main(["search", str(packs[0]), "x", "--pin", "04abc"]) == 2
    assert "pin: expected an uncompressed P-256 point" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda content: content[: len(content) // 2], "pack: truncated"),
        (lambda content: b"", "pack: truncated"),
        (lambda content: content + b"!", "pack: trailing bytes"),
        (lambda content: b"PK" + content[2:], "expected a searchblend pack"),
        (lambda content: content[:4] + b"\2" + content[5:], "version 2"),
        (lambda content: b"SBPD" + content[4:], "pack delta"),
        (lambda content: b"SBPS" + content[4:], "signed pack"),
    ],
)
def test_damaged_packs_are_told_and_not_searched(packs, change, says, tmp_path, capsys):
    path = tmp_path / "bad.sbpack"
    path.write_bytes(change(packs[0].read_bytes()))
    capsys.readouterr()
    out = ["-o", str(tmp_path / "out")]
    for command in (["search", str(path), "x"], ["pack", "diff", str(path), str(packs[0]), *out]):
        assert main(command) == 1
        assert capsys.readouterr().err.startswith(f"searchblend: error: {path}: ")
    assert main(["pack", "inspect", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"searchblend: error: {path}: ")
    assert says in error
    assert "query 1" not in error
    assert not (tmp_path / "out").exists()


def test_releases_that_make_no_pack(releases, tmp_path, capsys):
    out = str(tmp_path / "out.sbpack")
    evaluated = write_release(tmp_path / "evaluated", notice="NOT PRIVATE: made by an evaluation")
    assert main(["pack", "build", str(evaluated), "-o", out]) == 1
    assert "result.json: notice: it comes from an evaluation and is not private" in capsys.readouterr().err
    assert main(["search", str(evaluated), "weather"]) == 1
    assert "found a folder; `searchblend pack build` makes a pack" in capsys.readouterr().err
    assert main(["pack", "build", str(tmp_path / "nowhere"), "-o", out]) == 1
    assert "cannot be read" in capsys.readouterr().err
    graph = write_click_graph(tmp_path / "graph")
    assert main(["pack", "build", str(graph), "-o", out]) == 1
    assert "expected 'blender', which `searchblend run` makes, found 'click-graph'" in capsys.readouterr().err
    changed = write_release(tmp_path / "changed")
    path = changed / "result.json"
    path.write_text(path.read_text().replace('"probability": 0.', '"probability": 0.1', 1))
    assert main(["pack", "build", str(changed), "-o", out]) == 1
    assert "is not the file that statement.json describes" in capsys.readouterr().err
    path.write_text(path.read_text().replace('"probability": 0.', '"probability": NaN, "was": 0.', 1))
    assert main(["pack", "build", str(path), "-o", out]) == 1
    assert "[0].probability: expected a finite number" in capsys.readouterr().err
    path.write_text("[" * 100_000)
    assert main(["pack", "build", str(path), "-o", out]) == 1
    assert "expected a JSON document" in capsys.readouterr().err
    assert not (tmp_path / "out.sbpack").exists()


def test_a_task_needs_a_round(releases, tmp_path, capsys):
    command = ["pack", "build", str(releases[0]), "-o", str(tmp_path / "t.sbpack")]
    assert main([*command, "--task", "ab" * 16]) == 2
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--task", "xyz", "--round", "1"])
    assert main([*command, "--task", "ab" * 16, "--round", str(1 << 32)]) == 2
    assert main([*command, "--task", "ab" * 16, "--round", "9"]) == 0
    info = decode_pack((tmp_path / "t.sbpack").read_bytes()).info
    assert (info.task.hex(), info.round) == ("ab" * 16, 9)
    assert main([*command, "--task", "ab" * 16, "--round", "9"]) == 1
    assert "pass --force" in capsys.readouterr().err
    assert (
        main(["pack", "diff", str(tmp_path / "t.sbpack"), str(tmp_path / "t.sbpack"), "-o", str(tmp_path / "d")]) == 0
    )


def test_packs_of_two_tasks_have_no_delta(packs, releases, tmp_path, capsys):
    other = tmp_path / "t.sbpack"
    main(["pack", "build", str(releases[0]), "-o", str(other), "--task", "ab" * 16, "--round", "1"])
    assert main(["pack", "diff", str(packs[0]), str(other), "-o", str(tmp_path / "d")]) == 1
    assert "must be of one task" in capsys.readouterr().err
