"""What the routes share: clock, metrics, log, a reading store, the writer of reports, and facts about open rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from searchblend.service.api.answers import Refusal, SharedAnswers, refusal_of, round_number
from searchblend.service.api.writers import (
    DATABASE_SECONDS,
    MOST_WAITING,
    ReportWriter,
    StoreThread,
)
from searchblend.service.clock import Clock, SystemClock
from searchblend.service.console.single_sign_on import SingleSignOn
from searchblend.service.enrolment import EnrolmentOffer
from searchblend.service.failed_sign_ins import SECONDS_BETWEEN_ROWS, FailedSignIns
from searchblend.service.round_model import sealing_context, settings_of, shape_of, token_verifier_of
from searchblend.service.telemetry import Logbook, ServiceMetrics
from searchblend.service.workers.gateway_keys import GatewayKeys
from searchblend.service.workers.vault import Vault
from searchblend.store.errors import UnknownName
from searchblend.store.service_store import ServiceStore
from searchblend.wire.report import ReportShape
from searchblend.wire.sealed import SealingContext
from searchblend.wire.tokens import TokenVerifier

_UNKNOWN_SECONDS: Final = 1.0
_MOST_UNKNOWN: Final = 1000
_PUBLIC_REST: Final = 4.0
"""a fifth of the time for pages that anyone may ask for"""


@dataclass(frozen=True)
class RoundFacts:
    """What never changes about a round that takes reports or records."""

    key: int
    shape: ReportShape | None
    """before reports can be taken there is none"""
    sealing: SealingContext
    tokens: TokenVerifier | None
    """what each report is paid with; None if the round asks for nothing"""


class TokenBucket:
    """At most ``rate`` a second in the long run, with bursts of as much; 0: no limit.

    Whoever comes while something is left gets all they ask for, and those after them wait until it is paid back: a
    batch larger than a second's worth would otherwise be refused for ever.
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._left, self._then = rate, rate, time.monotonic()

    def take(self, n: int) -> bool:
        if not self._rate:
            return True
        now = time.monotonic()
        self._left = min(self._rate, self._left + (now - self._then) * self._rate)
        self._then = now
        if self._left <= 0:
            return False
        self._left -= n
        return True


class Services:
    """Everything that routes need, for one server process."""

    def __init__(
        self,
        where: str,
        *,
        clock: Clock | None = None,
        logbook: Logbook | None = None,
        anonymous_intake: bool = False,
        reports_per_second: float = 0,
        most_waiting: int = MOST_WAITING,
        on_point: Callable[[str], None] = lambda point: None,
        database_seconds: float = DATABASE_SECONDS,
    ) -> None:
        def thread(name: str, rest: float = 0.0) -> StoreThread:
            return StoreThread(where, name, on_point, database_seconds, rest)

        self.clock = clock or SystemClock()
        self.logbook = logbook or Logbook()
        self.metrics = ServiceMetrics()
        self.anonymous_intake = anonymous_intake
        self.reader = thread("reader")
        # Pages read more than devices ask for: they have a connection of their own and keep no device waiting.
        self.console = thread("console")
        # What they decide may take seconds: a long list has to be scored before it is approved.
        self.actions = thread("actions")
        # What is published may be read by anyone, without limit: apart from what devices need.
        self.public = thread("public", rest=_PUBLIC_REST)
        self.pages, self.files = SharedAnswers(), SharedAnswers()
        self.health = thread("health")
        self.writer = ReportWriter(thread("reports"), self.clock, self.metrics, most_waiting=most_waiting)
        self.bucket = TokenBucket(reports_per_second)
        self.failed_sign_ins = FailedSignIns(
            self.console,
            self.clock,
            lambda error: self.logbook.failure("audit log out of reach", error),
            seconds=SECONDS_BETWEEN_ROWS,
        )
        self.is_working: Callable[[], bool] = lambda: True
        """whether the worker beside the server does its part; a role without one has nothing to ask"""
        self.troubles: list[Callable[[ServiceStore], str | None]] = []
        """checks that return why this process should not be called ready, or None"""
        self.vault: Vault | None = None
        """the folder of round keys, where the role has one"""
        self.offer: EnrolmentOffer | None = None
        """what those who join get, where the role has the signing keys"""
        self.sso: SingleSignOn | None = None
        """the issuer at which people may sign in, where one is set up"""
        self.gateway_keys: GatewayKeys | None = None
        """what requests that come through a relay are sealed to, where the role opens them"""
        self.is_answering: Callable[[], bool] = lambda: True
        """whether the public address is attended to"""
        self._facts: dict[tuple[str, int], RoundFacts] = {}
        self._unknown: dict[tuple[str, int], float] = {}

    async def start(self) -> None:
        await self.writer.start()

    async def stop(self) -> None:
        await self.writer.stop()
        await self.failed_sign_ins.stop()
        for thread in (self.reader, self.console, self.actions, self.public, self.health):
            await thread.close()

    async def facts(self, task: str, number: str, *, for_reports: bool) -> RoundFacts:
        """Facts about a round; those about reports are there once its head list is reviewed."""
        place = task, round_number(number)
        known = self._facts.get(place)
        if known and (known.shape or not for_reports):
            return known
        if self._unknown.get(place, 0) > time.monotonic():
            raise Refusal("unknown-task")

        def read(store: ServiceStore) -> RoundFacts:
            round_ = store.rounds.round(*place)
            tokens = token_verifier_of(round_)
            # Its tokens are known a moment after its shape: until then it takes no report, and none without a token.
            takes_reports = round_.shape and (tokens is not None or not settings_of(round_).token_issuer)
            return RoundFacts(round_.key, shape_of(round_) if takes_reports else None, sealing_context(round_), tokens)

        try:
            facts = await self.reader.call(read)
        except UnknownName:
            if len(self._unknown) >= _MOST_UNKNOWN:
                self._unknown.clear()
            self._unknown[place] = time.monotonic() + _UNKNOWN_SECONDS
            raise
        self._facts[place] = facts
        return facts

    def refusal(self, error: Exception, event: str, **fields: str) -> Refusal:
        """How an error ends a request; what we did not expect is logged by class and place alone."""
        refusal = refusal_of(error)
        if refusal is None:
            self.logbook.failure(event, error, **fields)
        return refusal or Refusal("internal")

    def refused(self, facts: RoundFacts, reason: str, detail: str | None = None, *, n: int = 1) -> Refusal:
        """The refusal of ``n`` messages of a round, which are counted by their reason."""
        self.writer.refuse(facts.key, reason, n)
        return Refusal(reason, detail)

    def forget(self, task: str, number: str) -> None:
        """A round that has closed: what it needed in memory goes."""
        self._facts.pop((task, int(number)), None)

    async def why_closed(self, task: str) -> str:
        """``killed`` or ``window-closed``"""
        is_killed = await self.reader.call(lambda store: store.rounds.task(task).killed)
        return "killed" if is_killed else "window-closed"
