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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from searchblend.accounting.client_spends import randomized_response_spend
from searchblend.accounting.spend import Spend
from searchblend.core.errors import InputError, InvalidParameter
from searchblend.core.privacy import Neighbors
from searchblend.store.ledger import check_name
from searchblend.store.ledger_book import Entry
from searchblend.store.ledger_windows import ALL_TIME

MOST_RELEASES: Final = 10_000
_NEIGHBORS: Final = {"replace-one": Neighbors.REPLACE_ONE, "add-remove": Neighbors.ADD_REMOVE_ONE}
_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "name": str,
    "population": str,
    "window": str,
    "epsilon": (int, float),
    "delta": (int, float),
    "times": int,
    "values": int,
    "neighbors": str,
}


def read_plan(path: Path) -> list[Entry]:
    """The planned debits in their order; ``InputError`` names the release and the field that is wrong."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(path, f"expected TOML: {error}") from error
    shared = {name: value for name, value in document.items() if name != "release"}
    releases = document.get("release")
    if not isinstance(releases, list) or not releases:
        raise InputError(path, "expected at least one table [[release]]")
    try:
        _check(shared, "", allowed=("population", "window"))
        entries = [entry for number, release in enumerate(releases, 1) for entry in _entries(shared, release, number)]
    except InvalidParameter as error:
        raise InputError(path, str(error)) from error
    names = [entry.release_id for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(path, f"two releases are named {twice}")
    return entries


def _entries(shared: Mapping[str, Any], release: Any, number: int) -> Iterator[Entry]:
    where = f"release {number}"
    if not isinstance(release, dict):
        raise InvalidParameter(where, "expected a table [[release]]")
    _check(release, f"{where}: ", allowed=tuple(_KINDS))
    settings = {"population": "all", "window": ALL_TIME, "name": where, "times": 1, **shared, **release}
    times = settings["times"]
    if not 1 <= times <= MOST_RELEASES:
        raise InvalidParameter(f"{where}: times", f"expected 1 to {MOST_RELEASES}")
    spend = _spend(settings, where)
    for time in range(1, times + 1):
        name = f"{settings['name']} {time}" if times > 1 else settings["name"]
        window = _numbered(settings["window"], time, where)
        for field, value in (("name", name), ("population", settings["population"]), ("window", window)):
            check_name(f"{where}: {field}", value)
        yield Entry(0, name, settings["population"], window, spend, "")


def _numbered(window: str, time: int, where: str) -> str:
    try:
        return window.format(time)
    except (ValueError, IndexError, KeyError) as error:
        raise InvalidParameter(f"{where}: window", "expected {} or {:02} where the number stands") from error


def _spend(settings: Mapping[str, Any], where: str) -> Spend:
    if "epsilon" not in settings:
        raise InvalidParameter(f"{where}: epsilon", "is missing")
    epsilon, delta = float(settings["epsilon"]), float(settings.get("delta", 0))
    relation = _NEIGHBORS.get(settings.get("neighbors", "replace-one"))
    if relation is None:
        raise InvalidParameter(f"{where}: neighbors", f"expected {' or '.join(_NEIGHBORS)}")
    if "values" not in settings:
        return Spend(epsilon, delta, relation, settings["name"])
    if delta or relation is not Neighbors.REPLACE_ONE:
        raise InvalidParameter(f"{where}: values", "randomized response has no δ and is replace-one")
    return randomized_response_spend(epsilon, settings["values"])


def _check(table: Mapping[str, Any], where: str, *, allowed: tuple[str, ...]) -> None:
    for field, value in table.items():
        if field not in allowed:
            raise InvalidParameter(f"{where}{field}", f"is not known; expected {', '.join(allowed)}")
        if not isinstance(value, _KINDS[field]) or isinstance(value, bool):
            raise InvalidParameter(f"{where}{field}", "has another type than expected")
