"""What the arguments of several commands share, and ``--config``: options of a command from a file."""

from __future__ import annotations

import argparse
import difflib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from searchblend.core.errors import UsageError
from searchblend.core.privacy import Budget

Commands: TypeAlias = "argparse._SubParsersAction[Any]"
_CONFIG: Final = "--config"
_CONFIG_DEST: Final = "config_file"
"""not ``config``, which is the file of settings of ``serve``"""
_NOT_KEYS: Final = ("--help", _CONFIG)
_NUMBERS: Final = {"float": "a number", "int": "a whole number"}
RENAMED_DEST: Final = "renamed"
"""where the old spellings that were typed are kept: each with its new one"""

_CALLED: Final = {"max_head_queries": "max_queries", "optin_fraction": "opt_in"}
"""parameters in Python that options have another name for"""


class Misuse(SystemExit):
    """Words that a command does not understand: one line of usage, and what is wrong."""

    def __init__(self, usage: str, message: str) -> None:
        super().__init__(2)
        self.usage, self.message = usage, message


class CommandParser(argparse.ArgumentParser):
    """Names what is wrong in one line, and the word that was probably meant; ``main`` prints it."""

    def error(self, message: str) -> NoReturn:
        places = "".join(f" {action.metavar or action.dest}" for action in self._get_positional_actions())
        raise Misuse(f"usage: {self.prog} [OPTIONS]{places}; see {self.prog} --help", self._with_suggestion(message))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What is left over is refused here, by the command that knows its own options; so is its ``--config`` read."""
        if any(action.dest == _CONFIG_DEST for action in self._actions):
            given = self._given(args)
            args = [*(config_words(self, given[_CONFIG_DEST], given) if _CONFIG_DEST in given else []), *args]
        options, rest = super().parse_known_args(args, namespace)
        if rest and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return options, rest

    def _given(self, args: Any) -> Mapping[str, Any]:
        """What the words say, without defaults."""
        defaults = [(action, action.default) for action in self._actions]
        for action, _ in defaults:
            action.default = argparse.SUPPRESS
        try:
            return vars(super().parse_known_args(args, argparse.Namespace())[0])
        finally:
            for action, default in defaults:
                action.default = default

    def _with_suggestion(self, message: str) -> str:
        if unknown := re.fullmatch(
            r"argument (?:COMMAND|ACTION): invalid choice: '(.*?)' \(choose from (.*)\)", message
        ):
            message = f"there is no {unknown[1]!r}"
            wrong, right = unknown[1], re.findall(r"'([^']*)'", unknown[2])
        else:
            left_over = re.findall(r"(?<!\S)--[\w-]+", message) if message.startswith("unrecognized") else []
            wrong, right = "".join(left_over[:1]), list(self._option_string_actions)
            message = _in_our_words(message)
        return message + (_suggestion(wrong, right) if wrong else "")


def _in_our_words(message: str) -> str:
    """As other refusals say it: the flag, what was expected, what was there."""
    flag, _, problem = message.removeprefix("argument ").partition(": ")
    if not problem or not message.startswith("argument "):
        return message
    if wrong := re.fullmatch(r"invalid (float|int) value: ('.*')", problem, re.DOTALL):
        problem = f"expected {_NUMBERS[wrong[1]]}, found {wrong[2]}"
    elif wrong := re.fullmatch(r"invalid choice: (.*) \(choose from (.*)\)", problem, re.DOTALL):
        problem = f"expected one of {wrong[2].replace(chr(39), '')}; found {wrong[1]}"
    return f"{flag}: {problem}"


def add_command(commands: Commands, name: str, summary: str, examples: str | None = None) -> argparse.ArgumentParser:
    """A command whose help ends with examples."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for flags, what in ((("-q", "--quiet"), "no notes and no progress"), (("-v", "--verbose"), "a line for each step")):
        parser.add_argument(*flags, action="store_true", default=argparse.SUPPRESS, help=f"{what} on stderr")
    return parser


def flag_of(parser: argparse.ArgumentParser, parameter: str) -> str | None:
    """The flag by which the command that was chosen takes a parameter of Python, if it takes it by a flag."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            flags = (flag_of(command, parameter) for command in action.choices.values())
            if flag := next(filter(None, flags), None):
                return flag
        elif action.dest == _CALLED.get(parameter, parameter) and action.option_strings:
            return action.option_strings[-1]
    return None


def add_old_spelling(parser: argparse.ArgumentParser, old: str, new: str) -> None:
    """Keep an option's former name working, out of sight; ``main`` warns whoever types it."""
    now = parser._option_string_actions[new]
    same: dict[str, Any] = {"dest": now.dest, "type": now.type, "default": now.default}
    parser.add_argument(old, action=_OldSpelling, new=new, help=argparse.SUPPRESS, **same)


class _OldSpelling(argparse.Action):
    """Not the place for the warning: words are parsed twice where there is a file of options."""

    def __init__(self, *, new: str, **named: Any) -> None:
        super().__init__(**named)
        self._new = new

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, value: Any, *_: object) -> None:
        setattr(namespace, self.dest, value)
        renamed = {**getattr(namespace, RENAMED_DEST, {}), self.option_strings[0]: self._new}
        setattr(namespace, RENAMED_DEST, renamed)


def add_actions(parser: argparse.ArgumentParser) -> Commands:
    """For a command with actions of its own: ``searchblend COMMAND ACTION``."""
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon", type=float, default=4.0, metavar="E", help="ε of each person (4)")
    parser.add_argument("--delta", type=float, default=1e-5, metavar="D", help="δ of each person (1e-5)")


class Suggested(tuple[str, ...]):
    """Values that Tab offers where others may be typed, too."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return True


def add_method(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method", choices=["best", "paper"], default="best", help="best (default), or the algorithm as printed"
    )


def positive_int(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return int(text)


def task_id(text: str) -> bytes:
    if not re.fullmatch("[0-9a-f]{32}", text):
        raise argparse.ArgumentTypeError("expected 32 hexadecimal digits")
    return bytes.fromhex(text)


def number(text: str) -> float:
    """Not a number (NaN) for what is none: no comparison then holds."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def share(text: str) -> float:
    value = number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError("expected a share in (0, 1), for example 0.05")
    return value


def add_cap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--per-window", type=_budget, metavar="E,D", help="ε and δ of each window")
    parser.add_argument("--lifetime", type=_budget, metavar="E,D", help="ε and δ of all windows together")


def _budget(string: str) -> Budget:
    epsilon, delta = (number(part) for part in string.partition(",")[::2])
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        raise argparse.ArgumentTypeError("expected ε,δ, for example 4,1e-5")
    return Budget(epsilon, delta)


def add_file_output(parser: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    """A file that a command writes, and whether it may replace one."""
    parser.add_argument("-o", "--output", type=Path, required=required, metavar="FILE", help=what)
    parser.add_argument("--force", action="store_true", help="replace FILE")


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        _CONFIG,
        dest=_CONFIG_DEST,
        type=Path,
        metavar="FILE",
        help="TOML file with options under their long names (epsilon = 2); the command line wins",
    )


def config_words(parser: argparse.ArgumentParser, path: Path, given: Collection[str]) -> list[str]:
    """The file's options as words of the command line, so that types, choices and messages are the same.

    Left out are those whose ``dest`` was given, or that of one that excludes them.
    """
    options = {
        name.removeprefix("--"): action
        for name, action in parser._option_string_actions.items()
        if name.startswith("--") and name not in _NOT_KEYS
    }
    words: list[str] = []
    for written, value in _read(path).items():
        key = written.replace("_", "-")  # as the settings of a server are written
        if key not in options:
            raise UsageError(f"{_CONFIG}: {path}: there is no option {written!r}{_suggestion(key, options)}")
        if not _excluded(parser, options[key], given):
            words += _words(path, key, options[key], value)
    return words


def _read(path: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{_CONFIG}: {path}: {error.strerror}") from error
    except ValueError as error:  # of TOML, and of UTF-8
        raise UsageError(f"{_CONFIG}: {path}: expected TOML, such as: epsilon = 2 ({error})") from error


def _suggestion(key: str, options: Collection[str]) -> str:
    meant = difflib.get_close_matches(key, options, 1)
    return f"; did you mean {meant[0]}?" if meant else ""


def _excluded(parser: argparse.ArgumentParser, action: argparse.Action, given: Collection[str]) -> bool:
    groups: Sequence[Any] = parser._mutually_exclusive_groups
    rivals = [other for group in groups if action in group._group_actions for other in group._group_actions]
    return any(other.dest in given for other in [action, *rivals])


def _words(path: Path, key: str, action: argparse.Action, value: Any) -> list[str]:
    if (action.nargs == 0) is not isinstance(value, bool):
        expected = "true or false" if action.nargs == 0 else "a value"
        raise UsageError(f"{_CONFIG}: {path}: {key}: expected {expected}")
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    if isinstance(value, Mapping) and not any(isinstance(inner, Mapping | list) for inner in value.values()):
        value = ",".join(f"{name}={inner}" for name, inner in value.items())  # [columns]
    if not isinstance(value, str | int | float | date):
        raise UsageError(f"{_CONFIG}: {path}: {key}: expected a string or a number")
    return [f"--{key}={value}"]
