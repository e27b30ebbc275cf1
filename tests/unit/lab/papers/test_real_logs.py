"""``searchblend evaluate real``: logs of every shape, small ones too, and what is refused."""

from __future__ import annotations

import gzip
import json
import math

import pytest

from searchblend.cli.main import main
from searchblend.core.records import HeadList
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import read_log
from searchblend.synthetic.generator import write_aol_like_log
from searchblend_lab.papers.comparisons.real import QUANTITIES, Mean, Situation
from searchblend_lab.papers.comparisons.real_cells import TrueTop, compute, true_shares, true_top
from searchblend_lab.papers.comparisons.real_logs import RealLog, measure_logs

pytestmark = pytest.mark.thorough

LOG = RealLog("a.tsv", "{}", "digest", 1000, 5000, (1.0,), 1e-5, 0.05)
SUFFIXES = {".csv", ".json", ".md", ".parquet", ".png", ".svg"}


def write_pairs(path, pairs, header="user,query"):
    lines = [header, *(",".join(pair) for pair in pairs)]
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write("\n".join(lines) + "\n")


@pytest.mark.thorough
def test_logs_of_several_shapes_in_one_command(tmp_path, capsys, monkeypatch):
    """One with URLs and many lines of a user, one of queries alone and compressed, one that is too small."""
    monkeypatch.chdir(tmp_path)
    write_aol_like_log(tmp_path / "searches.tsv", 1_500, seed=1)
    write_pairs(tmp_path / "tiny.csv", [("a", "x"), ("b", "y"), ("b", "=1+1")])
    write_pairs(tmp_path / "items.csv.gz", [(f"u{i}", f"item {j}") for i in range(900) for j in range(i % 3)])
    arguments = ["evaluate", "real", "--logs", "searches.tsv", "tiny.csv", "items.csv.gz", "--epsilons", "4"]
    arguments += ["--opt-in", "0.5", "--runs", "2", "--workers", "1", "--source", "Drawn by a test."]
    assert main([*arguments, "-o", "found", "--json"]) == 0
    printed = capsys.readouterr()
    assert "NOT PRIVATE" in printed.err
    (document,) = json.loads(printed.out)
    assert document["not_private"]
    assert document["text"].startswith("Drawn by a test. 3 logs, 2 runs of each")
    found = {(row["log"], row["method"], row["quantity"]): row for row in document["rows"]}
    for log in ("searches.tsv", "items.csv.gz"):
        for method in ("paper", "best", "click graph"):
            for quantity in {*QUANTITIES} - ({"common_l1"} if method == "click graph" else set()):
                assert found[log, method, quantity]["runs"] == 2, (log, method, quantity)
            assert 0 <= found[log, method, "missing"]["mean"] < 1
    assert found["items.csv.gz", "best", "queries"]["mean"] <= 2, "there are two items"
    assert found["tiny.csv", "best", "queries"]["mean"] == 0
    page = (tmp_path / "found" / "real.md").read_text()
    assert "NOT PRIVATE" in page
    assert "| tiny.csv | 4 | best | 2 of 2 runs: " in page
    assert "evaluate real --logs searches.tsv tiny.csv items.csv.gz" in page
    assert {path.suffix for path in (tmp_path / "found").glob("real.*")} == SUFFIXES


def test_a_run_is_decided_by_its_seed_and_number(tmp_path):
    write_pairs(tmp_path / "log.csv", [(f"u{i}", f"item {j}") for i in range(600) for j in range(i % 4)])
    (log,) = measure_logs([str(tmp_path / "log.csv")], ReadOptions(""), optin=0.5)
    settings = {"reading": log.reading, "content": log.content, "optin": 0.5, "epsilons": "2", "delta": log.delta}
    first = compute(settings, 0, 1)
    assert first["rows"][1]["queries"] > 0
    assert compute(settings, 0, 1) == first
    assert compute(settings, 1, 1) != first


def test_an_opt_in_column_and_columns_of_other_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(f"u{i}", f"item {i % 2}", str(i % 2)) for i in range(400)]
    write_pairs(tmp_path / "log.csv", rows, header="who,what,agreed")
    columns = "user=who,query=what"
    arguments = ["evaluate", "real", "--logs", "log.csv", "--columns", columns, "--opt-in-column", "agreed"]
    assert main([*arguments, "--epsilons", "4", "--runs", "1", "--workers", "1", "-o", "found"]) == 0
    page = (tmp_path / "found" / "real.md").read_text()
    assert "| log.csv | 400 | 400 | 1e-05 | by column |" in page
    made = "real --logs log.csv --epsilons 4 --opt-in-column agreed --columns user=who,query=what --runs 1 --seed 1"
    assert made in page, "every option that was typed"
    assert "| log.csv | 4 | best | 1.0 |" in page, "all who opted in have one of the two items"


@pytest.mark.parametrize(
    ("arguments", "problem", "code"),
    [
        (["real"], "real: --logs FILE…: expected the logs", 2),
        (["fig9", "real"], "real: --logs FILE…: expected the logs", 2),
        (["fig9", "--logs", "log.csv"], "fig9: --logs: only real compares", 2),
        (["fig9", "--epsilons", "1"], "--epsilons: only with --logs", 2),
        (["real", "--logs", "log.csv", "--epsilons", "0"], "epsilon", 2),
        (["real", "--logs", "log.csv", "--delta", "0.5"], "0.5 is not below 1/users of log.csv", 2),
        (["real", "--logs", "-"], "expected files", 2),
        (["real", "--logs", "log.csv", "none.tsv"], "none.tsv", 1),
        (["real", "--logs", "log.csv", "--algorithm", "a:b"], "a cannot be imported", 2),
    ],
)
def test_misuse_writes_nothing(arguments, problem, code, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path / "log.csv", [("a", "x"), ("b", "y"), ("c", "x")])
    assert main(["evaluate", *arguments, "-o", "out"]) == code
    assert problem in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_epsilons_that_are_no_numbers(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", "real", "--logs", "log.csv", "--epsilons", "1,x", "-o", "out"])
    assert "expected numbers with commas between, found '1,x'" in capsys.readouterr().err


def test_the_truth_is_the_mean_of_own_shares(tmp_path):
    """User a: x, x, y, z; user b: x. The share of x is (1/2 + 1)/2, by query and by record."""
    (tmp_path / "log.tsv").write_text(
        "user\tquery\turl\n" + "a\tx\tu.example\n" * 2 + "a\ty\tu.example\na\tz\tv\nb\tx\tw\n"
    )
    with read_log(tmp_path / "log.tsv", key=bytes(16)) as log:
        groups = log.split(optin_fraction=0.5)
        top = true_top(groups)
        assert next(iter(top.shares)) == "x"
        assert top.shares == pytest.approx({"x": 0.75, "y": 0.125, "z": 0.125}, abs=1e-3)
        truth = true_shares(groups, HeadList({"x": ["u.example"], "z": []}))
        assert truth.queries == pytest.approx([0.75, 0.125, 0.125], abs=1e-3)
        assert truth.cells == pytest.approx([0.25, 0.5, 0.125, 0.125], abs=1e-3)


def test_spurious_and_dropped():
    top = TrueTop({"a": 0.5, "b": 0.3, "c": 0.1, "d": 0.1})
    assert top.scores({"a": 0.4, "d": 0.2}) == pytest.approx({"top_l1": 0.6, "spurious": 0.5, "dropped": 0.5})
    assert top.scores({"a": 0.5, "b": 0.3, "d": 0.1})["spurious"] == 0, "tied with c, which may as well be third"


def made(*pairs):
    return Situation(LOG, 1.0, [{"best": {"common_l1": best}, "paper": {"common_l1": paper}} for best, paper in pairs])


@pytest.mark.parametrize(
    ("pairs", "worse"),
    [
        ([(0.02, 0.01), (0.021, 0.01), (0.019, 0.01)], True),
        ([(0.02, 0.01), (0.01, 0.02), (0.02, 0.015)], False),
        ([(0.01, 0.02), (0.011, 0.02)], False),
        ([(0.02, 0.01)], None),
        ([(None, None), (None, None)], None),
    ],
)
def test_worse_is_beyond_two_standard_errors_of_paired_runs(pairs, worse):
    assert made(*pairs).best_is_worse is worse


def test_a_standard_error_is_that_of_the_mean():
    found = Mean.of([1.0, 2.0, 3.0, 6.0])
    assert found is not None
    assert (found.value, found.runs) == (3.0, 4)
    assert found.error == pytest.approx(math.sqrt(14 / 3 / 4))
    assert Mean.of([]) is None
