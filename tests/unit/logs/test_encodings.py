"""Encodings: what the gate sees of text that is not UTF-8, line by line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import searchblend as sb
from searchblend.core.errors import InvalidParameter
from searchblend.logs.formats.encodings import in_utf8
from searchblend.logs.formats.files import Span
from searchblend.logs.formats.gate import Gate
from searchblend.logs.formats.layout import ENCODINGS, MAX_LINE, LineRules
from searchblend.logs.read import read_log

FEEDS = {"utf-16-le": b"\n\0", "utf-16-be": b"\0\n"}
TEXT = "user\tquery\turl\n" + "".join(f"{i}\tcafé {i % 3} €\thttp://{i % 2}.example\n" for i in range(50))
OF_TEXT = {"utf-8": TEXT, "cp1252": TEXT, "latin-1": TEXT.replace("€", "£")} | dict.fromkeys(
    ("utf-16", "utf-16-le", "utf-16-be"), TEXT.replace("€", "東 😀")
)


def decoded(content: bytes, encoding: str, size: int = 1 << 16) -> bytes:
    source, found = in_utf8(io.BytesIO(content), encoding, "log"), b""
    while piece := source.read(size):
        found += piece
    return found


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_log_is_read_alike_in_every_encoding(encoding: str, suffix: str, tmp_path: Path):
    import gzip

    text = OF_TEXT[encoding]
    pack = gzip.compress if suffix else bytes
    (tmp_path / "plain.tsv").write_text(text, encoding="utf-8")
    (tmp_path / f"log.tsv{suffix}").write_bytes(pack(text.encode(encoding)))
    found = []
    for path, options in ((tmp_path / "plain.tsv", {}), (tmp_path / f"log.tsv{suffix}", {"encoding": encoding})):
        with read_log(path, key=bytes(16), **options) as log:
            group, _ = log.split(optin_fraction=0.5)
            tally = group.tally()
            found.append((log.summary.lines, log.summary.users, log.summary.malformed, tally.at_least(1)))
    assert found[0] == found[1]
    assert found[0][:3] == (50, 50, {})


@pytest.mark.parametrize("encoding", FEEDS)
@settings(max_examples=200, deadline=None)
@given(lines=st.lists(st.binary(max_size=12), max_size=8), size=st.sampled_from([1, 2, 3, 7, 1 << 16]))
@example(lines=[b"\n", b"\0", b"\0\n\0"], size=1)
@example(lines=[b"a\0", b"\x05\n\0\x4e", b"b\0"], size=2)
def test_a_line_of_utf_16_is_decoded_as_it_would_be_alone(encoding: str, lines: list[bytes], size: int):
    feed = FEEDS[encoding]
    whole = decoded(b"".join(line + feed for line in lines), encoding, size)
    assert whole == b"".join(decoded(line + feed, encoding) for line in lines)
    assert decoded(feed.join(lines), encoding, size) == whole[: len(whole) - 1]


@pytest.mark.parametrize(("encoding", "letters"), [("utf-16-le", "ਅ一"), ("utf-16-be", "一ਅ")])
def test_two_letters_that_look_like_a_line_feed_hold_back_their_line_alone(encoding: str, letters: str):
    """Half of a letter is on either side: both halves are held back, none is misread."""
    text = f"a\nb{letters}c\nd\n"
    assert decoded(text.encode(encoding), encoding) == b"a\n\xff\n\xff\nd\n"


@pytest.mark.parametrize("length", [MAX_LINE, MAX_LINE + 1, 2 * MAX_LINE, 5 * MAX_LINE])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_long_line_is_held_back_alone(encoding: str, length: int, tmp_path: Path):
    text = "first\n" + "x" * length + "\nlast\n"
    (tmp_path / "log").write_bytes(text.encode(encoding))
    gate = Gate(tmp_path / "log", LineRules(encoding=encoding))
    found = b"".join(gate.blocks())
    if length > MAX_LINE:
        assert found == b"first\nlast\n"
        assert gate.check.held_back["line_too_long"].first[0].line == 2
    else:
        assert found == text.encode()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_parts_of_a_file_are_its_lines(encoding: str, tmp_path: Path):
    path, rules = tmp_path / "log", LineRules(header=True, encoding=encoding)
    path.write_bytes(OF_TEXT[encoding].encode(encoding))
    size = path.stat().st_size
    parts = [b"".join(Gate(path, rules, Span(start, min(start + 100, size))).blocks()) for start in range(0, size, 100)]
    assert b"".join(parts).decode() == OF_TEXT[encoding]


def test_values_and_tables_in_memory(tmp_path: Path):
    (tmp_path / "table.csv").write_bytes(b"user,value\n" + "".join(f"{i},Tür\n" for i in range(300)).encode("latin-1"))
    found = sb.select_values(tmp_path / "table.csv", sb.Budget(8.0, 1e-9), encoding="latin-1")
    assert list(found.counts) == ["Tür"]
    with pytest.raises(InvalidParameter, match="encoding: only of text"):
        sb.select_values({"user": [], "value": []}, sb.Budget(8.0, 1e-9), encoding="latin-1")
    with pytest.raises(InvalidParameter, match="encoding: only of text"):
        sb.read_log({"user": [], "query": []}, encoding="latin-1")


def test_parquet_has_no_encoding(tmp_path: Path):
    import duckdb

    duckdb.sql(f"COPY (SELECT '1' AS user, 'a' AS query) TO '{tmp_path}/log.parquet'")
    with pytest.raises(InvalidParameter, match="encoding: only of text"):
        read_log(tmp_path / "log.parquet", encoding="latin-1")
