"""Arguments: misuse ends with exit code 2 and one clear line."""

from __future__ import annotations

import pytest

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
        ["run", "log", "--method", "other"],
        ["demo", "--users", "0"],
    ],
)
def test_misuse(arguments, capsys):
    with pytest.raises(SystemExit) as exit_:
        build_parser().parse_args(arguments)
    assert exit_.value.code == 2
    assert "error:" in capsys.readouterr().err


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
