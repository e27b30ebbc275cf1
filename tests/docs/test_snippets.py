"""The documentation's snippets run, and print what they say. Docs that lie fail the build."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from made_click_graph import write_release

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SKIPPED_COMMANDS = ("make ", "spark-submit ")
PAGES = [
    "README.md",
    "docs/tutorial/first-release.md",
    "docs/tutorial/first-click-graph.md",
    "docs/how-to/choose-a-budget.md",
    "docs/how-to/evaluate-your-own.md",
    "docs/how-to/use-a-released-graph.md",
]
OWN_LOG = {"searches.tsv": "\t", "log.csv.gz": ","}


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        arguments, cwd=folder, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the logs that the pages call the reader's own."""
    run(["searchblend", "demo", "--users", "20000"], tmp_path)
    text = (tmp_path / "out/demo/log.tsv").read_text()
    (tmp_path / "searches.tsv").write_text(text)
    (tmp_path / "log.csv").write_text(text.replace("user\tquery\turl", "AnonID\tQuery\tClickURL").replace("\t", ","))
    run(["gzip", "log.csv"], tmp_path)
    return tmp_path


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text())


def commands(block: str) -> list[list[str]]:
    lines = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return [shlex.split(line, comments=True) for line in lines if not line.startswith(SKIPPED_COMMANDS)]


@pytest.mark.parametrize("page", PAGES)
def test_snippets_run_and_print_what_they_say(page: str, folder: Path):
    found = blocks(page)
    if page == "docs/how-to/use-a-released-graph.md":
        write_release(folder / "release")
    ran = 0
    for position, (language, block) in enumerate(found):
        if language == "console":
            for arguments in commands(block):
                arguments[0] = arguments[0].removeprefix(".venv/bin/")
                if "-o" in arguments and arguments[arguments.index("-o") + 1] == "out":
                    arguments[arguments.index("-o") + 1] = f"out-{ran}"
                run(arguments, folder)
                ran += 1
        elif language == "python" and (file := re.match(r"# (\w+\.py)\n", block)):
            (folder / file[1]).write_text(block)  # a file of the reader's
        elif language == "python":
            printed = run([sys.executable, "-c", block], folder)
            following = found[position + 1] if position + 1 < len(found) else ("", "")
            if following[0] == "":
                assert printed == following[1]
            ran += 1
    assert ran


@pytest.mark.parametrize(
    "page",
    sorted(
        str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("proofs/*.md")]
    ),
)
def test_links_lead_somewhere(page: str):
    text = (ROOT / page).read_text()
    targets = re.findall(r"\]\(([^)#\s]+)\)", text)
    missing = [t for t in targets if not t.startswith("http") and not (ROOT / page).parent.joinpath(t).exists()]
    assert not missing


def test_commands_of_the_help_examples_parse():
    from searchblend.cli import evaluate_parser, graph_parser, parser, release_parser, serve_parser

    modules = (parser, graph_parser, evaluate_parser, release_parser, serve_parser)
    texts = [getattr(module, name) for module in modules for name in dir(module) if name.endswith("_EXAMPLES")]
    for line in (line for text in texts for line in text.splitlines()[1:]):
        command = re.split(r"\s{3,}| > ", line.strip())[0]
        parser.build_parser().parse_args(shlex.split(command)[1:])
