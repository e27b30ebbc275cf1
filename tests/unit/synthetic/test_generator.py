"""Writing a made-up log: the same bytes for the same seed, in every format, and all of it or nothing."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import duckdb
import psutil
import pytest

from searchblend.cli.main import main
from searchblend.core.errors import InvalidParameter, OutputError, UsageError
from searchblend.synthetic import generator
from searchblend.synthetic.generator import generate_log
from searchblend.synthetic.pieces import LogRequest, jobs_of, make_piece

pytestmark = pytest.mark.thorough

USERS = 300


def made(tmp_path, profile="aol", form=None, name="log", **options):
    request = LogRequest(profile, options.pop("n_users", USERS), form or profile, options.pop("seed", 3))
    return generate_log(request, str(tmp_path / name) + ("/" if name.endswith("/") else ""), **options)


@pytest.mark.parametrize("profile", ["aol", "yandex"])
def test_the_number_of_workers_does_not_matter(tmp_path, profile):
    alone = made(tmp_path, profile, name="alone").files[0].read_bytes()
    together = made(tmp_path, profile, name="together", workers=3).files[0].read_bytes()
    assert alone == together
    assert alone != made(tmp_path, profile, name="other", seed=4).files[0].read_bytes()


def test_more_users_than_fit_in_the_fewest_chunks_come_in_bounded_chunks():
    jobs = list(jobs_of(LogRequest("aol", 1_000_000, "aol"), compress=False))
    assert sum(job.n_users for job in jobs) == 1_000_000
    assert max(job.n_users for job in jobs) <= 4_096
    assert [job.first_user for job in jobs[:3]] == [0, 4_096, 8_192]


def test_ten_files_hold_what_one_file_holds(tmp_path):
    header, *lines = made(tmp_path).files[0].read_text().splitlines()
    collection = made(tmp_path, name="collection/")
    assert [path.name for path in collection.files][::9] == [
        "user-ct-test-collection-01.txt",
        "user-ct-test-collection-10.txt",
    ]
    parts = [path.read_text().splitlines() for path in collection.files]
    assert all(part[0] == header and len(part) > 1 for part in parts)
    assert [line for part in parts for line in part[1:]] == lines
    assert made(tmp_path, name="collection", replace=True).files == collection.files, "an existing directory"


@pytest.mark.parametrize(("profile", "form"), [("aol", "aol"), ("aol", "tsv"), ("yandex", "yandex")])
def test_gzip_holds_the_same_text_and_duckdb_reads_all_of_it(tmp_path, profile, form):
    plain = made(tmp_path, profile, form).files[0].read_bytes()
    packed = made(tmp_path, profile, form, "log.gz").files[0]
    assert gzip.decompress(packed.read_bytes()) == plain
    counted = duckdb.sql(
        f"SELECT count(*) FROM read_csv('{packed}', delim = '\x01', quote = '', escape = '', header = false, "
        "auto_detect = false, columns = {'line': 'VARCHAR'})"
    ).fetchall()
    assert counted == [(plain.count(b"\n"),)]


def test_tsv_has_the_lines_of_the_aol_format(tmp_path):
    header, *rows = (line.split("\t") for line in made(tmp_path, form="tsv").files[0].read_text().splitlines())
    assert header == ["user", "query", "url", "time"]
    lines = (line.split("\t") for line in made(tmp_path, name="aol").files[0].read_text().splitlines()[1:])
    assert rows == [[user, query, url, time] for user, query, time, _, url in lines]


@pytest.mark.parametrize("profile", ["aol", "yandex"])
def test_parquet_has_the_rows_of_the_tsv_and_null_for_no_url(tmp_path, profile):
    expected = [line.split("\t") for line in made(tmp_path, profile, "tsv").files[0].read_text().splitlines()[1:]]
    log = made(tmp_path, profile, "parquet", "log.parquet")
    found = duckdb.sql(f"SELECT * FROM read_parquet('{log.files[0]}')")
    assert found.columns == ["user", "query", "url", "time"]
    assert [str(t) for t in found.types] == [
        "BIGINT",
        "VARCHAR",
        "VARCHAR",
        "TIMESTAMP" if profile == "aol" else "BIGINT",
    ]
    rows = found.fetchall()
    assert [[str(user), query, url or "", str(time)] for user, query, url, time in rows] == expected
    urls = {url for _, _, url, _ in rows}
    assert None in urls
    assert "" not in urls
    again = made(tmp_path, profile, "parquet", "again.parquet", workers=2)
    assert again.files[0].read_bytes() == log.files[0].read_bytes()


def test_counts_are_those_of_the_file(tmp_path):
    log = made(tmp_path)
    lines = [line.split("\t") for line in log.files[0].read_text().splitlines()[1:]]
    clicks = [line for line in lines if line[4]]
    assert log.n_bytes == log.files[0].stat().st_size
    assert log.counts["lines"] == len(lines)
    assert log.counts["clicks"] == len(clicks)
    assert log.counts["clicking_users"] == len({line[0] for line in clicks})


def test_progress_reaches_all_users(tmp_path):
    heard = []
    log = made(tmp_path, on_progress=lambda users, lines: heard.append((users, lines)))
    assert heard == sorted(heard)
    assert heard[-1] == (USERS, log.counts["lines"])


@pytest.mark.parametrize("n_users", [1, 2, 9, 21])
@pytest.mark.parametrize("profile", ["aol", "yandex"])
def test_few_users(tmp_path, profile, n_users):
    assert made(tmp_path, profile, n_users=n_users).counts["lines"] >= n_users


@pytest.mark.parametrize(
    "request_",
    [("bing", 5, "tsv"), ("aol", 0, "aol"), ("aol", 5, "xml"), ("aol", 5, "yandex"), ("aol", 5, "aol", -1)],
)
def test_requests_that_cannot_be_asked(request_):
    with pytest.raises(InvalidParameter):
        LogRequest(*request_)


@pytest.mark.parametrize(("form", "name"), [("tsv", "folder/"), ("parquet", "log.parquet.gz")])
def test_outputs_that_cannot_be_asked(tmp_path, form, name):
    with pytest.raises(UsageError):
        made(tmp_path, form=form, name=name)
    with pytest.raises(InvalidParameter):
        made(tmp_path, workers=0)


def test_an_existing_file_stays_unless_told_otherwise(tmp_path):
    (tmp_path / "log").write_text("mine")
    with pytest.raises(OutputError, match="--force"):
        made(tmp_path)
    assert (tmp_path / "log").read_text() == "mine"
    made(tmp_path, replace=True)
    assert (tmp_path / "log").read_text().startswith("AnonID\t")


@pytest.mark.parametrize("form", ["aol", "parquet"])
def test_a_path_that_cannot_be_written(tmp_path, form):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        made(tmp_path, form=form, name="file/log")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("form", ["aol", "parquet"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_log_that_could_not_be_finished(tmp_path, monkeypatch, form, failure):
    def fails_at_the_fifth(job):
        if job.number == 4:
            raise failure
        return make_piece(job)

    monkeypatch.setattr(generator, "make_piece", fails_at_the_fifth)
    with pytest.raises(OutputError if isinstance(failure, OSError) else KeyboardInterrupt):
        made(tmp_path, form=form)
    assert list(tmp_path.iterdir()) == []


def test_parquet_that_cannot_be_written_ends_with_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(generator._Copy, "_statement", lambda self: "COPY nonsense")
    with pytest.raises(OutputError, match="log: cannot be written"):
        made(tmp_path, form="parquet", n_users=5_000)
    assert list(tmp_path.iterdir()) == []


def test_command(tmp_path, capsys):
    path = tmp_path / "log.txt"
    arguments = ["generate", "--profile", "aol", "--users", "50", "--workers", "1", "-o", str(path)]
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["files"] == [str(path)]
    assert document["bytes"] == path.stat().st_size
    assert document["lines"] == path.read_bytes().count(b"\n") - 1
    assert main([*arguments, "--force"]) == 0
    assert "50 synthetic users" in capsys.readouterr().out
    assert main(arguments) == 1
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--users", "0"], ["--profile", "bing"], ["--format", "xml"], ["--workers", "0"]])
def test_misuse_of_the_command(tmp_path, wrong, capsys):
    arguments = ["generate", "--profile", "aol", "--users", "5", "-o", str(tmp_path / "log"), *wrong]
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert main(["generate", "--profile", "aol", "--users", "5", "--format", "yandex", "-o", "log"]) == 2
    assert "error:" in capsys.readouterr().err


def test_an_interrupt_ends_in_one_line_whatever_workers_do(tmp_path):
    """Ctrl-C goes to the whole group: also to workers that are only just starting."""
    command = [sys.executable, "-m", "searchblend.cli", "generate", "--profile", "aol", "--users", "600000"]
    process = subprocess.Popen(
        [*command, "--workers", "2", "-o", str(tmp_path / "log.txt")], stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        give_up = time.monotonic() + 240
        while len(psutil.Process(process.pid).children()) < 2:
            assert process.poll() is None
            assert time.monotonic() < give_up
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 130
    assert errors.decode() == "searchblend: interrupted; nothing was released\n"
    assert list(tmp_path.iterdir()) == []
