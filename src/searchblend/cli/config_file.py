"""``--config FILE.toml``: options of a command from a file, under their long names.

The file becomes words of the command line, before those that were typed: types, choices and messages are the same.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

from searchblend.core.errors import UsageError

CONFIG: Final = "--config"
CONFIG_DEST: Final = "config_file"
"""not ``config``, which is the file of settings of ``serve``"""
_NOT_KEYS: Final = ("--help", CONFIG)


def add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        CONFIG,
        dest=CONFIG_DEST,
        type=Path,
        metavar="FILE",
        help="TOML file with options under their long names (epsilon = 2); the command line wins",
    )


def config_words(parser: argparse.ArgumentParser, path: Path, given: Collection[str]) -> list[str]:
    """The file's options as words. Left out are those whose ``dest`` was given, or that of one that excludes them."""
    options = {
        name.removeprefix("--"): action
        for name, action in parser._option_string_actions.items()
        if name.startswith("--") and name not in _NOT_KEYS
    }
    words: list[str] = []
    for written, value in _read(path).items():
        key = written.replace("_", "-")  # as the settings of a server are written
        if key not in options:
            raise UsageError(f"{CONFIG}: {path}: there is no option {written!r}{_suggestion(key, options)}")
        if not _excluded(parser, options[key], given):
            words += _words(path, key, options[key], value)
    return words


def _read(path: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{CONFIG}: {path}: {error.strerror}") from error
    except ValueError as error:  # of TOML, and of UTF-8
        raise UsageError(f"{CONFIG}: {path}: expected TOML, such as: epsilon = 2 ({error})") from error


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
        raise UsageError(f"{CONFIG}: {path}: {key}: expected {expected}")
    if isinstance(value, bool):
        return [f"--{key}"] if value else []
    if isinstance(value, Mapping) and not any(isinstance(inner, Mapping | list) for inner in value.values()):
        value = ",".join(f"{name}={inner}" for name, inner in value.items())  # [columns]
    if not isinstance(value, str | int | float | date):
        raise UsageError(f"{CONFIG}: {path}: {key}: expected a string or a number")
    return [f"--{key}={value}"]
