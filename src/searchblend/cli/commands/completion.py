"""``searchblend completion``: what the shell offers when Tab is pressed.

The scripts hold no option of ours: at every Tab they ask ``searchblend completion --words``, so that they fit every
version. Where it has nothing to offer, the shell completes names of files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from searchblend.core.errors import UsageError

EXAMPLES = """\
examples:
  searchblend completion bash > ~/.local/share/bash-completion/completions/searchblend
  searchblend completion zsh > ~/.zfunc/_searchblend         in a folder of $fpath, before compinit runs
  searchblend completion fish > ~/.config/fish/completions/searchblend.fish
"""
_BASH: Final = """\
_searchblend() {
    local IFS=$'\\n'
    COMPREPLY=($(searchblend completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _searchblend searchblend
"""
_ZSH: Final = """\
#compdef searchblend
_searchblend() {
    local -a offered
    offered=(${(f)"$(searchblend completion --words "${(@)words[2,CURRENT]}" 2>/dev/null | cut -f1)"})
    if (( $#offered )); then compadd -a offered; else _files; fi
}
if [ "$funcstack[1]" = _searchblend ]; then _searchblend "$@"; else compdef _searchblend searchblend; fi
"""
_FISH: Final = """\
function __searchblend_words
    set -l typed (commandline -opc) (commandline -ct)
    searchblend completion --words $typed[2..] 2>/dev/null
end
complete -c searchblend -a '(__searchblend_words)'
"""
SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
Offer = tuple[str, str]
"""a word, and what it means"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    parser.add_argument(
        "--words", nargs=argparse.REMAINDER, metavar="WORD", help="what the script asks: words that may end in the last"
    )


def run(options: argparse.Namespace) -> None:
    if options.words is not None:
        lines = "".join(f"{word}\t{meaning}\n" for word, meaning in offers(options.words or [""], options.build_parser))
        sys.stdout.write(lines)  # not by Rich, whose loading one would feel at every Tab
    elif options.shell is None:
        raise UsageError(f"SHELL: expected one of {', '.join(SCRIPTS)}")
    else:
        sys.stdout.write(SCRIPTS[options.shell])


def offers(typed: Sequence[str], build_parser: Callable[[str], argparse.ArgumentParser]) -> list[Offer]:
    """What the last of these words, perhaps empty, may become; nothing where a file name or a value is due."""
    words = [*typed, ""] if typed[-1] == "=" else typed  # bash has --method=best in three words
    *before, begun = (word for word in words if word != "=")
    try:
        parser = build_parser(before[0] if before else "")
    except UsageError:  # a command of the lab, which is not installed
        return []
    for word in before:
        if (actions := _actions(parser)) and not word.startswith("-"):
            if word not in actions:
                return []
            parser = actions[word]
    return [(word, meaning) for word, meaning in _candidates(parser, before, begun) if word.startswith(begun)]


def _candidates(parser: argparse.ArgumentParser, before: Sequence[str], begun: str) -> Iterator[Offer]:
    option = parser._option_string_actions.get(before[-1]) if before else None
    if option is not None and option.nargs != 0:
        yield from ((str(choice), "") for choice in option.choices or ())
    elif begun.startswith("-"):
        options = parser._option_string_actions.items()
        yield from ((name, action.help or "") for name, action in options if action.help != argparse.SUPPRESS)
    elif parser._subparsers is None:
        places = parser._get_positional_actions()
        yield from ((str(choice), "") for place in places[:1] for choice in place.choices or ())
    else:
        for group in parser._subparsers._group_actions:
            yield from ((each.dest, each.help or "") for each in getattr(group, "_choices_actions", []))


def _actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands or actions of a parser, by name."""
    groups = parser._subparsers._group_actions if parser._subparsers else []
    return {name: each for group in groups for name, each in (group.choices or {}).items()}  # type: ignore[attr-defined]
