"""What a run would give, before anybody is asked: simulated, without private data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.set_law import SetLaw
from searchblend.blender.method import METHODS
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.blender.result import Result
from searchblend.core.errors import EmptyHeadList
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import WILDCARD, Record
from searchblend.mechanisms.threshold import Threshold
from searchblend.synthetic.count_group import RecordModel
from searchblend.synthetic.metrics import Truth, listed_cells, score
from searchblend.synthetic.population import aol_query_shares, url_shares
from searchblend.synthetic.seeded import SeededRandomness

OnRun = Callable[[], None]
HEAD_FRACTIONS: Final = (0.8, 0.9, 0.95)
QUERY_BUDGET_FRACTIONS: Final = (0.7, 0.8, 0.85, 0.9, 0.95)
_RANKS: Final = 50_000


@dataclass(frozen=True)
class Situation:
    """Who takes part, and what they spend."""

    users: int
    optin_fraction: float
    params: BlenderParams

    @property
    def n_optin(self) -> int:
        return max(round(self.users * self.optin_fraction), 2)

    def with_budget(self, epsilon: float) -> Situation:
        return replace(self, params=replace(self.params, budget=Budget(epsilon, self.params.budget.delta)))


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
class MethodForecast:
    """What one method would give. ``None`` where every simulated list was empty."""

    method: str
    head_queries: Band
    query_l1: Band | None
    record_l1: Band | None
    ndcg: Band | None
    example: BlenderRelease | None
    """one simulated release, for standard deviations and mechanisms"""

    def as_json(self) -> dict[str, Any]:
        figures = {name: getattr(self, name) for name in ("head_queries", "query_l1", "record_l1", "ndcg")}
        document: dict[str, Any] = {name: asdict(band) if band else None for name, band in figures.items()}
        if self.example:
            document["mechanism"] = dict(self.example.mechanism)
            document["standard_deviations"] = standard_deviations(self.example)
        return document


def simulate(
    model: RecordModel, situation: Situation, method: str, *, runs: int, seed: int, on_run: OnRun = lambda: None
) -> MethodForecast:
    """Run the shipped algorithm on simulated people; the same seed gives the same people to every method."""
    lengths, scores, example = [], [], None
    for run in range(runs):
        generator = np.random.Generator(np.random.PCG64([seed, run]))
        optin = model.draw(situation.n_optin, generator)
        clients = model.draw(situation.users - situation.n_optin, generator)
        try:
            noise = SeededRandomness(seed * 1_000_003 + run)
            release = run_blender(optin, clients, situation.params, method=method, randomness=noise)
        except EmptyHeadList:
            lengths.append(0)
        else:
            held = optin.cell_counts(release.head) + clients.cell_counts(release.head)
            lengths.append(len(release.head))
            scores.append(score(release, Truth.of(release.head, held)))
            example = example or release
        on_run()
    bands = {
        name: Band.of([getattr(entry, name) for entry in scores]) if scores else None
        for name in ("query_l1", "record_l1", "ndcg")
    }
    return MethodForecast(method, Band.of(lengths), **bands, example=example)


def standard_deviations(release: BlenderRelease) -> list[dict[str, float]]:
    """For every listed record its share and the standard deviation of its estimate, largest share first."""
    cells = listed_cells(release.head)
    shares, deviations = release.records.probability[cells], np.sqrt(release.records.raw.variance[cells])
    order = np.argsort(-shares)
    return [{"share": float(shares[i]), "standard_deviation": float(deviations[i])} for i in order]


def recommend(
    model: RecordModel, situation: Situation, *, runs: int, seed: int, on_run: OnRun = lambda: None
) -> dict[str, Any]:
    """The printed method's best fractions (least query L1 times record L1), and the design that ``best`` chooses."""
    scored: dict[tuple[float, float], float] = {}
    for head_fraction in HEAD_FRACTIONS:
        for query_fraction in QUERY_BUDGET_FRACTIONS:
            params = replace(situation.params, head_fraction=head_fraction, query_budget_fraction=query_fraction)
            forecast = simulate(model, replace(situation, params=params), "paper", runs=runs, seed=seed, on_run=on_run)
            if forecast.query_l1 and forecast.record_l1:
                scored[head_fraction, query_fraction] = forecast.query_l1.mean * forecast.record_l1.mean
    best = min(scored, key=lambda pair: scored[pair]) if scored else (None, None)
    return {"method": "best", "paper": {"head_fraction": best[0], "query_budget_fraction": best[1]}}


def influence(release: BlenderRelease) -> dict[str, float | None]:
    """How far one made-up report can move what the clients' reports say: of a query and of a cell.

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


def model_of_result(result: Result) -> RecordModel:
    """A model from an earlier result: its released shares. Lists longer than that one cannot be foreseen."""
    rows = [(row.query, row.url, row.probability or 0.0) for row in result.records]
    listed = [(query, url, share) for query, url, share in rows if query is not None and share > 0]
    records = [Record(query, WILDCARD if url is None else url) for query, url, _ in listed]
    return RecordModel.of_records(records, [share for _, _, share in listed])


def plan_document(
    model: RecordModel, situation: Situation, *, profile: str, runs: int, seed: int = 1, on_run: OnRun = lambda: None
) -> dict[str, Any]:
    """Everything that ``searchblend plan`` says."""
    forecasts = {m: simulate(model, situation, m, runs=runs, seed=seed, on_run=on_run) for m in METHODS}
    best = forecasts["best"].example
    more_optin = replace(situation, optin_fraction=min(situation.optin_fraction + 0.01, 0.99))
    more_epsilon = situation.with_budget(situation.params.budget.epsilon + 1)
    return {
        "format": "searchblend-plan",
        "version": 1,
        "profile": profile,
        "users": situation.users,
        "optin_fraction": situation.optin_fraction,
        "epsilon": situation.params.budget.epsilon,
        "delta": situation.params.budget.delta,
        "max_head_queries": situation.params.max_head_queries,
        "runs": runs,
        "methods": {name: forecast.as_json() for name, forecast in forecasts.items()},
        "recommended": recommend(model, situation, runs=2, seed=seed, on_run=on_run),
        "buys": {
            "one_more_percent_opt_in": _summary(
                simulate(model, more_optin, "best", runs=runs, seed=seed, on_run=on_run)
            ),
            "one_more_epsilon": _summary(simulate(model, more_epsilon, "best", runs=runs, seed=seed, on_run=on_run)),
        },
        "one_report_moves": influence(best) if best else None,
        "colluding_optin_users": colluding_users(best) if best else None,
    }


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


def runs_needed(runs: int) -> int:
    """How many simulated runs ``plan_document`` makes, for a progress bar."""
    return 4 * runs + 2 * len(HEAD_FRACTIONS) * len(QUERY_BUDGET_FRACTIONS)


def _summary(forecast: MethodForecast) -> dict[str, float | None]:
    return {
        "head_queries": forecast.head_queries.mean,
        "query_l1": forecast.query_l1.mean if forecast.query_l1 else None,
        "record_l1": forecast.record_l1.mean if forecast.record_l1 else None,
    }


def expected_head_queries(n_head_users: int, threshold: Threshold, max_head_queries: int) -> float:
    """How long a head list would be on an AOL-shaped population: queries with a record that passes, at most M.

    A record's count is Poisson(n·p); each URL of a query passes on its own. Ranks beyond 50,000 are so rare that
    only noise could name them.
    """
    shares = aol_query_shares()[:_RANKS, None] * url_shares(np.arange(_RANKS))
    missed = np.prod(1 - _pass_probability(n_head_users * shares, threshold), axis=1)
    return min(float((1 - missed).sum()), float(max_head_queries))


def _pass_probability(mean: NDArray[np.float64], threshold: Threshold) -> NDArray[np.float64]:
    """P(N ≥ 1 and N + Y ≥ T) for N ~ Poisson(mean)."""
    reach = threshold.integer + int(20 / float(threshold.noise.rate)) + 1
    passed, log_mean = np.zeros_like(mean), np.log(np.maximum(mean, 1e-300))
    below = np.exp(-mean)  # P(N = 0): an absent record is never named
    for count in range(1, reach):
        probability = np.exp(count * log_mean - mean - math.lgamma(count + 1))
        passed += probability * threshold.noise.at_least(threshold.integer - count)
        below += probability
    passed += 1 - below
    return passed.clip(0.0, 1.0)
