"""Documents as classes: a frozen dataclass states its fields once; reading, writing and the JSON schema follow from it.

Standard library only, because devices read manifests with it. A refusal names the field and what was expected there,
and never repeats the value. Nothing is converted: a whole number is accepted where a float is asked for and stays one.
Fields that are not arguments of the class (``init=False``) are not part of the document.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from searchblend.core.errors import InvalidParameter, listed

JsonObject: TypeAlias = Mapping[str, Any]
"""a document whose fields are not fixed: the detail of an audit entry, a JSON schema, another version's settings"""
T = TypeVar("T")
_OMIT: Final = "left out if None"
_NAMES: Final[dict[type, tuple[str, str]]] = {
    str: ("string", "a string"),
    bool: ("boolean", "true or false"),
    int: ("integer", "a whole number"),
    float: ("number", "a number"),
}


@dataclass(frozen=True)
class Between:
    """A number in a closed interval."""

    least: int
    most: int

    def admits(self, value: Any) -> bool:
        return bool(self.least <= value <= self.most)

    @property
    def expected(self) -> str:
        return f"{self.least} to {self.most}"

    @property
    def schema(self) -> JsonObject:
        return {"minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Matching:
    """A string of a pattern, given without anchors."""

    pattern: str
    expected: str

    def admits(self, value: Any) -> bool:
        return re.fullmatch(self.pattern, value) is not None

    @property
    def schema(self) -> JsonObject:
        return {"pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True)
class OneOf:
    """One of a few strings."""

    choices: tuple[str, ...]

    def admits(self, value: Any) -> bool:
        return value in self.choices

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.choices)}"

    @property
    def schema(self) -> JsonObject:
        return {"enum": list(self.choices)}


Natural: TypeAlias = Annotated[int, Between(0, 2**53 - 1)]
Sha256: TypeAlias = Annotated[str, Matching("[0-9a-f]{64}", "64 hexadecimal digits")]


class Strict:
    """Base of documents in which a field that the class does not have is a mistake; elsewhere it is ignored."""


def absent() -> Any:
    """The default of a field that a document may lack; None is not written."""
    return field(default=None, metadata={_OMIT: True})


def decode(kind: type[T], document: object, *, where: str = "") -> T:
    """The document as an object of this class; ``InvalidParameter`` names the first field that does not fit.

    Fields that the class does not have are ignored, unless the class is ``Strict``. ``where`` is
    the path of the document within a larger one.
    """
    if isinstance(document, kind):
        return document
    if not isinstance(document, Mapping):
        raise InvalidParameter(where or _title(kind), "expected an object")
    plan = _plan(kind)
    if issubclass(kind, Strict) and (unknown := set(document) - set(plan)):
        raise InvalidParameter(where or _title(kind), f"unknown fields: {listed(sorted(map(str, unknown)))}")
    values = {}
    for name, reader in plan.items():
        path = f"{where}.{name}" if where else name
        if name in document:
            values[name] = reader.read(document[name], path)
        elif reader.required:
            raise InvalidParameter(path, f"expected {reader.expected}")
    return kind(**values)


def check(document: object) -> None:
    """Refuse an object with a field that its class would not have been read with; for ``__post_init__``."""
    for name, reader in _plan(type(document)).items():
        value = getattr(document, name)
        if value is not None or not reader.may_be_absent:
            reader.read(value, name)


def encode(document: Any) -> Any:
    """The document in the types that ``json`` writes."""
    if is_dataclass(document):
        pairs = ((each, getattr(document, each.name)) for each in fields(document) if each.init)
        return {each.name: encode(value) for each, value in pairs if value is not None or _OMIT not in each.metadata}
    if isinstance(document, Mapping):
        return {name: encode(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [encode(value) for value in document]
    return document


def schema_of(hint: Any, definitions: dict[str, JsonObject]) -> JsonObject:
    """The JSON schema of a class or of a field's type; classes are added to ``definitions`` and referred to."""
    if isinstance(hint, type) and is_dataclass(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # a class that holds itself refers to this entry
            definitions[hint.__name__] = _class_schema(hint, definitions)
        return {"$ref": f"#/components/schemas/{hint.__name__}"}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        rules = [each.schema for each in arguments[1:]]
        return {name: value for part in (schema_of(arguments[0], definitions), *rules) for name, value in part.items()}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(arm, definitions) for arm in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if origin in (dict, Mapping):
        inner = schema_of(arguments[1], definitions)
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [str(member) for member in hint]}
    if hint is type(None):
        return {"type": "null"}
    return {"type": _NAMES[hint][0]} if hint in _NAMES else {}


def _title(kind: type) -> str:
    """``TaskSettings`` as messages call it: task settings."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()


def _class_schema(kind: type, definitions: dict[str, JsonObject]) -> JsonObject:
    plan = _plan(kind)
    schema: dict[str, Any] = {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": {name: schema_of(reader.hint, definitions) for name, reader in plan.items()},
    }
    if required := [name for name, reader in plan.items() if reader.required]:
        schema["required"] = required
    if issubclass(kind, Strict):
        schema["additionalProperties"] = False
    return schema


Read = Callable[[Any, str], Any]


@dataclass(frozen=True)
class _FieldReader:
    """How one field is read."""

    hint: Any
    required: bool
    may_be_absent: bool
    expected: str
    read: Read


_PLANS: Final[dict[type, dict[str, _FieldReader]]] = {}


def _plan(kind: Any) -> dict[str, _FieldReader]:
    if kind not in _PLANS:
        hints = get_type_hints(kind, include_extras=True)
        _PLANS[kind] = {each.name: _field_reader(each, hints[each.name]) for each in fields(kind) if each.init}
    return _PLANS[kind]


def _field_reader(each: Field[Any], hint: Any) -> _FieldReader:
    may_be_absent = _OMIT in each.metadata
    if may_be_absent:  # the class has "or None", the document has no such field
        hint = next(arm for arm in get_args(hint) if arm is not type(None))
    required = each.default is MISSING and each.default_factory is MISSING
    return _FieldReader(hint, required, may_be_absent, *_reader(hint))


def _reader(hint: Any) -> tuple[str, Read]:
    """What is expected, in words, and the function that reads it or refuses."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _ruled(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin in (list, tuple, Sequence):
        return _list(arguments[0], tuple if origin is tuple else list)
    if origin in (dict, Mapping):
        return _mapping(arguments[1])
    if isinstance(hint, type) and is_dataclass(hint):
        return "an object", lambda value, path: decode(hint, value, where=path)
    if origin is Literal:
        return _choice(arguments, lambda value: value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice([str(member) for member in hint], hint)
    return _plain(hint)


def _plain(hint: Any) -> tuple[str, Read]:
    if hint is Any:
        return "a value", lambda value, path: value
    expected = _NAMES[hint][1]
    allowed = (int, float) if hint is float else (hint,)

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
            raise InvalidParameter(path, f"expected {expected}")
        return value

    return expected, read


def _choice(allowed: Sequence[str], convert: Callable[[str], Any]) -> tuple[str, Read]:
    expected = f"one of {', '.join(allowed)}"

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, str) or value not in allowed:
            raise InvalidParameter(path, f"expected {expected}")
        return convert(value)

    return expected, read


def _ruled(arguments: tuple[Any, ...]) -> tuple[str, Read]:
    base, read_base = _reader(arguments[0])
    rules = arguments[1:]
    expected = " ".join([base, *(f"({rule.expected})" for rule in rules)])

    def read(value: Any, path: str) -> Any:
        inner = read_base(value, path)
        for rule in rules:
            if not rule.admits(inner):
                raise InvalidParameter(path, f"expected {rule.expected}")
        return inner

    return expected, read


def _union(arms: tuple[Any, ...]) -> tuple[str, Read]:
    readers = [_reader(arm) for arm in arms if arm is not type(None)]
    may_be_null = type(None) in arms
    expected = " or ".join([name for name, _ in readers] + ["null"] * may_be_null)

    def read(value: Any, path: str) -> Any:
        if value is None and may_be_null:
            return None
        if len(readers) == 1:
            return readers[0][1](value, path)
        for _, read_arm in readers:
            try:
                return read_arm(value, path)
            except InvalidParameter:
                continue
        raise InvalidParameter(path, f"expected {expected}")

    return expected, read


def _list(inner: Any, collect: Callable[[list[Any]], Any]) -> tuple[str, Read]:
    inner_expected, read_inner = _reader(inner)
    expected = f"a list, each entry {inner_expected}"

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            raise InvalidParameter(path, f"expected {expected}")
        return collect([read_inner(each, f"{path}[{i}]") for i, each in enumerate(value)])

    return expected, read


def _mapping(inner: Any) -> tuple[str, Read]:
    _, read_inner = _reader(inner)

    def read(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise InvalidParameter(path, "expected an object")
        return {str(name): read_inner(each, f"{path}[…]") for name, each in value.items()}

    return "an object", read
