"""``searchblend compare``: says that it is not private, writes its files, refuses what it cannot compare."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from searchblend.cli.main import main
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend_lab.comparison import compare
from searchblend_lab.comparison.attacks import ReleaseUnderAttack
from searchblend_lab.comparison.compare import NOTICE

QUICK = ["--attack-runs", "5", "--runs", "2", "--epsilon", "4", "--algorithms", "gaussian"]
RULES = ["--rules", "threshold:30/5,filters:personal"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """900 people with one search each, and one who searched a formula for a spreadsheet."""
    lines = [
        f"u{i}\t{query}\thttps://{query}.example/"
        for i, query in enumerate(["weather"] * 400 + ["news"] * 300 + ["<b>maps</b>"] * 200)
    ]
    path = tmp_path_factory.mktemp("compare") / "searches.tsv"
    path.write_text("\n".join(["user\tquery\turl", *lines, "z\t=1+1\thttps://own.example/"]) + "\n")
    return path


def test_tables_say_first_that_they_are_not_private(log, capsys):
    assert main(["compare", str(log), *QUICK, *RULES]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(NOTICE)
    assert "threshold:30/5" in shown
    assert "a rule does better: queries: filters:personal (4) against 3" in shown
    assert shown.count("release or rule") == 2
    assert "No release told more" in shown
    assert "A rule has no guarantee" in shown


def test_everything_is_written_and_the_same_seed_gives_the_same_bytes(log, capsys, tmp_path):
    for name in ("one", "other"):
        assert main(["compare", str(log), *QUICK, *RULES, "-o", str(tmp_path / name), "--json"]) == 0
    document = json.loads(capsys.readouterr().out.split("\n}\n")[0] + "}")
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}
    assert sorted(files) == ["comparison.json", "index.html", "panel.csv", "published.csv"]
    assert json.loads(files["comparison.json"]) == document
    assert document["notice"] == NOTICE
    assert document["guarantees_hold"] is True
    release, threshold, filters = document["published"]
    assert (release["guarantee"], threshold["guarantee"], filters["guarantee"]) == (True, False, False)
    assert (threshold["queries"], threshold["pairs"]) == (3, 3)
    assert threshold["search_volume"] == pytest.approx(900 / 901)
    assert filters["search_volume"] == 1
    rows = list(csv.DictReader(files["panel.csv"].decode().splitlines()))
    assert len(rows) == 3 * 8
    assert {row["verdict"] for row in rows} == {"holds", "no guarantee"}


def test_the_page_says_it_first_and_needs_nothing_else(log, tmp_path):
    assert main(["compare", str(log), *QUICK, *RULES, "-o", str(tmp_path)]) == 0
    page = (tmp_path / "index.html").read_text()
    body = page.split("<body>")[1].strip()
    assert body.startswith(f'<header><p class="notice" role="note">{NOTICE}</p>')
    assert "No guarantee." in page
    assert "Content-Security-Policy" in page
    assert not re.search(r"(?:src|href)=", page)
    assert "<b>maps" not in page


def test_a_release_that_tells_too_much_fails_the_comparison(log, capsys, monkeypatch):
    """Its clicks have no threshold, as in the paper's experiment; the design that is stated has one."""
    stated = ClickGraphDesign.of(ClickGraphParams(Budget(4.0, 1e-6), urls="private"))
    run = replace(stated, steps=(stated.rounds[0], replace(stated.steps[1], threshold=1)))
    monkeypatch.setattr(compare, "ReleaseUnderAttack", partial(ReleaseUnderAttack, run_with=run))
    assert main(["compare", str(log), *QUICK]) == 1
    output = capsys.readouterr()
    assert "▲" in output.out
    assert "A RELEASE TOLD MORE THAN ITS GUARANTEE ALLOWS" in output.err


def test_a_log_without_urls_is_compared_by_queries(tmp_path, capsys):
    (tmp_path / "log.tsv").write_text("\n".join(["user\tquery", *(f"u{i}\tnews" for i in range(300))]))
    assert main(["compare", str(tmp_path / "log.tsv"), *QUICK, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["pairs"] for row in document["published"]} == {None}
    assert "page" not in {row["attack"] for row in document["panel"]}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rules", "median:3"], "'median:3': expected threshold:QUERY/PAIR"),
        (["--rules", "threshold:many"], "expected whole numbers of users"),
        (["--rules", "allow-list:missing.txt"], "'allow-list:missing.txt': expected a text file"),
        (["--rules", "filters:all"], "there is no filter 'all'"),
        (["--delta", "2"], "delta"),
        (["--users", "1000", "--delta", "0.1"], "delta: expected less than 1/population"),
    ],
)
def test_misuse_ends_with_2_and_one_line(log, arguments, problem, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", str(log), *arguments, "-o", "out"]) == 2
    output = capsys.readouterr()
    assert problem in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epsilon", "many"],
        ["--epsilon", "1,1"],
        ["--epsilon", "2,2.0000001"],
        ["--epsilon", "-1"],
        ["--algorithms", "mad"],
    ],
)
def test_misuse_that_the_parser_sees(log, arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["compare", str(log), *arguments])
    assert exit_.value.code == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"), [("", "the file is empty"), ("user\tquery\turl\n", "the log holds no line")]
)
def test_an_empty_log_ends_in_one_line_as_for_every_command(content, problem, capsys, tmp_path):
    (tmp_path / "log.tsv").write_text(content)
    assert main(["compare", str(tmp_path / "log.tsv"), *QUICK, "-o", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.splitlines() == [f"searchblend: error: {tmp_path / 'log.tsv'}: {problem}"]
    assert not (tmp_path / "out").exists()


def test_what_is_there_stays_without_force(log, capsys, tmp_path):
    (tmp_path / "panel.csv").write_text("mine")
    assert main(["compare", str(log), *QUICK, "-o", str(tmp_path)]) == 1
    assert "pass --force" in capsys.readouterr().err
    assert (tmp_path / "panel.csv").read_text() == "mine"
    assert main(["compare", str(log), *QUICK, "-o", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "panel.csv").read_text() != "mine"
