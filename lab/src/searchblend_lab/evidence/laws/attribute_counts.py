"""The law of counts by attribute, enumerated: every neighbour of small logs, every pair of noisy counts that can move.

What one user moves is asked of the code that counts; the noise is that of the design, its sampled law in fractions. So
a user who counts in two values of one attribute, a cap that holds for each cell by itself, and noise of the whole share
for each of two tables are all the same to the check: too much is learnt of one user.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, Final

import numpy as np

from searchblend.clickgraph.release.attribute_counts import AttributeTable
from searchblend.clickgraph.release.click_log import AttributedLog, Cap, InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.attributes import Attribute, cells_of
from searchblend.core.params import ClickGraphParams, Shares
from searchblend.core.privacy import Budget
from searchblend.mechanisms.discrete_laplace import DiscreteLaplace
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.rounded_gaussian import gaussian_at_least
from searchblend.mechanisms.tally import Ints

Person = tuple[Search, ...]
MakeLog = Callable[[Sequence[Person]], AttributedLog]
Change = Callable[[StepDesign], StepDesign]
Subject = tuple[MakeLog, Change]
Setting = tuple[str, str, int]
"""algorithm, detail, how many queries of a user count"""
Law = dict[int, Fraction]

_COUNTRY: Final = Attribute("country", ("de",))
_DEVICE: Final = Attribute("device", ("phone",))
_QUERIES: Final = ("a", "b")
_BUDGET: Final = Budget(8.0, 1e-3)
_SHARES: Final = Shares(1, 1, 1, attributes=20)
"""nearly all for what is looked at: narrow noise has few values"""
_REACH: Final = 9
"""standard deviations of Gaussian noise that are enumerated; what lies beyond is added to the bound"""
_SHAPES: Final = (("cells", 1), ("cells", 2), ("marginals", 1), ("totals", 1))
SETTINGS: Final[tuple[Setting, ...]] = tuple((name, *shape) for name in ("kkmn2009", "gaussian") for shape in _SHAPES)


def people() -> Iterator[Person]:
    """Everyone with up to three searches of two queries, in two countries and on two devices, one after the other."""
    each = list(product(_QUERIES, ("de", "fr"), ("phone", "tv")))
    for n in (1, 2, 3):
        for chosen in product(each, repeat=n):
            yield tuple(
                Search(query, 60.0 * place, (), {"country": country, "device": device})
                for place, (query, country, device) in enumerate(chosen)
            )


@cache
def attribute_design(setting: Setting) -> ClickGraphDesign:
    algorithm, detail, first = setting
    return ClickGraphDesign.of(
        ClickGraphParams(
            _BUDGET,
            algorithm=algorithm,
            count_unit="users",
            max_queries_per_user=first,
            attributes=(_COUNTRY, _DEVICE),
            attribute_detail=detail,
            shares=_SHARES,
        )
    )


def check_attribute_counts(subject: Subject, setting: Setting) -> None:
    """No user, added to or taken from a log, is told from their absence by more than the steps' own ε and δ."""
    make, change = subject
    design = attribute_design(setting)
    steps = [(table, change(step)) for table, step in design.attribute_steps]
    other: Person = (Search("a", 0.0, (), {"country": "de", "device": "phone"}),)
    without = _counts(make([other]), steps)
    moves = {_moved(_counts(make([other, person]), steps), without) for person in people()}
    assert max(map(len, moves)) > 0, "nothing is counted"
    for move in moves:
        _check(move, [step for _, step in steps], design)


Move = tuple[tuple[int, int], ...]
"""(step, by how much) for each count that a user moves"""


def _counts(log: AttributedLog, steps: Sequence[tuple[AttributeTable, StepDesign]]) -> list[Ints]:
    return [log.searches_by(_QUERIES if table.by_item else None, table.attributes, step.cap) for table, step in steps]


def _moved(one: Sequence[Ints], other: Sequence[Ints]) -> Move:
    moves = [(place, int(by)) for place, (a, b) in enumerate(zip(one, other, strict=True)) for by in (a - b).ravel()]
    return tuple(sorted((place, by) for place, by in moves if by))


def _check(move: Move, steps: Sequence[StepDesign], design: ClickGraphDesign) -> None:
    """The steps have what the whole release leaves them: ε by Laplace noise, or μ by Gaussian noise, exactly."""
    shipped = [step for _, step in design.attribute_steps]
    assert len(move) <= sum(step.cap.first for step in shipped), "more counts move than the caps allow"
    if isinstance(steps[0].noise, DiscreteLaplace):
        laws = [steps[place].noise.sampled_probabilities() for place, _ in move]
        growth = exp_fraction_bounds(sum((step.noise.rate * step.cap.first for step in shipped), Fraction(0)))[0]  # type: ignore[union-attr]
        allowed = (1 + growth) * Fraction(math.fsum(step.sampler_distance for step in shipped)) * Fraction(101, 100)
        for back in (1, -1):
            assert _divergence(laws, [back * by for _, by in move], growth) <= allowed
        return
    noises = np.array([steps[place].noise.scale for place, _ in move])
    mu = math.sqrt(math.fsum((step.mu or 0.0) ** 2 for step in shipped))
    for epsilon in (0.0, 0.5, 2.0):
        grids = [_shifted(sigma, by) for sigma, (_, by) in zip(noises, move, strict=True)]
        moved, still = (_joint([grid[side] for grid in grids]) for side in range(2))
        divergence = float(np.maximum(moved - math.exp(epsilon) * still, 0).sum())
        assert divergence <= _gaussian(epsilon, mu) * (1 + 1e-6) + 1e-9


def _divergence(laws: Sequence[Law], moves: Sequence[int], growth: Fraction) -> Fraction:
    """Σ (P(x − moves) − e^ε P(x))₊ over all x."""
    pairs: dict[tuple[Fraction, Fraction], int] = {(Fraction(1), Fraction(1)): 1}
    for law, by in zip(laws, moves, strict=True):
        nothing, values = Fraction(0), {value + shift for value in law for shift in (0, by)}
        here = [(law.get(value - by, nothing), law.get(value, nothing)) for value in values]
        joint: dict[tuple[Fraction, Fraction], int] = {}
        for ((moved, still), n), (p, q) in product(pairs.items(), here):
            key = moved * p, still * q
            joint[key] = joint.get(key, 0) + n
        pairs = joint
    return sum(
        (n * (moved - growth * still) for (moved, still), n in pairs.items() if moved > growth * still), Fraction(0)
    )


def _shifted(sigma: float, by: int) -> tuple[Any, Any]:
    """The probabilities of whole numbers, of noise moved by so much and of noise itself."""
    reach = math.ceil(_REACH * sigma) + abs(by)
    tails = np.array([gaussian_at_least(value, sigma) for value in range(-reach - abs(by), reach + abs(by) + 2)])
    mass = tails[:-1] - tails[1:]
    return np.roll(mass, by), mass


def _joint(masses: Sequence[Any]) -> Any:
    joint = np.ones(1)
    for mass in masses:
        joint = np.outer(joint, mass).ravel()
    return joint


def _gaussian(epsilon: float, mu: float) -> float:
    """H of two normal variables, by the formula and not by the code."""

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


# --- faults ----------------------------------------------------------------------------------------------------------


class _EveryValue(InMemoryClickLog):
    """A query that a user searched with two values counts in both, each up to the cap."""

    def searches_by(self, queries: Sequence[str] | None, attributes: Sequence[Attribute], cap: Cap) -> Ints:
        counts = np.zeros((1 if queries is None else len(queries), cells_of(attributes)), dtype=np.int64)
        for user in self._users:
            counts += np.maximum.reduce(
                [InMemoryClickLog([[search]]).searches_by(queries, attributes, cap) for search in user]
            )
        return counts


class _CountedTwice(InMemoryClickLog):
    def searches_by(self, queries: Sequence[str] | None, attributes: Sequence[Attribute], cap: Cap) -> Ints:
        return 2 * super().searches_by(queries, attributes, cap)


def _unchanged(step: StepDesign) -> StepDesign:
    return step


def _noise_halved(step: StepDesign) -> StepDesign:
    if isinstance(step.noise, DiscreteLaplace):
        return replace(step, noise=DiscreteLaplace(step.noise.rate * 2))
    return replace(step, noise=type(step.noise)(step.noise.sigma / 2))


SHIPPED: Final[Subject] = (InMemoryClickLog, _unchanged)
FAULTS: Final[dict[str, Subject]] = {
    "every value of a repeated query": (_EveryValue, _unchanged),
    "a user counts twice": (_CountedTwice, _unchanged),
    "noise halved": (InMemoryClickLog, _noise_halved),
}
