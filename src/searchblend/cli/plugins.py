"""Commands that the lab provides: always named in ``--help``, looked up by entry point only when one is asked for.

The lab (papers and evidence) is a package of its own, since neither a service nor a device needs it. Each of its
commands is two entry points of the command's name: a function that adds its arguments, in the group
``searchblend.arguments``, and one that runs it, in ``searchblend.commands``, so that ``--help`` does not wait for what
a run needs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from searchblend.cli.arguments import Commands
from searchblend.core.errors import UsageError

ARGUMENTS: Final = "searchblend.arguments"
COMMANDS: Final = "searchblend.commands"
LAB_COMMANDS: Final = {
    "evaluate": "the papers' figures and more, reproduced",
    "audit": "attack the shipped code and say what was found",
}
"""Name → help."""


def add_lab_command(commands: Commands, name: str) -> argparse.ArgumentParser:
    """A command of the lab with its name and what it does; ``add_lab_arguments`` adds the rest."""
    what = LAB_COMMANDS[name]
    return commands.add_parser(
        name,
        help=what,
        description=what[0].upper() + what[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def lab_command_in(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command of the lab that these arguments ask for, if it is one."""
    return tuple(name for name in arguments[:1] if name in LAB_COMMANDS)


def lab_arguments(name: str) -> Callable[[argparse.ArgumentParser], None]:
    """What adds the arguments of a command of the lab. Raises UsageError where the lab is not installed."""
    add: Callable[[argparse.ArgumentParser], None] = _entry_point(ARGUMENTS, name)
    return add


def lab_run(name: str) -> Callable[[argparse.Namespace], None]:
    """What runs a command of the lab."""
    run: Callable[[argparse.Namespace], None] = _entry_point(COMMANDS, name)
    return run


def _entry_point(group: str, name: str) -> Any:
    # Imported here, not above: --help must not wait for it.
    for entry in import_module("importlib.metadata").entry_points(group=group, name=name):
        return entry.load()
    raise UsageError(
        f"{name}: this command is in the package searchblend-lab, which is not installed: "
        "pip install searchblend-lab (in a checkout: pip install ./lab)"
    )
