"""What the user sees of a device: its status, everything that was sent, and all that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from searchblend.core.documents import decode
from searchblend.device.consent_texts import OFF
from searchblend.device.make_report import Pair, ReportedPart
from searchblend.device.policy import DAY, Policy
from searchblend.device.rounds import Outcome
from searchblend.device.state import Consent, DeviceState, KeptSearch, RoundDebit, TurnState


@dataclass(frozen=True)
class SpentBudget:
    """ε and δ that were spent, and what the policy leaves of them."""

    window_days: int
    window_epsilon: float
    window_epsilon_left: float
    lifetime_epsilon: float
    lifetime_epsilon_left: float
    lifetime_delta: float


@dataclass(frozen=True)
class _At:
    at: int


@dataclass(frozen=True)
class LastSync(Outcome, _At):
    """How the latest sync ended, and when."""


@dataclass(frozen=True)
class DeviceStatus:
    """Everything in a few lines; nothing of the searches themselves."""

    task: str | None
    server: str | None
    relay: str | None
    mode: str
    paused: bool
    killed: bool
    searches: int
    round: int | None
    waiting: int
    sent: int
    clock_behind: bool
    budget: SpentBudget
    last: LastSync | None


@dataclass(frozen=True)
class SentTurn:
    """One turn: what was true (it never left), what was said, the exact bytes, its cost, and how it ended.

    ``repr`` shows nothing of what was true or said.
    """

    task: str
    round: int
    group: str
    state: str
    answer: str | None
    mechanism: str
    true: list[Pair] | None
    said: list[ReportedPart] | None
    bytes: str | None
    """hexadecimal digits"""
    epsilon: str
    delta: str
    made_at: int
    answered_at: int | None
    tries: int
    token: str | None
    """what it is paid with; hexadecimal digits"""

    def __repr__(self) -> str:
        return f"SentTurn(round {self.round}, {self.group}, {self.state})"


@dataclass(frozen=True)
class ShownEnrolment:
    """The task that the device takes part in; of the enrolment code only whether there is one."""

    server: str
    task: str
    keys: dict[str, str]
    code: bool
    has_urls: bool
    plain_http: bool
    curators: dict[str, str]
    consent: str
    witnesses: dict[str, str]
    least_witnesses: int
    relay: str


@dataclass(frozen=True, kw_only=True)
class DeviceExport:
    """All that is kept on the device, as one document."""

    format: Literal["searchblend-device-export"] = "searchblend-device-export"
    version: int = 1
    enrolment: ShownEnrolment | None
    token_issuer: str | None
    """where the device has an account, whose secret is not shown"""
    consents: list[Consent]
    searches: list[KeptSearch]
    sent: list[SentTurn]
    ledger: list[RoundDebit]


def device_status(state: DeviceState, policy: Policy, now: int) -> DeviceStatus:
    """The device as its state has it now."""
    enrolment = state.enrolment()
    newest = state.last_manifest(enrolment.task) if enrolment else None
    last = state.fact("last")
    return DeviceStatus(
        task=enrolment.task if enrolment else None,
        server=enrolment.server if enrolment else None,
        relay=(enrolment.relay or None) if enrolment else None,
        mode=state.fact("mode") or OFF,
        paused=bool(state.fact("paused")),
        killed=bool(enrolment and state.fact(f"killed {enrolment.task}")),
        searches=state.n_searches(),
        round=newest.round if newest else None,
        waiting=len(state.turns(TurnState.MADE)),
        sent=len(state.turns(TurnState.ACCEPTED)),
        clock_behind=bool(newest and now + policy.clock_skew_seconds < newest.issued),
        budget=_spent_budget(state, policy, now),
        last=decode(LastSync, last) if last else None,
    )


def _spent_budget(state: DeviceState, policy: Policy, now: int) -> SpentBudget:
    recent, _ = state.spent(since=now - policy.window_seconds)
    ever, delta = state.spent()
    return SpentBudget(
        window_days=policy.window_seconds // DAY,
        window_epsilon=float(recent),
        window_epsilon_left=float(policy.window_epsilon - recent),
        lifetime_epsilon=float(ever),
        lifetime_epsilon_left=float(policy.lifetime_epsilon - ever),
        lifetime_delta=float(delta),
    )


def sent_turns(state: DeviceState) -> list[SentTurn]:
    """Every turn, oldest first."""
    costs = {(debit.task, debit.round): debit for debit in state.debits()}
    return [
        SentTurn(
            task=turn.task,
            round=turn.round,
            group=turn.part,
            state=turn.state,
            answer=turn.answer,
            mechanism=turn.mechanism,
            true=turn.held,
            said=turn.said,
            bytes=turn.message.hex() if turn.message is not None else None,
            epsilon=costs[turn.task, turn.round].epsilon,
            delta=costs[turn.task, turn.round].delta,
            made_at=turn.made_at,
            answered_at=turn.answered_at,
            tries=turn.tries,
            token=turn.token.hex() if turn.token is not None else None,
        )
        for turn in state.turns()
    ]


def device_export(state: DeviceState) -> DeviceExport:
    """All of it, without the enrolment code and the account's secret."""
    enrolment, account = state.enrolment(), state.account()
    shown = ShownEnrolment(**{**vars(enrolment), "code": bool(enrolment.code)}) if enrolment else None
    return DeviceExport(
        enrolment=shown,
        token_issuer=account.issuer if account else None,
        consents=state.consents(),
        searches=state.searches(),
        sent=sent_turns(state),
        ledger=state.debits(),
    )
