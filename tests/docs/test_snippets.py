"""The documentation's snippets run, and print what they say. Docs that lie fail the build."""

from __future__ import annotations

import gzip
import itertools
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import reference

import snippets
from made_click_graph import write_release
from newcomer import newcomer
from searchblend.cli.parser import build_parser
from searchblend.synthetic.generator import write_aol_like_log
from snippets import OTHER_LANGUAGES, ROOT, RUN, TOOLS, Block, Reader, blocks, pages, reader, unlisted_names

PLACEHOLDERS = {"TASK": "0" * 32}
NEWCOMERS: dict[str, dict[str, str]] = {
    "docs/tutorial/first-release.md": {
        "release/index.html": r"weather[^%]*\d %",
        "release/trends.csv": "weather,",
        "release/statement.json": "guarantee",
    },
    "docs/tutorial/first-click-graph.md": {
        "graph/queries.csv": "weather",
        "graph/statement.txt": "users",
        "graph.html": "weather",
        "synthetic.tsv": "weather",
    },
    "docs/tutorial/first-round.md": {},
}
"""tutorials, and what a reader has at their end"""


@pytest.fixture(scope="session")
def own_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs that the pages call the reader's own."""
    folder = tmp_path_factory.mktemp("own-files")
    write_aol_like_log(folder / "searches.tsv", 20_000, seed=1)
    text = (folder / "searches.tsv").read_text()
    changed = text.replace("user\tquery\turl", "AnonID\tQuery\tClickURL").replace("\t", ",")
    (folder / "log.csv.gz").write_bytes(gzip.compress(changed.encode(), 1))
    (folder / "visits.tsv").write_text("".join(visits(text)))
    return folder


def visits(text: str) -> Iterator[str]:
    """Some of the same searches with time, rank and attributes, as they follow from the number of the line."""
    yield "user\tquery\turl\ttime\trank\tcountry\tdevice\tresults\n"
    for number, line in enumerate(text.splitlines()[1:20_000]):
        day, country, device = 1 + number % 5, ("DE", "fr", "at", "it")[number % 4], ("phone", "desktop")[number % 2]
        rest = f"2026-03-{day:02} 10:00:00\t{1 + number % 12}\t{country}\t{device}\t{number % 10}"
        yield f"{line}\t{rest}\n"


@pytest.fixture
def folder(own_files: Path, tmp_path: Path) -> Path:
    """A reader's folder with logs of their own in it."""
    shutil.copytree(own_files, tmp_path, dirs_exist_ok=True)
    return tmp_path


def run_commands(block: Block, somebody: Reader) -> None:
    for words in block.commands:
        if words[0] in TOOLS and words[0] != "cp":
            continue
        somebody.type(words)


def run_program(block: Block, following: Block | None, somebody: Reader) -> None:
    if file := re.match(r"# (\w+\.py)\n", block.text):
        (somebody.folder / file[1]).write_text(block.text)  # a file of the reader's
        return
    printed = somebody.run(block.text)
    if following and following.language == "":
        assert printed == following.text


def follow(page: str, somebody: Reader) -> None:
    """Type everything that a page says, in its order."""
    found = blocks(page)
    for position, block in enumerate(found):
        if block.why_not_run:
            continue
        if block.language == "console":
            run_commands(block, somebody)
        elif block.language == "python":
            run_program(block, found[position + 1] if position + 1 < len(found) else None, somebody)


@pytest.mark.parametrize("page", [page for page in pages() if page not in NEWCOMERS])
def test_snippets_run_and_print_what_they_say(page: str, folder: Path):
    if page == "docs/how-to/use-a-released-graph.md":
        write_release(folder / "release")
    with reader(folder) as somebody:
        follow(page, somebody)


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page for page, ends in NEWCOMERS.items() if ends])
def test_a_newcomer_gets_from_the_readme_through_a_tutorial(page: str, tmp_path_factory, tmp_path: Path):
    """To the letter: README's install lines, then the page in an empty folder; the first round is clicked through by
    test_console_tutorial, after the same start."""
    follow(page, newcomer(tmp_path_factory, tmp_path))
    for name, content in NEWCOMERS[page].items():
        assert re.search(content, (tmp_path / name).read_text(encoding="utf-8")), name


def test_the_readme_has_a_door_for_each_tutorial():
    doors = (ROOT / "README.md").read_text().split("## How it works")[0]
    assert [page for page in NEWCOMERS if f"({page})" not in doors] == []
    assert sorted(NEWCOMERS) == sorted(page for page in pages() if page.startswith("docs/tutorial/"))


@pytest.mark.parametrize("page", pages())
def test_every_command_of_a_page_is_one_that_the_program_understands(page: str):
    parser = build_parser()
    for block in blocks(page):
        assert block.language in (*RUN, *OTHER_LANGUAGES), f"{page}: a block of {block.language!r} is never run"
        if block.language == "python":
            assert unlisted_names(block.text) == []
        for words in block.commands if block.language == "console" else []:
            if words[0] == "searchblend":
                own = itertools.takewhile(lambda word: word != "|", words[1:])  # a pipe leads to another program
                cut = [PLACEHOLDERS.get(word, word) for word in own]
                parser.parse_args([word for word in cut if word not in ("&",)])
            else:
                assert words[0] in TOOLS, f"{page}: {shlex.join(words)}"


@pytest.mark.parametrize(
    ("program", "unlisted"),
    [
        ("import searchblend as sb\nprint(sb.Budget(1.0, 0), sb.blender.method)", ["blender"]),
        ("import searchblend\nsearchblend.logs.read.read_log('x')", ["logs"]),
        ("import searchblend.logs", ["searchblend.logs"]),
        ("import json, searchblend as sb\nfrom searchblend.wire.consent import odds_words\njson.x, sb.read_log", []),
    ],
)
def test_a_module_that_a_program_has_not_imported_is_seen(program: str, unlisted: list[str]):
    assert unlisted_names(program) == unlisted


def test_a_program_has_nothing_of_the_one_before_it(tmp_path: Path):
    with reader(tmp_path) as somebody:
        assert somebody.run("x = 1\nprint(__name__, x)") == "__main__ 1\n"
        with pytest.raises(NameError):
            somebody.run("print(x)")


def test_blocks_with_a_mark_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "page.md").write_text("<!-- not run: because -->\n```console\n$ a b  # c\n```\n\n```python\nx\n```\n")
    monkeypatch.setattr(snippets, "ROOT", tmp_path)
    first, second = blocks("page.md")
    assert (first.why_not_run, first.commands) == ("because", [["a", "b"]])
    assert (second.why_not_run, second.language) == (None, "python")


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
    epilogs = {
        command.epilog for command in reference.commands(build_parser()) if "examples:" in (command.epilog or "")
    }
    lines = [line for text in epilogs for line in text.splitlines()[1:] if line.strip()]
    assert len(lines) > 60
    parser = build_parser()
    for line in lines:
        command = re.split(r"\s{3,}| > | \| ", line.strip())[0]
        parser.parse_args(shlex.split(command)[1:])
