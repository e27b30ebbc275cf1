"""``searchblend release run --per day``: windows of one account, what they cost, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from searchblend.cli.main import main
from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import release_data
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.store.ledger import open_ledger

BUDGET = Budget(4.0, 1e-6)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``weather`` is common on both days; ``fair`` on the first alone."""
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    lines = ["user\tquery\turl\ttime"]
    for user in range(400):
        lines.append(f"u{user}\tweather\tw.example\t2026-03-01 10:00:00")
        lines.append(f"u{user}\tfair\tf.example\t2026-03-01 11:00:00")
        lines.append(f"u{user}\tweather\tw.example\t2026-03-02 10:00:00")
        lines.append(f"u{user}\tweather\tw.example\tsoon")
    path.write_text("\n".join(lines) + "\n")
    return path


def command(log: Path, folder: Path, day: int, *options: str) -> list[str]:
    given = ["--epsilon", "4", "--delta", "1e-6", "--users", "400", "--max-queries-per-user", "3", "--per", "day"]
    ledger = ["--ledger", str(folder / "budget.db"), "--release-id", "daily"]
    when = ["--from", f"2026-03-{day:02}", "-o", str(folder / f"day-{day}")]
    return ["release", "run", str(log), *given, *ledger, *when, *options]


def counts(folder: Path) -> dict[str, int]:
    with (folder / "queries.csv").open() as file:
        return {row["query"]: int(row["count"]) for row in csv.DictReader(file)}


def test_a_month_of_windows_costs_one_person_a_single_release(log, tmp_path, capsys):
    assert main(command(log, tmp_path, 1, "--summary", str(tmp_path / "summary.json"), "--cap", "month")) == 0
    assert main(command(log, tmp_path, 2, "--previous", str(tmp_path / "day-1"))) == 0
    first, second = counts(tmp_path / "day-1"), counts(tmp_path / "day-2")
    assert set(first) == set(second) == {"weather", "fair"}
    assert all(abs(count - 400) < 30 for count in (*first.values(), second["weather"]))
    assert abs(second["fair"]) < 30
    assert json.loads((tmp_path / "summary.json").read_text())["without_time"] == 400
    assert main(["release", "verify", str(tmp_path / "day-2")]) == 0
    statement = " ".join((tmp_path / "day-2" / "statement.txt").read_text().split())
    assert "That is what one person's whole month costs" in statement
    assert "Lines whose time cannot be read belong to no window and are left out." in statement
    with open_ledger(tmp_path / "budget.db") as ledger:
        assert ledger.totals("all users", "2026-03").summed_epsilon == 4.0
        assert len(ledger.entries()) == 2
    capsys.readouterr()
    assert main(command(log, tmp_path, 1, "--force")) == 0
    assert "published before" in capsys.readouterr().err
    assert counts(tmp_path / "day-1") == first


def test_another_choice_is_another_account(log, tmp_path):
    assert main(command(log, tmp_path, 1)) == 0
    assert main(command(log, tmp_path, 2, "--max-clicks-per-user", "7")) == 0
    with open_ledger(tmp_path / "budget.db") as ledger:
        assert ledger.totals("all users", "2026-03").summed_epsilon == 8.0


def test_who_reached_the_bound_counts_in_no_later_window(log, tmp_path):
    assert main(command(log, tmp_path, 2, "--max-queries-per-user", "2")) == 1
    assert main(command(log, tmp_path, 1, "--max-queries-per-user", "2")) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "2026-03-02T10:00"], "from: expected the beginning of a day: 0:00 UTC of any day"),
        (["--per", "week"], "from: expected the beginning of a week: 0:00 UTC of the 1st, 8th, 15th, 22nd or 29th"),
        (["--to", "2026-03-04"], "--per: say with --from when the window begins, and nothing with --to"),
        (["--window", "2026-03"], "--per: with --ledger and --release-id, and without --window"),
        (["--algorithm", "dp_sips"], "expected algorithm gaussian"),
        (["--reformulations"], "expected algorithm gaussian, without attributes and reformulations"),
        (["--engine", "spark"], "--per: only with --engine duckdb"),
        (["--per", "none", "--previous", "x"], "--previous: only with --per day or --per week"),
        (["--columns", "time=when"], "no column 'when'"),
    ],
)
def test_what_cannot_be_is_refused_and_costs_nothing(log, tmp_path, capsys, options, message):
    assert main(command(log, tmp_path, 2, *options)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "day-2").exists()
    with open_ledger(tmp_path / "budget.db") as ledger:
        assert not ledger.entries()


def test_the_first_step_counts_at_its_worst_in_an_account():
    alone, month = (
        ClickGraphDesign.of(ClickGraphParams(BUDGET, max_queries_per_user=5, per=per)) for per in ("none", "day")
    )
    assert month.delta <= BUDGET.delta
    assert (month.rounds[-1].threshold or 0) >= (alone.rounds[-1].threshold or 0)
    assert month.as_json()["per"] == "day"
    assert "per" not in alone.as_json()


def test_known_queries_are_of_windows_alone():
    with pytest.raises(InvalidParameter, match="known: expected with per = day or week"):
        release_data(InMemoryClickLog([[Search("a")]]), ClickGraphParams(BUDGET), known=["a"])
