"""The attack panel: what a reader could do with each release and each rule, on a small log with planted people.

Releases are run many times with their own noise and nothing is assumed of them: every rate is a binomial proportion
with an exact (Clopper-Pearson) interval, beside what the exact law of the mechanism says and what (ε, δ) allows. Rules
have no noise, so that one run says everything.

The attacks follow the three criteria of opinion 05/2014 (WP216): singling out (something that one person alone has is
published), linkability (what two accounts of a person share is published), inference (which of two things did a person
search?). Membership inference asks whether a person is in the log at all. The reader of the last two knows everything
else, and decides by the likelihood ratio of the published counts, which no test beats (Neyman-Pearson). Under a rule
the reader puts accounts of their own into the log, one fewer than the rule asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from scipy.stats import binom

from searchblend.clickgraph.release.click_log import Cap, ClickLog, InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.step import StepDesign, step_release_probability
from searchblend.core.privacy import UNIT
from searchblend.core.records import Record
from searchblend.mechanisms.gaussian_account import weight
from searchblend.mechanisms.tally import Tally
from searchblend.mechanisms.threshold import least_integer
from searchblend.synthetic.seeded import SeededRandomness
from searchblend_lab.comparison.people import KINDS, PEOPLE, Account, Kind, crowd, page_of, planted
from searchblend_lab.comparison.published import Published, TrueCounts, publish
from searchblend_lab.comparison.rules import Rule
from searchblend_lab.evidence.boundaries import named_in_two_rounds
from searchblend_lab.evidence.bounds import epsilon_bound, lower_bound, upper_bound

LEVEL: Final = 0.05
"""of the intervals that are shown"""
ALARM: Final = 1e-9
"""chance, at most, that a rate within its bound is called too high"""
CERTAIN: Final = 1 - 1e-9
_WORLDS: Final = 4
"""planted people; the target with one set of searches, with another, and away"""
_MOST_RUNS: Final = 10**9
_TARGET_QUERIES: Final = 20
"""searches of the target of an inference, at most"""
MEMBERSHIP, INFERENCE = "member", "inference"
CRITERION: Final[Mapping[str, str]] = {kind.name: kind.criterion for kind in KINDS} | {
    MEMBERSHIP: "membership inference",
    INFERENCE: "inference",
}
ABOUT: Final[Mapping[str, str]] = {kind.name: kind.about for kind in KINDS} | {
    MEMBERSHIP: "whether a person is in the log: right guesses, of 50 % by coin",
    INFERENCE: "which of two sets of queries a person searched: right guesses, of 50 % by coin",
}


@dataclass(frozen=True)
class Finding:
    """How often one attack succeeds."""

    subject: str
    attack: str
    successes: int
    trials: int
    low: float
    """95 %, exact; for a rule the rate itself"""
    high: float
    law: float | None = None
    """by the exact law of the mechanism"""
    allowed: float | None = None
    """at most, by (ε, δ); None: nothing is promised"""
    measured_epsilon: float | None = None
    """the ε that the runs show, at least; None where it is not measured"""

    @property
    def rate(self) -> float:
        return self.successes / self.trials

    @property
    def verdict(self) -> str:
        """A rate that is surely above its law or its bound refutes the release."""
        if self.allowed is None:
            return "no guarantee"
        most = self.allowed if self.law is None else min(self.law, self.allowed)
        return "exceeds" if lower_bound(self.successes, self.trials, ALARM) > most else "holds"


class RememberedLog:
    """A ``ClickLog`` that answers a question once: a thousand runs ask the same of a log that stays the same."""

    unit = UNIT

    def __init__(self, users: Sequence[Sequence[Search]]) -> None:
        self._log, self._answers = InMemoryClickLog(users), dict[Any, Any]()

    def __repr__(self) -> str:
        return "RememberedLog(<redacted>)"

    def _once(self, question: Any, answer: Callable[[], Any]) -> Any:
        if question not in self._answers:
            self._answers[question] = answer()
        return self._answers[question]

    def searches(self, cap: Cap) -> Tally:
        return self._once(cap, lambda: self._log.searches(cap))  # type: ignore[no-any-return]

    def weighted_searches(self, first: int, units: int, without: Sequence[str]) -> Tally:
        question = (first, units, tuple(without))
        return self._once(question, lambda: self._log.weighted_searches(first, units, without))  # type: ignore[no-any-return]

    def weighted_searches_of(self, queries: Sequence[str], first: int, units: int) -> Mapping[str, int]:
        return self._log.weighted_searches_of(queries, first, units)

    def searches_of(self, queries: Sequence[str], cap: Cap) -> Mapping[str, int]:
        question = ("of", tuple(queries), cap)
        return self._once(question, lambda: self._log.searches_of(queries, cap))  # type: ignore[no-any-return]

    def clicks(self, queries: Sequence[str], cap: Cap, *, within: Cap) -> Tally:
        question = ("clicks", tuple(queries), cap, within)
        return self._once(question, lambda: self._log.clicks(queries, cap, within=within))  # type: ignore[no-any-return]

    def clicks_of(
        self, records: Sequence[Record], cap: Cap, *, within: Cap, restrict_first: bool = True
    ) -> Mapping[Record, int]:
        return self._log.clicks_of(records, cap, within=within, restrict_first=restrict_first)

    def reformulations(self, queries: Sequence[str], cap: Cap) -> Tally:
        return self._log.reformulations(queries, cap)


# --- releases -------------------------------------------------------------------------------------------------------


class ReleaseUnderAttack:
    """A release by its design; ``run_with`` is what is really run, another design if a fault is planted."""

    def __init__(
        self,
        name: str,
        design: ClickGraphDesign,
        *,
        runs: int,
        seed: int,
        run_with: ClickGraphDesign | None = None,
        log: Callable[[Sequence[Account]], ClickLog] = RememberedLog,
    ) -> None:
        self.name, self._design, self._runs, self._seed = name, design, runs, seed
        self._run_with, self._log = run_with or design, log
        self._budget = design.params.budget

    def findings(self) -> list[Finding]:
        kinds = [kind for kind in KINDS if self._design.click_counts or not kind.own_page]
        return [*self._planted(kinds), *self._guesses()]

    def _planted(self, kinds: Sequence[Kind]) -> list[Finding]:
        """Singling out and linkability: how often something that one person alone has is published."""
        common = "weather"
        log = self._log([*crowd(self._sure_users(1), [common]), *planted(kinds, common)])
        named = dict.fromkeys(kinds, 0)
        for published in self._releases(log, 0):
            for kind in kinds:
                named[kind] += sum(kind.named(i, common, published) for i in range(PEOPLE))
        growth = math.exp(self._budget.epsilon)
        of_kinds = []
        for kind in kinds:
            allowed = min(self._budget.delta * (1 + growth * (kind.accounts - 1)), 1.0)  # two accounts are two steps
            of_kinds.append(self._finding(kind.name, named[kind], self._runs * PEOPLE, self._law_of(kind), allowed))
        return of_kinds

    def _law_of(self, kind: Kind) -> float:
        """The probability that a person of this kind is named, from the tails of the noise."""
        if kind.own_page and (step := self._design.click_counts):
            return step_release_probability(step, 1)
        caps = self._design.params.max_queries_per_user
        items = min(len({search.query for search in kind.session(0, "")}), caps)
        quiet = 0.0
        for step in self._design.rounds:
            if step.first_round is not None:
                return named_in_two_rounds(step, step.first_round, items, kind.accounts)
            added = kind.accounts * (weight(step.units, items) if step.units > 1 else 1)
            quiet += items * math.log1p(-step_release_probability(step, added))
        return -math.expm1(quiet)

    def _guesses(self) -> list[Finding]:
        """Membership and inference: the target's whole contribution goes to queries that are published for certain."""
        n = min(self._design.params.max_queries_per_user, self._design.params.max_clicks_per_user, _TARGET_QUERIES)
        one, other = ([f"{word} {i}" for i in range(n)] for word in ("first", "second"))
        users = self._sure_users(n)
        all_users = [*crowd(users, one), *crowd(users, other)]
        worlds = {
            name: self._log([*all_users, *crowd(1, queries)])
            for name, queries in {"one": one, "other": other, "none": []}.items()
        }
        scores = {
            name: [
                (self._score(published, one, users), self._score(published, other, users))
                for published in self._releases(log, number)
            ]
            for number, (name, log) in enumerate(worlds.items(), start=1)
        }
        inside, outside = ([first for first, _ in scores[name]] for name in ("one", "none"))
        member = self._guess(MEMBERSHIP, inside, outside, n, steps=1)
        ratio_of_one, ratio_of_other = ([one - other for one, other in scores[name]] for name in ("one", "other"))
        return [member, self._guess(INFERENCE, ratio_of_one, ratio_of_other, n, steps=2)]

    def _guess(self, attack: str, inside: Sequence[float], outside: Sequence[float], n: int, *, steps: int) -> Finding:
        """A coin decides the world; the reader says ``inside`` where the likelihood ratio is above 1."""
        hits = sum(score > 0 for score in inside) + sum(score <= 0 for score in outside)
        epsilon, delta = self._budget.epsilon, self._budget.delta
        growth = math.exp(steps * epsilon)
        total_delta = delta * (1 + math.exp(epsilon) * (steps - 1))
        return self._finding(
            attack,
            hits,
            len(inside) + len(outside),
            self._law_of_guess(n, steps),
            (growth + total_delta) / (1 + growth),
            shown_epsilon(inside, outside, total_delta) / steps,
        )

    def _law_of_guess(self, n: int, steps: int) -> float:
        """Right guesses of the best reader of n counts of queries and of clicks, of so many sets.

        Gaussian: two normal laws at a distance of μ. Laplace: each ratio is e^(±1/b), so that signs are counted.
        """
        noises = [step.noise for step in (self._design.query_counts, self._design.click_counts) if step]
        if self._design.params.gaussian_noise:
            return NormalDist().cdf(math.sqrt(steps * math.fsum(n / noise.scale**2 for noise in noises)) / 2)
        scores, inside, outside = np.zeros(1), np.ones(1), np.ones(1)
        signs = np.arange(n + 1)
        for noise in noises * steps:
            scores = np.add.outer(scores, (2 * signs - n) / noise.scale).ravel()
            inside = np.multiply.outer(inside, binom.pmf(signs, n, noise.at_least(0))).ravel()
            outside = np.multiply.outer(outside, binom.pmf(signs, n, noise.at_least(1))).ravel()
        return float(inside[scores > 0].sum() + outside[scores <= 0].sum()) / 2

    def _score(self, published: Published, queries: Sequence[str], others: int) -> float:
        """ln of the likelihood ratio: these counts with the target against without."""
        step, clicks = self._design.query_counts, self._design.click_counts
        total = math.fsum(_log_ratio(step, published.queries[q] - others) for q in queries if q in published.queries)
        if clicks:
            pairs = [(query, page_of(query)) for query in queries]
            total += math.fsum(_log_ratio(clicks, published.pairs[p] - others) for p in pairs if p in published.pairs)
        return total

    def _releases(self, log: ClickLog, world: int) -> Iterator[Published]:
        for run in range(self._runs):
            yield publish(log, self._run_with, SeededRandomness((self._seed * _WORLDS + world) * _MOST_RUNS + run))

    def _sure_users(self, items: int) -> int:
        """So many users that each of ``items`` queries, which they all search, is published for certain."""
        least = 1
        for step in [*self._design.rounds[:1], *filter(None, [self._design.click_counts])]:
            each = weight(step.units, items) if step.units > 1 else 1
            sure = partial(_is_certain, step, each)
            least = max(least, least_integer(sure, above=0))
        return least

    def _finding(
        self, attack: str, hits: int, trials: int, law: float | None, allowed: float, epsilon: float | None = None
    ) -> Finding:
        low, high = lower_bound(hits, trials, LEVEL / 2), upper_bound(hits, trials, LEVEL / 2)
        return Finding(self.name, attack, hits, trials, low, high, law, allowed, epsilon)


def shown_epsilon(inside: Sequence[float], outside: Sequence[float], delta: float) -> float:
    """The ε that the scores show, at least: a cut is chosen on every second run and bounded on the others."""
    chosen_on, tested_on = (slice(0, None, 2), slice(1, None, 2))
    trials = len(inside[chosen_on])
    cuts = sorted({*inside[chosen_on], *outside[chosen_on]})[:: max(trials // 50, 1)]

    def bound(cut: float, runs: slice) -> float:
        hits, misses = (sum(score > cut for score in scores[runs]) for scores in (inside, outside))
        return max(epsilon_bound(hits, misses, len(inside[runs]), delta, LEVEL), 0.0)

    return bound(max(cuts, key=lambda cut: bound(cut, chosen_on)), tested_on) if trials > 1 else 0.0


def _is_certain(step: StepDesign, each: int, users: int) -> bool:
    """Whether what so many users add to, each so much, is published."""
    return step_release_probability(step, users * each) >= CERTAIN


def _log_ratio(step: StepDesign, noise: int) -> float:
    """ln P(Y = noise − 1) − ln P(Y = noise): one user more in the count, or none."""
    return _log_mass(step.noise, noise - 1) - _log_mass(step.noise, noise)


@cache
def _log_mass(noise: Any, value: int) -> float:
    """The law of the noise, symmetric; far out, where no draw comes, a floor keeps it finite."""
    mass = noise.at_least(abs(value)) - noise.at_least(abs(value) + 1)
    return math.log(max(mass, 1e-300))


# --- rules ----------------------------------------------------------------------------------------------------------


def rule_findings(rule: Rule, *, pages: bool = True) -> list[Finding]:
    """What a rule publishes of the planted people, and what a reader with accounts of their own learns from it."""
    kinds = [kind for kind in KINDS if pages or not kind.own_page]
    common, second = rule.common
    published = _of(rule, [*crowd(rule.users, [common]), *planted(kinds, common)])
    of_rules = [
        _certain(rule, kind.name, sum(kind.named(i, common, published) for i in range(PEOPLE)), PEOPLE)
        for kind in kinds
    ]
    own = [*crowd(rule.users - 1, [common]), *crowd(rule.users - 1, [second])]
    one, other, none = (
        frozenset(_of(rule, [*own, *crowd(1, queries)]).queries) for queries in ([common], [second], [])
    )
    return [
        *of_rules,
        *(_certain(rule, *guess) for guess in ((MEMBERSHIP, _right(one, none), 2), (INFERENCE, _right(one, other), 2))),
    ]


def _of(rule: Rule, users: Sequence[Account]) -> Published:
    return rule.publish(TrueCounts.of(InMemoryClickLog(users)))


def _right(one: frozenset[str], other: frozenset[str]) -> int:
    """Right guesses in both worlds: a rule that publishes the same in both leaves a coin."""
    return 2 if one != other else 1


def _certain(rule: Rule, attack: str, hits: int, trials: int) -> Finding:
    """No noise, so no interval: it is the same every time."""
    return Finding(rule.name, attack, hits, trials, hits / trials, hits / trials)
