"""Malformed lines: all counted, none silently dropped, the first few found, and the result unchanged."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_logs import counts_of, read, some_lines
from reference_rules import tsv

from searchblend.core.errors import InputError
from searchblend.logs.formats import gate
from searchblend.logs.formats.gate import Gate
from searchblend.logs.formats.judge import _doubtful_lines, judge_for
from searchblend.logs.formats.layout import Delimited, LineRules

BAD = {
    "missing_user": [b"\t1\tq\thttp://a.example\t1", b" \t1\tq\thttp://a.example\t1"],
    "too_few_fields": [b"u1\t1\tq", b"u1", b"   "],
    "too_many_fields": [b"u1\t1\tq\thttp://a.example\t1\tmore", b"u1\t1\tq\thttp://a.example\t1\t\t\t\t"],
    "unusable_query": [
        b"u1\t1\t\thttp://a.example\t1",
        b"u1\t1\t  \thttp://a.example\t1",
        "u1\t1\t\u0378\tx\t1".encode(),
    ],
    "unusable_url": [b"u1\t1\tq\thttp://a b\t1", b"u1\t1\tq\thttp://[x\t1", b"u1\t1\tq\t \t1"],
    "invalid_utf8": [b"u1\t1\tq\xff\thttp://a.example\t1"],
    "nul_byte": [b"u1\t1\tq\0\thttp://a.example\t1"],
}


def test_bad_lines_are_counted_by_reason_and_change_nothing(tmp_path: Path):
    good = tsv(some_lines(200)).encode().splitlines()
    chance = random.Random(1)
    bad = [(reason, line) for reason, lines in BAD.items() for line in lines for _ in range(chance.randrange(1, 9))]
    mixed = [("", line) for line in good[1:]] + bad
    chance.shuffle(mixed)
    (tmp_path / "clean.tsv").write_bytes(b"\n".join(good))
    (tmp_path / "mixed.tsv").write_bytes(b"\n".join([good[0], *(line for _, line in mixed)]))
    with read(tmp_path / "clean.tsv") as clean, read(tmp_path / "mixed.tsv") as log:
        assert {reason: kind.count for reason, kind in log.summary.malformed.items()} == Counter(r for r, _ in bad)
        for reason, kind in log.summary.malformed.items():
            lines = [number for number, (why, _) in enumerate(mixed, start=2) if why == reason]
            assert [place.line for place in kind.first] == lines[:5]
            assert all(place.path == str(tmp_path / "mixed.tsv") for place in kind.first)
        assert sum(kind.count for kind in log.summary.malformed.values()) == len(bad)
        assert log.summary.lines == len(mixed)
        assert (log.summary.users, log.summary.used) == (clean.summary.users, clean.summary.used)
        everybody = [counts_of(one.split(optin_fraction=1e-9)[1].tally()) for one in (clean, log)]
        assert everybody[0] == everybody[1]


@pytest.mark.parametrize("reason", list(BAD))
def test_strict_stops_at_the_first(reason, tmp_path: Path):
    text = tsv(some_lines(20)).encode().splitlines()
    (tmp_path / "a.tsv").write_bytes(b"\n".join(text))
    (tmp_path / "b.tsv").write_bytes(b"\n".join([*text, BAD[reason][0], text[3], BAD["missing_user"][1]]))
    with pytest.raises(InputError) as failed:
        read(tmp_path, strict=True)
    assert (failed.value.path, failed.value.line) == (tmp_path / "b.tsv", len(text) + 1)
    assert "http" not in str(failed.value)


def test_a_strict_reader_takes_a_good_log(tmp_path: Path):
    (tmp_path / "a.tsv").write_text(tsv(some_lines(20)))
    with read(tmp_path, strict=True) as log:
        assert not log.summary.malformed


def test_blank_lines_are_no_lines(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("user\tquery\n\n1\ta\n\n\n\tb\n\n")
    with read(tmp_path / "a.tsv") as log:
        assert (log.summary.lines, log.summary.used) == (2, 1)
        assert [place.line for place in log.summary.malformed["missing_user"].first] == [6]


LAYOUT = Delimited(
    "aol", "\t", 5, {"user": 0, "query": 1, "time": 2, "rank": 3, "url": 4}, may_end_after=3, no_query="-"
)
PLAIN = ["", " ", "-", "a", "a b", "http://x.example", "http://x:y", "http://a b"]
PLAIN_FIELDS = st.sampled_from(PLAIN)
FIELDS = st.sampled_from([*PLAIN, "é", "\u0378", "\x01", "["])


def rows_of(fields, least: int, most: int):
    return st.lists(st.lists(fields, min_size=1, max_size=6), min_size=least, max_size=most)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=rows_of(FIELDS, 0, 15), block=st.sampled_from([32, 1 << 22]))
def test_no_malformed_line_looks_good_at_a_glance(rows, block, tmp_path: Path):
    path = tmp_path / "log"
    path.write_text("\n".join(["user\tquery\ttime\trank\turl", *("\t".join(row) for row in rows)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "_BLOCK", block)
        doubtful = dict(_doubtful_lines(path, LAYOUT, judge_all=False))
        everything = dict(_doubtful_lines(path, LAYOUT, judge_all=True))
    judge = judge_for(LAYOUT, host_only=False)
    bad = {number for number, line in everything.items() if judge(line) not in (None, "without_url")}
    assert bad <= doubtful.keys()
    assert doubtful.items() <= everything.items()
    assert set(everything.values()) == {line for line in ("\t".join(row) for row in rows) if line}


@pytest.mark.thorough
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.sampled_from([FIELDS, PLAIN_FIELDS]).flatmap(lambda fields: rows_of(fields, 1, 45)))
def test_sql_and_python_judge_alike(rows, tmp_path: Path):
    """A log costs far more than its lines. Half of them have nothing but ASCII in them, which SQL judges by itself."""
    path = tmp_path / "log"
    header, *lines = [
        "AnonID\tQuery\tQueryTime\tItemRank\tClickURL",
        "1\tgood\t\t\tu",
        *("\t".join(row) for row in rows),
    ]
    path.write_text("\n".join([header, *lines]) + "\n")
    judge = judge_for(LAYOUT, host_only=False)
    expected = Counter(judge(line) for line in lines if line)
    with read(path, format="aol") as log:
        summary = log.summary
    assert summary.used == expected.pop(None)
    assert summary.without_url == expected.pop("without_url", 0)
    assert {reason: kind.count for reason, kind in summary.malformed.items()} == expected


def test_a_gate_says_where_a_file_is_cut_off(tmp_path: Path):
    import gzip

    (tmp_path / "log.gz").write_bytes(gzip.compress(b"line\n" * 1_000_000)[:-3000])
    with pytest.raises(InputError, match="cut off") as failed:
        list(Gate(tmp_path / "log.gz", LineRules()).blocks())
    assert failed.value.line is not None
