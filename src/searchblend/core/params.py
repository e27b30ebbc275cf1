"""The parameters of a run, validated once. Standard library only: devices read them too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from searchblend.core.attributes import OF_CLICKS, Attribute, check_attributes
from searchblend.core.errors import InvalidParameter
from searchblend.core.privacy import Budget

LARGEST_EPSILON: Final = 64
"""Beyond it nothing is protected, and a device that computes e^ε exactly must not be kept busy by a message."""
MANY_RECORDS: Final = 100
"""m_O where all that opt-in users searched is to count: few people have more different queries."""
LARGEST_CAP: Final = 1000
"""Of what one user may add to a click graph."""
MOST_VALUES_PER_USER: Final = 100
"""Of those that count in a selection of values."""


@dataclass(frozen=True)
class BlenderParams:
    """All parameters of [BLJ] Fig. 2, with the defaults of Fig. 11.

    The printed method takes ``records_per_optin`` (m_O) = 1 only: Theorems 3.1 and 3.2 prove nothing for more. Method
    ``best`` takes one record of each opt-in user, or with more the weights of up to m_O queries and records, and own
    shares of all rows. If it is not given, the method settles it by the budget and by what was kept of the opt-in
    users (``Method.settled``), and the release states the number.
    ``query_budget_fraction`` (f_C) lies in (0, 1), or is 1 for logs without URLs, where every record is
    ⟨query, ⋆⟩ and the whole budget belongs to the query stage.
    """

    budget: Budget
    """ε and δ of every person, opt-in user or client"""
    max_head_queries: int = 50
    """M: how many queries the head list may hold, ⋆ not counted."""
    head_fraction: float = 0.95
    """f_O: the share of the opt-in users (S) that makes the head list; the others (T) estimate it."""
    query_budget_fraction: float = 0.85
    """f_C: the share of a client's budget that protects the query; the rest protects the URL."""
    records_per_optin: int | None = None
    """m_O; None: in method ``best`` many (100) where all rows of the opt-in users are kept and δ suffices, else 1"""
    records_per_client: int = 1
    """m_C: cells per report; each costs 1/m_C of the client's budget."""

    def __post_init__(self) -> None:
        check_epsilon(self.budget)
        _at_least_one("max_head_queries", self.max_head_queries)
        _at_least_one("records_per_client", self.records_per_client)
        if self.records_per_optin is not None:
            _at_least_one("records_per_optin", self.records_per_optin)
        if not 0 < self.head_fraction < 1:
            raise InvalidParameter("head_fraction", "expected a number in (0, 1): both opt-in sub-groups need people")
        if not 0 < self.query_budget_fraction <= 1:
            raise InvalidParameter("query_budget_fraction", "expected a number in (0, 1), or 1 for a log without URLs")

    def for_printed_method(self) -> BlenderParams:
        """These parameters with m_O = 1, if the printed proofs cover them."""
        if self.records_per_optin not in (None, 1):
            raise InvalidParameter(
                "records_per_optin",
                "expected 1: the proofs of CreateHeadList and EstimateOptinProbabilities hold for m_O = 1 only",
            )
        return replace(self, records_per_optin=1)

    def for_log(self, *, has_urls: bool) -> BlenderParams:
        """These parameters for a log with or without URLs: without, the whole budget goes to the query."""
        if not has_urls:
            return replace(self, query_budget_fraction=1.0)
        if self.query_budget_fraction == 1:
            raise InvalidParameter(
                "query_budget_fraction", "expected a number in (0, 1): 1 is only for logs without URLs"
            )
        return self

    @property
    def counted_records_per_optin(self) -> int:
        """m_O, of parameters in which it is settled: those that were given it, or that a method has settled."""
        if self.records_per_optin is None:
            raise InvalidParameter("records_per_optin", "expected a number: a run settles it, a single step does not")
        return self.records_per_optin

    @property
    def per_record(self) -> tuple[Fraction, Fraction]:
        """ε' = ε/m_C and δ' = δ/m_C, exactly."""
        m = self.records_per_client
        return Fraction(self.budget.epsilon) / m, Fraction(self.budget.delta) / m

    @property
    def query_share(self) -> tuple[Fraction, Fraction]:
        """ε_Q and δ_Q of one reported cell, exactly."""
        epsilon, delta = self.per_record
        fraction = Fraction(self.query_budget_fraction)
        return fraction * epsilon, fraction * delta

    @property
    def url_share(self) -> tuple[Fraction, Fraction]:
        """ε_U and δ_U of one reported cell, exactly."""
        (epsilon, delta), (query_epsilon, query_delta) = self.per_record, self.query_share
        return epsilon - query_epsilon, delta - query_delta


def check_epsilon(budget: Budget) -> None:
    """Refuse what protects no one, and would overflow."""
    if budget.epsilon > LARGEST_EPSILON:
        raise InvalidParameter(
            "epsilon", f"expected at most {LARGEST_EPSILON} for one release, found {budget.epsilon:g}"
        )


def _at_least_one(field: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidParameter(field, f"expected a whole number of at least 1, found {value!r}")


ALGORITHMS: Final = ("gaussian", "kkmn2009", "weighted_gaussian", "dp_sips", "adaptive_gaussian")
AS_ALGORITHM: Final = "as the algorithm"
"""A choice that is left to the algorithm: what its paper does, or what suits it best."""
URL_MODES: Final = ("none", "public", "private")
REFORMULATION_MODES: Final = ("none", "typed")
WINDOWS: Final = ("none", "day", "week")
ATTRIBUTE_DETAILS: Final = ("auto", "cells", "marginals", "totals")
"""Counts by attribute, from fine to coarse: of each query in each combination of values, of each query by each one
attribute, of people by the combination at their first search. ``auto``: the finest that the forecast finds readable."""
PRESETS: Final[Mapping[str, tuple[float, float, float]]] = {
    "select-heavy": (0.7, 0.2, 0.1),
    "even": (1 / 3, 1 / 3, 1 / 3),
    "counts-heavy": (0.3, 0.6, 0.1),
}
_CHOICES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "kkmn2009": {
        "count_unit": ("impressions", "users"),
        "accounting": ("paper", "exact"),
        "query_noise": ("fresh", "reuse"),
    },
    "gaussian": {"count_unit": ("users",), "accounting": ("exact",), "query_noise": ("reuse", "fresh")},
    "weighted_gaussian": {"count_unit": ("users",), "accounting": ("exact",), "query_noise": ("fresh",)},
    "dp_sips": {"count_unit": ("users",), "accounting": ("exact",), "query_noise": ("fresh",)},
    "adaptive_gaussian": {"count_unit": ("users",), "accounting": ("exact",), "query_noise": ("fresh",)},
}
"""what each algorithm allows, its own choice first"""


def suggested_delta(population: int | None) -> float:
    """A δ for so many users: at most a millionth, and a tenth of what would expose one of them on average."""
    return min(1e-6, 0.1 / population) if population else 1e-6


@dataclass(frozen=True)
class Shares:
    """How the budget is divided among the steps: of ε with Laplace noise, of μ² = Σ (Δ/σ)² with Gaussian noise.

    Steps that a release leaves out give their share to the others; re-used noise gives the counts' share to selection.
    """

    select: float
    """for choosing which queries are published"""
    counts: float
    """for counting how often they were searched"""
    clicks: float
    """for counting clicks, and for naming URLs where that is done privately"""
    reformulations: float = 0.1
    """for counting which query followed which"""
    attributes: float = 0.2
    """for counting by attribute"""

    def __post_init__(self) -> None:
        for field in ("select", "counts", "clicks", "reformulations", "attributes"):
            value = getattr(self, field)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
                raise InvalidParameter(f"shares.{field}", f"expected a number above 0, found {value!r}")

    @classmethod
    def preset(cls, name: str) -> Shares:
        """A division by its name: ``select-heavy``, ``even`` or ``counts-heavy``."""
        if name not in PRESETS:
            raise InvalidParameter("shares", f"expected one of {', '.join(PRESETS)}")
        return cls(*PRESETS[name])


@dataclass(frozen=True)
class ClickGraphParams:
    """All parameters of a released click graph: [KKMN09] Algorithm 1, and what came after it.

    ``count_unit``, ``accounting`` and ``query_noise`` default to what belongs to the algorithm: impressions, the
    printed theorem and fresh noise for ``kkmn2009``; users, the exact accounting and re-used noise for ``gaussian``;
    users and fresh noise for the three that weigh.
    """

    budget: Budget
    """(ε, δ) of the whole release: one total for selection, counts, clicks and reformulations"""
    population: int | None = None
    """n, declared: how many users the log stands for. Never counted, for who takes part is secret."""
    algorithm: str = "gaussian"
    max_queries_per_user: int = 20
    """d: the first d queries of a user take part in the selection (the first d distinct ones in unit ``users``)"""
    max_counted_queries_per_user: int | None = None
    """d_q: the cap of the fresh counts, applied to published queries alone; d if not given, always d in kkmn2009"""
    max_clicks_per_user: int = 20
    """d_c"""
    max_reformulations_per_user: int = 20
    """d_r"""
    count_unit: str = AS_ALGORITHM
    """``users`` (each user once per query) or ``impressions``"""
    accounting: str = AS_ALGORITHM
    """``paper``: Theorem 1 as printed; ``exact``: the least threshold that the algorithm needs"""
    query_noise: str = AS_ALGORITHM
    """``fresh``: counts with noise of their own; ``reuse``: the noisy counts that the selection compared"""
    urls: str = "none"
    """``none``, ``public`` (pairs from outside the log) or ``private`` (pairs of the log, thresholded)"""
    public_source: str = ""
    """where the public pairs come from; stated in the release, required with ``public``"""
    reformulations: str = "none"
    """``none`` or ``typed`` (pairs of published queries typed in a row, thresholded)"""
    attributes: tuple[Attribute, ...] = ()
    """what is declared of a search or click besides: country, device, rank, …; published queries are counted by it"""
    attribute_detail: str = "auto"
    """one of ``ATTRIBUTE_DETAILS``"""
    per: str = "none"
    """``day`` or ``week``: one of the releases of a month, in which each person has one account; ``none``: a release by
    itself"""
    shares: Shares = Shares(*PRESETS["even"])
    allow_large_delta: bool = False
    """Accept δ ≥ 1/n: one user's own queries may then be expected in the release."""

    def __post_init__(self) -> None:
        check_epsilon(self.budget)
        _one_of("algorithm", self.algorithm, ALGORITHMS)
        for field, allowed in _CHOICES[self.algorithm].items():
            if getattr(self, field) == AS_ALGORITHM:
                only_exact = field == "accounting" and self.count_unit == "users"
                object.__setattr__(self, field, "exact" if only_exact else allowed[0])
            _one_of(field, getattr(self, field), allowed, f" with algorithm {self.algorithm}")
        _one_of("urls", self.urls, URL_MODES)
        _one_of("reformulations", self.reformulations, REFORMULATION_MODES)
        _one_of("per", self.per, WINDOWS)
        _one_of("attribute_detail", self.attribute_detail, ATTRIBUTE_DETAILS)
        check_attributes(self.attributes)
        self._check_caps()
        self._check_combinations()
        self._check_population()

    def _check_caps(self) -> None:
        for field in ("max_queries_per_user", "max_clicks_per_user", "max_reformulations_per_user"):
            _at_least_one(field, getattr(self, field))
            if getattr(self, field) > LARGEST_CAP:
                raise InvalidParameter(
                    field, f"expected at most {LARGEST_CAP}: a cap that no one reaches protects no one"
                )
        if self.max_counted_queries_per_user is not None:
            _at_least_one("max_counted_queries_per_user", self.max_counted_queries_per_user)

    def _check_combinations(self) -> None:
        if self.max_counted_queries_per_user is not None and (
            self.query_noise == "reuse" or self.algorithm == "kkmn2009"
        ):
            raise InvalidParameter(
                "max_counted_queries_per_user", "expected none: these counts come from the searches that select"
            )
        if self.accounting == "paper" and self.count_unit != "impressions":
            raise InvalidParameter("accounting", "expected exact: Theorem 1 as printed counts impressions")
        if (self.urls == "public") != bool(self.public_source.strip()):
            raise InvalidParameter(
                "public_source", "expected where the public pairs come from, with urls = public and only there"
            )

        if self.per != "none" and (self.algorithm != "gaussian" or self.attributes or self.reformulations != "none"):
            raise InvalidParameter(
                "per",
                "expected algorithm gaussian, without attributes and reformulations: windows are proved for no other",
            )
        if self.attribute_detail != "auto" and not self.attributes:
            raise InvalidParameter("attribute_detail", "expected attributes to count by")
        if self.urls == "none" and any(attribute.of == OF_CLICKS for attribute in self.attributes):
            raise InvalidParameter("attributes", "expected no attribute of clicks alone: clicks are not released")

    def _check_population(self) -> None:
        if self.population is None:
            return
        _at_least_one("population", self.population)
        if self.budget.delta * self.population >= 1 and not self.allow_large_delta:
            raise InvalidParameter(
                "delta",
                f"expected less than 1/population = {1 / self.population:.3g}, found {self.budget.delta:.3g}: "
                "one person's own queries may be expected in such a release; allow_large_delta accepts that",
            )

    @property
    def counted_queries_per_user(self) -> int:
        """d_q"""
        return self.max_counted_queries_per_user or self.max_queries_per_user

    @property
    def distinct(self) -> bool:
        """Whether each user adds at most 1 to each count."""
        return self.count_unit == "users"

    @property
    def gaussian_noise(self) -> bool:
        """Whether the algorithm draws Gaussian noise, else Laplace."""
        return self.algorithm != "kkmn2009"


def _one_of(field: str, value: str, allowed: Sequence[str], context: str = "") -> None:
    if value not in allowed:
        raise InvalidParameter(field, f"expected {' or '.join(allowed)}{context}")
