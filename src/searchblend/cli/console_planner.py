"""The console's planner: the simulations of ``searchblend plan``, which the server itself does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.service.console.planner_page import Forecast, Question
from searchblend.synthetic.count_group import RecordModel
from searchblend.synthetic.plan import Situation, curve
from searchblend.synthetic.population import profile_named

_PROFILE: Final = "aol"
_RUNS: Final = 3
_SEED: Final = 2


def forecast(question: Question, epsilons: Sequence[float]) -> Forecast:
    """Both methods over ε on simulated people: figures with the middle 80 % of runs."""
    model = RecordModel.of_profile(profile_named(_PROFILE))
    params = BlenderParams(Budget(question.epsilon, question.delta), max_head_queries=question.max_head_queries)
    situation = Situation(question.users, question.optin_percent / 100, params)
    curves = curve(model, situation, epsilons, runs=_RUNS, seed=_SEED, on_run=lambda: None)
    return {
        "curves": {
            method: {
                name: [asdict(band) if (band := getattr(found, name)) else None for found in forecasts]
                for name in ("head_queries", "covered", "error")
            }
            for method, forecasts in curves.items()
        }
    }
