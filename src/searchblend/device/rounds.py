"""A device's part in a round: one turn, made once and kept before it is sent.

    manifest  fetched, its signature checked against the pinned keys, then its age and its limits
    token     where the task asks for one: fetched from its issuer and kept, before anything is drawn
    turn      in one transaction: records chosen, token spent, ledger debited, report randomized, exact bytes kept
    send      the kept bytes, after a random delay; again, and the same, while no answer came

A crash before the commit leaves nothing, and nothing has left the device. A crash after it leaves bytes that are sent
later. There is no way back from a turn: its primary key (task, round) is also what keeps a device from being in both
groups of one round.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

from searchblend.core.documents import absent
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.randomness import Randomness, uniform_below
from searchblend.core.records import WILDCARD, Record
from searchblend.device.consent_texts import LOCAL, OPT_IN, SEARCH, digest_for
from searchblend.device.device_errors import DeviceRefused, NoAnswer
from searchblend.device.make_report import Message, make_contribution, make_report, sealable
from searchblend.device.policy import Policy, check_budget, check_head_list, check_manifest, check_request, device_now
from searchblend.device.state import DeviceState, Enrolment, Group, Turn, TurnState
from searchblend.device.transparency import LastLog, check_log
from searchblend.device.transport import Answer, Transport
from searchblend.wire.head_list import HeadListMessage
from searchblend.wire.manifest import Manifest, TokenPart
from searchblend.wire.report import REPORT_MEDIA_TYPE, ReportShape
from searchblend.wire.sealed import SEALED_MEDIA_TYPE
from searchblend.wire.signing import is_drawn_by_curator, is_round_key_signed, verify_manifest
from searchblend.wire.tokens import (
    REQUEST_MEDIA_TYPE,
    TokenAccount,
    TokenKey,
    TokenRequest,
    challenge_digest,
    issuer_name,
    token_header,
)

OnPoint = Callable[[str], None]
_PROBLEM: Final = re.compile(r"urn:searchblend:problem:([a-z-]{1,40})")
_LARGEST_ANSWER: Final = 64 << 10
UNANSWERED: Final = "unanswered"
_AGAIN: Final = (429, 503)
_FIRST_WAIT: Final = 30


@dataclass(frozen=True)
class Outcome:
    """How a step ended: a word for programs, a sentence for people."""

    status: str
    text: str
    ok: bool = True
    round: int | None = absent()
    pack: str | None = absent()
    """what happened to the local-search pack"""


def manifest_path(task: str) -> str:
    return f"/v1/tasks/{task}/manifest"


class Participant:
    """Takes this device's turns. Everything random comes from ``randomness``, every time from ``clock``."""

    def __init__(
        self,
        state: DeviceState,
        enrolment: Enrolment,
        transport: Transport,
        *,
        policy: Policy,
        clock: Callable[[], int],
        randomness: Randomness,
        on_point: OnPoint,
    ) -> None:
        self._state, self._enrolment, self._transport = state, enrolment, transport
        self._policy, self._clock, self._randomness, self._on_point = policy, clock, randomness, on_point

    def manifest(self) -> Manifest:
        """The task's manifest, fetched, believed and remembered; ``DeviceRefused`` or ``NoAnswer`` otherwise."""
        path = manifest_path(self._enrolment.task)
        answer = self._transport.send("GET", path, at_most=self._policy.largest_manifest)
        if answer.status != 200:
            raise NoAnswer("refused", _problem(answer) or f"status {answer.status}")
        manifest = self._believed(answer.body)
        log = self._check_log(manifest)
        self._on_point("manifest: believed")
        with self._state.transaction():
            last = self._state.last_manifest(self._enrolment.task)
            newest = check_manifest(manifest, task=self._enrolment.task, last=last, now=self.now(), policy=self._policy)
            self._state.set_fact(f"seen {self._enrolment.task}", vars(newest))
            if log.size > self._state.last_log(self._enrolment.task).size:  # another process may have seen more
                self._state.set_fact(f"log {self._enrolment.task}", vars(log))
            if manifest.killed:
                self._state.set_fact(f"killed {self._enrolment.task}", True)
                self._state.drop_waiting()
        self._on_point("manifest: remembered")
        # Last: an old manifest, or one that no one else can see, must not vouch for a key.
        self._transport.believe(manifest.gateway or ())
        return manifest

    def _check_log(self, manifest: Manifest) -> LastLog:
        known = self._state.last_log(self._enrolment.task)
        return check_log(manifest, known, self._of_log, self._enrolment.pinned, self._enrolment.pinned_witnesses)

    def _of_log(self, path: str, at_most: int) -> bytes:
        answer = self._transport.send("GET", f"/v1/log/{path}", at_most=at_most)
        if answer.status != 200:
            raise NoAnswer("refused", _problem(answer) or f"status {answer.status}")
        return answer.body

    def gateway_keys(self, manifest: bytes) -> tuple[str, ...]:
        """The keys that requests through a relay may be sealed to, if this device believes the manifest now."""
        believed, task = self._believed(manifest), self._enrolment.task
        check_manifest(believed, task=task, last=self._state.last_manifest(task), now=self.now(), policy=self._policy)
        self._check_log(believed)
        return believed.gateway or ()

    def _believed(self, message: bytes) -> Manifest:
        return _believed(message, self._enrolment.pinned, self._enrolment.pinned_curators)

    def now(self) -> int:
        return device_now(self._clock(), self._state.last_manifest(self._enrolment.task))

    def take_part(self, manifest: Manifest, *, immediately: bool = False) -> Outcome:
        """Make this round's turn if there is none, and send it if it is time."""
        number = manifest.round
        with self._state.transaction():
            self._state.drop_waiting(TurnState.TOO_LATE, unless_round=(self._enrolment.task, number))
            self._state.forget_tokens(unless_round=(self._enrolment.task, number))
        turn = self._state.turn(self._enrolment.task, number)
        if turn is None:
            outcome = self._make(manifest, immediately=immediately)
            if outcome is not None:
                return outcome
            turn = self._state.turn(self._enrolment.task, number)
            assert turn is not None
        if turn.state != TurnState.MADE:
            return _done(turn)
        return self._send(turn, immediately=immediately)

    def _make(self, manifest: Manifest, *, immediately: bool) -> Outcome | None:
        """Commit a turn (None), or return why there is none."""
        number, mode = manifest.round, self._state.fact("mode")
        if mode == SEARCH:
            return Outcome("search-only", "the pack is kept up to date; nothing is given", round=number)
        if manifest.phase == "idle":
            return Outcome("idle", "the task asks for nothing now", round=number)
        group = Group(manifest.phase)
        wanted = LOCAL if group is Group.CLIENT else OPT_IN
        if mode != wanted:
            return Outcome("other-group", f"this phase asks the {wanted} group; this device is {mode}", round=number)
        if self._state.has_debit(self._enrolment.task, number):
            return Outcome("already-spent", "this round was already paid for; nothing is made again", round=number)
        check_request(manifest, self._policy)
        opens, closes = _window(manifest)
        if not opens <= self.now() < closes:
            raise DeviceRefused("window-closed")
        prepared = self._head_list(manifest) if group is Group.CLIENT else None
        terms = manifest.client.tokens if manifest.client else None
        if terms is not None:  # whether there is a search to report or not: the issuer must not learn who has one
            self._fetch_token(number, terms)
        with self._state.transaction():
            self._on_point("turn: begun")
            if self._state.turn(self._enrolment.task, number) is not None:
                return None  # another process of this device was faster; its bytes are the ones to send
            if self._state.fact("mode") != wanted or self._state.fact("paused"):
                return Outcome("changed", "consent was changed meanwhile; nothing was made", round=number)
            self._check_agreed(manifest, wanted)
            records = self._records(manifest, prepared)
            if not records:
                return Outcome("no-record", "there is no search to report; nothing was sent", round=number)
            token = self._state.spend_token(self._enrolment.task, number) if terms is not None else None
            if terms is not None and token is None:
                return Outcome("changed", "the token was erased meanwhile; nothing was made", round=number)
            self._debit(manifest, group)
            self._on_point("turn: debited")
            message = self._message(records, manifest, prepared)
            self._on_point("turn: randomized")
            now = self.now()
            self._state.add_turn(
                self._enrolment.task,
                number,
                group,
                message,
                made_at=now,
                send_after=now if immediately else now + self._delay(closes - now),
                closes=closes,
                token=token,
            )
            self._on_point("turn: before commit")
        self._on_point("turn: committed")
        return None

    def _check_agreed(self, manifest: Manifest, mode: str) -> None:
        """Against the number that was kept with the consent: no text can stand for it."""
        asked = manifest.records_per_client if mode == LOCAL else manifest.records_per_optin
        consents = self._state.consents()
        agreed = consents[-1].records if consents else 0
        if asked > agreed:
            again = f"`searchblend device consent {mode} --records {asked}` shows what to agree to"
            raise DeviceRefused("more-than-agreed", f"{asked} instead of {agreed}; {again}")

    def _head_list(self, manifest: Manifest) -> tuple[HeadListMessage, ReportShape]:
        assert manifest.client is not None
        path = f"/v1/artifacts/{manifest.client.artifact}"
        answer = self._transport.send("GET", path, at_most=self._policy.largest_head_list)
        if answer.status != 200:
            raise NoAnswer("refused", _problem(answer) or f"status {answer.status}")
        is_drawn = partial(is_drawn_by_curator, curators=self._enrolment.pinned_curators)
        return check_head_list(answer.body, manifest, self._policy, is_drawn)

    def _fetch_token(self, number: int, terms: TokenPart) -> None:
        """Have a token for this round, of exactly these terms. What was asked for and not answered is asked again."""
        account = self._state.account()
        if account is None:
            raise DeviceRefused("no-account", terms.issuer)
        if account.issuer != terms.issuer:  # its secret goes to no one whom the manifest alone names
            raise DeviceRefused("wrong-issuer")
        try:
            key = TokenKey.of_text(terms.key)
        except MessageError:
            raise DeviceRefused("bad-request", "token key") from None
        request, token = self._token_request(number, key, issuer_name(terms.issuer))
        if token is not None:
            return
        self._on_point("token: asked")
        try:
            token = request.token(_issued(terms, account, request), key)
        except MessageError:
            raise DeviceRefused("no-token", "its answer is not signed with the key that the manifest names") from None
        with self._state.transaction():
            self._state.keep_token(self._enrolment.task, number, token)
        self._on_point("token: kept")

    def _token_request(self, number: int, key: TokenKey, issuer: str) -> tuple[TokenRequest, bytes | None]:
        task = self._enrolment.task
        digest = challenge_digest(issuer, bytes.fromhex(task), number)
        with self._state.transaction():
            asked = self._state.token_request(task, number)
            if asked is None or not asked[0].is_for(key, digest):
                asked = TokenRequest.make(key, digest, randomness=self._randomness), None
                self._state.ask_for_token(task, number, asked[0])
        return asked

    def _records(self, manifest: Manifest, prepared: tuple[HeadListMessage, ReportShape] | None) -> list[Record]:
        has_urls = prepared[0].head.has_urls if prepared else self._enrolment.has_urls
        records = self._state.records(has_urls=has_urls, since=self.now() - self._policy.search_seconds)
        if prepared is None:
            return sealable(records)
        if not records and manifest.silent_devices == "report_wildcard":
            return [Record(WILDCARD, WILDCARD)]
        return records

    def _message(
        self, records: list[Record], manifest: Manifest, prepared: tuple[HeadListMessage, ReportShape] | None
    ) -> Message:
        if prepared:
            try:
                return make_report(records, *prepared, self._randomness)
            except InvalidParameter as error:  # numbers that no report can be made with; the debit goes with the rest
                raise DeviceRefused("bad-head-list", error.field) from None
            except (ArithmeticError, ValueError, MessageError):
                raise DeviceRefused("bad-head-list") from None
        assert manifest.optin is not None
        consents = self._state.consents()
        if not consents or manifest.optin.consent != digest_for(consents[-1], manifest.records_per_optin):
            raise DeviceRefused("wrong-consent")
        if not self._enrolment.code:
            raise DeviceRefused("no-credential")
        try:
            return make_contribution(records, manifest, self._enrolment.code, self._randomness)
        except (ArithmeticError, ValueError, MessageError):
            raise DeviceRefused("bad-request") from None

    def _debit(self, manifest: Manifest, group: Group) -> None:
        """Pay before anything is drawn; refuse if the round would exceed a limit over time."""
        # The shortest digits of the double: a manifest may write 1e-99999999, which must not be computed exactly.
        epsilon, delta = repr(float(manifest.epsilon)), repr(float(manifest.delta))
        policy, now = self._policy, self.now()
        # Where the week begins is the clock's alone to say: a service that signs ahead of it must not end it early.
        recent, _ = self._state.spent(since=self._clock() - policy.window_seconds)
        check_budget(recent, self._state.spent(), (Fraction(epsilon), Fraction(delta)), policy)
        self._state.debit(self._enrolment.task, manifest.round, group, epsilon, delta, now)

    def _delay(self, left: int) -> int:
        """Seconds until the report is sent, at least one: uniform over the first part of what is left of the window."""
        most = min(self._policy.longest_delay_seconds, left * 3 // 4)
        return 1 + uniform_below(most, self._randomness) if most > 0 else 0

    def _send(self, turn: Turn, *, immediately: bool) -> Outcome:
        now = self.now()
        # A clock that went back must not hold a report forever: before it was made it is due.
        if not immediately and turn.made_at <= now < turn.send_after:
            minutes = max(1, (turn.send_after - now) // 60)
            return Outcome("waiting", f"the report is made and will be sent in about {minutes} min", round=turn.round)
        assert turn.message is not None
        self._on_point("send: before")
        try:
            answer = self._post(turn, turn.message)
        except NoAnswer as error:
            return self._withdrawn_meanwhile(turn) or self._not_answered(turn, str(error), None)
        self._on_point("send: answered")
        if (outcome := self._withdrawn_meanwhile(turn)) is not None:
            return outcome
        problem = _problem(answer)
        if answer.status == 200 and not answer.body:
            outcome = self._finish(turn, TurnState.ACCEPTED, "200")
        elif answer.status not in _AGAIN and problem is not None:
            outcome = self._finish(turn, TurnState.REFUSED, problem)
        else:
            return self._not_answered(turn, problem or f"status {answer.status}", answer.headers.get("retry-after"))
        self._on_point("send: noted")
        return outcome

    def _post(self, turn: Turn, message: bytes) -> Answer:
        kind = "reports" if turn.part is Group.CLIENT else "contributions"
        headers = {"Content-Type": REPORT_MEDIA_TYPE if turn.part is Group.CLIENT else SEALED_MEDIA_TYPE}
        if turn.part is Group.OPT_IN and self._enrolment.code:
            headers["Authorization"] = f"Bearer {self._enrolment.code}"
        if turn.token is not None:
            headers["Authorization"] = token_header(turn.token)
        path = f"/v1/tasks/{turn.task}/rounds/{turn.round}/{kind}"
        return self._transport.send("POST", path, message, headers=headers, at_most=_LARGEST_ANSWER)

    def _finish(self, turn: Turn, state: TurnState, answer: str) -> Outcome:
        with self._state.transaction():
            self._state.note_answer(turn, state, answer, self.now())
        return _done(self._state.turn(turn.task, turn.round) or turn)

    def _not_answered(self, turn: Turn, why: str, retry_after: str | None) -> Outcome:
        wait = min(_FIRST_WAIT * 2 ** min(turn.tries, 16), self._policy.longest_wait_seconds)
        if retry_after and retry_after.isdecimal() and len(retry_after) < 9:
            wait = min(max(wait, int(retry_after)), self._policy.longest_wait_seconds)
        wait += uniform_below(wait + 1, self._randomness)
        with self._state.transaction():
            self._state.note_try(turn, why, self.now() + wait)
        sentence = f"no answer yet ({why}); the same bytes will be sent again"
        return Outcome(UNANSWERED, sentence, ok=False, round=turn.round)

    def open_contributions(self) -> list[Turn]:
        """What the service may hold and still gives back. What waits or was dropped may have arrived unanswered."""
        return [
            turn
            for turn in self._state.turns()
            if turn.part is Group.OPT_IN
            and turn.task == self._enrolment.task
            and turn.closes > self._clock()
            and turn.state in (TurnState.ACCEPTED, TurnState.MADE, TurnState.DROPPED)
        ]

    def withdraw(self, turns: Iterable[Turn]) -> Outcome | None:
        """Take contributions back; None if there are none, and the first that was not taken back if there is one.

        Drop what waits and commit that before: a record that is sent after its withdrawal is taken.
        """
        outcomes = [self._withdraw(turn) for turn in turns]
        return next((outcome for outcome in outcomes if not outcome.ok), outcomes[-1] if outcomes else None)

    def _withdrawn_meanwhile(self, turn: Turn) -> Outcome | None:
        """Take back what another process has withdrawn while it was on its way; None if none has."""
        now = self._state.turn(turn.task, turn.round)
        if turn.part is not Group.OPT_IN or now is None or now.state not in (TurnState.DROPPED, TurnState.WITHDRAWN):
            return None
        return self._withdraw(turn)

    def _withdraw(self, turn: Turn) -> Outcome:
        status, why = self._delete(turn)
        if status == "withdrawn" or turn.state == TurnState.MADE:
            with self._state.transaction():
                self._state.note_withdrawal(turn, TurnState.WITHDRAWN if status == "withdrawn" else TurnState.DROPPED)
        if status == "withdrawn":
            return Outcome(status, "the contribution was taken back", round=turn.round)
        again = "; the same command tries again" if status == UNANSWERED else ""
        sentence = f"the contribution could not be withdrawn: {why}{again}"
        return Outcome(status, sentence, ok=False, round=turn.round)

    def _delete(self, turn: Turn) -> tuple[str, str]:
        """How it ended, and why."""
        if not self._enrolment.code:
            return "not-withdrawn", "there is no enrolment code"
        path = f"/v1/tasks/{turn.task}/rounds/{turn.round}/contributions"
        headers = {"Authorization": f"Bearer {self._enrolment.code}"}
        try:
            answer = self._transport.send("DELETE", path, headers=headers, at_most=_LARGEST_ANSWER)
        except NoAnswer as error:
            return UNANSWERED, str(error)
        if answer.status == 204:
            return "withdrawn", ""
        problem = _problem(answer)
        is_refusal = problem is not None and answer.status not in _AGAIN
        return "not-withdrawn" if is_refusal else UNANSWERED, problem or f"status {answer.status}"


def _issued(terms: TokenPart, account: TokenAccount, request: TokenRequest) -> bytes:
    """The issuer's answer to a request. It learns whose device asks for a token, and nothing of what for."""
    headers = {"Content-Type": REQUEST_MEDIA_TYPE, "Authorization": f"Bearer {account.credential}"}
    with contextlib.closing(Transport(terms.issuer)) as issuer:
        answer = issuer.send("POST", terms.request, request.request, headers=headers, at_most=_LARGEST_ANSWER)
    if answer.status == 200:
        return answer.body
    if answer.status == 429 and _problem(answer) == "token-limit":
        raise DeviceRefused("no-token", "the account has had its tokens of this week")
    why = {401: "it does not know the account", 422: "it does not sign with the key that the manifest names"}
    if answer.status in why:
        raise DeviceRefused("no-token", why[answer.status])
    raise NoAnswer("issuer", _problem(answer) or f"status {answer.status}")


def _believed(message: bytes, pinned: Mapping[str, bytes], curators: Mapping[str, bytes]) -> Manifest:
    """The manifest, if a pinned key has signed it, and the round's key too where curators are pinned."""
    try:
        manifest = verify_manifest(message, pinned)
    except MessageError as error:
        raise DeviceRefused("forged", str(error)) from None
    if curators and manifest.optin is not None and not is_round_key_signed(manifest, curators):
        raise DeviceRefused("wrong-curator")
    return manifest


def _window(manifest: Manifest) -> tuple[int, int]:
    """From when to when a turn of the manifest's phase may be made."""
    if manifest.client is not None:
        return manifest.client.opens, manifest.client.closes
    assert manifest.optin is not None
    return 0, manifest.optin.closes


def _problem(answer: Answer) -> str | None:
    """The name of a problem document of this protocol; anything else was not answered by the service."""
    try:
        document = json.loads(answer.body.decode("utf-8")) if answer.status >= 400 else None
    except (ValueError, RecursionError):
        return None
    match = _PROBLEM.fullmatch(str(document.get("type"))) if isinstance(document, dict) else None
    return match[1] if match else None


def _done(turn: Turn) -> Outcome:
    """What became of a turn that is over."""
    endings = {
        TurnState.ACCEPTED: ("reported", "the service has counted this round's report"),
        TurnState.REFUSED: ("refused", f"the service refused this round's report: {turn.answer}"),
        TurnState.TOO_LATE: ("too-late", "the round ended before the report was answered"),
        TurnState.DROPPED: ("dropped", "this round's report was dropped before it was sent"),
        TurnState.WITHDRAWN: ("withdrawn", "this round's contribution was taken back"),
        TurnState.MADE: ("waiting", "the report is made and not sent yet"),
    }
    status, sentence = endings[turn.state]
    return Outcome(status, sentence, ok=turn.state != TurnState.REFUSED, round=turn.round)
