"""The command as a person meets it: results, files, stamps, and what happens with bad input.

Every mistake ends in one clear line on stderr, exit code 2 for misuse and 1 for a failure, no traceback, no raw query,
and nothing half-written.
"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from searchblend.cli.main import main
from searchblend.releases.make_release import REMEMBERED
from searchblend.synthetic import plans

SECRET = "embarrassing medical question"
RARELY = ("--delta", "1e-9")
"""how often, at most, one person's own record is named by the mechanism as it should be"""


def write_log(path: Path, n: int = 3000, *, header: str = "user\tquery\turl", secret: bool = True) -> Path:
    rows = [f"{user}\tquery {user % 5}\thttp://{user % 3}.example" for user in range(n)]
    if secret:
        rows.append(f"{n}\t{SECRET}\thttp://secret.example")
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.tsv")


def fails(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """Run, expect a failure, return the one line it says."""
    assert main([str(argument) for argument in arguments]) == code
    said = capsys.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if line.startswith("searchblend: error: ")]
    assert len(lines) == 1
    assert "Traceback" not in said.err
    assert SECRET not in said.err
    return lines[0]


@pytest.mark.parametrize("method", ["best", "paper"])
def test_run_writes_a_release(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str):
    options = ["--opt-in", "0.5", "--method", method, "--summary", str(tmp_path / "input.json"), *RARELY]
    assert main(["run", str(log), "-o", str(tmp_path / "out"), *options]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "headlist.json", "records.csv", "result.json", "statement.json", "trends.csv",
    ]  # fmt: skip
    assert "guarantee holds" in capsys.readouterr().out
    for name in ("headlist.json", "records.csv", "result.json", "statement.json", "trends.csv"):
        text = (tmp_path / "out" / name).read_text()
        assert SECRET not in text
        assert "NOT PRIVATE" not in text
    assert json.loads((tmp_path / "input.json").read_text())["notice"].startswith("NOT FOR RELEASE")
    statement = json.loads((tmp_path / "out/statement.json").read_text())
    assert set(statement["files"]) == {"headlist.json", "records.csv", "result.json", "trends.csv"}
    assert any("Only a collection from devices" in caveat for caveat in statement["caveats"])


def test_an_evaluation_is_stamped_everywhere(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["run", str(log), "-o", str(tmp_path / "out"), "--opt-in", "0.5", "--evaluate", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["notice"].startswith("NOT PRIVATE")
    assert set(document["metrics"]) == {"query_l1", "record_l1", "ndcg"}
    for name in ("headlist.json", "result.json", "statement.json"):
        assert json.loads((tmp_path / "out" / name).read_text())["notice"].startswith("NOT PRIVATE")
    for name in ("records.csv", "trends.csv"):
        rows = list(csv.DictReader((tmp_path / "out" / name).read_text().splitlines()))
        assert all(row["notice"].startswith("NOT PRIVATE") for row in rows)
    assert json.loads((tmp_path / "out/statement.json").read_text())["release"]["private"] is False
    assert not (tmp_path / REMEMBERED).exists(), "an evaluation is not a release"


def test_a_seed_repeats_an_evaluation_and_voids_the_guarantee(log: Path, capsys: pytest.CaptureFixture[str]):
    printed = []
    for _ in range(2):
        assert main(["run", str(log), "--opt-in", "0.5", "--evaluate", "--seed", "7", "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert json.loads(printed[0])["guarantee"]["holds"] is False


def test_without_a_seed_two_runs_differ(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    printed = set()
    for out in ("a", "b"):
        assert main(["run", str(log), "-o", str(tmp_path / out), "--opt-in", "0.5", "--json"]) == 0
        printed.add(capsys.readouterr().out)
    assert len(printed) == 2


def test_dry_run_reads_nothing(capsys: pytest.CaptureFixture[str]):
    """Seeded, so the same every time: many searches of each opt-in user list more queries than one does."""

    def expected(*options: str):
        command = ["run", "/no/such/log", "--dry-run", "--json", "--users", "20000", "--opt-in", "0.2"]
        assert main([*command, *options]) == 0
        return json.loads(capsys.readouterr().out)

    many, one, paper = expected(), expected("--records-per-optin", "1"), expected("--method", "paper")
    assert [found["users_to_be_listed"] for found in (many, one, paper)] == [100, 7, 7]
    assert [found["expected"]["records_per_optin"] for found in (many, one, paper)] == [100, 1, 1]
    assert many["expected"]["users"] == 20_000
    assert (
        many["expected"]["head_queries"] > 2 * one["expected"]["head_queries"] >= 2 * paper["expected"]["head_queries"]
    )


def test_query_only_logs_are_first_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "queries.csv"
    path.write_text("user,query\n" + "".join(f"{user},query {user % 4}\n" for user in range(4000)))
    for method in ("best", "paper"):
        arguments = ["-o", str(tmp_path / method), "--opt-in", "0.5", "--json", "--method", method]
        assert main(["run", str(path), *arguments]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["head"] == {**document["head"], "queries": 4, "records": 4}
        assert {row["kind"] for row in document["records"]} == {"record", "rest"}


def test_a_large_delta_is_refused_before_anything_is_paid(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    ledger = ["--ledger", str(tmp_path / "budget.db"), "--release-id", "a"]
    arguments = ["run", str(log), "-o", str(tmp_path / "out"), "--opt-in", "0.5", "--delta", "0.001"]
    assert main([*arguments, *ledger]) == 2
    assert "not below 1/users" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["ledger", "export", str(tmp_path / "budget.db")]) == 0
    assert capsys.readouterr().out == ""
    assert main([*arguments, "--allow-large-delta"]) == 0
    assert "without --ledger nothing keeps account" in capsys.readouterr().err
    assert main([*arguments, *ledger, "--allow-large-delta", "--force"]) == 0
    assert main(["ledger", "show", str(tmp_path / "budget.db"), "--json"]) == 0
    assert "0.001" in capsys.readouterr().out


def test_malformed_lines_are_counted_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write_log(tmp_path / "log.tsv")
    with path.open("ab") as file:
        file.write(b"\tno user\thttp://x.example\n" * 40 + b"7\t\xff\xfe\thttp://x.example\n")
    places = ["-o", str(tmp_path / "out"), "--summary", str(tmp_path / "input.json")]
    assert main(["run", str(path), *places, "--opt-in", "0.5"]) == 0
    said = capsys.readouterr().err
    assert "WARNING: more than 1 % of the lines are malformed" in said
    assert f"{path}:3003" in said
    summary = json.loads((tmp_path / "input.json").read_text())
    assert sum(entry["count"] for entry in summary["malformed"].values()) == 41


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["--epsilon", "0"], "error: --epsilon: "),
        (["--epsilon", "-1"], "error: --epsilon: "),
        (["--epsilon", "nan"], "error: --epsilon: "),
        (["--epsilon", "inf"], "error: --epsilon: "),
        (["--delta", "0"], "error: --delta: "),
        (["--delta", "1"], "error: --delta: "),
        (["--delta", "nan"], "error: --delta: "),
        (["--max-queries", "0"], "--max-queries"),
        (["--head-fraction", "1"], "error: --head-fraction: "),
        (["--head-fraction", "0"], "error: --head-fraction: "),
        (["--query-budget-fraction", "0"], "error: --query-budget-fraction: "),
        (["--query-budget-fraction", "1"], "error: --query-budget-fraction: "),
        (["--query-budget-fraction", "1.5"], "error: --query-budget-fraction: "),
        (["--records-per-client", "0"], "error: --records-per-client: "),
        (["--records-per-optin", "2", "--method", "paper"], "error: --records-per-optin: "),
        (["--opt-in", "0.00001"], "opt-in users"),
        (["--opt-in", "0.99999"], "clients"),
        (["--seed", "1"], "--seed"),
        (["--population", "5000", "--dry-run"], "--users"),
        (["--ledger", "x.db"], "--release-id"),
        (["--columns", "user=nobody"], "nobody"),
    ],
)
def test_misuse_is_named(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments, field: str):
    assert field in fails(capsys, 2, "run", log, "-o", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.tsv"]


def test_an_empty_head_list_says_why_and_what_would_help(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "log.tsv"
    path.write_text("user\tquery\turl\n" + "".join(f"{u}\t{SECRET} {u}\thttp://{u}.example\n" for u in range(500)))
    said = fails(capsys, 1, "run", path, "-o", tmp_path / "out", "--opt-in", "0.5", "--delta", "1e-9")
    assert "empty" in said
    assert "would help" in said
    assert not (tmp_path / "out").exists()
    assert (tmp_path / REMEMBERED).exists(), "that nothing passed is an outcome, and paid for"


def bad_file(path: Path, kind: str) -> Path:
    write_log(path)
    text = path.read_bytes()
    contents = {
        "empty": b"",
        "header only": b"user\tquery\turl\n",
        "no such column": text.replace(b"user\t", b"person\t", 1),
        "duplicate header": text.replace(b"user\tquery\turl", b"user\tquery\tquery", 1),
        "binary garbage": bytes(range(256)) * 400,
        "truncated gzip": gzip.compress(text)[:-200],
    }
    target = path.with_suffix(".tsv.gz") if "gzip" in kind else path
    target.write_bytes(contents[kind])
    return target


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("empty", 1),
        ("header only", 1),
        ("no such column", 2),
        ("duplicate header", 2),
        ("binary garbage", 1),
        ("truncated gzip", 1),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, code: int):
    path = bad_file(tmp_path / "log.tsv", kind)
    found = main(["run", str(path), "-o", str(tmp_path / "out"), "--opt-in", "0.5"])
    said = capsys.readouterr().err
    assert found in {1, 2}
    assert found == code or kind in {"duplicate header", "binary garbage"}
    assert str(path) in said
    assert "Traceback" not in said
    assert SECRET not in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"\tquery\thttp://x.example", "user"),
        (b"9\t\xff\xfe\thttp://x.example", "UTF-8"),
        (b"9\tquery " + SECRET.encode(), ""),
    ],
)
def test_strict_stops_at_the_first_malformed_line(tmp_path: Path, capsys, line: bytes, field: str):
    path = write_log(tmp_path / "log.tsv", 10, secret=False)
    path.write_bytes(path.read_bytes() + line + b"\n")
    said = fails(capsys, 1, "run", path, "-o", tmp_path / "out", "--strict", "--opt-in", "0.5")
    assert f"{path}:12" in said
    assert field in said


def test_a_100_mb_line_is_counted_and_not_swallowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write_log(tmp_path / "log.tsv")
    with path.open("ab") as file:
        file.write(b"5\t")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\thttp://x.example\n")
    places = ["-o", str(tmp_path / "out"), "--summary", str(tmp_path / "input.json")]
    assert main(["run", str(path), *places, "--opt-in", "0.5"]) == 0
    summary = json.loads((tmp_path / "input.json").read_text())
    assert sum(entry["count"] for entry in summary["malformed"].values()) == 1


def test_a_missing_file_and_an_unwritable_place(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert "nowhere.tsv" in fails(capsys, 1, "run", tmp_path / "nowhere.tsv", "-o", tmp_path / "out")
    (tmp_path / "file").write_text("x")
    assert "file" in fails(capsys, 1, "run", log, "-o", tmp_path / "file" / "out")
    assert (tmp_path / "file").read_text() == "x"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "log.tsv"]


def test_an_unknown_profile_of_plan(capsys: pytest.CaptureFixture[str]):
    assert "--profile" in fails(capsys, 2, "plan", "--profile", "nothing")


def test_plan_says_all_it_promises(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(plans, "EPSILONS", (4.0, 5.0))  # whose noise tables the plan has made
    arguments = [
        "plan",
        "--users",
        "20000",
        "--opt-in",
        "0.1",
        "--runs",
        "2",
        "--json",
        "--plot",
        str(tmp_path / "p.svg"),
    ]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["methods"]["best"]["head_queries"]["mean"] > 5
    best, paper = document["methods"]["best"], document["methods"]["paper"]
    assert best["error"]["mean"] < paper["error"]["mean"]
    assert 0 < best["covered"]["mean"] < 1
    first = best["ranks"][0]
    assert (first["rank"], first["listed"]) == (1, 1)
    assert 0 < first["plus_minus"]["mean"] < first["share"]
    assert {"recommended", "buys", "one_report_moves", "colluding_optin_users"} <= set(document)
    assert document["records_per_optin"] == 100, "the run that will be made"
    assert best["mechanism"]["optin"]["queries_per_user"] == 100
    assert 0 < document["clients_in_public"]["epsilon"] < document["epsilon"]
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
