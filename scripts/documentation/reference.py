"""The parts of the reference that are read off the code: commands, API, settings. Nothing here is written by hand."""

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
from typing import Any, Final

import searchblend
from searchblend.cli.parser import build_parser
from searchblend.device.policy import POLICY, Policy
from searchblend.service.settings import PREFIX, ServeSettings
from searchblend.service.task_settings import TaskSettings
from searchblend.store.schema import GRANTS

_AREAS: Final = {
    "privacy": "Words everybody uses",
    "params": "Words everybody uses",
    "records": "Words everybody uses",
    "normalization": "Words everybody uses",
    "randomness": "Words everybody uses",
    "logs": "Logs",
    "blender": "Hybrid runs",
    "search": "Local search",
    "device": "On a device",
    "clickgraph": "Click graphs",
    "wire": "Click graphs",
    "head_list": "Hybrid runs",
    "releases": "Releases",
    "synthetic": "Plans",
    "store": "Releases",
    "accounting": "Releases",
    "errors": "Errors",
}
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


def command_reference() -> str:
    root = build_parser()
    return "\n\n".join(_command(parser) for parser in commands(root) if parser is not root)


def _command(parser: argparse.ArgumentParser) -> str:
    depth = parser.prog.count(" ")
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    wrapped = textwrap.fill(usage, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    parts = [f"{'#' * (depth + 1)} {parser.prog}", _prose(parser.description or ""), f"```text\n{wrapped}\n```"]
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


def api_reference() -> str:
    parts: list[str] = []
    for area in dict.fromkeys(map(_area, searchblend.__all__)):
        names = [name for name in searchblend.__all__ if _area(name) == area]
        parts.append(f"## {area}")
        parts += [_entry(name, getattr(searchblend, name)) for name in names]
    return "\n\n".join(parts)


def _area(name: str) -> str:
    parts = searchblend._MODULE_OF[name].split(".")[1:]
    return next(_AREAS[part] for part in reversed(parts) if part in _AREAS)


def _entry(name: str, value: Any) -> str:
    if inspect.isfunction(value):
        body = [_signature(name, _definition(value)), documentation(value)]
    elif inspect.isclass(value):
        body = _class(name, value)
    else:
        body = [documentation(type(value))]
    home = f"`{searchblend._MODULE_OF[name]}`"
    return "\n\n".join([f"### {name}", *(part for part in body if part), f"Defined in {home}."])


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
    return f"```python\n{line}\n```"


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
    "commands": command_reference,
    "api": api_reference,
    "serve-settings": serve_settings,
    "task-settings": task_settings,
    "device-policy": device_policy,
    "database-grants": database_grants,
}
"""what a page can ask for by ``<!-- generated: NAME -->``"""
