"""A log by standard input: kept privately while it is read, and gone whatever happens."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
from pathlib import Path

import pytest

from searchblend.cli.log_options import with_standard_input
from searchblend.cli.main import main
from searchblend.core.errors import UsageError
from searchblend.logs.options import ReadOptions

LOG = b"user\tquery\turl\n1\tweather\thttp://a.example\n2\tnews\thttp://b.example\n"


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    give(monkeypatch, LOG)
    return tmp_path


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def reading(spool: Path, **named: str) -> ReadOptions:
    return ReadOptions("-", temp_directory=spool, **named)


def test_a_log_by_standard_input_is_a_log(spool, capsys):
    assert main(["stats", "-", "--json", "--temp-directory", str(spool)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["lines"], document["users"]) == (2, 2)
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b'{"user": 1, "query": "embarrassing"}\n', "--format jsonl"),
        (b"\x1f\x8b\x08\x00abc", "decompress it first"),
    ],
)
def test_what_cannot_be_read_is_named_and_removed(spool, monkeypatch, capsys, content, expected):
    give(monkeypatch, content)
    assert main(["stats", "-", "--temp-directory", str(spool)]) in (1, 2)
    error = capsys.readouterr().err
    assert "standard-input" in error
    assert expected in error
    assert "embarrassing" not in error
    assert list(spool.iterdir()) == []


def test_the_file_is_for_its_owner_alone_and_whole(spool):
    with with_standard_input(reading(spool)) as options:
        assert Path(options.paths).read_bytes() == LOG
        assert stat.S_IMODE(Path(options.paths).parent.stat().st_mode) == 0o700
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_file_is_gone_when_a_signal_ends_the_command(spool, number):
    handler = signal.getsignal(number)
    with pytest.raises((SystemExit, KeyboardInterrupt)), with_standard_input(reading(spool)):
        os.kill(os.getpid(), number)
    assert list(spool.iterdir()) == []
    assert signal.getsignal(number) is handler


def test_a_cluster_and_a_terminal_are_refused(spool, monkeypatch):
    with pytest.raises(UsageError, match="--engine duckdb"), with_standard_input(reading(spool, engine="spark")):
        pass
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    with pytest.raises(UsageError, match="is a terminal"), with_standard_input(reading(spool)):
        pass
    assert list(spool.iterdir()) == []


def test_other_logs_are_left_alone():
    options = ReadOptions("searches.tsv")
    with with_standard_input(options) as same:
        assert same is options
