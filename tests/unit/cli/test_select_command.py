"""``searchblend select``: any table in, a release folder out; nothing is written or charged for what fails."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pytest

from searchblend import Budget, read_release, select_values, verify_release
from searchblend.cli.main import main
from searchblend.core.privacy import NEIGHBORS
from searchblend.releases.make_release import REMEMBERED

ROWS = [*((f"u{i}", "Green tea") for i in range(400)), ("w", "my own blend")]
SAFE = Budget(4.0, 1e-9)


def write(path: Path, separator: str, header: str | None = "user,value") -> Path:
    lines = [separator.join(row) for row in ROWS]
    if header is not None:
        lines.insert(0, header.replace(",", separator))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "table.csv", ",")


def command(table: Path, *options: object) -> list[str]:
    return ["select", str(table), "-o", str(table.parent / "out"), "--delta", "1e-9", *map(str, options)]


def test_every_format_holds_the_same_values(tmp_path):
    lines = "".join(json.dumps({"user": user, "value": value, "time": [1]}) + "\n" for user, value in ROWS)
    (tmp_path / "rows.jsonl").write_text(lines)
    aol = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
    (tmp_path / "aol.txt").write_text(aol + "".join(f"{user}\t{value}\t\t\t\nx{user}\t-\t\n" for user, value in ROWS))
    (tmp_path / "excite.txt").write_text("".join(f"{user}\t970916001949\t{value}\n" for user, value in ROWS))
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(write(tmp_path / "table.csv", ",").read_bytes()))
    duckdb.sql(f"COPY (FROM '{tmp_path}/table.csv') TO '{tmp_path}/table.parquet'")
    write(tmp_path / "table.tsv", "\t", "Value,Who")
    named = {"table.tsv": {"user": "Value", "value": "Who"}, "excite.txt": {"format": "excite"}}
    for name in ("rows.jsonl", "aol.txt", "excite.txt", "packed.csv.gz", "table.csv", "table.parquet", "table.tsv"):
        found = select_values(tmp_path / name, SAFE, **named.get(name, {}))
        assert list(found.counts) == ["Green tea"], name


def test_lines_that_cannot_be_read_are_left_out_alone(table, capsys):
    with table.open("ab") as file:
        file.write(b'x,"open\nx\nx,y,z\n,tea\nx,\n\xff,tea\n"y","Green tea"\n')
    assert list(select_values(table, SAFE).counts) == ["Green tea"]
    assert main(command(table)) == 0
    said = capsys.readouterr().err
    for reason in ("bad_quotes: 1", "too_few_fields: 1", "too_many_fields: 1", "invalid_utf8: 1"):
        assert f"{reason} (first: {table}:4" in said


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_relation_and_number_of_values_are_stated_and_verified(table, relation, capsys):
    out = table.parent / "out"
    assert main(command(table, "--neighbors", relation, "--values-per-user", 3, "--json")) == 0
    statement = json.loads(capsys.readouterr().out)["statement"]
    assert statement["guarantee"]["neighbors"] == NEIGHBORS[relation].value
    assert statement["parameters"]["values_per_user"] == 3
    assert any("up to 3 different values of each user" in caveat for caveat in statement["caveats"])
    assert any("number of users" in fact for fact in statement["public"]) == (relation == "replace-one")
    assert all(check.holds for check in verify_release(out))


def test_a_statement_with_another_relation_or_number_of_values_is_refused(table):
    out = table.parent / "out"
    assert main(command(table, "--neighbors", "add-remove", "--values-per-user", 3)) == 0
    honest = (out / "statement.json").read_text()
    relations = [NEIGHBORS[name].value for name in ("add-remove", "replace-one")]
    for old, new in ((relations[0], relations[1]), ('"values_per_user": 3', '"values_per_user": 1')):
        assert old in honest
        (out / "statement.json").write_text(honest.replace(old, new))
        assert not all(check.holds for check in verify_release(out))


@pytest.mark.parametrize("most", ["0", "101", "1.5", "many"])
def test_a_number_of_values_outside_the_range_is_refused_before_anything_is_written(table, most, capsys):
    try:
        code = main(command(table, "--values-per-user", most))
    except SystemExit as misuse:  # what the parser itself refuses
        code = misuse.code
    assert code == 2
    assert "values" in capsys.readouterr().err
    assert not (table.parent / "out").exists()


def test_a_dry_run_says_what_the_relation_costs(table, capsys):
    thresholds = []
    for relation in ("replace-one", "add-remove"):
        options = ["--dry-run", "--json", "--neighbors", relation, "--values-per-user", "5"]
        assert main(["select", str(table), *options]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["neighbors"] == NEIGHBORS[relation].value
        thresholds.append(document["threshold"])
    assert thresholds[0] > thresholds[1]


def test_a_selection_is_a_release(table, capsys):
    out, ledger = table.parent / "out", table.parent / "budget.ledger"
    paid = ["--ledger", ledger, "--release-id", "a", "--population", "drinkers"]
    assert main(command(table, *paid, "--json", "--summary", table.parent / "counts.json")) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert [each["value"] for each in document["values"]] == ["Green tea"]
    assert document["statement"]["guarantee"]["holds"]
    assert "keeps account" not in printed.err
    assert json.loads((out / "statement.json").read_text()) == document["statement"]
    assert document["statement"]["parameters"]["table"] == {
        "format": "csv",
        "quoted_line_feeds": False,
        "encoding": "utf-8",
    }
    assert read_release(out).columns() == {"value": ["Green tea"], "count": [document["values"][0]["count"]]}
    assert "my own blend" not in "".join(path.read_text() for path in out.iterdir())
    counts = json.loads((table.parent / "counts.json").read_text())
    assert (counts["lines"], counts["users"]) == (401, 401)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    table.unlink()  # the ledger has the files: nothing is read
    assert main(command(table, *paid, "--force")) == 0
    assert "nothing was spent" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert main(["ledger", "show", str(ledger), "--population", "drinkers", "--json"]) == 0


def test_a_delimiter_and_columns_of_folders_are_stated(tmp_path, capsys):
    folder = tmp_path / "table" / "drink=Green%20tea"
    folder.mkdir(parents=True)
    (folder / "users.csv").write_text("user;age\n" + "".join(f"{user};9\n" for user, _ in ROWS))
    assert main([*command(tmp_path / "table"), "--columns", "value=drink"]) == 0
    table = json.loads((tmp_path / "out" / "statement.json").read_text())["parameters"]["table"]
    assert (table["delimiter"], table["in_folders"]) == (";", "value")


def test_without_a_ledger_the_folder_remembers(table, capsys):
    for total in ("further release", "ε so far 8 by 2 releases"):
        assert main(command(table, "--force")) == 0
        printed = capsys.readouterr()
        assert total in printed.err
        assert "Green tea" in printed.out
    assert (table.parent / REMEMBERED).exists()


def test_a_dry_run_reads_nothing(tmp_path, capsys):
    assert main(["select", "/no/such/table", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["threshold"] > 1
    assert main(["select", "/no/such/table"]) == 2
    assert "--dry-run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "options", "code", "said"),
    [
        ("user,value\n", [], 1, "holds no line"),
        ("user,value\nu,\n", [], 1, "no line of the log can be used"),
        ("who,what\nu,a\n", [], 2, "--columns user=NAME,value=NAME"),
        ("user,value\nu,a\n", ["--columns", "value=user"], 2, "no column"),
        *(("user,value\nu,a\n", ["--format", one], 2, f"{one} has searches") for one in ("yandex", "combined", "ubi")),
        ("user,value\nu,a\n", ["--format", "parquet"], 1, "Parquet file cannot be read"),
        ("user,value\nu,a\nv,a\n", ["--delta", "0.5"], 2, "is not below 1/users"),
        ("user,value\nu,a\nb\n", ["--strict"], 1, "expected more fields"),
        ("PAR1" + "x" * 40, [], 1, "Parquet file cannot be read"),
    ],
)
def test_what_fails_leaves_nothing_and_costs_nothing(tmp_path, capsys, content, options, code, said):
    table, ledger = tmp_path / "table.csv", tmp_path / "budget.ledger"
    table.write_text(content)
    assert main(command(table, "--ledger", ledger, "--release-id", "a", *options)) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["ledger", "export", str(ledger)]) == 0
    assert capsys.readouterr().out.strip() == ""


def test_columns_of_a_log_are_not_those_of_a_table(table, capsys):
    with pytest.raises(SystemExit) as ended:
        main(command(table, "--columns", "user=user,query=value"))
    assert ended.value.code == 2
    assert "each of user, value" in capsys.readouterr().err
