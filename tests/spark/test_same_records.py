"""Both engines find the same lines, make the same draws and count the same records, to the last one."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
import zstandard
from both_engines import counts_of, read_with_both
from odd_logs import HEADER, odd_lines, odd_rows

from searchblend.blender.groups import Weights
from searchblend.clickgraph.release.click_log import Cap
from searchblend.core.errors import InvalidParameter
from searchblend.core.records import HeadList
from searchblend.logs.spark import parts

pytestmark = pytest.mark.usefixtures("cluster")


class Fixed:
    """The same bytes for both engines."""

    def take(self, n: int) -> bytes:
        return bytes(range(n))


def test_tab_separated_files_of_all_kinds_with_several_draws(tmp_path: Path):
    lines = odd_lines(400, seed=2)
    (tmp_path / "a [1].tsv").write_text("\n".join(lines), newline="")
    crlf = [line.encode() for line in odd_lines(150, seed=3)]
    crlf[3:3] = [b"u1\tq\xff\thttp://a.com\t1\t2", b"u1\tq\0\thttp://a.com\t1\t2", b"u1\tq\rr\thttp://a.com\t1\t2"]
    crlf[9:9] = [b"u" * (1 << 20) + b"xx\tq\tu", b"\r"]
    (tmp_path / "b.tsv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(crlf))
    (tmp_path / "c.tsv.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines[:90]).encode()))
    (tmp_path / "d.tsv.zst").write_bytes(zstandard.compress("\n".join(lines[:60]).encode()))
    with read_with_both(tmp_path, draws=3) as (one, other):
        assert {"nul_byte", "invalid_utf8", "line_too_long"} < set(one.summary.malformed)
        head = HeadList([("google", ("http://a.com", "http://b.org/x?y=1")), ("日本語", ()), ("absent", ("x",))])
        for mine, theirs in zip(one.split(optin_fraction=0.4), other.split(optin_fraction=0.4), strict=True):
            assert mine.n_users == theirs.n_users > 0
            assert mine.cell_counts(head, draws=3).tolist() == theirs.cell_counts(head, draws=3).tolist()
        assert counts_of(mine.tally()) == counts_of(theirs.tally())
        parts = [group.split(0.3, randomness=Fixed())[0] for group in (mine, theirs)]
        assert parts[0].n_users == parts[1].n_users == round(0.3 * mine.n_users)
        tallies = [part.tally() for part in parts]
        everything = counts_of(tallies[1])
        assert counts_of(tallies[0]) == everything
        assert tallies[0].of_queries(["google", "nan"]) == tallies[1].of_queries(["google", "nan"])
        by_query = [tally.by_query(2, ["google"]) for tally in tallies]
        assert counts_of(by_query[0]) == counts_of(by_query[1])
        sizes = tallies[1].sizes()
        assert sizes == Counter(everything.values())
        picked = tallies[1].pick(1, np.arange(sizes[1]))
        assert Counter(picked) == Counter(record for record, n in everything.items() if n == 1)
        assert tallies[1].at_least(1)[1] == picked
        assert tallies[0].at_least(2).keys() == tallies[1].at_least(2).keys()


def test_all_rows_of_a_user_weighed_and_shared_out(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("\n".join(odd_lines(300, seed=5)), newline="")
    head = HeadList([("google", ("http://a.com", "http://b.org/x?y=1")), ("日本語", ()), ("absent", ("x",))])
    with read_with_both(tmp_path, rows=True) as (one, other):
        mine, theirs = one.split(optin_fraction=0.4)[0], other.split(optin_fraction=0.4)[0]
        for weights in (Weights(100, 300), Weights(2, 77)):
            assert counts_of(mine.weighted_queries(weights)) == counts_of(theirs.weighted_queries(weights))
            records = [group.weighted_records(list(head.queries), weights) for group in (mine, theirs)]
            assert counts_of(records[0]) == counts_of(records[1]) != {}
        shares = [group.own_shares(head, 52) for group in (mine, theirs)]
        assert shares[0].cells.tolist() == shares[1].cells.tolist()
        assert shares[0].squares == shares[1].squares > 0
        assert shares[0].cells.sum() == 52 * mine.n_users


def test_csv_with_quotes_and_an_optin_column(tmp_path: Path):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["rank", "user", "query", "url", "consent"])
    for i, (user, query, url, _, rank) in enumerate(odd_rows(200, seed=4)):
        consent = ["yes", "no", " TRUE ", "", "maybe"][(len(user) + i // 150) % 5]
        writer.writerow([rank, user, f"{query}, ok" if i % 3 else query, url, consent])
    (tmp_path / "in_lines.csv").write_text(text.getvalue())
    broken = 'rank,user,query,url,consent\n1,u1,"two\nlines ""x""",http://a.com,1\n2,u2,"bad" q,http://a.com,0\n'
    broken += '2,u3,"never closed,http://a.com,0\n2,u4,q,http://a.com,0\n'
    (tmp_path / "over_lines.csv").write_text(broken)
    for quoted_line_feeds, bad in ((False, 4), (True, 2)):
        options = {"optin_column": "consent", "quoted_line_feeds": quoted_line_feeds}
        with read_with_both(tmp_path, **options) as (one, other):
            assert {"bad_quotes", "bad_optin"} < set(one.summary.malformed)
            assert one.summary.malformed["bad_quotes"].count == bad
            for mine, theirs in zip(one.split(), other.split(), strict=True):
                assert mine.n_users == theirs.n_users > 0
                assert counts_of(mine.tally()) == counts_of(theirs.tally())


def test_aol_with_the_figures_of_a_whole_log(tmp_path: Path):
    lines = ["AnonID\tQuery\tQueryTime\tItemRank\tClickURL"]
    for user, query, url, time, rank in odd_rows(300, seed=5):
        lines.append("\t".join([user, query, time, rank, url] if url else [user, query, time]))
    (tmp_path / "user-ct-test-collection-01.txt").write_text("\n".join(lines))
    with read_with_both(tmp_path, keep_lines=True) as (one, other):
        assert one.statistics() == other.statistics()
        with pytest.raises(InvalidParameter, match="draws"):
            other.activity()


def test_parquet_and_json_lines_and_hosts_only(tmp_path: Path):
    rows = odd_rows(150, seed=6)
    log, file = tmp_path / "log.jsonl", tmp_path / "log.parquet"
    members = ("user", "query", "url", "time", "rank")
    lines = [json.dumps(dict(zip(members, row, strict=True)), ensure_ascii=i % 2 == 0) for i, row in enumerate(rows)]
    lines[2:2] = ["{", "[]", '{"user": 7, "query": "n", "url": "http://a.com", "time": 1141818883.25, "rank": null}']
    lines += [f"{lines[0]} x", f"{lines[0]}}}", f"{lines[0]}],[", f"{lines[0]},{{}}", '{"user": {}, "query": "a"}']
    lines += [
        '{"user": "u", "query": "[x", "url": "http://a.com"}',
        '{"user": "\\ud800", "query": "q", "url": "u"}',
        "",
    ]
    log.write_text("\n".join(lines))
    with read_with_both(log, host_only=True):
        pass
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (name VARCHAR, q VARCHAR, url VARCHAR, time TIMESTAMP, rank INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [[x or None for x in row] for row in rows])
    connection.execute(f"COPY t TO '{file}'")
    with read_with_both(file, columns={"user": "name", "query": "q"}):
        pass


def test_yandex_sessions_and_a_log_without_urls(tmp_path: Path):
    lines = []
    for session in range(60):
        lines.append(f"{session}\tM\t{session % 27}\t{session % 20}")
        for page in range(3):
            lines.append(f"{session}\t{page}\tQ\t{page}\t{(session * page) % 7}\t1,2\t" + "\t".join(["5,6"] * 10))
            lines += [f"{session}\t{page + 1}\tC\t{page}\t{session % 5}"] * (page % 3)
    lines += [
        "7\t9\tC\t99\t1",
        "not\ta\tline",
        "99\t1\tC\t0\t4",
        "99\t0\tQ\t0\t3\t1",
        "5\t0\tQ\t2\t8\t1",
        "\t".join("1" * 70),
    ]
    (tmp_path / "train").write_text("\n".join(lines) + "\n")
    with read_with_both(tmp_path / "train", format="yandex"):
        pass
    with read_with_both(tmp_path / "train", format="yandex", draws=0) as (one, other):
        mine, theirs = one.activity(), other.activity()
        numbers, every = [str(n) for n in range(9)], Cap(99, distinct=False)
        assert sum(counts_of(mine.searches(every)).values()) == 60 * 3
        for cap in (Cap(2), Cap(4, distinct=False)):
            assert counts_of(mine.searches(cap)) == counts_of(theirs.searches(cap))
            clicks = counts_of(mine.clicks(numbers, cap, within=cap))
            assert clicks == counts_of(theirs.clicks(numbers, cap, within=cap))
            assert clicks
    (tmp_path / "queries.tsv").write_text(
        "\n".join("\t".join(row[:2]) for row in [HEADER.split("\t"), *odd_rows(90, 7)])
    )
    with read_with_both(tmp_path / "queries.tsv") as (one, other):
        assert not other.has_urls
        mine, theirs = (log.split(optin_fraction=0.5)[0] for log in (one, other))
        assert counts_of(mine.tally()) == counts_of(theirs.tally())


def test_files_that_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Lines, their numbers, headers and sessions are the same wherever a file is cut."""
    monkeypatch.setattr(parts, "LEAST_BYTES", 2000)
    monkeypatch.setattr(parts, "MOST_BYTES", 2000)
    lines = [line.encode() for line in odd_lines(120, seed=21) if len(line) < 1000]
    lines[40:40] = [b"u1\tq\xff\thttp://a.com\t1\t2", b"\r", b"\xef\xbb\xbfu1\tq\thttp://a.com\t1\t2"]
    lines[90:90] = [b"u1\tq\0\thttp://a.com\t1\t2"]
    (tmp_path / "log.tsv").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    with read_with_both(tmp_path / "log.tsv") as (one, _):
        assert {"nul_byte", "invalid_utf8", "too_few_fields"} < set(one.summary.malformed)
    file = tmp_path / "log.parquet"
    rows = "SELECT i % 50 AS user, CASE WHEN i % 97 > 3 THEN 'query ' || i END AS query FROM range(900) AS t (i)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{file}'")
    with read_with_both(file) as (one, _):
        assert one.summary.malformed["unusable_query"].count == 40
    sessions = [[f"{s}\tM\t1\t{s % 7}", f"{s}\t1\tQ\t0\t{s % 5}\t1", f"{s}\t2\tC\t0\t{s}"] for s in range(90)]
    turns = [session[i] for i in range(3) for session in sessions]
    (tmp_path / "train").write_text("\n".join(turns) + "\n")
    with read_with_both(tmp_path / "train", format="yandex") as (_, other):
        assert other.summary.used == 90
