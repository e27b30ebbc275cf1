"""Files on their way to the database: guessed from their beginning, checked to the end."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import pytest
from made_logs import counts_of, read, some_lines
from reference_rules import tsv

from searchblend.core.errors import InputError
from searchblend.core.records import Record
from searchblend.logs.duckdb import feed as feed_module
from searchblend.logs.duckdb.feed import Feeder, WrongGuess
from searchblend.logs.formats.layout import LineRules

ROWS = "".join(f"{user}\tquery {user % 7}\n" for user in range(100_000))
"""more than a megabyte, so that its end is not looked at beforehand"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("end", "malformed"),
    [
        (b"x\tlast\n", {}),
        (b"x\tlast\r\n", {}),
        (b"x\tlast\rline\n", {}),
        (b"x\tla\0st\nx\tlast\n", {"nul_byte": 1}),
        (b"x\tla\xffst\nx\tlast\n", {"invalid_utf8": 1}),
        (b"x\t" + b"l" * 3_000_000 + b"\nx\tlast\n", {"line_too_long": 1}),
        ("x\tlast [é]\n".encode(), {}),
        ("x\tlast\u0378\nx\tlast\n".encode(), {"unusable_query": 1}),
    ],
)
def test_a_file_that_turns_out_otherwise_is_read_again(tmp_path: Path, end: bytes, malformed: dict[str, int]):
    (tmp_path / "log.tsv").write_bytes(f"user\tquery\n{ROWS}".encode() + end)
    with read(tmp_path / "log.tsv") as log:
        assert {reason: kind.count for reason, kind in log.summary.malformed.items()} == malformed
        assert log.summary.users == 100_001
        assert all(kind.first[0].line == 100_002 for kind in log.summary.malformed.values())
        last = [
            record for record in counts_of(log.split(optin_fraction=1e-9)[1].tally()) if "last" in str(record.query)
        ]
        assert len(last) == 1
        assert last[0] in {Record("last"), Record("last line"), Record("last [é]")}


@pytest.mark.thorough
def test_csv_with_a_quote_at_its_end(tmp_path: Path):
    text = "user,query\n" + ROWS.replace("\t", ",") + 'x,"a, ""b"""\n'
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_text('user,query\ny,"c, d"\n')
    with read(tmp_path) as log:
        assert log.summary.users == 100_002
        found = counts_of(log.split(optin_fraction=1e-9)[1].tally())
        assert found[Record('a, "b"')] == found[Record("c, d")] == 1


def test_a_guess_is_checked_before_anything_is_believed(tmp_path: Path):
    (tmp_path / "log").write_bytes(ROWS.encode() + b"\0\n")
    feeder = Feeder(tmp_path)
    feed = feeder.feed([tmp_path / "log"], LineRules())
    interrupted = threading.Event()
    with pytest.raises(WrongGuess) as failed, feeder.running(interrupted.set):
        assert feed.names[0].is_symlink()
    assert interrupted.is_set()
    assert failed.value.known == {tmp_path / "log": None}
    again = Feeder(tmp_path, name="again", known=failed.value.known).feed([tmp_path / "log"], LineRules())
    assert again.names[0].is_fifo()


def test_a_statement_that_fails_leaves_no_thread(tmp_path: Path):
    (tmp_path / "plain").write_text(ROWS)
    (tmp_path / "squeezed.gz").write_bytes(gzip.compress(ROWS.encode()))
    before = threading.active_count()
    for failure in (RuntimeError, KeyboardInterrupt):
        feeder = Feeder(tmp_path, name=failure.__name__)
        feeder.feed([tmp_path / "plain", tmp_path / "squeezed.gz"], LineRules())
        with pytest.raises(failure), feeder.running(lambda: None):
            raise failure
        assert threading.active_count() == before


@pytest.mark.thorough
def test_a_pipe_whose_reader_goes_away(tmp_path: Path):
    (tmp_path / "squeezed.gz").write_bytes(gzip.compress(ROWS.encode() * 5))
    feeder = Feeder(tmp_path)
    feed = feeder.feed([tmp_path / "squeezed.gz"], LineRules())
    with feeder.running(lambda: None), feed.names[0].open("rb") as pipe:
        assert pipe.read(10) == ROWS.encode()[:10]


def test_a_file_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "log.tsv").write_text(tsv(some_lines(50)))
    look = feed_module.check_clean

    def vanish(path: Path, *rules: LineRules, **options: object):
        found = look(path, *rules, **options)
        path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(feed_module, "check_clean", vanish)
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "log.tsv")
