"""A batch of releases that may be made: a TOML file as the debits that they would be.

population = "search"                # of releases that name none ("all")
window = "2027"                      # likewise ("all time")

[[release]]
name = "weekly"
epsilon = 0.5
delta = 1e-7                         # 0 if left out
times = 52                           # 1 if left out
window = "2027-W{:02}"               # {} stands for 1, 2, … of the times
values = 100                         # the law of randomized response over so many values; else any (ε, δ)
neighbors = "add-remove"             # "replace-one" if left out
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from searchblend.accounting.client_spends import randomized_response_spend
from searchblend.accounting.spend import Spend
from searchblend.core.documents import Between, OneOf, Strict, decode
from searchblend.core.errors import InputError, InvalidParameter
from searchblend.core.privacy import NEIGHBORS, Neighbors
from searchblend.store.ledger import check_name
from searchblend.store.ledger_book import Entry
from searchblend.store.ledger_windows import ALL_TIME

MOST_RELEASES: Final = 10_000


@dataclass(frozen=True)
class _People(Strict):
    """Whom a plan is about, where its releases do not say."""

    population: str = "all"
    window: str = ALL_TIME


@dataclass(frozen=True, kw_only=True)
class _PlannedRelease(_People):
    """One table ``[[release]]``."""

    name: str | None = None
    epsilon: float
    delta: float = 0.0
    times: Annotated[int, Between(1, MOST_RELEASES)] = 1
    values: int | None = None
    neighbors: Annotated[str, OneOf(tuple(NEIGHBORS))] = "replace-one"

    def spend(self, name: str, where: str) -> Spend:
        relation = NEIGHBORS[self.neighbors]
        if self.values is None:
            return Spend(float(self.epsilon), float(self.delta), relation, name)
        if self.delta or relation is not Neighbors.REPLACE_ONE:
            raise InvalidParameter(f"{where}.values", "randomized response has no δ and is replace-one")
        return randomized_response_spend(float(self.epsilon), self.values)


def read_plan(path: Path) -> list[Entry]:
    """The planned debits in their order; ``InputError`` names the release and the field that is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(path, f"expected TOML: {error}") from error
    releases = document.pop("release", None)
    if not isinstance(releases, list) or not releases:
        raise InputError(path, "expected at least one table [[release]]")
    try:
        people = decode(_People, document, where="plan")
        entries = [entry for number, release in enumerate(releases, 1) for entry in _entries(people, release, number)]
    except InvalidParameter as error:
        raise InputError(path, str(error)) from error
    names = [entry.release_id for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(path, f"two releases are named {twice}")
    return entries


def _entries(people: _People, release: Any, number: int) -> Iterator[Entry]:
    where = f"release {number}"
    planned = decode(
        _PlannedRelease, {**vars(people), **release} if isinstance(release, dict) else release, where=where
    )
    name = where if planned.name is None else planned.name
    spend = planned.spend(name, where)
    for time in range(1, planned.times + 1):
        numbered = f"{name} {time}" if planned.times > 1 else name
        try:
            window = planned.window.format(time)
        except (ValueError, IndexError, KeyError) as error:
            raise InvalidParameter(f"{where}.window", "expected {} or {:02} where the number stands") from error
        for field, value in (("name", numbered), ("population", planned.population), ("window", window)):
            check_name(f"{where}.{field}", value)
        yield Entry(0, numbered, planned.population, window, spend, "")
