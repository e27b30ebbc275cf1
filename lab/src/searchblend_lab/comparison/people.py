"""Planted people: what each of them alone searched or clicked, beside a crowd that all search the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from searchblend.clickgraph.release.click_log import Search
from searchblend_lab.comparison.published import Pair, Published

PEOPLE: Final = 10
"""of each kind"""
SESSION: Final = 5
"""searches of a unique session"""
Account = list[Search]
Session = Callable[[int, str], Account]
"""the searches of one account of a planted person, by number and a query that is common"""
_FIRST: Final = ("ada", "bruno", "clara", "dmitri", "elif", "farid", "greta", "hugo", "ines", "jonas")
_LAST: Final = (
    "quillfeather",
    "okonbrandt",
    "varsallo",
    "tindewald",
    "morrowick",
    "pellandine",
    "aschgrover",
    "belluvari",
    "corvenhall",
    "dunmarsk",
)


@dataclass(frozen=True)
class Kind:
    """One kind of planted person."""

    name: str
    about: str
    criterion: str
    """of WP216: what a reader could do if it were published"""
    session: Session
    accounts: int = 1
    own_page: bool = False
    """whether a pair names the person, and not a query"""

    def of_person(self, number: int, common: str) -> list[Account]:
        return [self.session(number, common) for _ in range(self.accounts)]

    def named(self, number: int, common: str, published: Published) -> bool:
        """Whether anything is published that this person alone has."""
        searches = self.session(number, common)
        if self.own_page:
            return any((s.query, url) in published.pairs for s in searches for url in s.clicks)
        return any(search.query in published.queries for search in searches)


def _person(number: int) -> str:
    return f"{_FIRST[number % len(_FIRST)]} {_LAST[(number * 3 + number // len(_FIRST)) % len(_LAST)]}"


def _one(query: str) -> Account:
    return [Search(query, 0.0, (f"https://result.example/{'-'.join(query.split())}",))]


def _session(number: int, common: str) -> Account:
    place = _LAST[number % len(_LAST)]
    words = ("mill lane bakery", "bus after ten", "choir rehearsal", "lost grey cat", "flat to let")
    return [Search(f"{place} {what}", 60.0 * i, _one(what)[0].clicks) for i, what in enumerate(words)]


KINDS: Final[Sequence[Kind]] = (
    Kind("name", "a person's own name", "singling out", lambda i, _: _one(_person(i))),
    Kind("address", "where a person lives", "singling out", lambda i, _: _one(f"{17 + i} {_LAST[i]} street")),
    Kind("e-mail", "a person's e-mail address", "singling out", lambda i, _: _one(f"{_FIRST[i]}@{_LAST[i]}.example")),
    Kind("session", f"{SESSION} searches in a row that no one else made", "singling out", _session),
    Kind(
        "page",
        "a click on a page of a person's own, after a common query",
        "singling out",
        lambda i, common: [Search(common, 0.0, (f"https://share.example/{_FIRST[i]}-{_LAST[i]}",))],
        own_page=True,
    ),
    Kind(
        "accounts",
        "a rare query that one person searched from two accounts",
        "linkability",
        lambda i, _: _one(f"{_LAST[i]} syndrome support group"),
        accounts=2,
    ),
)
KIND_NAMED: Final[Mapping[str, Kind]] = {kind.name: kind for kind in KINDS}


def crowd(size: int, queries: Sequence[str]) -> list[Account]:
    """Users who all search these queries and click their results."""
    searches = [Search(query, 10.0 * i, (page_of(query),)) for i, query in enumerate(queries)]
    return [searches] * size


def page_of(query: str) -> str:
    return f"https://{'-'.join(query.split())}.example/"


def planted(kinds: Sequence[Kind], common: str) -> list[Account]:
    """All planted people, each by their accounts."""
    return [account for kind in kinds for i in range(PEOPLE) for account in kind.of_person(i, common)]


def pairs_of(queries: Sequence[str]) -> list[Pair]:
    return [(query, page_of(query)) for query in queries]
