"""``searchblend release run --attributes``: from a log to a verified folder, and what is refused in one line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from searchblend.cli.main import main
from searchblend.store.ledger import open_ledger

DECLARED = "country=de|fr,device=phone,clicks.rank=1|2-3"
FILE = """\
[country]
values = ["de", "fr"]
column = "Land"
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.tsv"
    lines = ["user\tquery\turl\trank\tLand\tcountry\tdevice"]
    for user in range(600):
        country = ("DE", "fr", "it")[user % 3]
        lines.append(f"u{user}\tweather\tw.example\t{1 + user % 4}\t{country}\t{country}\tPhone")
    path.write_text("\n".join(lines) + "\n")
    return path


def command(log: Path, output: Path, *options: str) -> list[str]:
    given = ("--epsilon", "4", "--max-queries-per-user", "2", "--max-clicks-per-user", "2", "--users", "600")
    return ["release", "run", str(log), "-o", str(output), *given, *options]


def test_a_log_becomes_counts_by_attribute(log, tmp_path, capsys):
    output = tmp_path / "out"
    options = ("--urls", "private", "--attributes", DECLARED, "--attribute-detail", "cells", "--html")
    ledger = ("--ledger", str(tmp_path / "budget.db"), "--release-id", "one")
    assert main(command(log, output, *options, *ledger)) == 0
    assert "searches by attribute: cells, each count ± " in capsys.readouterr().out
    assert main(["release", "verify", str(output)]) == 0
    with (output / "searches_by_attribute.csv").open() as file:
        rows = {(row["country"], row["device"]): int(row["count"]) for row in csv.DictReader(file)}
    assert set(rows) == {(c, d) for c in ("de", "fr", "other") for d in ("phone", "other")}
    assert all(abs(rows[country, "phone"] - 200) < 60 for country in ("de", "fr", "other"))
    assert main(["statement", str(output), "--for", "nist", "-o", str(tmp_path / "nist.md")]) == 0
    table = "searches_by_attribute.csv"
    (output / table).write_text((output / table).read_text().replace("phone", "tv"))
    assert main(["release", "verify", str(output)]) == 1


def test_a_declaration_in_a_file_may_name_the_column(log, tmp_path, capsys):
    (tmp_path / "attributes.toml").write_text(FILE)
    options = ("--attributes", str(tmp_path / "attributes.toml"), "--attribute-detail", "marginals")
    assert main(command(log, tmp_path / "out", *options)) == 0
    assert "searches by attribute: marginals" in capsys.readouterr().out
    assert (tmp_path / "out" / "searches_by_attribute.parquet").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--attributes", "country="], "attributes.country: expected at least one value, and none that is empty"),
        (["--attributes", "country=de|DE"], "attributes.country: the value 'de' is declared twice"),
        (["--attributes", "country=other"], "attributes.country: 'other' is the value of all that is not declared"),
        (["--attributes", "country"], "expected NAME=VALUE|VALUE"),
        (["--attributes", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["--attributes", "region=de"], "no column 'region' for an attribute"),
        (["--attributes", "clicks.rank=1"], "expected no attribute of clicks alone: clicks are not released"),
        (["--attribute-detail", "cells"], "expected attributes to count by"),
        (["--attributes", "country=de", "--engine", "spark"], "only with the engine duckdb"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line_and_nothing_is_written_or_paid(log, tmp_path, capsys, options, message):
    ledger = ["--ledger", str(tmp_path / "budget.db"), "--release-id", "one"]
    try:
        code = main(command(log, tmp_path / "out", *options, *ledger))
    except SystemExit as exit_:
        code = exit_.code
    assert code == 2
    said = capsys.readouterr().err
    assert message in " ".join(said.split())
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()
    with open_ledger(tmp_path / "budget.db") as ledger_of_all:
        assert ledger_of_all.published("one") is None
        assert not ledger_of_all.entries()


def test_a_file_that_is_no_toml_is_refused(log, tmp_path, capsys):
    (tmp_path / "a.toml").write_text("country = [")
    with pytest.raises(SystemExit) as exit_:
        main(command(log, tmp_path / "out", "--attributes", str(tmp_path / "a.toml")))
    assert exit_.value.code == 2
    assert "a.toml: expected TOML" in capsys.readouterr().err


def test_a_plan_says_how_fine_the_counts_will_be(capsys):
    assert main(["release", "plan", "--users", "9000000", "--attributes", "country=de|fr"]) == 0
    assert "searches by attribute: cells" in capsys.readouterr().out
