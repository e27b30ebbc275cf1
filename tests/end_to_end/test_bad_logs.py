"""Logs as they should not be: each a clear error with file and line, or a counted line, and nothing half-written."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
import zstandard

from searchblend.cli.main import main

SECRET = "embarrassing medical question"
USER = "user-4711"
HEADER = "user\tquery\turl\n"
GOOD = HEADER + "".join(f"{user}\tquery {user % 5}\thttp://{user % 3}.example\n" for user in range(1500))
PRIVATE = f"{USER}\t{SECRET}\thttp://{SECRET.split()[0]}.example\n"
RUN = ("--epsilon", "8", "--delta", "1e-9")


class Command:
    """``searchblend run`` on a log in an otherwise empty directory."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory, self._capsys = directory, capsys
        (directory / "logs").mkdir()
        (directory / "temp").mkdir()

    def write(self, content: str | bytes, name: str = "log.tsv") -> Path:
        path = self.directory / "logs" / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def __call__(self, log: object, *options: str) -> tuple[int, str]:
        before = threading.active_count()
        output, temp, summary = self.directory / "out", self.directory / "temp", self.directory / "input.json"
        summary.unlink(missing_ok=True)
        optin = () if "--opt-in-column" in options else ("--opt-in", "0.5")
        places = ("-o", str(output), "--summary", str(summary), "--temp-directory", str(temp))
        code = main(["run", str(log), *places, *RUN, *optin, *options])
        said = self._capsys.readouterr()
        for text in (said.out, said.err):
            assert "Traceback" not in text
            for secret in (SECRET, USER, SECRET.split()[0]):
                assert secret not in text
        assert list(temp.iterdir()) == [], "temporary files are left"
        assert threading.active_count() == before, "threads are left"
        assert output.exists() is (code == 0)
        return code, said.err

    def fails(self, code: int, log: object, *options: str) -> str:
        """The one line that a failing run says."""
        found, said = self(log, *options)
        assert found == code
        lines = [line for line in said.splitlines() if line.startswith("searchblend: error: ")]
        assert len(lines) == 1
        assert list(self.directory.glob("out*")) == []
        return lines[0]

    def malformed(self, log: object, *options: str) -> dict[str, tuple[int, list[str]]]:
        """What a run that succeeds says about its input, and that none of it is in a released file."""
        code, said = self(log, *options)
        assert code == 0, said
        found = json.loads((self.directory / "input.json").read_text())
        for name in ("records.csv", "trends.csv", "result.json", "statement.json", "headlist.json"):
            assert "malformed" not in (self.directory / "out" / name).read_text()
        return {
            reason: (entry["count"], [place.rpartition("/")[2] for place in entry["first"]])
            for reason, entry in found["malformed"].items()
        }


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


WHOLE_FILES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 1, "log.tsv: the file is empty"),
    "only blank": (b"\n\n\n", 1, "log.tsv:1: expected a header"),
    "header only": (HEADER.encode(), 1, "log.tsv: the log holds no line"),
    "random bytes": (bytes(range(256)) * 400, 1, "log.tsv:1: does not begin with a line of text"),
    "UTF-16": (GOOD.encode("utf-16"), 1, "log.tsv: is UTF-16: read it with --encoding utf-16"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-be"), 1, "a byte-order mark: read it with --encoding utf-16-be"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(5000), 1, "log.tsv:1: does not begin with a line of text"),
    "one line without end": (b"x" * 5_000_000, 1, "log.tsv:1: does not begin with a line of text"),
    "no such column": (GOOD.replace("query", "words", 1).encode(), 2, "no column 'query': there are user, words, url"),
    "no header": ((PRIVATE * 9).encode(), 2, "none of the expected names is among the 3 fields"),
    "duplicate column": (GOOD.replace("url", "query", 1).encode(), 1, "log.tsv:1: columns 2 and 3 of the header"),
    "nothing usable": ((HEADER + f"\t{SECRET}\tu\n" * 3).encode(), 1, "no line of the log can be used (3 missing_"),
    "no clicks": ((HEADER + f"{USER}\t{SECRET}\t\n" * 3).encode(), 1, "no line of the log can be used (3 without"),
    "gzip under another name": (gzip.compress(GOOD.encode()), 1, "log.tsv: is compressed with gzip: name it .gz"),
    "zstd under another name": (zstandard.compress(GOOD.encode()), 1, "is compressed with zstd: name it .zst"),
    "cut off Parquet": (b"PAR1" + bytes(500), 1, "the Parquet file cannot be read"),
    "JSON under another name": (b'{"user": 1, "query": "a"}\n' * 9, 1, "or --format jsonl, combined, yandex or excite"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(WHOLE_FILES))
def test_files_that_are_no_logs(command: Command, name: str):
    content, code, message = WHOLE_FILES[name]
    assert message in command.fails(code, command.write(content))


COMPRESSED = {
    "cut off gzip": ("log.gz", gzip.compress(GOOD.encode())[:-500], "cut off"),
    "cut off zstd": ("log.zst", zstandard.compress(GOOD.encode())[:-50], "cut off"),
    "damaged gzip": ("log.gz", b"\x1f\x8b" + b"\xff" * 5000, "damaged"),
    "text under the name of gzip": ("log.gz", GOOD.encode(), "damaged"),
    "text under the name of bzip2": ("log.tsv.bz2", GOOD.encode(), "the bzip2 file is damaged"),
    "text under the name of zip": ("log.tsv.zip", GOOD.encode(), "log.tsv.zip: the zip file is damaged or cut off"),
    "cut off xz": ("log.tsv.xz", lzma.compress(GOOD.encode())[:-50], "the xz file is cut off"),
}


@pytest.mark.parametrize("name", list(COMPRESSED))
def test_compressed_files_that_are_no_logs(command: Command, name: str):
    file, content, message = COMPRESSED[name]
    assert message in command.fails(1, command.write(content, file))


REQUEST = (
    '{address} - - [18/Nov/2026:20:00:00 +0000] "GET /d{page} HTTP/1.1" 200 5 "http://s.example/find?q={query}" "-"\n'
)
PRIVATE_REQUEST = REQUEST.format(address=USER, page=1, query=SECRET.replace(" ", "+"))
COMBINED = ("--format", "combined", "--query-parameter", "q", "--columns", "user=address")
NO_SEARCH_LOGS: dict[str, tuple[str, str, tuple[str, ...], int, str]] = {
    "who is a user": ("access.log", PRIVATE_REQUEST, COMBINED[:4], 2, "--columns user=address or user=remote_user"),
    "another format": ("access.log", PRIVATE_REQUEST, (), 1, "or --format jsonl, combined, yandex or excite"),
    "counts": (
        "matomo.csv",
        f"Label;nb_visits\n{SECRET};3\n",
        (),
        2,
        "no column 'user': a table of counts without users",
    ),
    "clickstream": (
        "clickstream-en.tsv",
        f"other-search\t{SECRET}\texternal\t42\n",
        (),
        2,
        "a table of counts without users",
    ),
    "terms": ("terms.json", f'{{\n"{SECRET}": {{"visits": 27}}\n}}\n', (), 1, "the first file is one JSON document"),
    "half of UBI": (
        "ubi_queries.ndjson",
        f'{{"user_query": "{SECRET}"}}\n',
        (),
        1,
        "the log has no file of ubi_events",
    ),
}


@pytest.mark.parametrize("name", list(NO_SEARCH_LOGS))
def test_what_is_refused_by_name_and_reason(command: Command, name: str):
    file, content, options, code, message = NO_SEARCH_LOGS[name]
    assert message in command.fails(code, command.write(content, file), *options)


def test_a_statement_says_who_a_user_of_a_web_server_is(command: Command):
    lines = [REQUEST.format(address=f"192.0.2.{i}", page=i % 3, query=f"query+{i % 5}") for i in range(1500)]
    path = command.write(
        "".join(lines) + REQUEST.format(address="-", page=1, query=SECRET.replace(" ", "+")), "access.log"
    )
    assert command.malformed(path, *COMBINED) == {"missing_user": (1, ["access.log:1501"])}
    statement = json.loads((command.directory / "out" / "statement.json").read_text())
    assert any("a user is a network address" in caveat for caveat in statement["caveats"])


def test_json_lines_without_a_usable_one(command: Command):
    said = command.fails(1, command.write('{"user": 1, "query": \n', "log.jsonl"))
    assert "no line of the log can be used (1 bad_line)" in said


def test_files_that_are_not_there(command: Command):
    assert "no such file" in command.fails(1, command.directory / "none.tsv")
    assert "no file matches" in command.fails(1, command.directory / "none-*.tsv")
    assert "holds no files" in command.fails(1, command.directory / "logs")


def test_a_file_that_may_not_be_read(command: Command):
    path = command.write(GOOD)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("NOT TESTED: a file without permission to read; this user may read everything")
    assert "may not be read" in command.fails(1, path)


@pytest.mark.parametrize("position", [0, 4, 9])
def test_one_of_ten_gzip_files_is_cut_off(command: Command, position: int):
    rows = GOOD.removeprefix(HEADER).splitlines(keepends=True)
    for part in range(10):
        whole = gzip.compress((HEADER + "".join(rows[part::10] * 50)).encode())
        command.write(whole[: len(whole) // 2] if part == position else whole, f"part-{part:02}.txt.gz")
    said = command.fails(1, command.directory / "logs" / "part-*.txt.gz")
    assert f"part-{position:02}.txt.gz:" in said
    assert "cut off" in said


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "missing user": (b"\tq\thttp://x.example", "missing_user"),
    "blank user": (b"  \tq\thttp://x.example", "missing_user"),
    "missing query": (b"9\t\thttp://x.example", "unusable_query"),
    "blank query": (b"9\t   \thttp://x.example", "unusable_query"),
    "unassigned code point": ("9\tq\u0378\thttp://x.example".encode(), "unusable_query"),
    "no host": (b"9\tq\thttp://a b/", "unusable_url"),
    "too few fields": (b"9\tq", "too_few_fields"),
    "too many fields": (b"9\tq\thttp://x.example\t1", "too_many_fields"),
    "invalid UTF-8": (b"9\tq\xff\xfe\thttp://x.example", "invalid_utf8"),
    "half a character": (b"9\tq\xc3\thttp://x.example", "invalid_utf8"),
    "a surrogate": (b"9\tq\xed\xa0\x80\thttp://x.example", "invalid_utf8"),
    "NUL": (b"9\tq\0\thttp://x.example", "nul_byte"),
    "2 MB line": (b"9\t" + b"q" * 2_000_000 + b"\thttp://x.example", "line_too_long"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD_LINES))
def test_bad_lines_are_counted_and_located(command: Command, name: str):
    line, reason = BAD_LINES[name]
    text = GOOD.encode().splitlines(keepends=True)
    text[700:700] = [line + b"\n"]
    assert command.malformed(command.write(b"".join(text))) == {reason: (1, ["log.tsv:701"])}


def test_bad_lines_of_a_compressed_file_are_counted_and_located(command: Command):
    """All kinds in one file: they come as from a plain one, which has each of them alone."""
    text = GOOD.encode().splitlines(keepends=True)
    places: dict[str, list[str]] = {}
    for number, (line, reason) in enumerate(BAD_LINES.values()):
        text.insert(700 + 10 * number, line + b"\n")
        places.setdefault(reason, []).append(f"log.tsv.gz:{701 + 10 * number}")
    found = command.malformed(command.write(gzip.compress(b"".join(text)), "log.tsv.gz"))
    assert found == {reason: (len(lines), lines) for reason, lines in places.items()}


@pytest.mark.parametrize("name", ["missing user", "invalid UTF-8", "too many fields", "unassigned code point"])
def test_strict_stops_at_the_first_bad_line(command: Command, name: str):
    line, reason = BAD_LINES[name]
    said = command.fails(1, command.write(GOOD.encode() + line + b"\n" + PRIVATE.encode()), "--strict")
    assert "log.tsv:1502: " in said
    if reason == "missing_user":
        assert "user: expected an id" in said


def test_a_line_of_100_mb_is_passed_over_in_little_memory(command: Command):
    command.write(GOOD)
    with (command.directory / "logs/log.tsv").open("ab") as file:
        file.write(b"9\t")
        for _ in range(100):
            file.write(b"q" * 1_000_000)
        file.write(b"\thttp://x.example\n" + PRIVATE.encode())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert command.malformed(command.directory / "logs/log.tsv") == {"line_too_long": (1, ["log.tsv:1502"])}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000
    read = json.loads((command.directory / "input.json").read_text())
    assert (read["lines"], read["used"]) == (1502, 1501)


@pytest.mark.parametrize("name", ["CRLF", "one CRLF", "BOM", "no last line end", "blank lines", "a lone CR"])
def test_harmless_oddities(command: Command, name: str):
    oddities = {
        "CRLF": GOOD.replace("\n", "\r\n"),
        "one CRLF": GOOD.replace("\n", "\r\n", 7).replace("\r\n", "\n", 6),
        "BOM": "\ufeff" + GOOD,
        "no last line end": GOOD.rstrip("\n"),
        "blank lines": GOOD.replace("\n", "\n\n"),
        "a lone CR": GOOD.replace("query 1\t", "query\r1\t", 1),
    }
    assert command.malformed(command.write(oddities[name])) == {}
    read = json.loads((command.directory / "input.json").read_text())
    assert (read["lines"], read["users"]) == (1500, 1500)


def test_csv_with_bad_quotes(command: Command):
    text = GOOD.replace("\t", ",").splitlines()
    text[10:10] = ['9,"never closed,http://x.example', '9,5" disk,http://x.example', '9,"a, ""b""",http://x.example']
    found = command.malformed(command.write("\n".join(text), "log.csv"))
    assert found == {"bad_quotes": (2, ["log.csv:11", "log.csv:12"])}
    statement = json.loads((command.directory / "out/statement.json").read_text())
    assert statement["parameters"]["log"] == {
        "format": "csv",
        "urls": True,
        "host_only": False,
        "quoted_line_feeds": False,
        "encoding": "utf-8",
    }
    assert not any("line feeds" in caveat for caveat in statement["caveats"])


def test_quoted_line_feeds_are_an_option_and_the_statement_says_what_it_rests_on(command: Command):
    text = GOOD.replace("\t", ",") + '9,"two\nlines",http://x.example\n'
    path = command.write(text, "log.csv")
    assert command.malformed(path, "--quoted-line-feeds") == {}
    statement = json.loads((command.directory / "out/statement.json").read_text())
    assert statement["parameters"]["log"]["quoted_line_feeds"]
    assert any("rests on the quotes of every line being well formed" in caveat for caveat in statement["caveats"])


IN_UTF_16 = {"utf-16": b"\xff\xfe", "utf-16-le": b"", "utf-16-be": b""}


@pytest.mark.parametrize("encoding", IN_UTF_16)
def test_a_stray_byte_of_utf_16_holds_back_one_line_alone(command: Command, encoding: str):
    mark, order = IN_UTF_16[encoding], encoding if encoding != "utf-16" else "utf-16-le"
    feed = "\n".encode(order)
    lines = [line.encode(order) for line in GOOD.splitlines()]
    lines[1:1] = [PRIVATE.strip().encode(order) + b"x", b"\xdc\xdc" + PRIVATE.encode(order)[2:-2], b"\0"]
    path = command.write(mark + feed.join(lines) + feed)
    assert command.malformed(path, "--encoding", encoding) == {
        "invalid_encoding": (3, ["log.tsv:2", "log.tsv:3", "log.tsv:4"])
    }
    read = json.loads((command.directory / "input.json").read_text())
    assert (read["lines"], read["users"]) == (1503, 1500)
    statement = json.loads((command.directory / "out/statement.json").read_text())
    assert statement["parameters"]["log"]["encoding"] == encoding


def test_an_undefined_byte_of_an_encoding_holds_back_one_line_alone(command: Command):
    text = GOOD.replace("query 1", "caf\xe9 1").encode("cp1252").splitlines(keepends=True)
    path = command.write(b"".join([text[0], PRIVATE.encode().replace(b" ", b"\x81", 1), *text[1:]]))
    assert command.malformed(path, "--encoding", "cp1252") == {"invalid_encoding": (1, ["log.tsv:2"])}
    assert "café 1" in (command.directory / "out/trends.csv").read_text(encoding="utf-8")


ENCODINGS: dict[str, tuple[str, bytes, int, str]] = {
    "unknown": ("klingon", GOOD.encode(), 2, "encoding: expected one of utf-8, utf-16, "),
    "no mark": ("utf-16", GOOD.encode(), 1, "log.tsv: expected a byte-order mark of UTF-16 as its first bytes"),
    "UTF-8 as UTF-16": ("utf-16-le", GOOD.encode(), 1, "log.tsv:1: does not begin with a line of text"),
    "UTF-16 as Latin-1": ("latin-1", GOOD.encode("utf-16"), 1, "log.tsv:1: does not begin with a line of text"),
    "empty": ("utf-16", b"", 1, "log.tsv: the file is empty"),
    "a mark alone": ("utf-16", b"\xff\xfe", 1, "log.tsv: the file is empty"),
    "half a mark": ("utf-16", b"\xff", 1, "log.tsv: expected a byte-order mark"),
    "Parquet": ("latin-1", b"PAR1" + bytes(500), 1, "the Parquet file cannot be read"),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_files_that_are_not_in_their_encoding(command: Command, name: str):
    encoding, content, code, message = ENCODINGS[name]
    assert message in command.fails(code, command.write(content), "--encoding", encoding)


JSON_LINES = [json.dumps({"user": i, "query": f"query {i % 5}", "url": f"http://{i % 3}.example"}) for i in range(1500)]


def test_the_first_persons_bytes_do_not_refuse_a_log_without_a_header(command: Command):
    """A byte-order mark of UTF-16 at its beginning may be a broken line of theirs: that line alone is held back."""
    path = command.write(b"\xff\xfe" + "\n".join(["{}", *JSON_LINES]).encode(), "log.jsonl")
    assert command.malformed(path) == {"invalid_utf8": (1, ["log.jsonl:1"])}


def test_a_log_without_a_header_in_utf_16(command: Command):
    path = command.write("\n".join(JSON_LINES).encode("utf-16"), "log.jsonl")
    assert "the first file is UTF-16: read it with --encoding utf-16)" in command.fails(1, path)
    assert command.malformed(path, "--encoding", "utf-16") == {}


def test_a_yandex_click_without_its_query(command: Command):
    sessions = "".join(
        f"{s}\tM\t1\t{s}\n{s}\t0\tQ\t0\t{s % 4}\t1\t5,6\t7,8\n{s}\t3\tC\t0\t{s % 2}\n" for s in range(1500)
    )
    path = command.write(sessions + "9999\tM\t1\t9999\n9999\t1\tC\t0\t5\n", "train")
    assert command.malformed(path, "--format", "yandex") == {"click_without_query": (1, ["train:4502"])}


def test_a_parquet_file_with_other_types(command: Command):
    path = command.directory / "logs/log.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS user, {{'a': 1}} AS query, 'u' AS url) TO '{path}'")
    assert "column 'query' has type STRUCT" in command.fails(2, path)


def test_columns_that_do_not_exist(command: Command):
    path = command.write(GOOD)
    assert "no column 'ClickURL'" in command.fails(2, path, "--columns", "user=user,query=query,url=ClickURL")
    assert "no column 'consent'" in command.fails(2, path, "--opt-in-column", "consent")


def test_a_full_disk_in_the_temp_directory(tmp_path: Path):
    """In a process that may not write large files: the nearest thing to a full disk that needs no mount."""
    log = tmp_path / "log.tsv"
    log.write_text(HEADER + "".join(f"{i}\t{SECRET} {i * i}\thttp://{i}.example\n" for i in range(900_000)))
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "from searchblend.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    (tmp_path / "temp").mkdir()
    arguments = ["run", str(log), "-o", str(tmp_path / "out"), "--memory", "90MB", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments, "--temp-directory", str(tmp_path / "temp")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no space left in the temp directory" in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr
    assert not (tmp_path / "out").exists()
    assert list((tmp_path / "temp").iterdir()) == []
