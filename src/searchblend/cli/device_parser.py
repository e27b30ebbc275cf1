"""The arguments of ``searchblend device``: an agent that reports privately, on this computer."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import Commands, add_command, positive_int

DEVICE_EXAMPLES = """\
examples:
  searchblend device enrol --server https://lists.example --task 0123456789abcdef0123456789abcdef --key 04…
  searchblend device consent local --agree        after reading the text that `device consent local` shows
  searchblend device record 'weather' --url https://weather.example/today
  searchblend device sync                         take part in the current round, if there is one
  searchblend device show                         everything that was ever sent
"""
ENROL_EXAMPLES = """\
examples:
  searchblend device enrol --server https://lists.example --task 0123456789abcdef0123456789abcdef --key 04…
  searchblend device enrol --server http://127.0.0.1:8470 --task 0123456789abcdef0123456789abcdef --key 04… --code CODE
"""
CONSENT_EXAMPLES = """\
examples:
  searchblend device consent local                     show the text, agree to nothing
  searchblend device consent local --agree             agree: randomized reports only
  searchblend device consent opt-in --agree --text consent.txt
  searchblend device consent off                       stop, drop what waits, take back what can be taken back
"""
RECORD_EXAMPLES = """\
examples:
  searchblend device record 'weather' --url https://weather.example/today
  searchblend device record 'weather' --json
"""
IMPORT_EXAMPLES = """\
examples:
  searchblend device import searches.jsonl          lines of {"query": "…", "url": "…"}; all of them or none
"""
SYNC_EXAMPLES = """\
examples:
  searchblend device sync                           call it every hour or so; reports wait for a random time
  searchblend device sync --now --json              without the delay (whoever watches the network sees when you act)
"""
SEARCH_EXAMPLES = """\
examples:
  searchblend device search weather                 answered from the pack on this computer; nothing is sent
  searchblend device search wea --limit 5 --json
"""
_EXAMPLES_OF_OTHERS = """\
examples:
  searchblend device {action}
  searchblend device {action} --state ~/.searchblend --json
"""
_PLAIN = {
    "status": "mode, budget and the last round in a few lines",
    "show": "everything that was sent: what was true, what was said, what it cost",
    "pause": "keep and send nothing until resume",
    "resume": "go on after a pause",
    "erase": "forget all searches and what was said about them; the ledger stays",
    "leave": "withdraw, erase, and forget the task",
    "export": "all that is kept here as one JSON document",
}


def add_device(commands: Commands) -> None:
    parser = add_command(commands, "device", "a device that searches locally and reports privately", DEVICE_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_enrol(actions)
    _add_consent(actions)
    _add_record(actions)
    _add_import(actions)
    _add_sync(actions)
    _add_search(actions)
    for name, what in _PLAIN.items():
        _action(actions, name, what, _EXAMPLES_OF_OTHERS.format(action=name))


def _add_enrol(actions: Commands) -> None:
    parser = _action(actions, "enrol", "take part in a task; nothing is kept or sent before consent", ENROL_EXAMPLES)
    parser.add_argument("--server", required=True, metavar="URL", help="the service's address")
    parser.add_argument("--task", required=True, metavar="HEX", help="the task: 32 hexadecimal digits")
    parser.add_argument(
        "--key", action="append", required=True, metavar="HEX", help="a public signing key to pin; may be repeated"
    )
    parser.add_argument(
        "--curator-key",
        action="append",
        default=[],
        metavar="HEX",
        help="a curator's public key to pin; may be repeated",
    )
    parser.add_argument("--code", metavar="CODE", help="the enrolment code, for opt-in contributions")
    parser.add_argument("--no-urls", action="store_true", help="the task collects queries without results")
    parser.add_argument("--plain-http", action="store_true", help="allow http to another computer (not private)")


def _add_consent(actions: Commands) -> None:
    parser = _action(actions, "consent", "agree to a mode, or withdraw", CONSENT_EXAMPLES)
    parser.add_argument("mode", choices=["off", "local", "opt-in"], metavar="MODE", help="off, local or opt-in")
    parser.add_argument("--agree", action="store_true", help="agree to the text (without it, it is only shown)")
    parser.add_argument("--text", type=Path, metavar="FILE", help="the task's own text, for opt-in")


def _add_record(actions: Commands) -> None:
    parser = _action(actions, "record", "keep one search on this computer", RECORD_EXAMPLES)
    parser.add_argument("query", metavar="QUERY", help="what was searched")
    parser.add_argument("--url", metavar="URL", help="the result that was chosen")


def _add_import(actions: Commands) -> None:
    parser = _action(actions, "import", "keep the searches of a file of JSON lines", IMPORT_EXAMPLES)
    parser.add_argument("file", type=Path, metavar="FILE", help='lines of {"query": …, "url": …}')


def _add_sync(actions: Commands) -> None:
    parser = _action(
        actions, "sync", "fetch the manifest and do what it asks, within this device's limits", SYNC_EXAMPLES
    )
    parser.add_argument("--now", action="store_true", help="send without the random delay")


def _add_search(actions: Commands) -> None:
    parser = _action(actions, "search", "answers from the local pack, without a network", SEARCH_EXAMPLES)
    parser.add_argument("query", metavar="QUERY", help="what to look for")
    parser.add_argument("--limit", type=positive_int, default=10, metavar="N", help="how many answers (10)")


def _action(actions: Commands, name: str, what: str, examples: str) -> argparse.ArgumentParser:
    parser = add_command(actions, name, what, examples)
    parser.add_argument(
        "--state",
        type=Path,
        default=Path("~/.local/state/searchblend"),
        metavar="DIR",
        help="where this device keeps everything (~/.local/state/searchblend)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser
