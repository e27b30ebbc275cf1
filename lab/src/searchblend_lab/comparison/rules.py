"""What is on the table instead of differential privacy: thresholds, allow-lists, filters. None has a guarantee.

A rule publishes the exact number of searches of each query that it lets pass, and of clicks of each pair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from searchblend.core.admission import admit
from searchblend.core.errors import UsageError
from searchblend.core.normalization import normalize
from searchblend.core.suspects import Suspects, Suspicion
from searchblend_lab.comparison.published import Published, TrueCounts

Admits = Callable[[str, str | None], bool]
"""whether a query, or a pair of a query and a URL, may be published"""
LONGEST_WORDS: Final = 5
LONGEST_CHARACTERS: Final = 40
COMMON: Final = ("weather", "news")
"""queries that a rule lets pass unless it has a list"""
_SUSPECTS: Final = Suspects()
_KINDS: Final = "threshold:QUERY/PAIR, threshold:K, allow-list:FILE or filters:NAME+NAME"


def _no_digit(query: str, url: str | None) -> bool:
    return not any(sign.isdigit() for sign in query)


def _no_email(query: str, url: str | None) -> bool:
    return Suspicion.EMAIL not in _SUSPECTS.in_text(query)


def _short(query: str, url: str | None) -> bool:
    return len(query.split()) <= LONGEST_WORDS and len(query) <= LONGEST_CHARACTERS


def _not_personal(query: str, url: str | None) -> bool:
    return admit(query, url).kept


FILTERS: Final[Mapping[str, tuple[Admits, str]]] = {
    "digits": (_no_digit, "queries without a digit"),
    "e-mail": (_no_email, "queries without an e-mail address"),
    "length": (_short, f"queries of at most {LONGEST_WORDS} words and {LONGEST_CHARACTERS} characters"),
    "personal": (_not_personal, "what a device would keep: no address, number, password or private page in it"),
}


def _everything(query: str, url: str | None) -> bool:
    return True


@dataclass(frozen=True)
class Rule:
    """A rule that decides by exact counts and by what a string looks like."""

    name: str
    """as it was given"""
    about: str
    users: int = 1
    """least distinct users of a query"""
    pair_users: int = 1
    """least distinct users of a pair; its query must be published too"""
    admits: Admits = _everything
    common: tuple[str, str] = COMMON
    """two queries that it lets pass once enough users search them"""

    def publish(self, truth: TrueCounts) -> Published:
        queries = {
            query: truth.searches[query]
            for query, users in truth.users.items()
            if users >= self.users and self.admits(query, None)
        }
        pairs = {
            pair: truth.clicks[pair]
            for pair, users in truth.pair_users.items()
            if users >= self.pair_users and pair[0] in queries and self.admits(*pair)
        }
        return Published(queries, pairs)


def rules_of(text: str) -> list[Rule]:
    """The rules of ``--rules``, separated by commas."""
    rules = [_rule(part.strip()) for part in text.split(",")]
    if len({rule.name for rule in rules}) < len(rules):
        raise UsageError("--rules: expected each rule once")
    return rules


def _rule(text: str) -> Rule:
    kind, _, value = text.partition(":")
    match kind:
        case "threshold":
            return _threshold(text, value)
        case "allow-list":
            return _allow_list(text, Path(value))
        case "filters":
            return _filtered(text, value)
    raise UsageError(f"--rules: {text!r}: expected {_KINDS}")


def _threshold(text: str, value: str) -> Rule:
    if not (match := re.fullmatch(r"([1-9][0-9]{0,8})(?:/([1-9][0-9]{0,8}))?", value)):
        raise UsageError(
            f"--rules: {text!r}: expected whole numbers of users: threshold:30/5 for queries and pairs, "
            "threshold:30 for queries alone"
        )
    users, pair_users = int(match[1]), int(match[2] or 1)
    pairs = f"pairs of {pair_users} users or more" if match[2] else "all of their pairs"
    return Rule(text, f"queries of {users} users or more, {pairs}", users, pair_users)


def _filtered(text: str, value: str) -> Rule:
    names = value.split("+")
    if unknown := [name for name in names if name not in FILTERS]:
        raise UsageError(f"--rules: {text!r}: there is no filter {unknown[0]!r}; expected {', '.join(FILTERS)}")
    tests = [FILTERS[name][0] for name in names]
    about = "; ".join(FILTERS[name][1] for name in names)
    return Rule(text, f"{about}; however few searched them", admits=lambda q, u: all(test(q, u) for test in tests))


def _allow_list(text: str, path: Path) -> Rule:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--rules: {text!r}: expected a text file in UTF-8 with an entity on each line") from error
    forms = dict.fromkeys(form for line in lines if (form := normalize(line)))
    if not forms:
        raise UsageError(f"--rules: {text!r}: the file names no entity")
    first, *others = forms
    about = f"queries made of the {len(forms):,} listed entities alone; however few searched them"
    admits = _made_of(frozenset(forms))
    return Rule(f"allow-list:{path.name}", about, admits=admits, common=(first, [*others, f"{first} {first}"][0]))


def _made_of(entities: Collection[str]) -> Admits:
    """Whether a query can be cut into listed entities."""
    longest = max(len(entity.split()) for entity in entities)

    def admits(query: str, url: str | None) -> bool:
        words = query.split()
        reached = {0}
        for end in range(1, len(words) + 1):
            if any(
                start in reached and " ".join(words[start:end]) in entities
                for start in range(max(end - longest, 0), end)
            ):
                reached.add(end)
        return len(words) in reached

    return admits
