"""``searchblend release`` from outside: a log in, a folder out, and every way to get it wrong."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from searchblend.cli.main import main

OPTIONS = ["--users", "3000", "--epsilon", "4", "--delta", "1e-8", "--max-queries-per-user", "5"]
CANARY = "zanzibar passport 998877"


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """3000 users who share ten queries; one of them also typed something of their own."""
    chance = random.Random(5)
    lines = ["user\ttime\tquery\turl\trank"]
    for user in range(3000):
        time = 1_000_000 + 100 * user
        for i in range(3):
            topic = min(chance.randrange(10), chance.randrange(10))
            lines.append(
                f"u{user}\t{time + 60 * i}\ttopic {topic}\thttp://site{topic}.example/{chance.randrange(2)}\t{i}"
            )
    lines.append(f"u7\t1000000\t{CANARY}\thttp://own.example\t1")
    path = tmp_path_factory.mktemp("log") / "searches.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def release(log, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "out"
    assert main(["release", "run", str(log), "-o", str(folder), *OPTIONS, "--urls", "private", "--reformulations"]) == 0
    return folder


def failing(capsys, *arguments: object) -> tuple[int, str]:
    code = main(["release", *map(str, arguments)])
    return code, capsys.readouterr().err


def test_the_folder_holds_what_was_promised(release):
    names = {path.name for path in release.iterdir()}
    tables = {f"{table}.{kind}" for table in ("queries", "clicks", "reformulations") for kind in ("csv", "parquet")}
    assert names == tables | {"graph.graphml", "data-dictionary.md", "statement.json", "statement.txt"}
    statement = json.loads((release / "statement.json").read_text())
    assert statement["guarantee"]["holds"]
    assert set(statement["files"]) == names - {"statement.json"}
    assert len((release / "queries.csv").read_text().splitlines()) > 5
    assert len((release / "clicks.csv").read_text().splitlines()) > 5
    assert len((release / "reformulations.csv").read_text().splitlines()) > 5


def test_nothing_exact_and_nothing_of_one_person_is_in_it(release):
    everything = b"".join(path.read_bytes() for path in release.iterdir())
    assert CANARY.encode() not in everything
    assert b"own.example" not in everything
    statement = (release / "statement.json").read_text()
    assert not re.search(r"(?<![\w.])9001(?![\w.])", statement), "the number of lines"  # digests may hold any digits


def test_verify_and_review_pass(release, capsys):
    assert main(["release", "verify", str(release), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verified"]
    assert document["cannot_prove"]
    assert main(["release", "review", str(release), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"findings": []}
    assert main(["graph", "similar", str(release), "topic 1", "--json"]) == 0


def changed(release: Path, tmp_path: Path, name: str, old: str, new: str) -> Path:
    folder = tmp_path / "changed"
    folder.mkdir()
    for path in release.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new", "check"),
    [
        ("queries.csv", "topic 0", "topic x", "file queries.csv"),
        ("statement.txt", "ε = 4", "ε = 1", "file statement.txt"),
        ("statement.json", '"epsilon": 4.0', '"epsilon": 1.0', "promise"),
        ("statement.json", '"max_queries_per_user": 5', '"max_queries_per_user": 50', "noise and thresholds"),
        ("statement.json", '"algorithm": "gaussian"', '"algorithm": "magic"', "parameters"),
        ("statement.json", '"holds": true', '"holds": false', "conditions"),
    ],
)
def test_a_folder_that_was_tampered_with(release, tmp_path, capsys, name, old, new, check):
    folder = changed(release, tmp_path, name, old, new)
    code, said = failing(capsys, "verify", folder)
    assert code == 1
    assert "checks failed" in said
    assert main(["release", "verify", str(folder), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert check in [found["name"] for found in document["checks"] if not found["holds"]]


def test_other_files_in_the_folder_are_noticed(release, tmp_path, capsys):
    folder = changed(release, tmp_path, "statement.json", '"files"', '"files"')
    (folder / "input.json").write_text("{}")
    assert failing(capsys, "verify", folder)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--max-queries-per-user", "0"], 2, "--max-queries-per-user: expected a whole number of at least 1"),
        (["--delta", "0.01"], 2, "delta: expected less than 1/population"),
        (["--seed", "1"], 2, "--seed: a release draws its noise from the operating system"),
        (["--urls", "public"], 2, "--public-urls"),
        (["--public-urls", "table.csv"], 2, "--public-source"),
        (["--ledger", "x.ledger"], 2, "--release-id"),
        (["--shares", "most"], 2, "shares: expected one of"),
        (["--shares", "1,x"], 2, "--shares"),
        (["--epsilon", "0.01"], 1, "nothing was published"),
        (["--columns", "user=person"], 2, "person"),
        (["--from", "2100-01-01"], 1, "nothing was published"),
        (["--accounting", "paper"], 2, "accounting"),
    ],
)
def test_misuse_is_said_and_leaves_nothing_behind(log, tmp_path, capsys, arguments, code, said):
    target = tmp_path / "out"
    found, err = failing(capsys, "run", log, "-o", target, *OPTIONS, *arguments)
    assert (found, said in err) == (code, True), err
    assert "Traceback" not in err
    assert not target.exists()
    assert not list(tmp_path.glob(".out*"))


def test_a_bad_public_table_is_found_before_the_log_is_read(log, tmp_path, capsys):
    table = tmp_path / "table.csv"
    table.write_text("query,url\na,http://a.example\na,http://a.example\n")
    public = ["--public-urls", table, "--public-source", "a results page"]
    code, err = failing(capsys, "run", tmp_path / "no such log.tsv", "-o", tmp_path / "out", *OPTIONS, *public)
    assert code == 1
    assert "table.csv:3: the same pair as in line 2" in err


def test_public_urls_give_a_row_for_every_pair(log, tmp_path, capsys):
    table = tmp_path / "table.csv"
    rows = [f"topic {i},http://site{i}.example/{j}" for i in range(10) for j in range(3)]
    table.write_text("query,url\n" + "\n".join(rows) + "\n")
    folder = tmp_path / "out"
    public = ["--public-urls", str(table), "--public-source", "the engine's results page"]
    assert main(["release", "run", str(log), "-o", str(folder), *OPTIONS, *public, "--json"]) == 0
    statement = json.loads(capsys.readouterr().out)
    assert any("the engine's results page" in text for text in statement["public"])
    queries = (folder / "queries.csv").read_text().splitlines()[1:]
    assert len((folder / "clicks.csv").read_text().splitlines()) - 1 == 3 * len(queries)
    assert main(["release", "verify", str(folder)]) == 0


def test_synonyms_merge_and_windows_cut(log, tmp_path, capsys):
    table = tmp_path / "same.csv"
    table.write_text("query,meaning\n" + "".join(f"topic {i},topics\n" for i in range(10)))
    folder, summary = tmp_path / "out", tmp_path / "input.json"
    options = ["--synonyms", str(table), "--to", "1200000", "--summary", str(summary)]
    assert main(["release", "run", str(log), "-o", str(folder), *OPTIONS, *options]) == 0
    rows = (folder / "queries.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["topics"]
    assert 1950 < int(rows[0].split(",")[1]) < 2050
    assert json.loads(summary.read_text())["notice"].startswith("NOT FOR RELEASE")


@pytest.mark.parametrize("algorithm", ["kkmn2009", "weighted_gaussian", "dp_sips", "adaptive_gaussian"])
def test_every_algorithm_runs_and_verifies(log, tmp_path, algorithm):
    folder = tmp_path / "out"
    assert main(["release", "run", str(log), "-o", str(folder), *OPTIONS, "--algorithm", algorithm]) == 0
    assert main(["release", "verify", str(folder)]) == 0


def test_a_ledger_pays_once_and_gives_the_same_bytes(log, tmp_path, capsys):
    ledger = ["--ledger", str(tmp_path / "budget.ledger"), "--release-id", "march"]
    for name in ("one", "two"):
        assert main(["release", "run", str(log), "-o", str(tmp_path / name), *OPTIONS, *ledger]) == 0
    assert "published before" in capsys.readouterr().err
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    assert main(["ledger", "show", str(tmp_path / "budget.ledger"), "--json"]) == 0
    assert "click graph" in capsys.readouterr().out


def test_plan_reads_nothing_and_draws(tmp_path, capsys):
    plot = tmp_path / "curve.svg"
    arguments = [
        "release",
        "plan",
        "--algorithm",
        "kkmn2009",
        "--accounting",
        "paper",
        "--epsilon",
        "2.302585092994046",
    ]
    arguments += ["--delta", "1e-5", "--max-queries-per-user", "21", "--selection-only", "--plot", str(plot), "--json"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["threshold"] == pytest.approx(147.4, abs=0.05)
    assert document["select_scale"] == pytest.approx(9.1, abs=0.05)
    assert {"threshold", "select_scale", "query_scale", "click_scale", "delta"} <= set(document)
    assert plot.read_text().startswith("<?xml")
    assert main(["release", "plan", "--urls", "private"]) == 0
    assert "accounts can force" in capsys.readouterr().out


def test_help_comes_without_numpy():
    code = """
import sys
from searchblend.cli.main import main
try:
    main(["release", "--help"])
except SystemExit:
    assert "numpy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
