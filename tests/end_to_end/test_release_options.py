"""What every command that makes a release must do around it: counts kept apart, the ledger heeded, output encoded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from searchblend.cli.main import main
from searchblend.releases.make_release import REMEMBERED

CYRILLIC = "погода"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.tsv"
    lines = [f"u{i}\t{CYRILLIC if i % 2 else 'news'}\thttp://{'ab'[i % 2]}.example/" for i in range(600)]
    path.write_text("\n".join(["user\tquery\turl", *lines]) + "\n", encoding="utf-8")
    return path


def commands(log: Path, out: Path) -> list[list[str]]:
    run = ["run", str(log), "-o", str(out), "--opt-in", "0.5", "--delta", "1e-4"]
    release = ["release", "run", str(log), "-o", str(out), "--users", "600", "--allow-large-delta"]
    return [run, release, ["select", str(log), "-o", str(out), "--delta", "1e-4", "--columns", "value=query"]]


@pytest.mark.parametrize("which", [0, 1])
def test_exact_counts_of_the_input_stay_out_of_the_release(log, tmp_path, capsys, which):
    out, outside = tmp_path / "out", tmp_path / "counts.json"
    command = commands(log, out)[which]
    assert main([*command, "--summary", str(out / "counts.json")]) == 2
    assert "inside the folder of the release" in capsys.readouterr().err
    assert not out.exists()
    assert main([*command, "--summary", str(outside)]) == 0
    assert "without --ledger nothing keeps account" in capsys.readouterr().err
    [remembered] = (tmp_path / REMEMBERED).read_text().splitlines()
    assert "600" not in remembered.replace(json.loads(remembered)["input"], ""), "an exact count is beside the release"
    counts = json.loads(outside.read_text())
    assert (counts["notice"][:15], counts["lines"]) == ("NOT FOR RELEASE", 600)
    assert not [path for path in out.iterdir() if '"lines"' in path.read_text(errors="replace")]


@pytest.mark.parametrize("which", [0, 1])
def test_counts_that_cannot_be_written_are_known_before_the_ledger_is_charged(log, tmp_path, capsys, which):
    ledger = tmp_path / "budget.db"
    (tmp_path / "file").write_text("")
    options = ["--ledger", str(ledger), "--release-id", "a", "--summary", str(tmp_path / "file" / "counts.json")]
    assert main([*commands(log, tmp_path / "out")[which], *options]) == 1
    assert "counts.json" in capsys.readouterr().err
    assert not ledger.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flag", ["--release-id", "--window", "--population"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_an_option_of_the_ledger_without_a_ledger_is_refused(log, tmp_path, capsys, which, flag):
    assert main([*commands(log, tmp_path / "out")[which], flag, "x"]) == 2
    assert f"{flag}: only with --ledger" in capsys.readouterr().err


def test_old_spellings_mean_what_they_meant_with_a_warning(log, tmp_path, capsys):
    ledger, config = tmp_path / "budget.db", tmp_path / "old.toml"
    config.write_text('population = 600\npeople = "staff"\n')
    command = ["release", "run", str(log), "-o", str(tmp_path / "out"), "--allow-large-delta", "--config", str(config)]
    assert main([*command, "--ledger", str(ledger), "--release-id", "a"]) == 0
    said = capsys.readouterr().err
    assert "was not declared" not in said
    for warning in ("--population with a number is called --users now", "--people is called --population now"):
        assert said.count(warning) == 1
    assert main(["ledger", "show", str(ledger), "--population", "staff"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--population", "600", "--users", "600"], "--population: expected a name with a letter in it; the number"),
        (["--population", "0"], "--population: expected a name with a letter in it"),
        (["--population", "500,000"], "--population: expected a name with a letter in it"),
        (["--population", "staff", "--people", "staff"], "--people: is called --population now"),
        (["--people", "staff"], "--population: only with --ledger"),
    ],
)
def test_an_old_spelling_beside_its_new_one_is_refused(log, tmp_path, capsys, options, message):
    assert main(["release", "run", str(log), "-o", str(tmp_path / "out"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("which", "table"), [(0, "trends.csv"), (1, "queries.csv"), (2, "values.csv")])
def test_an_output_that_cannot_encode_a_query_does_not_end_a_paid_run(log, tmp_path, which, table):
    out = tmp_path / "out"
    command = [*commands(log, out)[which], "--ledger", str(tmp_path / "budget.db"), "--release-id", "a"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for options in ((), ("--force", "--json")):
        done = subprocess.run(
            [sys.executable, "-m", "searchblend.cli", *command, *options], env=environment, capture_output=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        done.stdout.decode("ascii")
    assert not (tmp_path / REMEMBERED).exists(), "the ledger has it"
    assert json.loads(done.stdout)
    if which == 0:
        assert json.loads(done.stdout) == json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert CYRILLIC in (out / table).read_text(encoding="utf-8")


def test_the_version_is_printed_on_standard_output(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    assert said.out.startswith("searchblend ")
