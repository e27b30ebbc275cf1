"""All commands in the groups of ``--help``, and the parser that their arguments make.

``--help`` is instant: only the module of the command that was asked for is loaded, and of the heavy modules behind it
(numpy, databases, Rich) none before the command runs. Commands import those in the functions that need them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Final, Protocol

from searchblend.cli.arguments import CommandParser, add_command
from searchblend.core.errors import UsageError

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Release": {
        "demo": "a private run on a synthetic log, start to finish",
        "run": "the hybrid model on a log: this machine plays the devices",
        "release": "the queries and clicks of a log that you hold",
        "select": "the values that many users of a table have",
        "plan": "what a run would give, without reading any data",
        "ledger": "what was released about whom, and what it cost",
    },
    "Use a release": {
        "page": "a release as one web page, from its folder",
        "statement": "papers for a release: registry, NIST, DPIA, README, data set",
        "graph": "keywords, similar queries, studies of a released graph",
        "pack": "make, look at and compare local-search packs",
        "search": "local search in a pack, without a network",
    },
    "Service": {
        "serve": "the collection service",
        "relay": "brings devices' requests to a service, unread and nameless",
        "task": "what is asked, of whom, and at what cost",
        "round": "drive one round of a task",
        "aggregate": "a round's counters from files of reports",
        "keys": "signing keys and admin tokens",
        "issuer": "tokens that pay for reports, one each",
        "doctor": "check a service's database, chains and keys",
        "database": "the tables of a service's database",
        "backup": "copy a service's database, and put it back",
        "log": "check the public log of a service, and cosign it",
        "audit-log": "who did what to which round, in a chain of hashes",
    },
    "Devices": {"device": "a device that searches locally and reports privately"},
    "Data": {
        "stats": "what a log holds, counted exactly (not private)",
        "generate": "a synthetic log with the shape of a real one",
    },
    "Evidence": {
        "evaluate": "the papers' figures and more, reproduced",
        "audit": "attack the shipped code and say what was found",
        "compare": "releases and threshold rules on one log (not private)",
    },
    "Shell": {"completion": "complete commands and options with Tab"},
}
"""Group → command → what it does."""
PLUGINS: Final = "searchblend.commands"
"""Group of the entry points by which the lab offers its commands: modules like those of ``cli/commands``."""
SUMMARIES: Final = {name: summary for group in GROUPS.values() for name, summary in group.items()}


class Command(Protocol):
    """A module of ``cli/commands``, or one like it that the lab offers."""

    EXAMPLES: str
    """The end of the command's own help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, options: argparse.Namespace) -> None: ...


def load_command(name: str) -> Command:
    """The module of a command: the one place where they are imported."""
    match name:
        case "demo":
            from searchblend.cli.commands import demo

            return demo
        case "run":
            from searchblend.cli.commands import run

            return run
        case "release":
            from searchblend.cli.commands import release

            return release
        case "select":
            from searchblend.cli.commands import select

            return select
        case "plan":
            from searchblend.cli.commands import plan

            return plan
        case "ledger":
            from searchblend.cli.commands import ledger

            return ledger
        case "page":
            from searchblend.cli.commands import page

            return page
        case "statement":
            from searchblend.cli.commands import statement

            return statement
        case "graph":
            from searchblend.cli.commands import graph

            return graph
        case "pack":
            from searchblend.cli.commands import pack

            return pack
        case "search":
            from searchblend.cli.commands import search

            return search
        case "serve":
            from searchblend.cli.commands import serve

            return serve
        case "relay":
            from searchblend.cli.commands import relay

            return relay
        case "task":
            from searchblend.cli.commands import task

            return task
        case "round":
            from searchblend.cli.commands import round

            return round
        case "aggregate":
            from searchblend.cli.commands import aggregate

            return aggregate
        case "keys":
            from searchblend.cli.commands import keys

            return keys
        case "issuer":
            from searchblend.cli.commands import issuer

            return issuer
        case "doctor":
            from searchblend.cli.commands import doctor

            return doctor
        case "log":
            from searchblend.cli.commands import log

            return log
        case "database":
            from searchblend.cli.commands import database

            return database
        case "backup":
            from searchblend.cli.commands import backup

            return backup
        case "audit-log":
            from searchblend.cli.commands import audit_log

            return audit_log
        case "device":
            from searchblend.cli.commands import device

            return device
        case "stats":
            from searchblend.cli.commands import stats

            return stats
        case "generate":
            from searchblend.cli.commands import generate

            return generate
        case "completion":
            from searchblend.cli.commands import completion

            return completion
        case "evaluate" | "audit" | "compare":
            return _load_plugin(name)
    raise KeyError(name)


def _load_plugin(name: str) -> Command:
    """A command of the lab, which is a package of its own: neither a service nor a device needs it."""
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=PLUGINS, name=name):
        command: Command = entry_point.load()
        return command
    raise UsageError(
        f"{name}: this command is in the package searchblend-lab, which is not installed: "
        "pip install searchblend-lab (in a checkout: pip install ./lab)"
    )


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; if one is chosen, the others have their names alone."""
    parser = CommandParser(
        prog="searchblend",
        usage="searchblend [-h] [--version] COMMAND ...",
        description=f"The head of a search log, computed privately.\n\n{_overview()}",
        epilog="Start with: searchblend demo. Each command explains itself with --help.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.set_defaults(build_parser=build_parser)  # for completion, which offers what any command takes
    commands = parser.add_subparsers(
        prog="searchblend", dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS
    )
    for name, summary in SUMMARIES.items():
        added = add_command(commands, name, summary)
        if chosen is None or name == chosen:
            command = load_command(name)
            added.epilog = command.EXAMPLES
            command.add_arguments(added)
    return parser


def _overview() -> str:
    return "\n\n".join(
        "\n".join([f"{title}:", *(f"  {name:<11} {summary}" for name, summary in group.items())])
        for title, group in GROUPS.items()
    )


class _Version(argparse.Action):
    """Prints the version; looking it up takes time that only those who ask for it should wait."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"searchblend {version('searchblend')}")  # parser.exit would write on stderr
        parser.exit()
