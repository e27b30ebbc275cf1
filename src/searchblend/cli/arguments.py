"""What the arguments of several commands share."""

from __future__ import annotations

import argparse
import math
import re
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands, name: str, summary: str, examples: str | None = None) -> argparse.ArgumentParser:
    """A command whose help ends with examples."""
    return commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_actions(parser: argparse.ArgumentParser) -> Commands:
    """For a command with actions of its own: ``searchblend COMMAND ACTION``."""
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon", type=float, default=4.0, metavar="E", help="ε of each person (4)")
    parser.add_argument("--delta", type=float, default=1e-5, metavar="D", help="δ of each person (1e-5)")


def add_method(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method", choices=["best", "paper"], default="best", help="best (default), or the algorithm as printed"
    )


def positive_int(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise argparse.ArgumentTypeError("expected a whole number of at least 1")
    return int(text)


def share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError("expected a share in (0, 1), for example 0.05")
    return value


def epsilon_delta(text: str) -> tuple[float, float]:
    epsilon, comma, delta = text.partition(",")
    try:
        pair = float(epsilon), float(delta)
    except ValueError:
        pair = math.nan, math.nan
    if not comma or not (0 < pair[0] < math.inf and 0 < pair[1] < 1):
        raise argparse.ArgumentTypeError("expected ε,δ, for example 4,1e-5")
    return pair
