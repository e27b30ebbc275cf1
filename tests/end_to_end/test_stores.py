"""Logs in an object store and on a web server: the same as from a disk, or one line and nothing written."""

from __future__ import annotations

import gzip
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest

from searchblend.cli.main import main
from searchblend.core.errors import InputError, UsageError
from searchblend.logs.formats import remote
from searchblend.logs.formats.files import expand, expand_local
from searchblend.logs.formats.remote import RemoteFile, table_kind
from searchblend.logs.read import read_log

pytestmark = pytest.mark.filterwarnings("ignore")  # of the stores' libraries, about each other
LINES = [f"{user}\tquery {user % 5}\thttp://{user % 3}.example" for user in range(1500)]
TEXT = ("\n".join(["user\tquery\turl", *LINES]) + "\n").encode()
ODD = TEXT + b"8888\tquery \xff\thttp://0.example\n"


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("parquet") / "log.parquet"
    columns = "i::VARCHAR AS user, 'query ' || (i % 5) AS query, 'http://a.example' AS url"
    duckdb.sql(f"COPY (SELECT {columns} FROM range(1500) AS t(i)) TO '{path}'")
    return path.read_bytes()


@pytest.fixture(scope="module")
def store(parquet: bytes) -> Iterator[Any]:
    """An S3 on this machine with a bucket ``logs``, as fsspec sees it."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.get_host_and_port()[1]}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        s3 = fsspec.filesystem("s3", skip_instance_cache=True)
        # Buckets and connections outlive a server in their process, and pytest may start this one again.
        type(s3).clear_instance_cache()
        s3.makedirs("logs", exist_ok=True)
        objects = {
            "text/a.tsv": TEXT,
            "text/b[1].tsv.gz": gzip.compress(TEXT),
            "text/_SUCCESS": b"",
            "odd.tsv": ODD,
            "wide.tsv": TEXT.decode().encode("utf-16"),
            "days/day=1/log.parquet": parquet,
            "days/day=2/log[1].parquet": parquet,
            "cut.tsv.gz": gzip.compress(TEXT)[:-20],
            "cut.parquet": parquet[:-200],
            "table/part.parquet": parquet,
            "table/_delta_log/0.json": b"{}",
        }
        for name, content in objects.items():
            s3.pipe(f"logs/{name}", content)
        yield s3
    server.stop()


def found(path: str | Path, **options: Any) -> tuple[Any, ...]:
    """What is read and drawn of a log, by the same key; places of malformed lines without the folder."""
    with read_log(path, key=bytes(16), **options) as log:
        group, _ = log.split(optin_fraction=0.5)
        summary = log.summary
        places = {
            reason: [str(place).rpartition("/")[2] for place in kind.first]
            for reason, kind in summary.malformed.items()
        }
        counts = (summary.format, summary.files, summary.bytes, summary.lines, summary.users, summary.used)
        return counts, places, log.decided, group.tally().at_least(1)


LOGS: dict[str, dict[str, Any]] = {
    "text/a.tsv": {},
    "text/*.tsv*": {},
    "text": {},
    "odd.tsv": {},
    "wide.tsv": {"encoding": "utf-16"},
    "days": {},
    "days/day=*/*.parquet": {},
    "days/day=2/log[1].parquet": {},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOGS)
def test_a_log_of_a_bucket_is_read_as_one_of_a_disk(name: str, store: Any, tmp_path: Path):
    store.get("logs/text", str(tmp_path), recursive=True)
    store.get("logs/days", str(tmp_path), recursive=True)
    for file in ("odd.tsv", "wide.tsv"):
        store.get(f"logs/{file}", str(tmp_path / file))
    assert found(f"s3://logs/{name}", **LOGS[name]) == found(tmp_path / name, **LOGS[name])


def fails(log: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a run that fails; nothing is written and nothing charged."""
    ledger = ["--ledger", str(tmp_path / "budget.db"), "--release-id", "a"]
    options = ["--epsilon", "8", "--delta", "1e-9", "--opt-in", "0.5", "-o", str(tmp_path / "out"), *ledger]
    assert main(["run", log, *options]) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert not list(tmp_path.glob("out*"))
    if (tmp_path / "budget.db").exists():
        assert main(["ledger", "show", str(tmp_path / "budget.db"), "--json"]) == 0
        assert '"a"' not in capsys.readouterr().out
    [line] = [line for line in said.splitlines() if line.startswith("searchblend: error: ")]
    return line.removeprefix("searchblend: error: ")


PROBLEMS = {
    "none.tsv": "s3://logs/none.tsv: no such file",
    "none-*.tsv": "s3://logs/none-*.tsv: no file matches",
    "cut.tsv.gz": "s3://logs/cut.tsv.gz: the gzip file is cut off: its end is missing",
    "cut.parquet": "s3://logs/cut.parquet: the Parquet file cannot be read: cut off or damaged",
    "wide.tsv": "s3://logs/wide.tsv: is UTF-16: read it with --encoding utf-16",
    "table": "s3://logs/table: is a Delta Lake table, and its files hold deleted",
    "table/*.parquet": "s3://logs/table: is a Delta Lake table, and its files hold deleted",
    "table/part.parquet": "s3://logs/table: is a Delta Lake table, and its files hold deleted",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROBLEMS)
def test_what_cannot_be_read_of_a_bucket(name: str, store: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert fails(f"s3://logs/{name}", 1, tmp_path, capsys).startswith(PROBLEMS[name])


# --- a web server ----------------------------------------------------------------------------------------------------


class _Pages(SimpleHTTPRequestHandler):
    """Files of a folder; what is called ``short`` breaks off, and ``locked`` asks who is there."""

    def do_GET(self) -> None:
        if "locked" in self.path:
            self.send_error(401)
        elif "short" in self.path:
            self.send_response(200)
            self.send_header("Content-Length", str(len(TEXT)))
            self.end_headers()
            self.wfile.write(TEXT[:1000])
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "site").mkdir()
    for name in ("log.tsv", "short.tsv", "locked.tsv"):
        (tmp_path / "site" / name).write_bytes(TEXT)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(tmp_path / "site")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.thorough
def test_a_log_of_a_web_server_is_read_as_one_of_a_disk(site: str, tmp_path: Path):
    assert found(f"{site}/log.tsv?signature=secret") == found(tmp_path / "site/log.tsv")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.tsv", "no such file"),
        ("locked.tsv", "may not be read: the store refuses these credentials"),
        ("short.tsv", "cannot be read (ClientPayloadError)"),
    ],
)
def test_what_cannot_be_read_of_a_web_server(
    name: str, problem: str, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    said = fails(f"{site.replace('//', '//me:password@')}/{name}?signature=secret", 1, tmp_path, capsys)
    assert said.startswith(f"{site}/{name}: {problem}")
    assert "password" not in said
    assert "secret" not in said


# --- without a store -------------------------------------------------------------------------------------------------


def test_other_schemes_and_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InputError, match="ftp://…: expected a path, or a URL of s3, gs, "):
        expand("ftp://server/log.tsv")

    def url_to_fs(url: str) -> None:
        raise ImportError

    monkeypatch.setattr("fsspec.core.url_to_fs", url_to_fs)
    packages = {"s3": "searchblend[s3]", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "hdfs": "fsspec pyarrow"}
    for scheme, names in packages.items():
        with pytest.raises(UsageError, match=re.escape(f"{scheme}:// needs more packages: pip install {names}")):
            expand(f"{scheme}://place/log.tsv")
    with pytest.raises(UsageError, match=r"pip install searchblend\[http\]"):
        read_log("https://server/log.tsv")


def test_reports_are_files_of_this_machine():
    with pytest.raises(InputError, match=r"https://server/reports\.bin: expected a file of this machine"):
        expand_local("https://server/reports.bin")


def test_a_cluster_does_not_read_stores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("searchblend.logs.read._open_engine", lambda *_: pytest.fail("no engine is needed"))
    with pytest.raises(UsageError, match=r"https://server/log.tsv: only with --engine duckdb"):
        read_log("https://server/log.tsv?signature=secret", engine="spark")


class _Refusing(Exception):
    status = 403


class _NoCredentialsError(Exception):
    pass


@pytest.mark.parametrize("error", [PermissionError(), _Refusing(), _NoCredentialsError()])
def test_refused_credentials_are_one_line_of_any_library(error: Exception):
    with (
        pytest.raises(InputError, match="s3://logs/a: may not be read"),
        remote.in_our_words(RemoteFile("s3://logs/a")),
    ):
        raise error


def test_an_object_that_ends_early_is_noticed():
    class Short:
        size, at = 10, 0

        def read(self, size: int) -> bytes:
            self.at += 4 if self.at == 0 else 0
            return b"abcd" if self.at == 4 and size == 4 else b""

        def tell(self) -> int:
            return self.at

    opened = remote._Whole(Short(), RemoteFile("s3://logs/a.tsv"))
    assert opened.read(4) == b"abcd"
    with pytest.raises(InputError, match=r"s3://logs/a\.tsv: the file ended early"):
        opened.read(5)


def test_names_of_remote_files():
    file = RemoteFile("https://me:word@server/a%20b/log.jsonl.gz?x=1#y")
    assert (file.name, file.stem, file.suffix) == ("log.jsonl.gz", "log.jsonl", ".gz")
    assert str(file) == "https://server/a%20b/log.jsonl.gz"
    assert "word" not in repr(file)
    assert RemoteFile("s3://bucket/a?b#c.tsv").name == "a?b#c.tsv"


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ({"": {"_delta_log"}}, "a Delta Lake table"),
        ({"": {".hoodie"}}, "a Hudi table"),
        ({"": {"metadata"}, "metadata": {"v1.metadata.json"}}, "an Iceberg table"),
        ({"": {"metadata"}, "metadata": {"notes.txt"}}, None),
        ({"": {"snapshot"}, "snapshot": {"snapshot-1"}}, "a Paimon table"),
        ({"": {"ducklake-0.parquet"}}, "part of a DuckLake table"),
        ({"": {"log.tsv"}}, None),
    ],
)
def test_tables_are_known_by_the_names_in_a_folder(names: dict[str, set[str]], kind: str | None):
    assert table_kind(lambda part: names.get(part, set())) == kind


def test_partitions_of_a_disk_are_read_and_other_folders_are_not(tmp_path: Path):
    for name in ("day=1/hour=2/log.tsv", "day=2/log.tsv", "other/log.tsv", "_day=3/log.tsv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(TEXT)
    names = [str(file.relative_to(tmp_path)) for file in expand(tmp_path) if isinstance(file, Path)]
    assert names == ["day=1/hour=2/log.tsv", "day=2/log.tsv"]
