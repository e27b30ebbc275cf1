"""How many messages had arrived by when, at coarse steps: for the people who run a round.

No message leaves a trace of its own. A sample is a total that the round's page shows anyway, taken once a step, and
there are some dozens of steps in a window, none shorter than five minutes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from searchblend.service.clock import DAY, Clock
from searchblend.store.rounds import Round
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State

SAMPLES: Final = "arrivals"
_STEPS: Final = (300, 900, 3600, 3 * 3600, 6 * 3600, DAY)
_MOST_STEPS: Final = 60
_WINDOWS: Final = {
    State.OPTIN_OPEN: "optin_seconds",
    State.CLIENT_OPEN: "client_seconds",
    State.CLIENT_GRACE: "client_seconds",
}
"""states that take messages, and the setting that says for how long"""


@dataclass(frozen=True)
class ArrivalStep:
    """Messages that were taken from a moment on, until the step is over; None where no one looked in between."""

    begins: int
    n: int | None


class ArrivalLog:
    """Takes the samples, in the process that shows them."""

    def __init__(self, store: ServiceStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._last: dict[tuple[int, str], int] = {}

    def record(self) -> int:
        """Sample every open round whose last step is over; how many."""
        now, taken = self._clock.now(), 0
        for round_ in self._store.rounds.rounds(states=_WINDOWS):
            step, window = step_of(round_), _WINDOWS[round_.state]
            begins = now - now % step
            if self._last.get((round_.key, window)) != begins:
                taken += self._sample(round_, window, begins)
                self._last[round_.key, window] = begins
        return taken

    def _sample(self, round_: Round, window: str, begins: int) -> int:
        with self._store.transaction():
            samples = _samples(self._store, round_)
            rows = samples.setdefault(window, [])
            if rows and rows[-1][0] >= begins:
                return 0  # taken before this process started
            rows.append((begins, _total(self._store, round_)))
            self._store.artifacts.keep_json(round_.key, SAMPLES, samples)
        return 1


def step_of(round_: Round) -> int:
    """Seconds of a step; 0 is never returned, also for settings that cannot be read."""
    window = round_.settings.get(_WINDOWS.get(round_.state, "client_seconds"))
    seconds = window if isinstance(window, int) else 0
    return next((step for step in _STEPS if seconds <= _MOST_STEPS * step), _STEPS[-1])


def read_arrivals(store: ServiceStore, round_: Round, total: int) -> list[ArrivalStep]:
    """What arrived in each step of the window that is open, or of the clients' window after it.

    Args:
        store: Where the samples are.
        round_: Whose messages.
        total: How many there are now; what came after the last sample is the last step.
    """
    rows = _samples(store, round_).get(_WINDOWS.get(round_.state, "client_seconds"), [])
    step, steps = step_of(round_), []
    for (begins, before), (ends, after) in pairwise(rows):
        missed = ends - begins > step
        steps.append(ArrivalStep(begins, None if missed else max(after - before, 0)))
    return [*steps, ArrivalStep(rows[-1][0], max(total - rows[-1][1], 0))] if rows else []


def _total(store: ServiceStore, round_: Round) -> int:
    is_optin = round_.state is State.OPTIN_OPEN
    return store.contributions.count(round_.key) if is_optin else store.reports.n_seen(round_.key)


def _samples(store: ServiceStore, round_: Round) -> dict[str, list[tuple[int, int]]]:
    document = store.artifacts.kept_json(round_.key, SAMPLES) or {}
    return {window: [(begins, n) for begins, n in rows] for window, rows in document.items()}
