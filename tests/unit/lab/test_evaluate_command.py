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
        (["claims", "-o", "x", "--profile", "aol"], "claims: --profile: its claims are about the logs of the paper"),
        (
            ["kkmn-table1", "-o", "x", "--quick", "--runs", "2"],
            "kkmn-table1: --runs: it computes formulas",
        ),
        (["fig9", "-o", "x", "--format", "aol"], "--format: only with --log"),
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
def test_a_log_with_so_few_people_says_that_nothing_was_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{user}\t{query}\tu.example\t{i}" for i, (user, query) in enumerate(["ar", "br", "bb", "br", "cg"])]
    (tmp_path / "log.tsv").write_text("\n".join(["who\tquery\turl\ttime", *lines]))
    arguments = ["--log", "log.tsv", "--columns", "user=who", "--runs", "1", "-o", "found", "--workers", "1", "--json"]
    names = ["kkmn-fig2", "kkmn-table2", "kkmn-fig4", "graph-algorithms"]
    assert main(["evaluate", *names, *arguments]) == 0
    for document in json.loads(capsys.readouterr().out):
        assert document["text"].startswith("Nothing could be measured on the people of log.tsv"), document["experiment"]
        assert document["findings"] == []
        assert document["not_private"]
    made = "evaluate kkmn-fig2 --log log.tsv --columns user=who --runs 1 --seed 1 -o"
    assert made in (tmp_path / "found/kkmn-fig2.md").read_text()
    assert main(["evaluate", "kkmn-table5", *arguments]) == 2
    assert "kkmn-table5: --log: its seeds are topics" in capsys.readouterr().err


@pytest.mark.thorough
def test_every_search_of_a_log_counts_where_the_click_graphs_paper_counts_them(tmp_path, capsys, monkeypatch):
    """Eight hundred people search for one thing on the first day; each has one of two habits on the ninth."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{user}\tnews\tu.example\t{user}" for user in range(800)]
    rows += [f"{user}\t{'ab'[user % 2]}\tv.example\t{8 * 86_400 + user}" for user in range(800)]
    (tmp_path / "log.tsv").write_text("\n".join(["user\tquery\turl\ttime", *rows]) + "\n")
    names = ["kkmn-fig2", "kkmn-fig3", "graph-algorithms", "records-per-client"]
    arguments = ["--log", "log.tsv", "--runs", "1", "-o", "found", "--workers", "1", "--json"]
    assert main(["evaluate", *names, *arguments]) == 0
    clients, week, spans, algorithms = json.loads(capsys.readouterr().out)
    share = {(row["method"], row["d"]): row["mean"] for row in week["rows"] if row["quantity"] == "published"}
    assert share["paper", 1] == pytest.approx(100 / 3), "of each person the first search alone"
    assert share["paper", 5] == share["best", 5] == 100, "all three queries are far over the thresholds"
    assert share["paper", 160] == 0, "and far below that of so many searches of each"
    assert {row["span"] for row in spans["rows"]} == {"one day", "one week"}
    day = {row["d"]: row["mean"] for row in spans["rows"] if row["span"] == "one day"}
    assert day[1] == day[20] == 100, "of the first day the one query that there is"
    assert {row["log"] for row in algorithms["rows"]} == {"log.tsv"}
    assert clients["not_private"]


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
