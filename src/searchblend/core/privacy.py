"""What is promised: a budget, who counts as a neighbour, whom each group trusts, and under which conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from searchblend.core.errors import InvalidParameter


@dataclass(frozen=True)
class Budget:
    """A privacy budget (ε, δ) of one person."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not _is_number(self.epsilon) or not 0 < self.epsilon < math.inf or not _fits_double(self.epsilon):
            raise InvalidParameter("epsilon", f"expected a finite number above 0, found {_shown(self.epsilon)}")
        if not _is_number(self.delta) or not 0 < self.delta < 1:
            raise InvalidParameter("delta", f"expected a number in (0, 1), found {_shown(self.delta)}")
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits_double(value: float) -> bool:
    """A whole number may be too large for one."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _shown(value: object) -> str:
    """The value in a message; Python refuses to write a whole number of thousands of digits."""
    return repr(value) if not isinstance(value, int) or _fits_double(value) else "a whole number beyond every double"


UNIT: Final = "one user id: all records of one user, of which the run uses a bounded number"
ROW_UNIT: Final = (
    "one row of a table without users: what is called a user is one counted row, not a person; whoever made k of the "
    "rows has k times the ε, and a larger δ"
)
"""where a count of n is n rows"""


class Neighbors(Enum):
    """Which two inputs must be hard to tell apart."""

    REPLACE_ONE = "replace-one: the values of one user's records change; who takes part does not"
    ADD_REMOVE_ONE = "add-or-remove-one: one user with all their records is added or removed"


NEIGHBORS: Final = {"replace-one": Neighbors.REPLACE_ONE, "add-remove": Neighbors.ADD_REMOVE_ONE}
"""by the short names of options and plans"""


class TrustModel(Enum):
    """Whom a person trusts with their raw records."""

    CURATOR = "curator: raw records are seen by the curator, only the released output is private"
    LOCAL = "local: the person's own device randomizes a record, and only that report leaves it"
    HELD_LOG = (
        "simulated from a held log: whoever holds the log has the raw records and plays the devices; "
        "only the released output is private"
    )


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem, and whether it holds for this run."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class GroupGuarantee:
    """The promise to the people of one group; groups are disjoint, so no one pays twice."""

    group: str
    budget: Budget
    trust: TrustModel
    mechanism_delta: float
    """The δ that the mechanisms really use (selection and sampler distance); at most ``budget.delta``."""


@dataclass(frozen=True)
class PublishedPromise:
    """What the published files alone tell of one person of a group: less than what the collector sees of them."""

    group: str
    people: int
    """how many of them were counted together"""
    epsilon: float
    """an upper bound, at most the group's own ε"""
    delta: float
    at_least: float
    """about the ε that two concrete neighbours already need at this δ: no bound can be much lower"""
    against: str
    assumption: str


@dataclass(frozen=True)
class Guarantee:
    """The promise of one release. ``holds`` is false as soon as one condition does not."""

    neighbors: Neighbors
    groups: Sequence[GroupGuarantee]
    conditions: Sequence[Condition]
    published: PublishedPromise | None = None
    unit: str = UNIT
    """whose data neighbours differ in"""

    @property
    def epsilon(self) -> float:
        """The largest ε of any group."""
        return max(group.budget.epsilon for group in self.groups)

    @property
    def delta(self) -> float:
        """The largest δ of any group."""
        return max(group.budget.delta for group in self.groups)

    @property
    def holds(self) -> bool:
        """Whether every condition holds."""
        return all(condition.holds for condition in self.conditions)

    def stated(self) -> StatedGuarantee:
        """As it stands in a result and in a statement."""
        return StatedGuarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            holds=self.holds,
            unit=self.unit,
            neighbors=self.neighbors.value,
            groups=tuple(
                StatedGroup(
                    group.group, group.budget.epsilon, group.budget.delta, group.mechanism_delta, group.trust.value
                )
                for group in self.groups
            ),
            conditions=tuple(self.conditions),
            published=self.published,
        )

    def __str__(self) -> str:
        lines = [_verdict(self.epsilon, self.delta, self.neighbors.value, holds=self.holds)]
        lines += [] if self.unit == UNIT else [f"  unit: {self.unit}"]
        lines += [f"  {group.group}: {group.trust.value}" for group in self.groups]
        lines += [
            f"  [{'x' if condition.holds else ' '}] {condition.name}: {condition.detail}"
            for condition in self.conditions
        ]
        return "\n".join(lines)


def _verdict(epsilon: float, delta: float, neighbors: str, *, holds: bool) -> str:
    return f"(ε = {epsilon:g}, δ = {delta:g}) {'holds' if holds else 'does NOT hold'}; neighbours: {neighbors}"


@dataclass(frozen=True)
class StatedGroup:
    """The promise to one group as a document states it."""

    group: str
    epsilon: float
    delta: float
    mechanism_delta: float
    trust: str


@dataclass(frozen=True)
class StatedGuarantee:
    """A guarantee as a document states it, in the words of the version that wrote it."""

    epsilon: float
    delta: float
    holds: bool
    unit: str
    neighbors: str
    groups: tuple[StatedGroup, ...]
    conditions: tuple[Condition, ...]
    published: PublishedPromise | None = None
    """None: nothing is said beyond the groups, as in releases of other kinds and of earlier versions"""

    def __str__(self) -> str:
        return _verdict(self.epsilon, self.delta, self.neighbors, holds=self.holds)
