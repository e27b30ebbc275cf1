"""The parts of the reference that are read off the code: commands, API, settings. Nothing here is written by hand.

    python scripts/documentation/reference.py

writes the pages of docs/reference; a test compares them with the code.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import enum
import functools
import inspect
import itertools
import re
import textwrap
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import searchblend
from searchblend.cli.parser import GROUPS, build_parser
from searchblend.device.policy import POLICY, Policy
from searchblend.service.settings import PREFIX, ServeSettings
from searchblend.service.task_settings import TaskSettings
from searchblend.store.schema import GRANTS

ROOT: Final = Path(__file__).parents[2]
_AREAS: Final = {
    "core": "Common types",
    "logs": "Hybrid runs",
    "blender": "Hybrid runs",
    "blender.paper": "Steps of a hybrid run",
    "blender.best": "Steps of a hybrid run",
    "wire.head_list": "Steps of a hybrid run",
    "releases": "Releases",
    "synthetic": "Plans",
    "releases.session": "Budgets",
    "store": "Budgets",
    "accounting": "Budgets",
    "search": "Local search",
    "clickgraph.release": "Releasing a click graph",
    "clickgraph.use": "Using a click graph",
    "wire.click_graph_files": "Using a click graph",
    "core.errors": "Errors",
    "store.errors": "Errors",
}
"""Beginning of a module's name → the page of its public names; the longest beginning counts"""
_WRITTEN: Final = "<!-- written by make reference: do not edit -->"
_PART: Final = re.compile(r"<!-- generated: ([\w-]+) -->\n.*?<!-- end of \1 -->", re.DOTALL)
_WIDEST_SIGNATURE: Final = 96
_Function = ast.FunctionDef | ast.AsyncFunctionDef


# Commands


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser and all of its sub-commands, depth first, in the order of ``--help``."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from commands(child)


def options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What a command takes, without sub-commands, ``--help`` and what is hidden on purpose."""
    return [
        action
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        and action.help != argparse.SUPPRESS
    ]


def hidden_options(parser: argparse.ArgumentParser) -> list[str]:
    return [
        f"{command.prog} {action.option_strings[-1]}"
        for command in commands(parser)
        for action in command._actions
        if action.help == argparse.SUPPRESS and action.option_strings
    ]


def command_pages() -> dict[str, str]:
    """Command → its page, with all of its sub-commands."""
    (children,) = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: "\n\n".join(map(_command, commands(child))) for name, child in children.choices.items()}


def command_tables() -> str:
    """All commands in the groups of ``--help``, each with a link to its page."""
    parts = []
    for group, summaries in GROUPS.items():
        rows = [_row(f"[`searchblend {name}`](cli/{name}.md)", _prose(text)) for name, text in summaries.items()]
        parts += [f"## {group}", "\n".join(["| command | what it does |", "|---|---|", *rows])]
    return "\n\n".join(parts)


def _command(parser: argparse.ArgumentParser) -> str:
    depth = parser.prog.count(" ")
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    wrapped = textwrap.fill(usage, 88, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    parts = [f"{'#' * depth} {parser.prog}", _prose(parser.description or ""), f"```text\n{wrapped}\n```"]
    rows = [_option(action) for action in options(parser)]
    if rows:
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]))
    if parser.epilog:
        parts.append(f"```text\n{parser.epilog.rstrip()}\n```")
    return "\n\n".join(part for part in parts if part)


def _option(action: argparse.Action) -> str:
    value = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
    value = value if isinstance(value, str) else " ".join(value)
    if not action.option_strings:
        name = value
    else:
        name = ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")
    notes = ["**required**"] if action.option_strings and action.required else []
    if action.choices and action.metavar:
        notes.append(f"one of {', '.join(f'`{choice}`' for choice in action.choices)}")
    if isinstance(action, argparse._AppendAction):
        notes.append("repeatable")
    text = action.help or ""
    repeated = {"repeatable"} if "repeatable" in text else set()
    return _row(f"`{_cell(name)}`", _prose("; ".join([text, *(note for note in notes if note not in repeated)])))


# API


def api_pages() -> dict[str, str]:
    """Area → its page, with all of its public names."""
    return {
        area: "\n\n".join([f"# {area}", *(_entry(name, getattr(searchblend, name)) for name in names)])
        for area, names in _names_by_area().items()
    }


def api_table() -> str:
    """All public names by area, each with a link to its place."""
    rows = [
        _row(f"[{area}](api/{_slug(area)}.md)", ", ".join(f"[`{n}`](api/{_slug(area)}.md#{n.lower()})" for n in names))
        for area, names in _names_by_area().items()
    ]
    return "\n".join(["| page | names |", "|---|---|", *rows])


def _names_by_area() -> dict[str, list[str]]:
    areas = dict.fromkeys(map(_area, searchblend.__all__))
    return {area: [name for name in searchblend.__all__ if _area(name) == area] for area in areas}


def _area(name: str) -> str:
    module = searchblend._MODULE_OF[name].removeprefix("searchblend.")
    return _AREAS[max((begin for begin in _AREAS if f"{module}.".startswith(f"{begin}.")), key=len)]


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _entry(name: str, value: Any) -> str:
    if inspect.isfunction(value):
        body = [_signature(name, _definition(value)), documentation(value)]
    elif inspect.isclass(value):
        body = _class(name, value)
    else:
        body = [documentation(type(value))]
    home = f"`{searchblend._MODULE_OF[name]}`"
    return "\n\n".join([f"## {name}", *(part for part in body if part), f"Defined in {home}."])


def documentation(value: object) -> str:
    """The docstring as Markdown; what ``dataclass`` writes by itself does not count as one."""
    text = getattr(value, "__doc__", None) or ""
    written_for = f"{getattr(value, '__name__', '')}("
    return "" if inspect.isclass(value) and text.startswith(written_for) else _docstring(text)


def _class(name: str, value: type) -> list[str]:
    parts = [documentation(value)]
    if issubclass(value, enum.Enum):
        rows = [_row(f"`{member.name}`", _prose(str(member.value))) for member in value]
        return [*parts, "\n".join(["| member | meaning |", "|---|---|", *rows])]
    if issubclass(value, Exception):
        parents = " → ".join(f"`{parent.__name__}`" for parent in value.__mro__[1:-2])
        return [*parts, f"A kind of {parents}."]
    if dataclasses.is_dataclass(value):
        parts.append(_fields(value))
    elif isinstance(init := vars(value).get("__init__"), type(_fields)):
        parts.append(_signature(name, _definition(init), skip_self=True))
    return [*parts, *(_member(member, found, text) for member, (found, text) in members(value).items())]


def members(value: type) -> dict[str, tuple[object, str]]:
    """The public methods and properties of a class, each with its text.

    A class that does all that an exported protocol asks for need not say again what the protocol says.
    """
    kinds = property | functools.cached_property | classmethod | staticmethod
    found = {
        name: member
        for name, member in vars(value).items()
        if not name.startswith("_") and (isinstance(member, kinds) or inspect.isfunction(member))
    }
    protocols = [
        protocol
        for protocol in map(searchblend.__getattr__, searchblend.__all__)
        if getattr(protocol, "_is_protocol", False) and protocol is not value and _does(value, protocol)
    ]
    return {name: (member, _told(name, [value, *protocols])) for name, member in found.items()}


def _does(value: type, protocol: type) -> bool:
    return all(hasattr(value, name) for name in vars(protocol) if not name.startswith("_"))


def _told(name: str, sources: list[type]) -> str:
    texts = [documentation(vars(source).get(name)) for source in sources if name in vars(source)]
    return next((text for text in texts if text), "")


def _fields(value: type) -> str:
    told = attribute_docs(value)
    rows = []
    for field in dataclasses.fields(value):
        if field.name.startswith("_"):
            continue
        default = "" if field.default is dataclasses.MISSING else f"`{_cell(repr(field.default))}`"
        rows.append(_row(f"`{field.name}`", f"`{_cell(_type(field.type))}`", default, _prose(told.get(field.name, ""))))
    return "\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *rows]) if rows else ""


def _type(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _member(name: str, found: object, text: str) -> str:
    getter = found.fget if isinstance(found, property) else getattr(found, "func", None)
    if getter is not None:
        returns = _definition(getter).returns
        return f"**`.{name}`**{f' → `{ast.unparse(returns)}`' if returns else ''}\n\n{text}".rstrip()
    function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
    assert inspect.isfunction(function)
    signature = _signature(f".{name}", _definition(function), skip_self=not isinstance(found, staticmethod))
    return f"{signature}\n\n{text}".rstrip()


def _definition(function: Callable[..., Any]) -> _Function:
    node = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    assert isinstance(node, _Function)
    return node


def _signature(name: str, node: _Function, *, skip_self: bool = False) -> str:
    arguments = ast.parse(f"def f({ast.unparse(node.args)}): ...").body[0].args  # type: ignore[attr-defined]
    if skip_self:
        del arguments.args[0]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    line = f"{name}({ast.unparse(arguments)}){returns}"
    if len(line) > _WIDEST_SIGNATURE:
        tree = ast.unparse(arguments)
        line = f"{name}(\n    " + ",\n    ".join(_split(tree)) + f",\n){returns}"
    return f"```py\n{line}\n```"  # not ``python``: a signature is no program to run


def _split(arguments: str) -> list[str]:
    """Arguments one by one: commas inside brackets do not count."""
    parts, depth = [""], 0
    for letter in arguments:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def attribute_docs(value: type) -> dict[str, str]:
    """The texts that stand below the fields of a class."""
    told: dict[str, str] = {}
    for parent in reversed(value.__mro__[:-1]):
        if parent.__module__.startswith("searchblend"):
            body = ast.parse(textwrap.dedent(inspect.getsource(parent))).body[0].body  # type: ignore[attr-defined]
            for node, following in itertools.pairwise(body):
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    text = following.value if isinstance(following, ast.Expr) else None
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        told[node.target.id] = inspect.cleandoc(text.value)
    return told


# Settings


def serve_flags() -> dict[str, argparse.Action]:
    serve = next(parser for parser in commands(build_parser()) if parser.prog == "searchblend serve")
    return {action.dest: action for action in options(serve)}


def serve_settings() -> str:
    flags, told = serve_flags(), attribute_docs(ServeSettings)
    rows = []
    for field in dataclasses.fields(ServeSettings):
        flag = flags[field.name]
        names = [field.name, f"{PREFIX}{field.name.upper()}", flag.option_strings[-1]]
        meaning = max(flag.help or "", told.get(field.name, ""), key=len)
        rows.append(_row("<br>".join(f"`{name}`" for name in names), _default(field.default), _prose(meaning)))
    return "\n".join(["| file, environment, flag | default | meaning |", "|---|---|---|", *rows])


def task_settings() -> str:
    told, types = attribute_docs(TaskSettings), typing.get_type_hints(TaskSettings)
    rows = [
        _row(f"`{name}`", f"`{types[name].__name__}`", _default(field.default), _prose(told.get(name, "")))
        for name, field in ((field.name, field) for field in dataclasses.fields(TaskSettings))
    ]
    return "\n".join(["| setting | type | default | meaning |", "|---|---|---|---|", *rows])


def device_policy() -> str:
    told = attribute_docs(Policy)
    rows = [
        _row(f"`{field.name}`", f"`{getattr(POLICY, field.name):,}`", _prose(told.get(field.name, "")))
        for field in dataclasses.fields(Policy)
    ]
    return "\n".join(["| limit | value | meaning |", "|---|---|---|", *rows])


def database_grants() -> str:
    rows = [
        _row(f"`{role}`", "<br>".join(f"`{table}`: {', '.join(rights)}" for table, rights in sorted(tables.items())))
        for role, tables in GRANTS.items()
    ]
    return "\n".join(["| role | rights by table |", "|---|---|", *rows])


def _default(value: object) -> str:
    if value is dataclasses.MISSING:
        return "**required**"
    if value == "":
        return "–"
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{_cell(shown)}`"


# Text


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _prose(text: str) -> str:
    return _cell(_code(text)).strip()


def _code(text: str) -> str:
    """Docstrings mark code with two backticks; angle brackets and stars of plain text are not markup."""
    parts = re.split(r"(``[^`]+``|`[^`]+`)", text)
    return "".join(
        f"`{part.strip('`')}`" if index % 2 else part.replace("<", "&lt;").replace("%%", "%")
        for index, part in enumerate(parts)
    )


def _docstring(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(p if p.startswith("    ") else _code(p) for p in paragraphs)


PARTS: Final[dict[str, Callable[[], str]]] = {
    "commands": command_tables,
    "api": api_table,
    "serve-settings": serve_settings,
    "task-settings": task_settings,
    "device-policy": device_policy,
    "database-grants": database_grants,
}
"""what pages have between ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``"""


def fill(text: str) -> str:
    """A page with its generated parts as the code is now."""
    return _PART.sub(
        lambda found: f"<!-- generated: {found[1]} -->\n{PARTS[found[1]]()}\n<!-- end of {found[1]} -->", text
    )


def pages() -> dict[Path, str]:
    """Every page of docs/reference that is read off the code, as it has to be."""
    folder = ROOT / "docs/reference"
    written = {
        **{folder / "cli" / f"{name}.md": text for name, text in command_pages().items()},
        **{folder / "api" / f"{_slug(area)}.md": text for area, text in api_pages().items()},
    }
    filled = {path: fill(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.md"))}
    return {path: f"{text}\n\n{_WRITTEN}\n" for path, text in written.items()} | filled


def write() -> None:
    for path in [*(ROOT / "docs/reference/cli").glob("*.md"), *(ROOT / "docs/reference/api").glob("*.md")]:
        path.unlink()
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
