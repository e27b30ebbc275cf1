"""Arguments: misuse ends with exit code 2 and one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchblend.cli import printing
from searchblend.cli.commands.demo import NEXT
from searchblend.cli.main import main
from searchblend.cli.parser import build_parser
from searchblend.cli.tables import regressions


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["run"],
        ["run", "log", "--opt-in", "1"],
        ["run", "log", "--opt-in", "nan"],
        ["run", "log", "--opt-in", "x"],
        ["run", "log", "--columns", "user"],
        ["run", "log", "--columns", "user=a,user=b"],
        ["run", "log", "--columns", "nobody=a"],
        ["run", "log", "--opt-in", "0.1", "--opt-in-column", "c"],
        ["run", "log", "--engine", "other"],
        ["demo", "--users", "0"],
        ["device", "status", "--data-dir", "x"],
    ],
)
def test_misuse(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: searchblend")
    assert " ; " not in usage
    assert error.startswith("searchblend: error: ")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["runn", "log"], "run"),
        (["run", "log", "--epsilonn", "3"], "--epsilon"),
        (["run", "log", "--optin", "0.1"], "--opt-in"),
        (["device", "synk"], "sync"),
    ],
)
def test_the_word_that_was_probably_meant_is_named(arguments, meant, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert capsys.readouterr().err.endswith(f"; did you mean {meant}?\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "log", "--epsilon", "abc"], "--epsilon: expected a number, found 'abc'"),
        (["run", "log", "--max-queries", "2.5"], "--max-queries: expected a whole number"),
        (["run", "log", "--engine", "sparkk"], "--engine: expected one of duckdb, spark; found 'sparkk'"),
        (["run", "log", "--opt-in", "5"], "--opt-in: expected a share in (0, 1)"),
    ],
)
def test_a_wrong_value_is_refused_by_flag_with_what_was_expected(arguments, says, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert f"searchblend: error: {says}" in capsys.readouterr().err


@pytest.mark.parametrize(("typed", "same"), [(["help"], ["--help"]), (["help", "run"], ["run", "--help"])])
def test_help_is_a_word_too(typed, same, capsys):
    printed = []
    for arguments in (typed, same):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_a_word_like_no_other_gets_no_suggestion(capsys):
    with pytest.raises(SystemExit):
        main(["run", "log", "--xyzzy"])
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["run", "--json"], ["run", "no-such-file", "-o", "no-such-folder", "--json"], ["runn", "--json"]]
)
def test_an_error_is_json_for_whoever_asked_for_json(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    printed = capsys.readouterr()
    assert printed.out == ""
    document = json.loads(printed.err)
    assert document["exit_code"] == code != 0
    assert document["error"]


def test_quiet_and_verbose(tmp_path, capsys):
    log = tmp_path / "log.tsv"
    log.write_text("user\tquery\turl\n" + "".join(f"{user}\tweather\thttp://a.example\n" for user in range(400)))
    said = {}
    for flag in ("-q", "-v"):
        printing.messages.cache_clear()
        assert main(["run", str(log), "-o", str(tmp_path / f"out{flag}"), "--opt-in", "0.5", flag]) == 0
        said[flag] = capsys.readouterr().err
    printing.messages.cache_clear()
    assert said["-q"] == ""
    assert "nothing keeps account: ε so far 8 by 2 releases of this input in this folder; " in said["-v"]
    assert said["-v"].count("searchblend: ") >= 2


@pytest.mark.parametrize(
    ("command", "instead"), [(["run"], "--dry-run"), (["release", "run"], "searchblend release plan")]
)
def test_a_release_that_would_not_be_kept_is_refused_before_anything_is_read(command, instead, capsys):
    assert main([*command, "/no/such/log"]) == 2
    [error] = capsys.readouterr().err.splitlines()
    assert error.startswith("searchblend: error: -o/--output: ")
    assert error.endswith(instead)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        (["release", "plan"], "--population", "users"),
        (["release", "review", "folder"], "--head", "top"),
        (["serve"], "--people", "users"),
    ],
)
def test_an_old_spelling_is_read_as_the_new_one(command, old, new):
    parser = build_parser(command[0])
    assert vars(parser.parse_args([*command, old, "7"])) == {
        **vars(parser.parse_args([*command, f"--{new}", "7"])),
        "renamed": {old: f"--{new}"},
    }


def test_a_number_where_the_ledger_expects_a_name_is_taken_and_warned_of(capsys):
    printing.messages.cache_clear()
    words = ["run", "log", "--dry-run", "--json", "--users", "1000", "--ledger", "none", "--release-id", "a"]
    assert main([*words, "--population", "5000"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: --population 5000 is taken as a name for the ledger; --users takes numbers"
    ]
    printing.messages.cache_clear()


def test_an_old_spelling_is_warned_of_once(capsys):
    printing.messages.cache_clear()
    assert main(["release", "plan", "--population", "5000", "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "warning: --population is called --users now\n"
    assert json.loads(printed.out)["population"] == 5000
    printing.messages.cache_clear()


def test_columns():
    options = build_parser().parse_args(["run", "log", "--columns", "user=AnonID,query=Query,url=ClickURL"])
    assert options.columns == {"user": "AnonID", "query": "Query", "url": "ClickURL"}


@pytest.mark.parametrize("command", ["run", "demo"])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args([command, "--help"])
    assert "examples:" in capsys.readouterr().out


def test_regressions_are_estimates_above_the_one_before():
    assert regressions([0.9, 0.02, 0.03, 0.01, None, 0.5]) == [False, False, True, False, False, False]


def test_what_the_demo_names_next_is_understood_and_leaves_its_folder_alone():
    demo = build_parser("demo").parse_args(["demo"])
    for command in NEXT.values():
        words = command.replace(" N", " 1000").split()[1:]
        output = Path(build_parser(words[0]).parse_args(words).output)
        assert output not in (demo.output, *demo.output.parents)
