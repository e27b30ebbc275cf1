"""``searchblend evaluate``: lists, runs, refuses."""

from __future__ import annotations

import json

import pytest

from searchblend.cli.main import main
from searchblend.synthetic.generator import write_aol_like_log
from searchblend_lab.papers.registry import EXPERIMENTS


def test_list_explains_every_experiment(capsys):
    assert main(["evaluate", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(experiment.name in shown and experiment.about in shown for experiment in EXPERIMENTS.values())
    assert main(["evaluate", "list", "--json"]) == 0
    assert [entry["name"] for entry in json.loads(capsys.readouterr().out)] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["fig99", "-o", "x"], "no such experiment"),
        (["fig9"], "-o: expected a folder"),
        (["list", "fig9"], "expected alone"),
        (["fig9", "-o", "x", "--algorithm", "nothing"], "expected package.module:object"),
        (["claims", "-o", "x", "--profile", "aol"], "claims: --profile: has no effect on this experiment"),
        (["kkmn-table1", "-o", "x", "--quick", "--runs", "2"], "kkmn-table1: --runs, --quick: has no effect"),
    ],
)
def test_misuse(arguments, problem, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", *arguments]) == 2
    assert problem in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_a_folder(tmp_path, capsys):
    (tmp_path / "x").write_text("")
    assert main(["evaluate", "fig9", "-o", str(tmp_path / "x")]) == 2
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.thorough
def test_weeks_are_those_of_a_log_of_ones_own(tmp_path, capsys, monkeypatch):
    """Three people, the second with two searches of one query: every figure can be counted by hand."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{user}\t{query}\tu.example\t{i}" for i, (user, query) in enumerate(["ar", "br", "bb", "br", "cg"])]
    (tmp_path / "log.tsv").write_text("\n".join(["user\tquery\turl\ttime", *lines]))
    arguments = ["evaluate", "kkmn-fig2", "kkmn-table2", "--log", "log.tsv", "--runs", "1", "-o", "found"]
    assert main([*arguments, "--workers", "1", "--json"]) == 0
    figure, table = json.loads(capsys.readouterr().out)
    assert figure["text"].startswith("On the people of log.tsv")
    assert figure["findings"] == table["findings"] == []
    assert figure["not_private"]
    assert {row["mean"] for row in figure["rows"]} == {0.0}, "nothing of three people is published"
    assert "evaluate kkmn-fig2 --log log.tsv --runs 1 --seed 1 -o" in (tmp_path / "found/kkmn-fig2.md").read_text()
    assert main(["evaluate", "kkmn-table5", "--log", "log.tsv", "-o", "found"]) == 2
    assert "kkmn-table5: --log: has no effect on this experiment" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_log_of_ones_own_with_an_algorithm_of_ones_own(tmp_path, capsys, monkeypatch):
    write_aol_like_log(tmp_path / "log.tsv", 30_000, seed=1)
    (tmp_path / "my_own_steps.py").write_text(
        "from searchblend_lab.papers.algorithms import PrintedSteps\nclass Mine(PrintedSteps):\n    name = 'mine'\n"
    )
    monkeypatch.chdir(tmp_path)
    arguments = ["evaluate", "fig12", "--log", "log.tsv", "--runs", "2", "-o", "found", "--workers", "1"]
    assert main([*arguments, "--algorithm", "my_own_steps:Mine", "--html", "--json"]) == 0
    printed = capsys.readouterr()
    assert "NOT PRIVATE" in printed.err
    (document,) = json.loads(printed.out)
    assert document["people"] == "log.tsv"
    assert {row["method"] for row in document["rows"]} == {"paper", "best", "my_own_steps:Mine"}
    same = {
        (row["method"], row["epsilon"], row["quantity"]): row["mean"]
        for row in document["rows"]
        if row["method"] != "best" and row["quantity"] == "ndcg"
    }
    for (method, epsilon, quantity), mean in same.items():
        assert mean == same["paper", epsilon, quantity], f"{method} is the printed algorithm"
    assert "mine beside ours" in (tmp_path / "found" / "fig12.md").read_text()
    for page in ("fig12.md", "index.md", "index.html"):
        assert "NOT PRIVATE" in (tmp_path / "found" / page).read_text()
    assert document["not_private"]


def test_what_is_printed(tmp_path, capsys):
    assert main(["evaluate", "fig9", "--runs", "1", "-o", str(tmp_path / "found"), "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "Run 1 of method paper" in shown
    assert "As published" in shown
    assert "0.9121" in shown
    assert "start with index.md" in shown
