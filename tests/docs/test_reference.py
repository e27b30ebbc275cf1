"""Nothing that people can use is undocumented: options, names of the API, settings, error types."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import math
import re
from pathlib import Path

import pytest
import reference

import searchblend
from searchblend.cli.parser import build_parser
from searchblend.device.policy import Policy
from searchblend.service.settings import ServeSettings
from searchblend.service.task_settings import TaskSettings
from searchblend.wire.problems import PROBLEMS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/searchblend"
HIDDEN = {
    "searchblend release plan --population",  # old spellings
    "searchblend release review --head",
    "searchblend release run --people",
    "searchblend serve --people",
    "searchblend release run --seed",  # there to be refused with a reason
    "searchblend serve --demo-server",  # how the demo starts its own server
    "searchblend serve --end-with-input",  # and makes sure that it ends
}
ERRORS = (ROOT / "docs/reference/errors.md").read_text()


def silent_options(parser: argparse.ArgumentParser) -> list[str]:
    """Options without a help text, commands without a description or examples."""
    found = []
    for command in reference.commands(parser):
        found += [f"{command.prog} {action.dest}" for action in reference.options(command) if not action.help]
        if command is not parser and not (command.description and "examples:" in (command.epilog or "")):
            found.append(command.prog)
    return found


def test_every_option_has_a_help_text_and_every_command_examples():
    assert silent_options(build_parser()) == []


def test_the_check_sees_a_silent_option_and_a_silent_command():
    parser = argparse.ArgumentParser(prog="p")
    command = parser.add_subparsers().add_parser("c")
    command.add_argument("--told", help="something")
    command.add_argument("--silent")
    assert silent_options(parser) == ["p c silent", "p c"]


def test_no_option_is_hidden_but_those_that_nobody_should_use():
    assert set(reference.hidden_options(build_parser())) == HIDDEN


def test_every_command_and_option_is_in_the_reference():
    text = "\n".join(reference.command_pages().values())
    for command in reference.commands(build_parser()):
        if " " in command.prog:
            section = re.search(rf"^#+ {re.escape(command.prog)}$(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
            assert section, command.prog
            names = [name for action in reference.options(command) for name in action.option_strings]
            assert [name for name in names if name not in section[1]] == []


def silent_names(names: list[str]) -> list[str]:
    """Exported names, and public methods and properties of exported classes, that do not say what they are."""
    found = []
    for name in names:
        value = getattr(searchblend, name)
        told = value if inspect.isfunction(value) or inspect.isclass(value) else type(value)
        found += [] if reference.documentation(told) else [name]
        if inspect.isclass(value):
            found += [f"{name}.{member}" for member, (_, text) in reference.members(value).items() if not text]
    return found


def test_every_public_name_has_a_docstring():
    assert silent_names(searchblend.__all__) == []


def test_the_check_sees_a_class_and_a_method_without_a_docstring(monkeypatch):
    @dataclasses.dataclass
    class Silent:
        field: int

        def method(self) -> int:
            return self.field

    monkeypatch.setattr(searchblend, "Silent", Silent, raising=False)
    assert silent_names(["Silent"]) == ["Silent", "Silent.method"]


def callables() -> dict[str, object]:
    """What people call to release, save, draw and keep account: functions, and methods of the session."""
    begin, homes = {"read_log", "run_blender", "release_data"}, {"releases", "synthetic"}
    names = [name for name, module in searchblend._MODULE_OF.items() if module.split(".")[1] in homes or name in begin]
    functions = {name: value for name in names if inspect.isfunction(value := getattr(searchblend, name))}
    session = searchblend.Session
    return {**functions, **{f"Session.{name}": getattr(session, name) for name in ("run", "release", "select_values")}}


def test_what_people_call_has_an_example_of_names_that_exist():
    for name, function in callables().items():
        example = re.search(r"Example:\n\s+``(.+)``", inspect.getdoc(function) or "")
        assert example, name
        for node in ast.walk(ast.parse(example[1])):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sb":
                assert node.attr in searchblend.__all__, name
    assert len(callables()) >= 12


def test_every_argument_of_a_session_is_explained():
    for name, function in callables().items():
        if name.startswith(("Session.", "plan_", "select_values")):
            text = inspect.getdoc(function) or ""
            told = re.findall(r"^    (\w+): ", text, re.MULTILINE)
            assert told == [p for p in inspect.signature(function).parameters if p != "self"], name


def test_every_public_name_is_in_the_reference():
    text = "\n".join(reference.api_pages().values())
    assert [name for name in searchblend.__all__ if f"\n## {name}\n" not in text] == []
    assert "## SearchIndex" in text
    assert "<function" not in text
    assert "0x" not in text


def test_every_setting_of_a_server_is_a_documented_flag():
    flags = reference.serve_flags()
    fields = [field.name for field in dataclasses.fields(ServeSettings)]
    assert [name for name in fields if name not in flags or not flags[name].help] == []
    table = reference.serve_settings()
    assert [name for name in fields if f"| `{name}`<br>`SEARCHBLEND_{name.upper()}`<br>`--" not in table] == []


@pytest.mark.parametrize(("kind", "part"), [(TaskSettings, "task-settings"), (Policy, "device-policy")])
def test_every_setting_of_a_task_and_limit_of_a_device_says_what_it_is(kind: type, part: str):
    told = reference.attribute_docs(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    assert [name for name in fields if not told.get(name)] == []
    table = reference.PARTS[part]()
    assert [name for name in fields if f"| `{name}` |" not in table] == []


def test_the_pages_of_the_repository_are_what_the_code_says():
    """A reader of the repository has the reference, too, and not only a reader of the site."""
    folder = ROOT / "docs/reference"
    stale = [str(path) for path, text in reference.pages().items() if not path.exists() or path.read_text() != text]
    assert stale == [], "run: make reference"
    assert {*folder.glob("cli/*.md"), *folder.glob("api/*.md")} <= set(reference.pages())


def test_a_part_is_filled_anew_and_what_is_around_it_stays():
    page = "before\n<!-- generated: device-policy -->\nwas here before\n<!-- end of device-policy -->\nafter\n"
    filled = reference.fill(page)
    assert "was here before" not in filled
    assert filled.startswith("before\n<!-- generated: device-policy -->\n| limit |")
    assert filled.endswith("|\n<!-- end of device-policy -->\nafter\n")


def test_every_generated_part_is_on_a_page():
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    assert [name for name in reference.PARTS if f"<!-- generated: {name} -->" not in pages] == []


def test_the_code_map_names_every_folder_with_its_level():
    """The map in ARCHITECTURE.md and the import rule's table are about the same folders."""
    (table,) = [
        ast.literal_eval(node.value)
        for node in ast.parse((ROOT / "tests/architecture/test_imports.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LEVELS"
    ]
    # files/ is what the rooms of level 3 write with: below them in the table, among them on the map
    levels = {name: math.ceil(level) for level, names in table.items() for name in names if (SOURCE / name).is_dir()}
    mapped = re.findall(r"^(\w+)/ +L(\d) ", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    assert {name: int(level) for name, level in mapped} == levels


def error_types() -> set[str]:
    """Every class of the package whose base is one of its errors, read from the source."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    found = {"SearchblendError"}
    while new := {name for name, parents in bases.items() if parents & found} - found:
        found |= new
    return {name for name in found if not name.startswith("_")}


def table_rows(text: str) -> dict[str, list[str]]:
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in rows}


def test_every_error_type_is_documented_with_what_to_do():
    program = table_rows(ERRORS.split("## Of the service")[0])
    assert set(program) == error_types()
    assert all(len(row) == 2 and all(cell.strip() for cell in row) for row in program.values())


def test_every_refusal_of_the_service_is_documented_with_what_to_do():
    service = table_rows(ERRORS.split("## Of the service")[1])
    assert {name: row[0] for name, row in service.items()} == {n: str(p.status) for n, p in PROBLEMS.items()}
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in service.values())


def test_the_protocol_page_has_every_refusal_too():
    protocol = (ROOT / "docs/reference/protocol.md").read_text()
    stated = dict(re.findall(r"\| `([a-z-]+)` \| (\d{3})", protocol))
    assert stated == {name: str(problem.status) for name, problem in PROBLEMS.items()}


def test_names_beside_the_papers_letters_exist():
    source = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    names = re.findall(r"`([A-Za-z_.]+)(?:\[q\])?`", (ROOT / "docs/reference/symbols.md").read_text())
    assert names
    words = {word for name in names for word in name.split(".") if word}
    assert sorted(word for word in words if not re.search(rf"\b{word}\b", source)) == []
