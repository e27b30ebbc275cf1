"""Combined logs of Apache and nginx: searches and clicks are read from addresses and referrers."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from made_logs import counts_of, read
from reference_rules import KEY

from searchblend.core.errors import InputError, InvalidColumns, InvalidParameter
from searchblend.core.records import Record
from searchblend.logs.engine import Drawing
from searchblend.logs.formats.gate import Gate
from searchblend.logs.formats.judge import judge_for
from searchblend.logs.formats.layout import ColumnMap, ServerLog
from searchblend.logs.formats.server_log import LineReader, decoded_query
from searchblend.logs.formats.sources import find_sources
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import SearchLog
from searchblend.logs.spark import parts
from searchblend.wire.release import USER_CAVEATS, log_caveats

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SITE = "https://site.example"
BY_ADDRESS: dict[str, Any] = {"format": "combined", "columns": {"user": "address"}, "query_parameter": "q"}


def line(
    target: str, referrer: str = "-", *, address: str = "192.0.2.1", user: str = "-", status: int = 200, more: str = ""
) -> str:
    request = target if " " in target else f"GET {target} HTTP/1.1"
    agent = r"Agent \"quoted\" (x; y)"
    return f'{address} - {user} [18/Nov/2026:20:00:00 +0100] "{request}" {status} 512 "{referrer}" "{agent}"{more}\n'


LINES = [
    line("/search?q=Weather+Berlin&page=1"),
    line("/doc/1?from=search", f"{SITE}/search?a=b&q=weather%20berlin#top"),
    line("/style.CSS?v=2", f"{SITE}/search?q=weather"),
    line("/logo.png", f"{SITE}/search?q=weather"),
    line("/doc/2", f"{SITE}/about"),
    line("/doc/3", "https://engine.example/?q=Z%C3%BCrich", address="2001:db8::1", more=' "203.0.113.9" 0.001'),
    line("/doc/4", f"{SITE}/search?q=missing", status=404),
    line("/doc/5", f"{SITE}/search?q=cached", status=304, address="192.0.2.4"),
    line("POST /doc/6 HTTP/1.1", f"{SITE}/search?q=posted"),
    line(r"\x16\x03\x01 x", status=400),
    line("/search?q=second", f"{SITE}/search?q=first", address="192.0.2.3"),
    line("/search?q=&page=2"),
    line("/search?query=other&eq=x"),
    line("/doc/7", f"{SITE}/search?q=%FF", address="192.0.2.5"),
    "192.0.2.1 - - broken\n",
    line("/doc/8", f"{SITE}/search?q=a b", address="192.0.2.6").replace(" 512 ", " many "),
]


CLICKS = {
    Record("weather berlin", "/doc/1?from=search"): 1,
    Record("zürich", "/doc/3"): 1,
    Record("cached", "/doc/5"): 1,
}


def records(log: SearchLog) -> dict[Record, int]:
    return counts_of(log.split(optin_fraction=1e-9)[1].tally())


@pytest.mark.parametrize("packed", [False, True])
def test_searches_and_clicks_are_read_from_addresses_and_referrers(packed: bool, tmp_path: Path):
    path = tmp_path / ("access.log.gz" if packed else "access.log")
    text = "".join(LINES).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with read(path, **BY_ADDRESS) as log:
        assert records(log) == CLICKS
        summary = log.summary
        assert (summary.lines, summary.used, summary.users, summary.without_url) == (16, 3, 3, 10)
        places = {reason: [place.line for place in kind.first] for reason, kind in summary.malformed.items()}
        assert places == {"unusable_query": [14], "bad_line": [15, 16]}
        assert {name: log.decided[name] for name in ("format", "user", "query_parameter")} == {
            "format": "combined",
            "user": "address",
            "query_parameter": "q",
        }
        assert log_caveats(log.decided) == [USER_CAVEATS["address"]]
    with read(path, **BY_ADDRESS, urls=False) as log:
        assert (log.has_urls, log.summary.used, log.summary.users) == (False, 5, 4)
    with read(path, **BY_ADDRESS, draws=0) as log:
        assert log.summary.users == 4  # a search without a click is one too


def test_a_user_is_who_signed_in_where_that_is_said(tmp_path: Path):
    search = f"{SITE}/search?q=weather"
    lines = [line("/d", search, user="ann"), line("/d", search, user="ann", address="192.0.2.9"), line("/d", search)]
    (tmp_path / "access.log").write_text("".join(lines))
    with read(tmp_path / "access.log", **{**BY_ADDRESS, "columns": {"user": "remote_user"}}) as log:
        assert (log.summary.users, log.summary.used) == (1, 2)
        assert [place.line for place in log.summary.malformed["missing_user"].first] == [3]
        assert log_caveats(log.decided) == [USER_CAVEATS["remote_user"]]


def test_a_path_tells_searches_from_what_is_typed_ahead(tmp_path: Path):
    lines = [line("/suggest?q=we"), line("/search?q=weather"), line("/d", f"{SITE}/search?lang=de&q=weather")]
    lines.append(line("/e", f"{SITE}/suggest?q=we"))
    (tmp_path / "access.log").write_text("".join(lines))
    with read(tmp_path / "access.log", **{**BY_ADDRESS, "query_parameter": "/search?q"}) as log:
        assert set(records(log)) == {Record("weather", "/d")}
        assert (log.summary.used, log.summary.without_url) == (1, 3)


@pytest.mark.parametrize("size", [200, 1 << 20])
def test_executors_read_parts_of_it_as_the_whole(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What they do needs no cluster: the same code reads every part, with what folders say of its file."""
    path = tmp_path / "consent=yes" / "access.log"
    path.parent.mkdir()
    path.write_text("".join(LINES))
    options = ReadOptions(path, optin_column="consent", **BY_ADDRESS)
    sources = find_sources([path], options, ColumnMap(options.columns, "consent"), lambda _: {})
    monkeypatch.setattr(parts, "LEAST_BYTES", size)
    cut = parts.parts_of(sources, size)
    rows = list(parts.read_parts(parts.ReadTask(Drawing(KEY.hex()), keep_lines=False), cut))
    reading = parts.reading_of(cut, [row[0] for row in rows if row[0] is not None])
    found = {(row[8], row[9], row[3]) for row in rows if row[0] is None}
    assert len(cut) == -(-path.stat().st_size // size)
    assert found == {(one.query, one.url, True) for one in CLICKS}
    assert (reading.lines, reading.used, reading.without_url, reading.malformed) == (16, 3, 10, 3)


PIECES = [
    *(
        b'"',
        b"\\",
        b'\\"',
        b" ",
        b"[",
        b"]",
        b"?",
        b"&",
        b"#",
        b"=",
        b"q=",
        b"?q=x",
        b".png",
        b"+",
        b"%",
        b"%E4",
        b"%00",
    ),
    *(
        b"\\x",
        b"\\xC3\\xA9",
        b"-",
        b"\x1f",
        b"\r",
        b"\0",
        b"\xff",
        b"GET ",
        b"301",
        "\u00e9\u2028".encode(),
        b"x" * 2100,
    ),
]


def test_sql_and_python_read_alike(tmp_path: Path):
    """3,000 lines with bytes put anywhere in them, by a fixed seed: the same fields, and the same is wrong."""
    chance = random.Random(5)
    made = [one.rstrip("\n").encode() for one in LINES]
    for _ in range(3_000):
        one, place = chance.choice(made[:16]), chance.random()
        for _ in range(chance.choice([1, 1, 2, 4])):
            at = int(place * len(one)) if chance.random() < 0.5 else chance.randrange(len(one))
            one = one[:at] + chance.choice(PIECES) + one[at + chance.randrange(3) :]
        made.append(one)
    path = tmp_path / "access.log"
    path.write_bytes(b"\n".join(made) + b"\n")
    layout = ServerLog("address", "q")
    lines = [line for block in Gate(path, layout.rules).blocks() for line in block.decode().split("\n") if line]
    judge, reader = judge_for(layout, host_only=False), LineReader("address", "q")
    expected = Counter(judge(line) for line in lines)
    fields = [reader.read(line) or {} for line in lines if judge(line) is None]
    with read(path, **BY_ADDRESS, keep_lines=True) as log:
        rows = log._engine._session.rows("SELECT user, query, url FROM lines WHERE problem = 0")
        assert Counter(rows) == Counter((one["user"], one["query"], one["url"]) for one in fields)
        assert (log.summary.used, log.summary.without_url) == (expected.pop(None), expected.pop("without_url"))
        found = {reason: kind.count for reason, kind in log.summary.malformed.items() if reason in expected}
        assert found == expected
        assert expected.keys() >= {"bad_line", "unusable_query", "too_many_fields"}
        assert len(rows) > 100


@pytest.mark.parametrize(
    ("value", "query"),
    [
        ("a+b%2Bc", "a b+c"),
        (r"Z\xC3\xBCrich", "Zürich"),
        (r"say \"x\" \\ y", r'say "x" \ y'),
        ("%E4", ""),
        ("%00", ""),
        ("100%zz", "100%zz"),
    ],
)
def test_a_value_is_decoded_as_browsers_and_servers_write_it(value: str, query: str):
    assert decoded_query(value) == query


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"columns": {}}, "does not say who is a user: .*user=address or user=remote_user"),
        ({"columns": {"user": "agent"}}, "does not say who is a user"),
        ({"columns": {"user": "address", "query": "q"}}, "and nothing else"),
        ({"query_parameter": None}, "expected with --format combined"),
        ({"query_parameter": "q&"}, "expected a name such as q"),
        ({"format": "tsv"}, "only with --format combined"),
        ({"optin_column": "consent"}, "does not say who is a user"),
        ({"delimiter": ";"}, "only of tsv and csv, not of combined"),
    ],
)
def test_what_is_not_said_is_asked_for(options: dict[str, Any], problem: str, tmp_path: Path):
    (tmp_path / "access.log").write_text("".join(LINES))
    with pytest.raises((InvalidColumns, InvalidParameter), match=problem):
        read(tmp_path / "access.log", **{**BY_ADDRESS, **options})


def test_a_table_in_memory_has_no_addresses():
    with pytest.raises(InvalidParameter, match="only with --format combined"):
        read({"user": ["a"], "query": ["b"]}, query_parameter="q")


def test_a_log_without_a_search_is_refused(tmp_path: Path):
    (tmp_path / "access.log").write_text(line("/doc/2"))
    with pytest.raises(InputError, match=r"no line of the log can be used \(no search was clicked.*--query-parameter"):
        read(tmp_path / "access.log", **BY_ADDRESS)


@contextmanager
def nginx(folder: Path) -> Iterator[Path]:
    """A server with its default log format, in ``access.log``: the path of its socket."""
    temp = " ".join(f"{kind}_temp_path t;" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    server = "server { listen unix:s; location ~ ^/(search|doc)$ { return 200 found; } }"
    (folder / "nginx.conf").write_text(
        f"pid pid; error_log error.log; events {{}} http {{ {temp} access_log access.log; {server} }}".replace(
            "unix:s", f"unix:{folder}/s"
        )
    )
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    subprocess.run(command, check=True, timeout=60)  # it listens before it goes to the background
    try:
        yield folder / "s"
    finally:
        subprocess.run([*command, "-s", "stop"], check=True, timeout=60)


def ask(server: Path, target: bytes, referrer: bytes = b"") -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(server))
        more = b"Referer: " + referrer + b"\r\n" if referrer else b""
        connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n" + more + b"Connection: close\r\n\r\n")
        while connection.recv(4096):  # the request is in the log before the connection is closed
            pass


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed: scripts/install-servers.sh")
def test_what_nginx_writes_is_read(tmp_path: Path):
    with nginx(tmp_path) as server:
        ask(server, b"/search?q=Z%C3%BCrich+%22x%22")
        ask(server, b"/doc?n=1", b"https://site.example/search?q=Z%C3%BCrich+%22x%22")
        ask(server, b"/doc?n=2", 'https://site.example/search?q=Z\u00fcrich+"x"'.encode())
        ask(server, b"/missing", b"https://site.example/search?q=x")
        ask(server, b"/doc?n=3", b"https://site.example/about")
        ask(server, b"no request")
    with read(tmp_path / "access.log", **BY_ADDRESS, keep_lines=True) as log:
        assert {record.query for record in records(log)} == {'zürich "x"'}
        statistics = log.statistics()
        assert (statistics.queries, statistics.urls) == (1, 2)
        assert (log.summary.lines, log.summary.used, log.summary.malformed) == (6, 2, {})
