"""Rows of a log as tables of several kinds hold them, and what every command says of a table that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as arrow
from pyarrow.parquet import write_table

from input_worlds import KEY
from searchblend.cli.main import main
from searchblend.logs.read import read_log
from searchblend.store.ledger import open_ledger

N = 600
NAMES = ("user", "query", "url", "time")
ROWS = [
    *[(f"u{i % 50}", f"query {i % 7}", f"http://{i % 5}.example", "2006-03-01 12:00:00") for i in range(N)],
    ("", "no user", "http://a.example", None),
    ("u1", None, "http://a.example", None),
    ("u2", "no url", None, None),
]


def table(rows: list[tuple[Any, ...]] = ROWS) -> Any:
    columns = {name: list(column) for name, column in zip(NAMES, zip(*rows, strict=True), strict=True)}
    return arrow.table({**columns, "unused": [[1]] * len(rows)})


def parquet(folder: Path, rows: Any = None) -> Path:
    write_table(rows or table(), folder / "log.parquet")
    return folder / "log.parquet"


def found(log: Any, *, draws: int) -> tuple[Any, ...]:
    with read_log(log, key=KEY, threads=1, draws=draws, keep_lines=True) as read:
        summary = read.summary
        places = {why: [place.line for place in kind.first] for why, kind in summary.malformed.items()}
        rows = sorted(read._engine._session.rows("SELECT * FROM lines"), key=repr)  # type: ignore[attr-defined]
        return rows, places, summary.lines, summary.used, summary.users, summary.without_url


def error_of(capsys: Any, *arguments: str) -> tuple[int, str]:
    """The exit code and the one line of a command."""
    code = main(list(arguments))
    [line] = capsys.readouterr().err.strip().splitlines()[-1:]
    return code, line


RUN = ("--opt-in", "0.5", "--epsilon", "4", "--delta", "1e-5", "--release-id", "r")


def refused(capsys: Any, tmp_path: Path, log: str, *options: str) -> tuple[int, str]:
    """By every command; nothing is written, and nothing is charged."""
    out, ledger = tmp_path / "out", tmp_path / "book.ledger"
    answers = {
        error_of(capsys, "stats", log, *options),
        error_of(capsys, "run", log, "-o", str(out), "--ledger", str(ledger), *RUN, *options),
        error_of(capsys, "select", log, "-o", str(out), "--columns", "user=user,value=query", *options),
    }
    assert not out.exists()
    if ledger.exists():
        with open_ledger(ledger) as book:
            assert book.published("r") is None
    assert len(answers) == 1, answers
    return answers.pop()
