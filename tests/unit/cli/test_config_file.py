"""Options from a file: the same words as on the command line, which wins."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from searchblend.cli.main import main
from searchblend.cli.parser import build_parser

CONFIG = """
output = "out"
epsilon = 2
delta = 1e-6
opt-in = 0.2
html = true
force = false
summary = "counts, and more.json"

[columns]
user = "AnonID"
query = "Query"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "monthly.toml"
    path.write_text(CONFIG)
    return path


def parsed(command: str, *words: object) -> Namespace:
    return build_parser(command.split()[0]).parse_args([*command.split(), "log.tsv", *map(str, words)])


def test_a_file_says_what_words_would(config):
    budget = ["--epsilon", "2", "--delta", "1e-6", "--opt-in", "0.2"]
    files = ["-o", "out", "--html", "--summary", "counts, and more.json"]
    typed = parsed("run", *budget, *files, "--columns", "user=AnonID,query=Query")
    assert vars(parsed("run", "--config", config)) == {**vars(typed), "config_file": config}


def test_a_key_may_be_written_as_the_settings_of_a_server_are(config):
    config.write_text("opt_in = 0.3")
    assert parsed("run", "--config", config).opt_in == 0.3


def test_the_command_line_wins(config):
    options = parsed("run", "--epsilon", "3", f"--config={config}", "--columns", "user=u,query=q", "--opt-in", "0.3")
    assert (options.epsilon, options.delta, options.opt_in) == (3.0, 1e-6, 0.3)
    assert options.columns == {"user": "u", "query": "q"}


def test_the_command_line_wins_over_an_option_that_excludes_its_own(config):
    assert parsed("run", "--config", config, "--opt-in-column", "consent").opt_in == 0.05
    config.write_text("opt-in-column = 'consent'")
    assert parsed("run", "--config", config, "--opt-in", "0.1").opt_in_column is None


def test_a_date_and_the_options_of_a_click_graph(config):
    config.write_text("from = 2006-03-01\nmax-queries-per-user = 5\nreformulations = true\npopulation = 'all'")
    options = parsed("release run", "--config", config)
    assert (options.first, options.max_queries_per_user, options.reformulations) == (1141171200.0, 5, True)
    assert options.population == "all"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("epsilonn = 2", "there is no option 'epsilonn'; did you mean epsilon?"),
        ("optin = 2", "did you mean opt-in?"),
        ("xyzzy = 2", "there is no option 'xyzzy'\n"),
        ("config = 'more.toml'", "there is no option 'config'"),
        ("epsilon 2", "expected TOML"),
        ("html = 1", "html: expected true or false"),
        ("epsilon = true", "epsilon: expected a value"),
        ("epsilon = [1, 2]", "epsilon: expected a string or a number"),
        ("engine = 'other'", "--engine: expected one of duckdb, spark; found 'other'"),
        ("epsilon = 'much'", "--epsilon: expected a number, found 'much'"),
    ],
)
def test_what_is_wrong_in_a_file_is_misuse_in_one_line(config, capsys, content, expected):
    config.write_text(content)
    try:
        code = main(["run", "log.tsv", "--config", str(config)])
    except SystemExit as ended:
        code = ended.code
    error = capsys.readouterr().err
    assert code == 2
    assert expected in error
    assert error.count("searchblend: error: ") == 1


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["run", "log.tsv", "--config", str(tmp_path / "nowhere.toml")]) == 2
    assert "nowhere.toml: No such file" in capsys.readouterr().err
