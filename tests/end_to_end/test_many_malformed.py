"""A million malformed lines spread over a log: each is counted by its reason, and nothing else changes."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from searchblend.cli.main import main
from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.records import Record
from searchblend.logs.read import SearchLog, read_log
from searchblend.mechanisms.tally import Tally

KEY = bytes(range(16))
LONG = b"x" * (1 << 20)
LONG_LINES = 12

Bad = Mapping[str, Sequence[bytes]]
"""reason → lines; %u stands for somebody of the log"""

AOL: Bad = {
    "invalid_utf8": [b"%u\tq\xff\t2006-03-01 00:00:01\t1\thttp://a.example", b"%u\t\xc3\t2006-03-01 00:00:01\t\t"],
    "nul_byte": [b"%u\tq\0\t2006-03-01 00:00:01\t1\thttp://a.example", b"\0"],
    "too_few_fields": [b"%u\tq", b"%u", b"   ", b"%u\tq\t2006-03-01 00:00:01\t1"],
    "too_many_fields": [b"%u\tq\t2006-03-01 00:00:01\t1\thttp://a.example\t", b"%u\tq\tt\t1\tu\tmore\tand more"],
    "missing_user": [b"\tq\t2006-03-01 00:00:01\t1\thttp://a.example", b" \tq\t2006-03-01 00:00:01"],
    "unusable_query": [
        b"%u\t-\t2006-03-01 00:00:01\t1\thttp://a.example",
        b"%u\t \t2006-03-01 00:00:01\t\t",
        "%u\t\u0378\t2006-03-01 00:00:01\t1\thttp://a.example".encode(),
        b"%u\t" + b"q" * 3000 + b"\t2006-03-01 00:00:01\t\t",
    ],
    "unusable_url": [b"%u\tq\t2006-03-01 00:00:01\t1\thttp://a b", b"%u\tq\t2006-03-01 00:00:01\t1\thttp://[x"],
}
CSV: Bad = {
    "bad_quotes": [b'%u,"q" q,http://a.example,1,yes'],
    "bad_optin": [b"%u,q,http://a.example,1,maybe"],
    "too_many_fields": [b"%u,q,http://a.example,1,yes,"],
    "missing_user": [b'" ",q,http://a.example,1,yes'],
}
YANDEX: Bad = {
    "bad_line": [b"not\ta\tline", b"%u\tM\tx\t7", b"%u\t1\tQ\t0"],
    "click_without_query": [b"%u\t9\tC\t99999\t1"],
    "too_many_fields": [b"\t".join([b"%u"] * 70)],
}


def spread(
    good: list[bytes], bad: list[tuple[str, bytes]], user_of: Callable[[bytes], bytes]
) -> list[tuple[str, bytes]]:
    """The good lines in their order with the bad ones among them; a bad line names the user of the one before it."""
    chance = random.Random(7)
    chance.shuffle(bad)
    before = Counter(chance.choices(range(len(good)), k=len(bad)))
    waiting = iter(bad)
    lines: list[tuple[str, bytes]] = []
    for place, line in enumerate(good):
        lines.append(("", line))
        for _ in range(before[place]):
            reason, text = next(waiting)
            lines.append((reason, text.replace(b"%u", user_of(line))))
    return lines


def many(bad: Bad, n: int) -> list[tuple[str, bytes]]:
    kinds = [(reason, line) for reason, lines in bad.items() for line in lines]
    return [kinds[i % len(kinds)] for i in range(n)]


def counts_of(tally: Tally) -> dict[Record, int]:
    return {record: n for n, records in tally.at_least(1).items() for record in records}


def same_result(clean: Path, mixed: Path, **options: Any) -> SearchLog:
    """Nothing but the number of lines, bytes and malformed lines has changed. The log with bad lines, closed."""
    logs = [read_log(path, key=KEY, keep_lines=True, **options) for path in (clean, mixed)]
    optin = {} if "optin_column" in options else {"optin_fraction": 0.5}
    groups = [log.split(**optin) for log in logs]
    for mine, theirs in zip(*groups, strict=True):
        assert mine.n_users == theirs.n_users > 0
        assert counts_of(mine.tally()) == counts_of(theirs.tally())
    figures = [asdict(log.statistics()) for log in logs]
    for figure in ("users", "queries", "urls", "records"):
        assert figures[0][figure] == figures[1][figure] > 0
    assert (logs[0].summary.used, logs[0].summary.without_url) == (logs[1].summary.used, logs[1].summary.without_url)
    assert figures[0]["malformed"] == 0
    for log in logs:
        log.close()
    return logs[1]


def check_reasons(log: SearchLog, lines: list[tuple[str, bytes]], path: Path, header: int) -> None:
    """Every reason has its exact count, and the places of its first five lines."""
    bad = [(reason, number) for number, (reason, _) in enumerate(lines, start=header + 1) if reason]
    found = log.summary.malformed
    assert {reason: kind.count for reason, kind in found.items()} == Counter(reason for reason, _ in bad)
    assert log.summary.lines == len(lines)
    for reason, kind in found.items():
        expected = [number for why, number in bad if why == reason][:5]
        assert [(place.path, place.line) for place in kind.first] == [(str(path), number) for number in expected]


@pytest.mark.slow
def test_a_million_malformed_lines_in_an_aol_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    clean, mixed = tmp_path / "clean.txt", tmp_path / "mixed.txt"
    assert main(["generate", "--profile", "aol", "--users", "20000", "-o", str(clean)]) == 0
    header, *good = clean.read_bytes().splitlines()
    bad = many(AOL, 1_000_000 - LONG_LINES) + [("line_too_long", LONG + b"\tq")] * LONG_LINES
    lines = spread(good, bad, lambda line: line.partition(b"\t")[0])
    mixed.write_bytes(b"\n".join(chain([header], (line for _, line in lines))))
    log = same_result(clean, mixed)
    assert sum(kind.count for kind in log.summary.malformed.values()) == 1_000_000
    check_reasons(log, lines, mixed, header=1)
    activities = [read_log(path, key=KEY, draws=0) for path in (clean, mixed)]
    first, second = (counts_of(log.activity().searches(Cap(5))) for log in activities)
    assert first == second
    for opened in activities:
        opened.close()
    capsys.readouterr()
    assert main(["stats", str(mixed), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["malformed"] == 1_000_000
    assert {reason: kind["count"] for reason, kind in said["malformed_by_reason"].items()} == {
        reason: kind.count for reason, kind in log.summary.malformed.items()
    }


@pytest.mark.slow
def test_many_malformed_lines_in_csv_with_an_optin_column(tmp_path: Path):
    assert (
        main(["generate", "--profile", "aol", "--users", "3000", "--format", "tsv", "-o", f"{tmp_path}/log.tsv"]) == 0
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for line in (tmp_path / "log.tsv").read_text().splitlines()[1:]:
        fields = line.split("\t")
        writer.writerow([*fields, "yes" if int(fields[0]) % 2 else "no"])
    good = text.getvalue().encode().splitlines()
    header = b"user,query,url,time,consent"
    lines = spread(good, many(CSV, 200_000), lambda line: line.partition(b",")[0])
    clean, mixed = tmp_path / "clean.csv", tmp_path / "mixed.csv"
    clean.write_bytes(b"\n".join([header, *good]))
    mixed.write_bytes(b"\n".join([header, *(line for _, line in lines)]))
    check_reasons(same_result(clean, mixed, optin_column="consent"), lines, mixed, header=1)


@pytest.mark.slow
def test_many_malformed_lines_in_yandex_sessions(tmp_path: Path):
    clean, mixed = tmp_path / "clean", tmp_path / "mixed"
    assert main(["generate", "--profile", "yandex", "--users", "5000", "-o", str(clean)]) == 0
    good = clean.read_bytes().splitlines()
    lines = spread(good, many(YANDEX, 200_000), lambda line: line.partition(b"\t")[0])
    mixed.write_bytes(b"\n".join(line for _, line in lines))
    check_reasons(same_result(clean, mixed, format="yandex"), lines, mixed, header=0)
