"""What the fuzzer has found, kept as tests: each input once ended in something else than a documented error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchblend.cli.main import main
from searchblend.core.documents import decode
from searchblend.core.errors import LONGEST_LIST, InvalidColumns, InvalidParameter, MessageError, UsageError, listed
from searchblend.logs.read import read_log
from searchblend.service.settings import load_settings
from searchblend.service.task_settings import TaskSettings
from searchblend.wire.manifest import decode_payload

DEEP = "[" * 100_000


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    path = tmp_path / "deep"
    path.write_text(DEEP)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--profile", "FILE"],
        ["aggregate", "FILE", "--head-list", "FILE", "--task", "00" * 16, "--round", "1"],
        ["task", "create", "searches", "--settings", "FILE"],
        ["task", "create", "searches", "--set", f"market={DEEP}"],
    ],
)
def test_json_nested_too_deeply_is_an_error_of_the_file(arguments, deep, tmp_path, capsys):
    named = [str(deep) if word == "FILE" else word for word in arguments]
    where = ["--data-dir", str(tmp_path / "data")] if named[0] == "task" else []
    assert main([*named, *where]) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_a_statement_nested_too_deeply_is_an_error_of_the_file(deep, tmp_path, capsys):
    (tmp_path / "release").mkdir()
    deep.rename(tmp_path / "release" / "statement.json")
    assert main(["graph", "spell", str(tmp_path / "release")]) == 1
    assert "expected a JSON document" in capsys.readouterr().err


def test_a_log_whose_first_object_is_nested_too_deeply_is_read(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"user":' + DEEP[:20_000] + '\n{"user":"1","query":"weather","url":"http://a.example"}\n')
    with read_log(path, format="jsonl") as log:
        assert log.summary.used == 1
        assert log.summary.malformed["bad_line"].count == 1


def test_toml_nested_too_deeply_is_an_error_of_the_file(tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text(f"a = {DEEP}")
    with pytest.raises(UsageError, match="nested too deeply"):
        load_settings({}, path, environment={})


def test_a_number_too_large_for_a_port_is_an_error_of_the_setting(tmp_path):
    path = tmp_path / "serve.toml"
    path.write_text("port = 4e92385")
    with pytest.raises(UsageError, match="port: expected a whole number"):
        load_settings({}, path, environment={})


def test_a_ledger_whose_schema_is_no_text_is_damaged(tmp_path, capsys):
    path = tmp_path / "budget.ledger"
    assert main(["ledger", "cap", str(path), "--lifetime", "4,1e-5"]) == 0
    content = path.read_bytes()
    assert b"CREATE TABLE" in content
    path.write_bytes(content.replace(b"CREATE TABLE", b"CREATE \x88\x88BLE"))
    assert main(["ledger", "show", str(path)]) == 1
    assert "not a ledger, or damaged" in capsys.readouterr().err
    path.write_bytes(content.replace(b"CREATE TABLE", b"CREATE T\x1b[2J"))
    assert main(["ledger", "show", str(path)]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_names_in_messages_are_short_and_printable(tmp_path):
    with pytest.raises(MessageError) as refused:
        decode_payload(json.dumps({"x" * 5000: 1}, separators=(",", ":")).encode())
    assert len(str(refused.value)) < LONGEST_LIST + 100
    with pytest.raises(InvalidParameter) as unknown:
        decode(TaskSettings, {"na\ud800me\x1b[2J": 1})
    assert str(unknown.value).isprintable()
    path = tmp_path / "log.tsv"
    path.write_text(f"user\t{'x' * 5000}\turl\n1\tx\ty\n")
    with pytest.raises(InvalidColumns) as columns:
        read_log(path)
    assert len(str(columns.value)) < 2 * LONGEST_LIST + len(str(path))


def test_listed_shows_names_as_they_are_where_they_can_be_shown():
    assert listed(["query", "Anfrage ü"]) == "query, Anfrage ü"
    assert listed(["a\nb\x1b"]) == "a\\nb\\x1b"
    assert listed(["x" * 300]) == "x" * LONGEST_LIST + "…"
