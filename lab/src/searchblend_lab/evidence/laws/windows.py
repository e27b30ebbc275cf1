"""The law of all windows of a month together, enumerated: whatever one user does in them, and what is known already.

What a user moves in each window is asked of the code that counts; the noise is that of the design. A query of theirs
alone is either named or not; if an earlier window has published it, its count is there anyway and moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from typing import Any, Final

import numpy as np
from scipy.stats import norm

from searchblend.clickgraph.release.click_log import Cap, ClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign
from searchblend.clickgraph.release.windows import AccountWindow, InMemoryWindowLog
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.logs.activity import account_window
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian

Person = tuple[Search, ...]
MakeLog = Callable[[Sequence[Person], AccountWindow], ClickLog]
Change = Callable[[StepDesign], StepDesign]
Subject = tuple[MakeLog, Change]

_DAY: Final = 86400.0
_MONTH: Final = 1_772_323_200.0
"""2026-03-01, UTC"""
_QUERIES: Final = ("a", "b")
_DAYS: Final = tuple(account_window("day", _MONTH + day * _DAY) for day in (0, 1))
_OTHERS: Final[Person] = tuple(Search("a", window.first) for window in _DAYS)
_REACH: Final = 9
"""standard deviations that are enumerated"""
SETTINGS: Final = (1, 2)
"""how many different pairs of window and query count of a user"""


def people() -> Iterator[Person]:
    """Everyone with up to four searches of two queries on two days, in any order."""
    each = [(query, day) for day in (0, 1) for query in _QUERIES]
    for n in (1, 2, 3, 4):
        for chosen in product(each, repeat=n):
            yield tuple(Search(query, _MONTH + day * _DAY + place) for place, (query, day) in enumerate(chosen))


@cache
def window_design(first: int) -> ClickGraphDesign:
    params = ClickGraphParams(Budget(2.0, 0.02), max_queries_per_user=first, per="day")
    return ClickGraphDesign.of(params)


def check_windows(subject: Subject, first: int) -> None:
    """Both days together, and whatever of their queries was published before, are within the release's ε and δ."""
    make, change = subject
    design = window_design(first)
    step = change(design.rounds[-1])
    known_sets = [set(some) for n in range(3) for some in combinations(_QUERIES, n)]
    ways: set[tuple[int, int]] = set()
    for person, known in product(people(), known_sets):
        moved = named = 0
        for window in _DAYS:
            without = _counts(make([_OTHERS], window), step.cap, known)
            for query, n in _counts(make([_OTHERS, person], window), step.cap, known).items():
                added = n - without.get(query, 0)
                assert added in (0, 1), "one user adds more than 1 to a count"
                is_there = query in known or query in without
                moved, named = moved + (added and is_there), named + (added and not is_there)
        ways.add((moved, named))
    assert max(moved + named for moved, named in ways) == first, "the windows do not share their cap"
    for moved, named in ways:
        assert _delta(step, design.params.budget.epsilon, moved, named) <= design.mechanism_delta * (1 + 1e-6)


def _counts(log: ClickLog, cap: Cap, known: set[str]) -> dict[str, int]:
    """What is counted in a window: known queries as such, the others as the selection has them."""
    tally = log.searches(cap)
    selected = {str(r.query): n for n, size in tally.sizes().items() for r in tally.pick(n, np.arange(size))}
    again: Mapping[str, int] = log.searches_of(sorted(known), cap)
    return {query: n for query, n in selected.items() if query not in known} | dict(again)


def _delta(step: StepDesign, epsilon: float, moved: int, named: int) -> float:
    """δ of so many counts that move and so many that are named or not, by enumeration."""
    sigma, threshold = step.noise.scale, step.threshold or 0
    quiet = named * math.log1p(-float(norm.sf((threshold - 1.5) / sigma)))
    values = np.arange(-math.ceil(_REACH * sigma), math.ceil(_REACH * sigma) + 2)
    one = norm.cdf((values + 0.5) / sigma) - norm.cdf((values - 0.5) / sigma)
    shifted = norm.cdf((values - 0.5) / sigma) - norm.cdf((values - 1.5) / sigma)
    still, there = _joint([one] * moved), _joint([shifted] * moved)
    appears = -math.expm1(quiet) + math.exp(quiet) * _divergence(there, still, epsilon - quiet)
    return max(appears, _divergence(still, there, epsilon + quiet))


def _joint(laws: Sequence[Any]) -> Any:
    joint = np.ones(1)
    for law in laws:
        joint = np.outer(joint, law).ravel()
    return joint


def _divergence(one: Any, other: Any, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


# --- faults ----------------------------------------------------------------------------------------------------------


class _RestrictedFirst(InMemoryWindowLog):
    """Known queries have a cap of their own."""

    def searches_of(self, queries: Sequence[str], cap: Cap) -> dict[str, int]:
        only = [[search for search in user if search.query in queries] for user in self._users]
        return InMemoryWindowLog(only, self._window).searches_of(queries, cap)


def _cap_of_each(users: Sequence[Person], window: AccountWindow) -> InMemoryWindowLog:
    return InMemoryWindowLog(users, replace(window, account=window.first))


def _unchanged(step: StepDesign) -> StepDesign:
    return step


def _noise_halved(step: StepDesign) -> StepDesign:
    return (
        replace(step, noise=RoundedGaussian(step.noise.sigma / 2)) if isinstance(step.noise, RoundedGaussian) else step
    )


SHIPPED: Final[Subject] = (InMemoryWindowLog, _unchanged)
FAULTS: Final[dict[str, Subject]] = {
    "a cap for each window": (_cap_of_each, _unchanged),
    "a cap of their own for known queries": (_RestrictedFirst, _unchanged),
    "noise halved": (InMemoryWindowLog, _noise_halved),
}
