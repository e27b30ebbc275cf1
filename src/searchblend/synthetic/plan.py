"""What a run would give, before any user is asked: simulated, without private data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from scipy import special

from searchblend.accounting.shuffle import ShuffleCost
from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.method import METHODS
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.pipeline import run_blender
from searchblend.blender.published_cost import published_cost
from searchblend.blender.release import BlenderRelease
from searchblend.core.errors import EmptyHeadList
from searchblend.synthetic.count_group import RecordModel, Situation, Voices
from searchblend.synthetic.metrics import listed_cells
from searchblend.synthetic.seeded import SeededRandomness

OnRun = Callable[[], None]
FRACTIONS: Final = {"head_fraction": (0.8, 0.9, 0.95), "query_budget_fraction": (0.7, 0.8, 0.85, 0.9, 0.95)}
FIGURES: Final = {"head_queries": 1, "covered": 1, "plus_minus": -1, "error": -1}
"""and whether more of it is better or worse"""
WANTED: Final = ("head_queries", "covered", "plus_minus")
"""what advice goes by"""
RANKS: Final = (1, 10, 50, 200)
"""true ranks whose query is followed"""
RECOMMEND_RUNS: Final = 8
_LEVEL: Final = 0.05
"""the chance that a difference is shown where there is none"""
_NORMAL_95: Final = 1.959964


@dataclass(frozen=True)
class Band:
    """A forecast: mean over simulated runs and the middle 80 % of them."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Band:
        return cls(float(np.mean(values)), *np.quantile(values, [0.1, 0.9]).tolist())


@dataclass(frozen=True)
class RankForecast:
    """What is known afterwards of the query with one true rank."""

    rank: int
    share: float
    """true"""
    listed: float
    """in so many of the runs"""
    plus_minus: Band | None
    """half of the 95 % interval, where it is listed"""


@dataclass(frozen=True)
class MethodForecast:
    """What one method would give: how much of what people search, and how exactly."""

    method: str
    head_queries: Band
    covered: Band
    """share of all searches that the listed queries make up"""
    plus_minus: Band
    """± of the queries at the followed ranks, added up; one that is not listed counts with its whole share"""
    error: Band
    """L1 over the truly most frequent M queries and over their records; what is not listed counts as estimated 0"""
    ranks: tuple[RankForecast, ...]
    runs: Mapping[str, tuple[float, ...]]
    """the figures run by run; the same run has the same clients in every forecast of one situation"""
    example: BlenderRelease | None
    """one simulated release, for standard deviations and mechanisms; None if every list was empty"""

    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = {name: asdict(getattr(self, name)) for name in FIGURES}
        document["ranks"] = [asdict(rank) for rank in self.ranks]
        if self.example:
            document["mechanism"] = dict(self.example.mechanism)
            document["standard_deviations"] = standard_deviations(self.example)
        return document


@dataclass(frozen=True)
class Difference:
    """How a figure changes from one forecast to another, run by run."""

    before: float
    after: float
    error: float | None
    """standard error of the change; None of a single run"""
    runs: int

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float]) -> Difference:
        change = np.subtract(after, before)
        spread = float(np.std(change, ddof=1) / np.sqrt(len(change))) if len(change) > 1 else None
        return cls(float(np.mean(before)), float(np.mean(after)), spread, len(change))

    def shown(self, compared: int = 1) -> bool:
        """Whether it is larger than the simulation's own error (Student), if so many differences are looked at."""
        if self.error is None:
            return False
        errors = float(special.stdtrit(self.runs - 1, 1 - _LEVEL / 2 / compared))
        return abs(self.after - self.before) > errors * self.error


def simulate(
    model: RecordModel, situation: Situation, method: str, *, runs: int, seed: int, on_run: OnRun = lambda: None
) -> MethodForecast:
    """Run the shipped algorithm on simulated people; the same seed gives the same clients to every method.

    Clients report on one search of theirs; all searches of opt-in users count where the parameters take many.
    """
    params = situation.params_of(method)
    top = model.top_queries(max(params.max_head_queries, RANKS[-1]))
    listed_lists: list[dict[str, float]] = []
    figures: dict[str, list[float]] = {name: [] for name in FIGURES}
    example = None
    for run in range(runs):
        people = Voices.draw(model, situation, params, (seed, run))
        try:
            noise = SeededRandomness(seed * 1_000_003 + run)
            release = run_blender(people.optin, people.clients, params, method=method, randomness=noise)
        except EmptyHeadList:
            release = None
        listed_lists.append(_intervals(release))
        measured = scores_of(release, top, params.max_head_queries, people)
        measured["plus_minus"] = _plus_minus(top, listed_lists[-1])
        for name, value in measured.items():
            figures[name].append(value)
        example = example or release
        on_run()
    bands = {name: Band.of(values) for name, values in figures.items()}
    kept = {name: tuple(values) for name, values in figures.items()}
    return MethodForecast(method, **bands, ranks=_at_ranks(top, listed_lists), runs=kept, example=example)


def scores_of(release: BlenderRelease | None, top: Mapping[str, float], most: int, people: Voices) -> dict[str, float]:
    """What was listed, and the error over the first ``most`` queries of the true ``top``."""
    asked = dict(list(top.items())[:most])
    everything = sum(asked.values())
    if release is None:
        return {"head_queries": 0.0, "covered": 0.0, "error": 2 * everything}
    head = release.head
    truth = people.truth(head)
    wanted = np.array([query in asked for query in head.queries])
    cells = listed_cells(head)
    cells = cells[wanted[np.array(head.query_of_cells())[cells]]]
    queries = np.flatnonzero(wanted)
    error = np.abs(release.queries.probability - truth.queries)[queries].sum() - truth.queries[queries].sum()
    error += np.abs(release.records.probability - truth.cells)[cells].sum() - truth.cells[cells].sum()
    return {
        "head_queries": float(len(head)),
        "covered": float(truth.queries[:-1].sum()),
        "error": float(2 * everything + error),
    }


def _intervals(release: BlenderRelease | None) -> dict[str, float]:
    """Half of the 95 % interval of every listed query."""
    if release is None:
        return {}
    halves = _NORMAL_95 * np.sqrt(release.queries.raw.variance[:-1])
    return dict(zip(release.head.queries, halves.tolist(), strict=True))


def _followed(top: Mapping[str, float]) -> dict[int, str]:
    names = list(top)
    return {rank: names[rank - 1] for rank in RANKS if rank <= len(names)}


def _plus_minus(top: Mapping[str, float], intervals: Mapping[str, float]) -> float:
    """An interval that is wider than the share says no more of a query than its absence."""
    return sum(min(intervals.get(name, math.inf), top[name]) for name in _followed(top).values())


def _at_ranks(top: Mapping[str, float], lists: Sequence[Mapping[str, float]]) -> tuple[RankForecast, ...]:
    forecasts = []
    for rank, name in _followed(top).items():
        halves = [intervals[name] for intervals in lists if name in intervals]
        band = Band.of(halves) if halves else None
        forecasts.append(RankForecast(rank, top[name], len(halves) / len(lists), band))
    return tuple(forecasts)


def standard_deviations(release: BlenderRelease) -> list[dict[str, float]]:
    """For every listed record its share and the standard deviation of its estimate, largest share first."""
    cells = listed_cells(release.head)
    shares, deviations = release.records.probability[cells], np.sqrt(release.records.raw.variance[cells])
    order = np.argsort(-shares)
    return [{"share": float(shares[i]), "standard_deviation": float(deviations[i])} for i in order]


def is_better(now: MethodForecast, then: MethodForecast, alternatives: int = 1) -> bool:
    """Whether a change is advised: something that users want is shown to be better, and no figure to be worse.

    Not by the error over the run's own list: a short list is easy to be exact about.
    """
    changes = {name: Difference.of(now.runs[name], then.runs[name]) for name in FIGURES}
    gains = {
        name: FIGURES[name] * (change.after - change.before)
        for name, change in changes.items()
        if change.shown(alternatives * len(FIGURES))
    }
    return any(gains.get(name, 0.0) > 0 for name in WANTED) and min(gains.values()) > 0


def recommend(
    model: RecordModel, situation: Situation, *, runs: int, seed: int, on_run: OnRun = lambda: None
) -> dict[str, float]:
    """The printed method's fractions, one at a time against the defaults; empty if none is shown to be better."""
    default = simulate(model, situation, "paper", runs=runs, seed=seed, on_run=on_run)
    advice: dict[str, float] = {}
    alternatives = runs_of_fractions() - 1
    for field, values in FRACTIONS.items():
        better: dict[float, float] = {}
        for value in values:
            if value != getattr(situation.params, field):
                other = situation.with_fraction(field, value)
                outcome = simulate(model, other, "paper", runs=runs, seed=seed, on_run=on_run)
                if is_better(default, outcome, alternatives):
                    better[value] = outcome.plus_minus.mean
        if better:
            advice[field] = min(better, key=lambda value: better[value])
    return advice


def runs_of_fractions() -> int:
    """How many settings of the fractions ``recommend`` simulates, the defaults with them."""
    return 1 + sum(len(values) - 1 for values in FRACTIONS.values())


def influence(release: BlenderRelease) -> dict[str, float | None]:
    """How far one fabricated report can move what the clients' reports say: of a query and of a cell.

    A round states the bound for the published blend, which depends on what was reported (``best/influence.py``).
    """
    return _paper_influence(release) if release.design is None else _best_influence(release)


def _paper_influence(release: BlenderRelease) -> dict[str, float | None]:
    probabilities = ReportProbabilities.of(release.head, release.params)
    t, n = probabilities.keep_query, release.client.n
    a = (1 - t) / (probabilities.n_queries - 1)
    slopes = [
        t * keep - t * (1 - keep) / max(width - 1, 1)
        for keep, width in zip(probabilities.keep_url, probabilities.n_urls, strict=True)
    ]
    return {"query": 1 / (n * (t - a)), "cell": 1 / (n * min(slopes))}


def _best_influence(release: BlenderRelease) -> dict[str, float | None]:
    assert release.design is not None
    moves: dict[str, float | None] = {"query": None, "cell": None}
    for name, mechanism, share in (
        ("query", release.design.about_queries(release.head, release.params), release.design.query_share),
        ("cell", release.design.about_cells(release.head, release.params), 1 - release.design.query_share),
    ):
        if mechanism is not None:
            law = SetLaw.of(mechanism)
            moves[name] = law.influence / (release.client.n * share)
    return moves


def colluding_users(release: BlenderRelease) -> dict[str, int]:
    """How many opt-in users who agree on a record force it into the list, half of the time and almost surely."""
    mechanism = release.mechanism["optin"]
    units = mechanism.get("units_per_user", 1)
    threshold, scale = mechanism["integer_threshold"], mechanism["noise_scale"]
    sure = threshold + scale * np.log(1 / 0.02)
    return {"half_of_the_time": int(np.ceil(threshold / units)), "99_percent": int(np.ceil(sure / units))}


def plan_document(
    model: RecordModel, situation: Situation, *, profile: str, runs: int, seed: int = 1, on_run: OnRun = lambda: None
) -> dict[str, Any]:
    """Everything that ``searchblend plan`` says."""
    situation = situation.settled()
    records_of_run = situation.params.counted_records_per_optin
    more_optin = replace(situation, optin_fraction=min(situation.optin_fraction + 0.01, 0.99))
    if more_optin.is_crowd:  # what is compared is simulated alike
        situation, more_optin = situation.of_one_record(), more_optin.of_one_record()

    def forecast(of: Situation, method: str = "best") -> MethodForecast:
        return simulate(model, of, method, runs=runs, seed=seed, on_run=on_run)

    forecasts = {method: forecast(situation, method) for method in METHODS}
    now, best = forecasts["best"], forecasts["best"].example
    records = situation.params_of("best").counted_records_per_optin
    more_epsilon = situation.with_budget(situation.params.budget.epsilon + 1)
    others = {"one_more_percent_opt_in": more_optin, "one_more_epsilon": more_epsilon}
    if records > 1:
        others["one_record_per_optin"] = situation.of_one_record()
    instead = {name: forecast(then) for name, then in others.items()}
    is_one_better = records > 1 and is_better(now, instead["one_record_per_optin"])
    return {
        "format": "searchblend-plan",
        "version": 3,
        "profile": profile,
        "users": situation.users,
        "optin_fraction": situation.optin_fraction,
        "searches": situation.searches,
        "epsilon": situation.params.budget.epsilon,
        "delta": situation.params.budget.delta,
        "max_head_queries": situation.params.max_head_queries,
        "records_per_optin": records,
        "records_of_run": records_of_run,
        "runs": runs,
        "methods": {name: forecast.as_json() for name, forecast in forecasts.items()},
        "recommended": {
            "method": "paper" if is_better(now, forecasts["paper"]) else "best",
            "records_per_optin": 1 if is_one_better else records,
            "paper": recommend(model, situation, runs=RECOMMEND_RUNS, seed=seed, on_run=on_run),
        },
        "buys": {name: _bought(now, then) for name, then in instead.items()},
        "clients_in_public": asdict(_published(best)) if best else None,
        "one_report_moves": influence(best) if best else None,
        "colluding_optin_users": colluding_users(best) if best else None,
    }


def _published(release: BlenderRelease) -> ShuffleCost:
    """What the published files alone would tell of one client."""
    return published_cost(release.head, release.design, release.params, release.sizes.clients)


def _bought(now: MethodForecast, then: MethodForecast) -> dict[str, dict[str, Any]]:
    """Figure by figure, and whether the simulation can tell the change from nothing."""
    changes = {name: Difference.of(now.runs[name], then.runs[name]) for name in FIGURES}
    return {name: {**asdict(change), "shown": change.shown(len(FIGURES))} for name, change in changes.items()}


def curve(
    model: RecordModel, situation: Situation, epsilons: Sequence[float], *, runs: int, seed: int, on_run: OnRun
) -> dict[str, list[MethodForecast]]:
    """Forecasts of both methods over ε, for a plot."""
    return {
        method: [
            simulate(model, situation.with_budget(epsilon), method, runs=runs, seed=seed, on_run=on_run)
            for epsilon in epsilons
        ]
        for method in METHODS
    }


def runs_needed(runs: int, situation: Situation) -> int:
    """How many simulated runs ``plan_document`` makes, for a progress bar."""
    forecasts = 4 + (situation.params_of("best").counted_records_per_optin > 1)
    return forecasts * runs + RECOMMEND_RUNS * runs_of_fractions()
