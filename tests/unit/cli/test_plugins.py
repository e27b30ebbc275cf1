"""The lab's commands: named in help always, and a clear word where the lab is not installed."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from searchblend.cli.main import main
from searchblend.cli.parser import GROUPS, PLUGINS, build_parser

LAB_COMMANDS = GROUPS["Evidence"]


@pytest.fixture
def without_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **named: ())


@pytest.mark.usefixtures("without_lab")
@pytest.mark.parametrize("words", [["evaluate", "fig9", "-o", "x"], ["audit", "--list"], ["audit", "--help"]])
def test_without_the_lab_a_command_of_it_says_what_to_install(words, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"searchblend: error: {words[0]}: ")
    assert "pip install searchblend-lab" in error


@pytest.mark.usefixtures("without_lab")
def test_help_names_the_commands_of_the_lab_without_it(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {what}" in shown for name, what in LAB_COMMANDS.items())


def test_the_lab_offers_exactly_the_commands_that_help_names():
    assert {entry.name for entry in metadata.entry_points(group=PLUGINS)} == set(LAB_COMMANDS)


@pytest.mark.parametrize("name", LAB_COMMANDS)
def test_with_the_lab_a_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as exit_:
        build_parser(name).parse_args([name, "--help"])
    assert exit_.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_other_commands_do_not_look_for_the_lab():
    code = (
        "import sys\nfrom searchblend.cli.main import main\n"
        "try: main(['run', '--help'])\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith(('searchblend_lab', 'importlib.metadata'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
