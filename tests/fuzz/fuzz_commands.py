"""Targets: the command line, with made-up arguments and with damaged files. No traceback, exit code 0, 1 or 2."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from fuzz_rules import CANARY, check_message, demand
from fuzz_texts import folder, written

from made_click_graph import write_release
from searchblend.cli.main import main
from searchblend.cli.parser import build_parser
from searchblend.core.randomness import SystemRandomness

NUMBERS = [
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "1e-6",
    "1e9",
    "nan",
    "inf",
    "-inf",
    "1e-400",
    "9" * 25,
    "0x10",
    "",
    "½",
    "٣",
    "1_0",
]
WORDS = ["--json", "--help", "--", "-", "", "x", "∞", "\udcff", "a=b", "user=a,query=b", "a,b", "1,2", "4,1e-5"]


def _inside() -> Path:
    """Commands run in a folder that nobody misses."""
    path = folder() / "inside"
    path.mkdir(exist_ok=True)
    return path


def run(arguments: Sequence[str]) -> int:
    """Run a command as a shell would; its exit code, after a look at what it said of errors."""
    said, shown = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(shown), contextlib.chdir(_inside()):
        try:
            code = main(list(arguments))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    demand(code in (0, 1, 2), f"exit code {code}")
    text = said.getvalue().encode("utf-8", "backslashreplace").decode()  # as on a real standard error
    demand("Traceback" not in text, "a traceback")
    if code == 1 or (code == 2 and "usage:" not in text):
        check_message(text)  # what argparse quotes is what somebody typed, not what a log holds
    demand(code == 0 or bool(text.strip()), "a failure without a word")
    return code


@cache
def parser() -> argparse.ArgumentParser:
    return build_parser()


@cache
def options() -> list[str]:
    """Every option of every command, by walking the parser."""
    found: set[str] = set()
    todo = [parser()]
    while todo:
        for action in todo.pop()._actions:
            found |= set(action.option_strings)
            if isinstance(action.choices, dict):
                found |= set(action.choices)
                todo += list(action.choices.values())
            elif action.choices:
                found |= set(map(str, action.choices))
    return sorted(found)


def arguments(data: bytes) -> None:
    """Words from the parser's own vocabulary, in any order: only parsed, never run."""
    vocabulary = options() + NUMBERS + WORDS
    chosen = [vocabulary[int.from_bytes(data[i : i + 2], "big") % len(vocabulary)] for i in range(0, len(data), 2)]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            parser().parse_args(chosen[:12])
        except SystemExit as end:
            demand(end.code in (0, 2), f"exit code {end.code}")


TEMPLATES = [
    ["run", "LOG", "--dry-run", "--epsilon", "N", "--delta", "N", "--max-queries", "N"],
    ["run", "LOG", "--dry-run", "--head-fraction", "N", "--query-budget-fraction", "N", "--records-per-client", "N"],
    ["run", "LOG", "-o", "out", "--force", "--opt-in", "N", "--records-per-optin", "N", "--memory", "W"],
    ["stats", "LOG", "--columns", "W", "--threads", "1", "--json"],
    ["stats", "W", "--format", "W"],
    ["ledger", "show", "W", "--delta", "N"],
    ["ledger", "cap", "ledger.db", "--lifetime", "W"],
    ["graph", "study", "RELEASE", "--pattern", "W", "--top", "N"],
    ["graph", "similar", "RELEASE", "Q", "--by", "backward", "--stay", "N", "--limit", "N"],
    ["graph", "keywords", "RELEASE", "--seed-domain", "W", "--threshold", "N", "--cut", "N"],
    ["release", "verify", "W"],
    ["release", "plan", "--epsilon", "N", "--delta", "N", "--json"],
    ["release", "review", "RELEASE", "--top", "N", "--abandoned-below", "N"],
]  # fmt: skip


def command(data: bytes) -> None:
    """A real command with odd values, run in a folder of its own."""
    inside = _inside()
    log = inside / "log.tsv"
    if not log.exists():
        log.write_text("user\tquery\turl\n" + "".join(f"u{i}\tq{i % 3}\thttp://a.example\n" for i in range(60)))
    if not (inside / "release").exists():
        write_release(inside / "release")
    picks = iter(data[1:] + bytes(16))
    fill: dict[str, Callable[[], str]] = {
        "LOG": lambda: "log.tsv",
        "RELEASE": lambda: "release",
        "N": lambda: NUMBERS[next(picks) % len(NUMBERS)],
        "Q": lambda: CANARY,  # the caller's own query may come back in a message
        "W": lambda: (WORDS + NUMBERS)[next(picks) % len(WORDS + NUMBERS)],
    }
    template = TEMPLATES[(data[0] if data else 0) % len(TEMPLATES)]
    run([fill[word]() if word in fill else word for word in template])


FILES = [
    ["plan", "--profile", "FILE", "--runs", "1", "--users", "1000", "--json"],
    ["aggregate", "reports.bin", "--head-list", "FILE", "--task", "00" * 16, "--round", "1"],
    ["task", "create", CANARY, "--data-dir", "data", "--settings", "FILE"],
    ["ledger", "show", "FILE"],
    ["ledger", "check", "FILE"],
    ["ledger", "export", "FILE"],
    ["release", "verify", "DAMAGED"],
    ["graph", "keywords", "DAMAGED", "--seed-domain", "shoes.example"],
    ["release", "review", "RELEASE", "--terms", "FILE"],
    ["graph", "study", "RELEASE", "--pattern", "(.+)", "--categories", "FILE", "--stop", "FILE"],
    ["graph", "keywords", "RELEASE", "--seeds", "FILE"],
]


def file_of_command(data: bytes) -> None:
    """A real command on a damaged file; a release keeps its tables and gets another statement."""
    inside = _inside()
    if not (inside / "release").exists():
        write_release(inside / "release")
    if not (inside / "damaged").exists():
        shutil.copytree(inside / "release", inside / "damaged")
    (inside / "reports.bin").write_bytes(SystemRandomness().take(200))
    written("inside/FILE", data[1:])
    template = FILES[(data[0] if data else 0) % len(FILES)]
    if "DAMAGED" in template:
        (inside / "damaged" / "statement.json").write_bytes(data[1:])
    names = {"DAMAGED": "damaged", "RELEASE": "release"}
    run([names.get(word, word) for word in template])


def seeds() -> dict[str, list[bytes]]:
    inside = _inside()
    if not (inside / "release").exists():
        write_release(inside / "release")
    statement = (inside / "release" / "statement.json").read_bytes()
    run(["ledger", "cap", "seed.ledger", "--lifetime", "4,1e-5"])
    result = {"groups": {"optin_users": 50, "clients": 900}, "queries": [{"query": CANARY, "probability": 0.5}]}
    texts = [
        json.dumps(result).encode(),
        b'{"format":"searchblend-headlist"}',
        b'{"epsilon":1,"delta":1e-6}',
        *[(inside / "seed.ledger").read_bytes()] * 3,
        statement,
        statement,
        f"{CANARY}\nterm\n".encode(),
        f"term,category\n{CANARY},x\n".encode(),
        f"class,url\na,http://{CANARY}.example\n".encode(),
    ]
    return {
        "arguments": [bytes(range(20)), bytes([0, 200] * 6), b"\x01\x10" * 8],
        "command": [bytes([number, *range(12)]) for number in range(len(TEMPLATES))],
        "file_of_command": [bytes([number]) + text for number, text in enumerate(texts)],
    }


TARGETS = {job.__name__: job for job in (arguments, command, file_of_command)}
