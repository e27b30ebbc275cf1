"""Lower bounds on ε of whole releases: everything that a run publishes is the output under attack.

The worlds are small and stand side by side in one run: noise is drawn for each record alone, which the distribution
tests check, so that each world is one sample. Public designs are made once for all runs.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from searchblend.blender.best import choose_design
from searchblend.blender.exchanged import PrintedSteps
from searchblend.blender.groups import InMemoryGroup, UserGroup
from searchblend.blender.method import Method
from searchblend.blender.pipeline import run_blender
from searchblend.blender.release import BlenderRelease
from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release import ClickGraphRelease
from searchblend.clickgraph.release.release_data import release_data
from searchblend.clickgraph.release.step import StepDesign
from searchblend.core.errors import EmptyHeadList, UsageError
from searchblend.core.params import BlenderParams, ClickGraphParams
from searchblend.core.privacy import UNIT, Budget
from searchblend.core.randomness import Randomness
from searchblend.core.records import Record
from searchblend.mechanisms.rounded_gaussian import RoundedGaussian
from searchblend.releases.hybrid import method_at
from searchblend_lab.evidence.evidence import ADD_REMOVE, ONE_CLIENT, REPLACE_ONE, Claim, Effort, Finding
from searchblend_lab.evidence.sampled import Sampler, attack

LOOSE: Final = Budget(2.0, 0.05)
_HYBRID_WORLDS: Final = 8
_GRAPH_WORLDS: Final = 40
_FEWEST: Final = 1200
"""samples of a click graph, so that the resolution is above ε"""
_CLIENTS: Final = [[Record("x0", "u")], [Record("other", "u")]]
_EMPTY: Final = "no head list"


# --- the hybrid run --------------------------------------------------------------------------------------------------


def hybrid_optin(effort: Effort) -> list[Finding]:
    """``run_blender``: one opt-in user's record is ⟨x,u⟩, or it is ⟨y,u⟩.

    The printed method names with some users (S) and counts with others (T); it must be private for any split, so the
    split is given, with the changed user in S or in T.
    """
    claim, n = Claim.of(LOOSE, REPLACE_ONE), effort.runs * _HYBRID_WORLDS
    said = "names, URLs, counts and residuals of the release"
    best: dict[str, object] = {"method": "best"}
    in_s: list[Any] = [_Split(_people(5, 4), _people(3, 3)), _Split(_people(4, 5), _people(3, 3))]
    in_t: list[Any] = [_Split(_people(30, 30), _people(4, 3)), _Split(_people(30, 30), _people(3, 4))]
    whole: list[Any] = [InMemoryGroup.from_users(_people(7, 6)), InMemoryGroup.from_users(_people(6, 7))]
    cases: list[tuple[str, list[Any], dict[str, object], int]] = [
        ("paper), an opt-in user of S", in_s, {"method": "paper"}, n // 2),
        ("paper), an opt-in user of T", in_t, {"method": "paper"}, n // 2),
        ("best), an opt-in user", whole, best, n // 4),
        ("best, wide list), an opt-in user", whole, {**best, "wide_list": True}, n // 4),
    ]
    with _one_candidate():
        return [
            attack(
                f"hybrid run ({name}",
                claim,
                [_optin_sampler(group, options) for group in pair],
                draws,
                effort.level,
                said,
            )
            for name, pair, options, draws in cases
        ]


def outside_optin(path: str, effort: Effort) -> list[Finding]:
    """The same worlds as ``hybrid_optin``, run by a method from outside, against the promise that it states."""
    method, n = _loaded(path), effort.runs * _HYBRID_WORLDS // 2
    cases: list[tuple[str, list[Any]]] = [
        ("an opt-in user", [InMemoryGroup.from_users(_people(7, 6)), InMemoryGroup.from_users(_people(6, 7))])
    ]
    if isinstance(method, PrintedSteps):  # names with some users, counts with others: private for any split
        cases = [
            ("an opt-in user of S", [_Split(_people(*s), _people(3, 3)) for s in ((5, 4), (4, 5))]),
            (
                "an opt-in user of S, own record",
                [_Split(_people(1, 4), _people(3, 3)), _Split(_people(0, 5), _people(3, 3))],
            ),
            ("an opt-in user of T", [_Split(_people(30, 30), _people(*t)) for t in ((4, 3), (3, 4))]),
        ]
    params = BlenderParams(LOOSE, max_head_queries=100, head_fraction=0.5, records_per_optin=1)
    claim = Claim.of(_stated(method, params, "opt-in users"), REPLACE_ONE)
    return [
        attack(
            f"{path}, {name}",
            claim,
            [_optin_sampler(group, {"method": method}) for group in pair],
            n,
            effort.level,
            "names, URLs and counts of the release",
        )
        for name, pair in cases
    ]


def outside_clients(path: str, effort: Effort) -> list[Finding]:
    """The same as ``hybrid_clients``, of a method from outside."""
    method, budget = _loaded(path), Budget(2.0, 1e-5)
    pair = Record("a", "u"), Record("b", "u")
    claim = Claim.of(_stated(method, BlenderParams(budget, records_per_optin=1), "clients"), ONE_CLIENT)
    samplers = [_client_sampler(record, budget, method) for record in pair]
    return [attack(f"{path}, a client", claim, samplers, effort.runs, effort.level, "the clients' estimates")]


def _loaded(path: str) -> Method:
    method = method_at(path)
    if isinstance(method, str):
        raise UsageError(f"--method: expected a method from outside; {method} is what the other checks are about")
    return method


def _stated(method: Method, params: BlenderParams, group: str) -> Budget:
    """The budget that a method states for a group, in a release of a small world."""
    people = InMemoryGroup.from_users([[Record(query, "u")] for query in "ab" for _ in range(120)])
    stated = run_blender(people, people, params, method=method).guarantee
    return next(one.budget for one in stated.groups if one.group == group)


@contextlib.contextmanager
def _one_candidate() -> Iterator[None]:
    """How clients report is chosen from the released counts; comparing fewer designs saves most of a run's time."""
    compared = choose_design.candidates
    with patch.object(choose_design, "candidates", lambda *arguments: compared(*arguments)[:1]):
        yield


class _Split:
    """Opt-in users of whom it is known who names and who counts."""

    has_urls = has_rows = True
    unit = UNIT

    def __init__(self, head_users: Sequence[Sequence[Record]], estimate_users: Sequence[Sequence[Record]]) -> None:
        self._parts = InMemoryGroup.from_users(head_users), InMemoryGroup.from_users(estimate_users)
        self.n_users = len(head_users) + len(estimate_users)

    def split(self, fraction: float, *, randomness: Randomness | None = None) -> tuple[InMemoryGroup, InMemoryGroup]:
        return self._parts


def _people(x: int, y: int) -> list[list[Record]]:
    counts = (("x", x), ("y", y))
    return [[Record(f"{query}{i}", "u")] for i in range(_HYBRID_WORLDS) for query, n in counts for _ in range(n)]


def _optin_sampler(group: UserGroup, options: Mapping[str, object]) -> Sampler:
    params = BlenderParams(LOOSE, max_head_queries=100, head_fraction=0.5, records_per_optin=1)
    clients = InMemoryGroup.from_users(_CLIENTS)

    def sample(n: int) -> Counter[Hashable]:
        seen: Counter[Hashable] = Counter()
        for _ in range(-(-n // _HYBRID_WORLDS)):
            try:
                release = run_blender(group, clients, params, **options)  # type: ignore[arg-type]
            except EmptyHeadList:
                seen[_EMPTY] += _HYBRID_WORLDS
            else:
                seen.update(_optin_outputs(release))
        return seen

    return sample


def _optin_outputs(release: BlenderRelease) -> list[Hashable]:
    """What a run says of each world: which of x and y is listed, and its opt-in figures as whole numbers."""
    first = dict(zip(release.head.queries, release.head.first_cells()[:-1], strict=True))
    n = release.optin.n
    figures = np.nan_to_num(release.optin.records.probability * n, nan=0.0)

    def of_query(query: str) -> Hashable:
        if query not in first:
            return None
        return int(np.clip(np.rint(figures[first[query]]), -3, 15))

    return [(of_query(f"x{i}"), of_query(f"y{i}")) for i in range(_HYBRID_WORLDS)]


def hybrid_clients(effort: Effort) -> list[Finding]:
    """``run_blender``: the record of one of two clients changes; both estimates are published."""
    budget = Budget(2.0, 1e-5)
    claim = Claim.of(budget, ONE_CLIENT)
    pair = Record("a", "u"), Record("b", "u")
    with _one_candidate():
        return [
            attack(
                f"hybrid run ({method}), a client",
                claim,
                [_client_sampler(record, budget, method) for record in pair],
                effort.runs // (1 if method == "paper" else 3),
                effort.level,
                "the clients' estimates of the release",
            )
            for method in ("paper", "best")
        ]


def _client_sampler(record: Record, budget: Budget, method: str | Method) -> Sampler:
    """The opt-in counts are so large that the head list is the same in every run."""
    params = BlenderParams(budget, max_head_queries=4, head_fraction=0.5, records_per_optin=1)
    optin = InMemoryGroup.from_users([[Record(query, "u")] for query in "ab" for _ in range(120)])
    clients = InMemoryGroup.from_users([[record], [Record("b", "u")]])

    def sample(n: int) -> Counter[Hashable]:
        seen: Counter[Hashable] = Counter()
        for _ in range(n):
            release = run_blender(optin, clients, params, method=method)
            order = np.argsort(release.head.queries)
            seen[tuple(np.round(release.client.queries.probability[order], 2).tolist())] += 1
        return seen

    return sample


# --- the click graph -------------------------------------------------------------------------------------------------


def click_graph(algorithm: str, effort: Effort) -> list[Finding]:
    """``release_data`` with queries, private clicks and typed reformulations; one user is added.

    Once the user's queries, clicks and pairs are there without them, once they are the user's own.
    """
    params = ClickGraphParams(
        LOOSE,
        algorithm=algorithm,
        max_queries_per_user=2,
        max_clicks_per_user=2,
        max_reformulations_per_user=1,
        urls="private",
        reformulations="typed",
        allow_large_delta=True,
    )
    claim, n = Claim.of(LOOSE, ADD_REMOVE), max(effort.runs * _GRAPH_WORLDS // 12, _FEWEST)
    design = ClickGraphDesign.of(params)
    enough = 2 + max(-(-(step.threshold or 0) // step.units) for step in design.steps)
    findings = []
    with _same_design():
        for name, there in (("known queries", enough + 4), ("queries of one user", 0)):
            findings.append(
                attack(
                    f"click graph ({algorithm}), {name}",
                    claim,
                    [_graph_sampler(params, there, user=user) for user in (True, False)],
                    n,
                    effort.level,
                    "all released names and counts",
                )
            )
    return findings


@contextlib.contextmanager
def _same_design() -> Iterator[None]:
    """The design follows from public parameters alone; making it takes longer than the release of a small log."""
    made = lru_cache(maxsize=8)(ClickGraphDesign.of)
    with patch.object(ClickGraphDesign, "of", made):
        yield


def _graph_sampler(params: ClickGraphParams, there: int, *, user: bool) -> Sampler:
    design = ClickGraphDesign.of(params)
    users = [person for i in range(_GRAPH_WORLDS) for person in _world(i, there, user=user)]
    log = InMemoryClickLog(users)

    def sample(n: int) -> Counter[Hashable]:
        seen: Counter[Hashable] = Counter()
        for _ in range(-(-n // _GRAPH_WORLDS)):
            seen.update(_graph_outputs(release_data(log, params), design, there))
        return seen

    return sample


def _world(i: int, there: int, *, user: bool) -> list[Sequence[Search]]:
    """``there`` people and perhaps one more, who search x and then y and click once each."""
    return [[Search(f"x{i}", 0.0, ("u",)), Search(f"y{i}", 1.0, ("u",))] for _ in range(there + user)]


def _graph_outputs(release: ClickGraphRelease, design: ClickGraphDesign, there: int) -> list[Hashable]:
    """For each world what was published, and a score that falls and rises with the likelihood ratio."""
    scores = np.zeros(_GRAPH_WORLDS)
    named = np.zeros(_GRAPH_WORLDS, dtype=int)
    tables = (
        (release.queries, design.query_counts),
        (release.clicks, design.click_counts),
        (release.reformulations, design.reformulations),
    )
    for rows, step in tables:
        if step is None:
            continue
        for row in rows:
            i = int(row.query[1:])
            named[i] += 1
            scores[i] += _log_likelihood_ratio(row.count / step.units - there, step)
    return list(zip(named.tolist(), np.clip(np.rint(6 * scores), -30, 30).tolist(), strict=True))


def _log_likelihood_ratio(excess: float, step: StepDesign) -> float:
    """Of a count that exceeds what is there by so much: is the user in it?"""
    scale = step.noise.scale / step.units
    if isinstance(step.noise, RoundedGaussian):
        return (excess - 0.5) / scale**2
    return (abs(excess) - abs(excess - 1)) / scale
