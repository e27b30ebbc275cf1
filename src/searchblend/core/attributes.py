"""What is declared of a search besides its query: a country, a device, a rank; each with a public list of values.

A value is never taken from a log. Whatever is not declared counts as ``other``, so that which cells exist says nothing
about anyone, and how a field is read depends on that field and the declaration alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from searchblend.core.errors import InvalidParameter

OTHER: Final = "other"
"""the value of all that is not declared"""
OF_SEARCHES: Final = "searches"
OF_CLICKS: Final = "clicks"
MOST_VALUES: Final = 300
MOST_ATTRIBUTES: Final = 8
BLANKS: Final = " \t\n\v\f\r"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})?")
_WHOLE: Final = re.compile(r"[0-9]{1,9}")
_TAKEN: Final = frozenset(
    {"user", "query", "url", "time", "suggestion", "optin", "next_query", "kind"}
    | {"count", "count_clamped", "estimate", "lo95", "hi95"}
)
"""what columns of logs and released tables are called already"""
_LOWER: Final = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


@dataclass(frozen=True)
class Attribute:
    """One attribute and its values.

    A field has the value that it spells, blanks at its ends and the case of ASCII letters aside. If it spells none and
    is a whole number, it has the first value that is a range with it: ``4-10``, or ``11-`` without an end.
    """

    name: str
    """also of its column, if that is not said otherwise"""
    values: tuple[str, ...]
    """without ``other``"""
    of: str = OF_SEARCHES
    """``searches``, and the clicks on their results; or ``clicks`` alone, such as the rank of what was clicked"""
    column: str = ""
    """of the log"""

    def __post_init__(self) -> None:
        field = f"attributes.{self.name}" if isinstance(self.name, str) and self.name else "attributes"
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidParameter(
                "attributes", f"expected a name of small letters, digits and _ that begins with a letter: {self.name!r}"
            )
        if self.name in _TAKEN:
            raise InvalidParameter(field, "this name is taken; give the attribute another, and its column in a file")
        if self.of not in (OF_SEARCHES, OF_CLICKS):
            raise InvalidParameter(field, f"expected of = {OF_SEARCHES} or {OF_CLICKS}, found {self.of!r}")
        object.__setattr__(self, "column", self.column or self.name)
        object.__setattr__(self, "values", self._checked(field))

    def _checked(self, field: str) -> tuple[str, ...]:
        given: Any = self.values  # of a file or a statement: anything
        if not isinstance(given, list | tuple):
            raise InvalidParameter(field, "expected a list of values")
        if not all(isinstance(value, str) for value in given):
            raise InvalidParameter(field, "expected values that are strings, in quotes")
        values = tuple(spelled(value) for value in given)
        if not values or not all(values):
            raise InvalidParameter(field, "expected at least one value, and none that is empty")
        if OTHER in values:
            raise InvalidParameter(field, f"'{OTHER}' is the value of all that is not declared: leave it out")
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise InvalidParameter(field, f"the value '{twice}' is declared twice")
        if not all(value.isprintable() for value in values):
            raise InvalidParameter(field, "expected values of printable characters")
        backwards = next((value for value in values if (one := _RANGE.fullmatch(value)) and _is_backwards(one)), None)
        if backwards is not None:
            raise InvalidParameter(field, f"the range '{backwards}' ends before it begins")
        if len(values) > MOST_VALUES:
            raise InvalidParameter(field, f"expected at most {MOST_VALUES} values, found {len(values)}")
        return values

    @property
    def size(self) -> int:
        """How many values there are, ``other`` among them."""
        return len(self.values) + 1

    @property
    def labels(self) -> tuple[str, ...]:
        """All values in the order of their numbers; ``other`` is the last."""
        return (*self.values, OTHER)

    @cached_property
    def ranges(self) -> list[tuple[int, int, int | None]]:
        """Number of the value, first and last whole number of those that are ranges."""
        found = [(number, _RANGE.fullmatch(value)) for number, value in enumerate(self.values)]
        return [(number, int(one[1]), int(one[2]) if one[2] else None) for number, one in found if one]

    def number_of(self, field: str | None) -> int:
        """The number of the value that a field has. ``duckdb.activity.attribute_of`` is the same rule as SQL."""
        spelling = spelled(field or "")
        if spelling in self.values:
            return self.values.index(spelling)
        if _WHOLE.fullmatch(spelling):
            whole = int(spelling)
            for number, first, last in self.ranges:
                if first <= whole and (last is None or whole <= last):
                    return number
        return len(self.values)


def _is_backwards(found: re.Match[str]) -> bool:
    return bool(found[2]) and int(found[2]) < int(found[1])


def spelled(field: str) -> str:
    """A field as it is compared."""
    return field.strip(BLANKS).translate(_LOWER)


def cells_of(attributes: Iterable[Attribute]) -> int:
    """How many combinations of values there are."""
    return math.prod(attribute.size for attribute in attributes)


def check_attributes(attributes: Sequence[Attribute]) -> None:
    """``InvalidParameter`` if these cannot stand beside each other."""
    if len(attributes) > MOST_ATTRIBUTES:
        raise InvalidParameter("attributes", f"expected at most {MOST_ATTRIBUTES}, found {len(attributes)}")
    for field in ("name", "column"):
        given = [getattr(attribute, field) for attribute in attributes]
        twice = next((one for one in given if given.count(one) > 1), None)
        if twice is not None:
            raise InvalidParameter("attributes", f"two of them have the {field} '{twice}'")


def parse_attributes(text: str) -> tuple[Attribute, ...]:
    """``country=de|fr|at,device=phone|desktop,clicks.rank=1|2|3-10``; ``clicks.`` is for clicks alone."""
    attributes = []
    for part in text.split(","):
        name, equals, values = part.partition("=")
        scope, point, of_clicks = name.strip().partition(".")
        if not equals or (point and scope != OF_CLICKS):
            raise InvalidParameter(
                "attributes",
                "expected NAME=VALUE|VALUE,…, clicks.NAME=… for clicks alone, or a file that ends in .toml",
            )
        kind = OF_CLICKS if point else OF_SEARCHES
        attributes.append(Attribute(of_clicks if point else scope, tuple(values.split("|")), kind))
    check_attributes(attributes)
    return tuple(attributes)


def declared_attributes(document: Mapping[str, Any]) -> tuple[Attribute, ...]:
    """Of a file: a table for each attribute, with ``values``, and perhaps ``of`` and ``column``."""
    attributes = []
    for name, entry in document.items():
        known = {"values", "of", "column"}
        if not isinstance(entry, Mapping) or "values" not in entry or not set(entry) <= known:
            raise InvalidParameter(f"attributes.{name}", "expected a table with values, and perhaps of and column")
        if not all(isinstance(entry.get(key, ""), str) for key in ("of", "column")):
            raise InvalidParameter(f"attributes.{name}", "expected strings as of and column")
        attributes.append(Attribute(name, entry["values"], entry.get("of", OF_SEARCHES), entry.get("column", "")))
    if not attributes:
        raise InvalidParameter("attributes", "expected at least one attribute")
    check_attributes(attributes)
    return tuple(attributes)
