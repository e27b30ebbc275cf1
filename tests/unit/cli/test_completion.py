"""What Tab offers: commands, actions, options and choices; nothing where the shell knows better."""

from __future__ import annotations

import shutil
import subprocess
from importlib import metadata

import pytest

from searchblend.cli.commands.completion import SCRIPTS, offers
from searchblend.cli.main import main
from searchblend.cli.parser import SUMMARIES, build_parser


def words(*typed: str) -> list[str]:
    return [word for word, _ in offers(typed, build_parser)]


def test_every_command_is_offered_with_its_summary():
    assert dict(offers([""], build_parser)) == SUMMARIES
    assert words("rele") == ["release"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["release", ""], ["run", "plan", "verify", "review"]),
        (["release", "run", "log", "--user"], ["--users"]),
        (["run", "log", "--opt"], ["--opt-in", "--opt-in-column"]),
        (["run", "log", "--method", "b"], ["best"]),
        (["run", "log", "--method", "=", "b"], ["best"]),
        (["run", "log", "--method", "="], ["best", "paper"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["--v"], ["--version"]),
        (["run", ""], []),
        (["run", "log", "-o", ""], []),
        (["run", "log", "--output", "--"], []),
        (["xyzzy", ""], []),
    ],
)
def test_what_may_follow(typed, expected):
    assert words(*typed) == expected


def test_hidden_options_stay_hidden():
    assert "--seed" in words("run", "log", "--s")
    assert "--seed" not in words("release", "run", "log", "--s")


def test_a_command_that_is_not_installed_offers_nothing(monkeypatch):
    monkeypatch.setattr(metadata, "entry_points", lambda **named: ())
    assert words("audit", "--") == []


def test_the_scripts_ask_for_words(capsys):
    for shell in SCRIPTS:
        assert main(["completion", shell]) == 0
        assert "searchblend completion --words" in capsys.readouterr().out
    assert main(["completion", "--words", "run", "log", "--epsi"]) == 0
    assert capsys.readouterr().out == "--epsilon\tε of each person (4)\n"
    assert main(["completion"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_bash_takes_the_words_and_passes_on_what_was_typed():
    program = f"""{SCRIPTS["bash"]}
searchblend() {{ printf '%s\\tmeaning of it\\n' "$@" second; }}
COMP_WORDS=(searchblend run 'a log' --eps later); COMP_CWORD=3
_searchblend
printf '%s|' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "completion|--words|run|a log|--eps|second|"
