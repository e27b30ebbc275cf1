"""What an audit says: claims, findings with a verdict, and the checks that make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from searchblend.core.privacy import Budget

REPLACE_ONE: Final = "replace one user's records"
ADD_REMOVE: Final = "add or remove one user"
ONE_CLIENT: Final = "replace one client's records"
ONE_COUNT: Final = "one count moves by one"


class Kind(Enum):
    """The kinds of evidence, one file each."""

    EXACT = "exact enumeration"
    SAMPLED = "lower bound from samples"
    DISTRIBUTION = "distribution test"
    BOUNDARY = "boundary of a threshold"
    SENSITIVITY = "sensitivity"
    SOURCE = "source of randomness"
    SUPPORT = "support of released numbers"
    CONTROL = "control: not private"
    BINARY = "real program"


class Verdict(Enum):
    HOLDS = "holds"
    REFUTED = "REFUTED"
    NO_POWER = "NO POWER"
    """the check did not see a fault that it must see: it is not evidence"""
    AS_EXPECTED = "refuted, as it must be"
    NOT_AUDITED = "NOT AUDITED"
    BROKEN = "BROKEN"
    """the check itself ended with an error"""
    LEFT_OUT = "left out, as asked"

    @property
    def is_good(self) -> bool:
        return self in (Verdict.HOLDS, Verdict.AS_EXPECTED, Verdict.LEFT_OUT)


@dataclass(frozen=True)
class Claim:
    """A promise under test."""

    epsilon: float
    delta: float
    neighbours: str

    @classmethod
    def of(cls, budget: Budget, neighbours: str) -> Claim:
        return cls(budget.epsilon, budget.delta, neighbours)


@dataclass(frozen=True)
class Finding:
    """One line of the audit."""

    subject: str
    verdict: Verdict
    detail: str
    claim: Claim | None = None
    measured: float | None = None
    """a lower bound of ε, or its exact value; None where the evidence is of another kind"""
    resolution: float | None = None
    """the largest ε that these samples could have shown"""
    trials: int = 0

    def as_json(self) -> dict[str, Any]:
        claim = self.claim
        return {
            "subject": self.subject,
            "neighbours": claim.neighbours if claim else None,
            "claimed_epsilon": claim.epsilon if claim else None,
            "claimed_delta": claim.delta if claim else None,
            "measured_epsilon": self.measured,
            "resolution": self.resolution,
            "trials": self.trials,
            "verdict": self.verdict.value,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Effort:
    """How much is drawn, and how sure each single statement must be."""

    draws: int
    """of a mechanism, on each side and in each of the two samples"""
    runs: int
    """of a whole pipeline"""
    level: float
    """how likely a single random statement may be wrong: the level of the whole audit, divided (Bonferroni)"""


Check = Callable[[Effort], Sequence[Finding]]


@dataclass(frozen=True)
class Audited:
    """A check with its place in the audit."""

    name: str
    kind: Kind
    check: Check
    cost: float = 1.0
    """about how many seconds it takes"""
    needs: str = ""
    """a part of the machine that may be left out: spark, javascript, service, device"""
    quick: bool = True
    """whether ``--quick`` has it"""


def judged(*, holds: bool, has_power: bool = True) -> Verdict:
    if not holds:
        return Verdict.REFUTED
    return Verdict.HOLDS if has_power else Verdict.NO_POWER


class Absent(Exception):  # says what is missing, and becomes a verdict
    """A part of the machine that a check needs is not there."""
