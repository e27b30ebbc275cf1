"""What an experiment is: the cells it needs, and what it concludes from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

import numpy as np
from matplotlib.figure import Figure

from searchblend_lab.papers.cells import Cell, Results, Scalar
from searchblend_lab.papers.comparisons.real_logs import RealLog
from searchblend_lab.papers.people import LogPeople, People, people_named

METHODS: Final = ("paper", "best")
REACHED: Final = 0.9
"""A head size counts as reached when the lists of all runs hold at least this share of it on average."""


@dataclass(frozen=True)
class Request:
    """What was asked for, the same for all experiments of one evaluation."""

    seed: int = 1
    quick: bool = False
    runs: int | None = None
    """instead of every experiment's own number"""
    people: str | None = None
    """instead of the people of the paper's figure"""
    algorithm: str | None = None
    """the reader's own, beside ``paper`` and ``best``"""
    logs: tuple[RealLog, ...] = ()
    """those of the comparison on real logs"""
    source: str = ""
    """where they come from, for the page"""
    reading: str = ""
    """how logs are read and compared, as it is typed"""

    @property
    def methods(self) -> tuple[str, ...]:
        return (*METHODS, self.algorithm) if self.algorithm else METHODS

    @property
    def log(self) -> LogPeople | None:
        """The people of a log of one's own, if it is they who are asked for."""
        people = people_named(self.people) if self.people else None
        return people if isinstance(people, LogPeople) else None

    @property
    def options(self) -> str:
        """As they are typed, every one that makes a difference."""
        words = [f"--log {self.log.label}" if self.log else f"--profile {self.people}"] if self.people else []
        words += ["--logs", *(log.label for log in self.logs)] if self.logs else []
        words += [self.reading] if self.reading else []
        words += ["--source …"] if self.source else []
        words += [f"--{name} {value}" for name, value in (("runs", self.runs), ("algorithm", self.algorithm)) if value]
        return " ".join([*words, *(["--quick"] if self.quick else []), f"--seed {self.seed}"])

    def n_runs(self, full: int, quick: int) -> int:
        return self.runs or (quick if self.quick else full)

    def people_of(self, *names: str) -> tuple[People, ...]:
        return tuple(people_named(name) for name in ((self.people,) if self.people else names))

    def thinned(self, values: Sequence[float]) -> tuple[float, ...]:
        """All values, or every other and the last for a quick look."""
        return tuple(dict.fromkeys((*values[::2], values[-1]))) if self.quick else tuple(values)


class Agreement(StrEnum):
    """How a row of ours stands to what a paper says."""

    AGREES = "agrees"
    DIFFERS = "differs"
    FITTED = "fitted"
    """a parameter of the synthetic users was chosen to give this row, so it is not evidence"""
    NOT_COMPARABLE = "not comparable"
    OURS = "–"
    """the papers say nothing about it"""


def holds(condition: bool) -> Agreement:
    return Agreement.AGREES if condition else Agreement.DIFFERS


def near(published: float, paper: float, best: float | None, tolerance: float) -> Agreement:
    """Within the tolerance. Where method ``best`` is too, the row cannot tell the printed algorithm from another."""
    if abs(paper - published) > tolerance:
        return Agreement.DIFFERS
    return Agreement.NOT_COMPARABLE if best is not None and abs(best - published) <= tolerance else Agreement.AGREES


@dataclass(frozen=True)
class Finding:
    """One line of the table "the paper and us"."""

    what: str
    published: str
    paper: str
    """ours with method ``paper``"""
    best: str
    """ours with method ``best``"""
    agreement: Agreement
    why: str = ""
    """of anything but agreement"""
    counted_in: str = ""
    """the experiment that has a row for the same fact: it is counted there"""

    @property
    def verdict(self) -> str:
        word = f"{self.agreement} (counted in {self.counted_in})" if self.counted_in else str(self.agreement)
        return f"{word}: {self.why}" if self.why and self.agreement is not Agreement.AGREES else word


@dataclass(frozen=True)
class Table:
    """A small table for people; cells are ready text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """Everything that an experiment has to say."""

    rows: list[dict[str, Scalar]]
    """tidy: one observation a row"""
    figure: Figure
    text: str
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    """for the terminal alone: what is not the same in every run, such as times"""


class Experiment(Protocol):
    """One figure or table."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def about(self) -> str:
        """One sentence: what is varied, what is measured."""
        ...

    @property
    def source(self) -> str:
        """Which figure of which paper, or that it is ours."""
        ...

    def cells(self, request: Request) -> list[Cell]: ...

    def conclude(self, request: Request, results: Results) -> Outcome: ...


def said_of_others(people: People, *, nothing: str = "") -> str:
    """Instead of the sentences about a figure of the paper, which is about other people."""
    if nothing:
        return f"Nothing could be measured on the people of {people.label}: {nothing}."
    return f"On the people of {people.label}. What the paper says of its own log is not compared."


NO_LIST: Final = "no list reached its size"
NOTHING_PUBLISHED: Final = "no query of it passes the threshold at any setting"


def hybrid(people: People, method: str, run: int, **changes: Scalar) -> Cell:
    """One run of BLENDER with the paper's defaults for these people ([BLJ] Fig. 11), but for ``changes``."""
    settings: dict[str, Any] = {
        "people": people.name,
        "users": None,
        "method": method,
        "optin": people.optin,
        "epsilon": 4.0,
        "size": people.sizes[-1],
        "head_fraction": 0.95,
        "query_fraction": 0.85,
        "tilt": 0.0,
        "fake": None,
        "detail": False,
    }
    settings |= changes
    cost = 0.02 + settings["size"] * (0.0007 if method == "paper" else 0.0018)
    return Cell.of("hybrid", run, cost=cost, **settings)


@dataclass(frozen=True)
class Band:
    """Mean over runs and the middle 80 % of them."""

    mean: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Band | None:
        if not values:
            return None
        low, high = np.quantile(values, [0.1, 0.9]).tolist()
        return cls(float(np.mean(values)), low, high, len(values))


def tidy(band: Band | None, quantity: str, **where: Scalar) -> dict[str, Scalar]:
    """One row of the long table; empty where the head size was not reached or nothing could be measured."""
    return {
        **where,
        "quantity": quantity,
        "runs": band.n if band else 0,
        "mean": band.mean if band else None,
        "low": band.low if band else None,
        "high": band.high if band else None,
    }


def number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
