"""``searchblend ledger``: what it prints, and how it fails."""

from __future__ import annotations

import hashlib
import json
import sqlite3

import pytest

from searchblend.accounting.client_spends import randomized_response_spend
from searchblend.accounting.totals import BudgetCap
from searchblend.cli.main import main
from searchblend.cli.printing import output
from searchblend.core.privacy import Budget
from searchblend.store.ledger import open_ledger

CAP = BudgetCap(window=Budget(2.0, 1e-6), lifetime=Budget(6.0, 1e-6))


@pytest.fixture
def path(tmp_path):
    spend = randomized_response_spend(0.1, 100)
    with open_ledger(tmp_path / "budget.ledger", cap=CAP) as ledger:
        for week in range(12):
            ledger.debit(f"week-{week:02}", "clients", "2026-12" if week < 4 else "2027-04", spend)
        ledger.publish("week-00", {"trends.csv": b"query\n"})
    return tmp_path / "budget.ledger"


def run(*arguments):
    return main(["ledger", *map(str, arguments)])


def test_show(path, capsys, monkeypatch):
    monkeypatch.setattr(output(), "_width", 160)
    assert run("show", path) == 0
    text = capsys.readouterr().out
    for expected in (
        "week-11",
        "all (lifetime)",
        "privacy loss distributions",
        "not yet",
        "lifetime ε = 6",
        "one user id",
    ):
        assert expected in text
    assert "ε 4.8" in text, "6 − 12 × 0.1 left"
    assert "2 ids ε =" in text


def test_show_as_json(path, capsys):
    assert run("show", path, "--json", "--delta", "1e-5", "--window", "2027-04") == 0
    document = json.loads(capsys.readouterr().out)
    assert [entry["release_id"] for entry in document["entries"]] == [f"week-{week:02}" for week in range(4, 12)]
    (total,) = document["totals"]
    assert (total["window"], total["delta"], total["basic"]["epsilon"]) == ("2027-04", 1e-5, 0.8)
    assert total["method"] == "privacy loss distributions"
    assert total["epsilon"] == total["loss_distribution_epsilon"] < 0.8
    assert total["left"]["epsilon"] == 1.2
    assert [group["ids"] for group in total["groups"]] == [2, 3]
    assert "user id" in document["unit"]


def test_check_and_the_noted_head(path, capsys):
    assert run("check", path, "--json") == 0
    head = json.loads(capsys.readouterr().out)["head"]
    assert run("check", path, "--head", head) == 0
    assert "sound: 14 rows, 12 debits, 1 of them published" in capsys.readouterr().out
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER ledger_no_delete")
    connection.execute("DELETE FROM ledger WHERE position = 14")
    connection.execute("DROP TRIGGER release_files_no_delete")
    connection.execute("DELETE FROM release_files")
    connection.commit()
    connection.close()
    assert run("check", path) == 0, "a chain alone cannot know that it was longer"
    assert run("check", path, "--head", head) == 1
    assert "rows were removed" in capsys.readouterr().err


def test_check_warns_where_a_cap_was_lowered_too_far(path, capsys):
    assert run("cap", path, "--lifetime", "1,1e-6") == 0
    assert run("check", path) == 0
    assert "population clients, lifetime: more is debited" in " ".join(capsys.readouterr().err.split())


def test_an_export_can_be_verified_by_anyone(path, capsys):
    assert run("export", path) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    previous = "0" * 64
    for row in rows:
        body = json.dumps(row["body"], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert row["previous"] == previous
        previous = hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()
        assert row["hash"] == previous
    assert len(rows) == 14
    assert run("export", path, "--json", "--window", "2026-12") == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 6


def test_cap_makes_a_ledger(tmp_path, capsys):
    assert run("cap", tmp_path / "new.ledger", "--per-window", "4,1e-5", "--planned") == 0
    assert "per window ε = 4, δ = 1e-05; kept by the smaller total" in capsys.readouterr().out
    assert run("show", tmp_path / "new.ledger") == 0
    assert "no debits" in capsys.readouterr().out
    assert run("cap", tmp_path / "new.ledger") == 2


def test_failures(path, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("notes " * 500)
    for code, message, arguments in (
        (2, "no such ledger", ("show", tmp_path / "none")),
        (1, "not a ledger", ("show", tmp_path / "notes.txt")),
        (1, "not a ledger", ("check", tmp_path / "notes.txt")),
        (2, "it has clients", ("show", path, "--population", "nobody")),
        (2, "it has 2026-12, 2027-04", ("export", path, "--window", "none")),
    ):
        assert run(*arguments) == code
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("action", ["show", "check", "export"])
def test_a_broken_chain_says_which_row(path, capsys, action):
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER ledger_no_update")
    connection.execute("UPDATE ledger SET body = replace(body, '0.1', '0.2') WHERE position = 7")
    connection.commit()
    connection.close()
    assert run(action, path) == 1
    assert "row 7" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["ledger"], ["ledger", "burn", "x"], ["ledger", "cap", "x", "--lifetime", "4"], ["ledger", "show"]]
)
def test_misuse(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize("arguments", [[], ["show"], ["check"], ["export"], ["cap"]])
def test_help_has_examples(arguments, capsys):
    with pytest.raises(SystemExit):
        main(["ledger", *arguments, "--help"])
    assert "examples:" in capsys.readouterr().out
