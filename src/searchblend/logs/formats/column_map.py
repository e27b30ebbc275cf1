"""Which column is which: the names we expect, or those that the caller says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from searchblend.core.errors import InvalidColumns, listed
from searchblend.logs.formats.layout import ROLES

NAMEABLE: Final = ROLES[:-1]
NO_HEADER: Final = "a log without one needs --format jsonl, yandex or excite"
_REQUIRED: Final = ("user", "query")


@dataclass(frozen=True)
class ColumnMap:
    """role → the name of its column in the files; what is not named here is called like its role.

    There are no suggestions unless their column is named: many logs list under this name what was merely shown.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    optin: str | None = None
    urls: bool = True
    """whether a column of URLs is looked at; without, a log is one of queries alone"""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.named) - set(NAMEABLE))
        if unknown:
            raise InvalidColumns(f"columns: expected names among {', '.join(NAMEABLE)}, found {', '.join(unknown)}")
        twice = sorted(role for role, name in self.named.items() if list(self.named.values()).count(name) > 1)
        if twice:
            raise InvalidColumns(f"columns: {' and '.join(twice)} are said to be the same column")
        if "url" in self.named and not self.urls:
            raise InvalidColumns("columns: a column of URLs is named, and URLs are not to be read")

    def __bool__(self) -> bool:
        return bool(self.named)

    def wanted(self) -> dict[str, str]:
        """role → name of its column, whether a file has it or not."""
        wanted = {role: self.named.get(role, role) for role in NAMEABLE if role != "suggestion" or role in self.named}
        if not self.urls:
            del wanted["url"]
        if self.optin is not None:
            wanted["optin"] = self.optin
        return wanted

    def find(self, path: Path, names: Sequence[str]) -> dict[str, str]:
        """role → name, for all roles that a file with these columns has. User, query and all that was named must be
        among them."""
        wanted = self.wanted()
        needed = {*_REQUIRED, *self.named, *(["optin"] if self.optin is not None else [])}
        missing = [wanted[role] for role in ROLES if role in needed and wanted[role] not in names]
        if missing:
            raise InvalidColumns(_no_such_column(path, missing, names, wanted.values()))
        return {role: name for role, name in wanted.items() if name in names}


def _no_such_column(path: Path, missing: Sequence[str], names: Sequence[str], expected: Iterable[str]) -> str:
    """Names the columns there are only if one of them was expected: else the line may not be a header at all."""
    absent = " and ".join(f"'{name}'" for name in missing)
    if set(expected).isdisjoint(names):
        first_line = f"the {len(names)} fields of its first line (is it a header? {NO_HEADER})"
        found = f"none of the expected names is among {first_line}"
    else:
        found = f"there are {listed(names)}"
    return f"{path}: no column {absent}: {found}; say which is which with --columns user=NAME,query=NAME,url=NAME"
