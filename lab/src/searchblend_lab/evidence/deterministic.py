"""The control: a release that only drops rare queries is not private ([KKMN09] §6), and this audit says so.

Publishing a query iff at least T people searched it protects no one who is the T-th. The same code, the same attack and
the same bound as for the real release must refute any ε up to the resolution of the samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Final
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from searchblend.clickgraph.release.click_log import InMemoryClickLog, Search
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.release_data import select_queries
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.mechanisms.noise_table import NoiseTable
from searchblend_lab.evidence.evidence import ADD_REMOVE, Claim, Effort, Finding, Verdict
from searchblend_lab.evidence.sampled import attack

_PARAMS: Final = ClickGraphParams(Budget(1.0, 0.01), algorithm="kkmn2009", max_queries_per_user=1)


def deterministic_threshold(effort: Effort) -> list[Finding]:
    """T people search for a query, or T − 1: with a threshold alone the answer tells which."""
    design = ClickGraphDesign.of(_PARAMS)
    top = design.rounds[0].threshold or 0
    claim = Claim(_PARAMS.budget.epsilon, _PARAMS.budget.delta, ADD_REMOVE)

    def publishes(people: int) -> Callable[[int], Counter[Hashable]]:
        log = InMemoryClickLog([[Search("rare")]] * people)
        source = SystemRandomness()
        return lambda n: Counter(bool(select_queries(log, design, randomness=source)[0]) for _ in range(n))

    n = max(effort.runs, 200)
    with without_noise():
        found = attack("threshold without noise", claim, [publishes(top), publishes(top - 1)], n, effort.level)
    refuted = found.verdict is Verdict.REFUTED
    verdict = Verdict.AS_EXPECTED if refuted else Verdict.NO_POWER
    detail = f"published with {top} people always, with {top - 1} never: no ε below the resolution survives"
    return [Finding(found.subject, verdict, detail, claim, found.measured, found.resolution, found.trials)]


def without_noise() -> AbstractContextManager[object]:
    """The shipped code with noise that is always 0."""

    def reaching(
        self: NoiseTable, floor: int, size: int, randomness: Randomness
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        zeros = np.zeros(size if floor <= 0 else 0, dtype=np.int64)
        return np.arange(len(zeros)), zeros

    return patch.multiple(
        NoiseTable, reaching=reaching, sample=lambda self, size, randomness: np.zeros(size, dtype=np.int64)
    )
