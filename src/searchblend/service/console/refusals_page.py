"""Why messages were refused, round by round, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.wire.problems import REASONS

_SHOWN_ROUNDS: Final = 12


@dataclass(frozen=True)
class Advice:
    """Why a message was refused, in words, and what to do about many of them."""

    means: str
    do: str


REFUSALS: Final[dict[str, Advice]] = {
    "malformed": Advice(
        "The message does not have the form that the round asks for.",
        "Many at once: a device version that does not fit. Raise the task's oldest device version.",
    ),
    "id-mismatch": Advice(
        "The report's id is not that of its bytes: it was changed on its way, or made by hand.",
        "Look for a proxy that rewrites bodies. If there is none, someone is probing the service; nothing was counted.",
    ),
    "wrong-round": Advice(
        "It was made for another task or round.",
        "A few are late devices. Many: a cache serves an old manifest; shorten how long it may.",
    ),
    "wrong-head-list": Advice(
        "It was made for another head list.",
        "Check that caches serve artifacts under their own address, and that one database is behind all servers.",
    ),
    "window-closed": Advice(
        "It came when the round did not take it.",
        "Normal after closing. Many: give the grace period more time.",
    ),
    "killed": Advice("The task was stopped.", "Nothing: devices learn it from the next manifest."),
    "too-large": Advice(
        "The message is larger than is allowed.",
        "Look at the device version; a report of this round has one fixed size.",
    ),
    "bad-credential": Advice(
        "The enrolment code or token is missing or unknown.",
        "Make new enrolment codes on the task's page, or check the issuer's key.",
    ),
    "spent-token": Advice("The token was used before.", "Many: tokens are being replayed; each counts once anyway."),
    "wrong-consent": Advice(
        "The record was made under another consent text.",
        "Contributors must agree to the text of this round; check what the program shows them.",
    ),
    "conflicting-contribution": Advice(
        "The contributor has sent another record for this round before.",
        "One code on two devices, or a changed mind. The first record stays; it can be taken back and sent anew.",
    ),
    "not-admitted": Advice(
        "An opened record holds what no device keeps: control characters, personal data, or no web address.",
        "Devices of this project never send one. The audit log says how many of which kind; each was dropped alone.",
    ),
    "withdrawn": Advice(
        "A record that was taken back was in the database again when the list was drawn. It was not counted.",
        "Someone changes the database by hand: find out who, and change its passwords. The audit log has the number.",
    ),
}
assert set(REFUSALS) == set(REASONS)


@dataclass(frozen=True)
class Reason:
    name: str
    advice: Advice
    total: int
    latest: list[tuple[Task, Round, int]]
    """rounds in which it happened, newest first"""


@dataclass(frozen=True)
class RefusalsPage:
    reasons: list[Reason]
    """that happened, most frequent first"""
    total: int
    never: list[str]


def read_refusals(store: ServiceStore) -> RefusalsPage:
    names = {task.task: task for task in store.rounds.tasks()}
    rounds = sorted(store.rounds.rounds(), key=lambda round_: -round_.changed)
    refused = store.reports.refusals_by_round()
    reasons = []
    for name, advice in REFUSALS.items():
        where = [
            (names[round_.task], round_, refused[round_.key][name])
            for round_ in rounds
            if name in refused.get(round_.key, {})
        ]
        if where:
            reasons.append(Reason(name, advice, sum(n for _, _, n in where), where[:_SHOWN_ROUNDS]))
    reasons.sort(key=lambda reason: -reason.total)
    happened = {reason.name for reason in reasons}
    return RefusalsPage(
        reasons, sum(reason.total for reason in reasons), [name for name in REASONS if name not in happened]
    )
