"""The device agent: consent, searches, one private report a round, and everything about it for the user to see.

agent = DeviceAgent.open(folder, create=True)
agent.enrol("https://lists.example", task, keys)
agent.consent("local", text_of("local"))
agent.record("weather", "https://weather.example/today")
print(agent.sync().text)
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from searchblend.core.admission import Admission
from searchblend.core.documents import encode
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.device.consent_texts import GIVING, MODES, OFF, OPT_IN, text_digest, text_of
from searchblend.device.device_errors import DeviceRefused, NoAnswer, StorageFull
from searchblend.device.oblivious import ObliviousTransport
from searchblend.device.packs import FOLDER, Packs
from searchblend.device.policy import POLICY, Policy
from searchblend.device.rounds import UNANSWERED, OnPoint, Outcome, Participant, manifest_path
from searchblend.device.searches import admit_search, searches_of_file
from searchblend.device.state import FILE, DeviceState, Enrolment
from searchblend.device.transport import Transport, check_address
from searchblend.device.view import DeviceExport, DeviceStatus, SentTurn, device_export, device_status, sent_turns
from searchblend.search.pack import Pack
from searchblend.wire.enrolment import EnrolmentDocument
from searchblend.wire.signing import read_public_point
from searchblend.wire.tokens import TokenAccount

_TASK_DIGITS: Final = 32


def system_clock() -> int:
    return int(time.time())


class DeviceAgent(contextlib.AbstractContextManager["DeviceAgent"]):
    """One device. Several processes may use the same folder."""

    def __init__(
        self,
        state: DeviceState,
        *,
        transport: Transport | None = None,
        policy: Policy = POLICY,
        clock: Callable[[], int] = system_clock,
        randomness: Randomness | None = None,
        on_point: OnPoint = lambda point: None,
    ) -> None:
        self._state, self._policy, self._clock = state, policy, clock
        self._given_transport = transport
        self._own_transport: tuple[Enrolment, Transport] | None = None
        self._randomness, self._on_point = randomness or SystemRandomness(), on_point
        with contextlib.suppress(StorageFull):  # erasing needs room in the log; the next start tries again
            self._forget_old()

    @classmethod
    def open(cls, folder: Path, *, create: bool = False, **arguments: Any) -> DeviceAgent:
        """The device whose state is in this folder."""
        return cls(DeviceState(folder / FILE, create=create), **arguments)

    def close(self) -> None:
        if self._given_transport is not None:
            self._given_transport.close()
        self._close_transport()
        self._state.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    # Enrolment and consent

    def enrol(
        self,
        server: str,
        task: str,
        keys: Iterable[str],
        *,
        code: str | None = None,
        has_urls: bool = True,
        plain_http: bool = False,
        curators: Iterable[str] = (),
        consent: str = "",
        witnesses: Iterable[str] = (),
        least_witnesses: int = 0,
        relay: str = "",
    ) -> None:
        """Take part in a task whose manifests these keys sign, and whose rounds these curators, if any are named.

        Collects and sends nothing before ``consent``. The argument of that name is the operator's own words to opt-in
        users. ``least_witnesses`` of the ``witnesses`` must have cosigned the service's log. With ``relay`` every
        request goes there, sealed to the service.
        """
        check_address(server, plain_http=plain_http)
        if relay:
            check_address(relay, plain_http=plain_http, field="relay")
        if len(task) != _TASK_DIGITS or not set(task) <= set("0123456789abcdef"):
            raise InvalidParameter("task", f"expected {_TASK_DIGITS} hexadecimal digits")
        pinned = _pinned(keys, "key")
        if not pinned:
            raise InvalidParameter("key", "expected at least one signing key to pin")
        if code is not None and not (code and code.isascii() and code.isprintable()):
            raise InvalidParameter("code", "expected printable ASCII characters: it is sent in a header")
        pinned_curators = _pinned(curators, "curator_key")
        pinned_witnesses = _pinned(witnesses, "witness")
        if not 0 <= least_witnesses <= len(pinned_witnesses):
            raise InvalidParameter("least_witnesses", "expected at most as many as there are witnesses")
        enrolment = Enrolment(
            server=server.rstrip("/"),
            task=task,
            keys=pinned,
            code=code,
            has_urls=has_urls,
            plain_http=plain_http,
            curators=pinned_curators,
            consent=consent,
            witnesses=pinned_witnesses,
            least_witnesses=least_witnesses,
            relay=relay.rstrip("/"),
        )
        with self._state.transaction():
            before = self._state.enrolment()
            if before is not None and before.task != task:
                raise UsageError("this device is enrolled in another task; leave it first")
            self._state.set_fact("enrolment", vars(enrolment))
            if before is None:
                self._state.set_fact("mode", OFF)
                self._state.set_fact("paused", False)
        self._close_transport()

    def enrol_with(
        self,
        document: EnrolmentDocument,
        *,
        code: str | None = None,
        witnesses: Iterable[str] = (),
        least_witnesses: int = 0,
    ) -> None:
        """The same, with what a link or a file says (``read_enrolment``)."""
        self.enrol(
            document.server,
            document.task,
            document.keys,
            code=code,
            has_urls=document.has_urls,
            curators=document.curators,
            consent=document.consent,
            witnesses=witnesses,
            least_witnesses=least_witnesses,
            relay=document.relay or "",
        )

    def set_account(self, link: str) -> TokenAccount:
        """Where this device gets the tokens that pay for its reports, from now on (``TokenAccount.of_link``)."""
        account = TokenAccount.of_link(link)
        with self._state.transaction():
            self._enrolment()
            self._state.set_fact("account", vars(account))
        return account

    @property
    def own_consent(self) -> str:
        """The operator's own words to opt-in users, as the enrolment had them."""
        return self._enrolment().consent

    def consent(self, mode: str, text: str | None = None, *, records: int = 1) -> Outcome | None:
        """Agree to a mode in the words of ``text``, or withdraw; what was withdrawn from the service.

        ``search`` and ``off`` withdraw and need no text: the first still fetches packs, the second asks for nothing.

        ``records`` is how many searches a round may take, as the text says (``text_of``): a round that takes more is
        refused, whatever its own text says.

        A report that waits is dropped when the mode changes: it was made under another consent. Withdrawing erases
        the searches as well. All that is committed before the service is asked, which may take long or fail: whoever
        withdraws has withdrawn whatever becomes of that, and nothing can be sent meanwhile. The same call tries again.
        """
        if mode not in MODES:
            raise InvalidParameter("mode", f"expected one of {', '.join(MODES)}")
        if mode in GIVING and not text:
            raise InvalidParameter("text", "expected the text that is agreed to")
        if text is not None and not _is_writable(text):
            raise InvalidParameter("text", "expected text without lone surrogates")
        if mode in GIVING and text != text_of(mode, records, text or ""):
            raise InvalidParameter("text", f"expected this program's own text for a round of up to {records} searches")
        with self._state.transaction():
            participant = self._participant(self._enrolment())
            contributions = participant.open_contributions() if mode != OPT_IN else []
            if self._state.fact("mode") != mode:
                self._state.drop_waiting()
            self._state.add_consent(self._clock(), mode, text_digest(text) if text else None, text, records)
            self._state.set_fact("mode", mode)
            self._prune()
        withdrawn = participant.withdraw(contributions)
        if mode not in GIVING:
            self._state.scrub()
        return withdrawn

    # Searches

    def record(self, query: str, url: str | None = None, *, from_suggestion: bool = False) -> Admission:
        """Keep one search on this device, if it may be kept. Never call this for private windows."""
        admission = Admission(reason="from-suggestion") if from_suggestion else admit_search(query, url, self._policy)
        with self._state.transaction():
            self._check_collecting()
            if admission.kept:
                self._keep(admission)
        return admission

    def import_searches(self, path: Path) -> dict[str, int]:
        """Searches from a file of JSON lines ``{"query": …, "url": …}``: all that may be kept, or none on an error."""
        counts: Counter[str] = Counter()
        with self._state.transaction():
            self._check_collecting()
            for admission in searches_of_file(path, self._policy):
                counts[admission.reason or "kept"] += 1
                if admission.kept:
                    self._keep(admission)
        return dict(counts)

    # Taking part

    def sync(self, *, immediately: bool = False) -> Outcome:
        """Fetch the manifest and do what it asks, if this device agrees. Never raises for what others do wrong."""
        self._on_point("sync: begun")
        self._forget_old()
        enrolment = self._enrolment()
        stopped = self._stopped(enrolment)
        if stopped is not None:
            return stopped
        participant = self._participant(enrolment)
        manifest = None
        try:
            manifest = participant.manifest()
            if manifest.killed:
                outcome = Outcome("killed", "the task was stopped for good; nothing is sent any more")
                return self._noted(outcome, enrolment)
            outcome = participant.take_part(manifest, immediately=immediately)
        except DeviceRefused as refusal:
            outcome = Outcome(refusal.reason, f"this device refuses: {refusal}", ok=False)
        except NoAnswer as error:
            outcome = Outcome("no-answer", f"the service does not answer ({error})", ok=False)
        packs = self._packs(enrolment.task)
        if manifest is not None and packs is not None and self._is_enrolled(enrolment):
            outcome = replace(outcome, pack=packs.update(manifest, self._transport_to(enrolment)))
        return self._noted(outcome, enrolment)

    def pack(self) -> Pack | None:
        """The local-search pack, if one was published and fetched. Looking something up sends nothing."""
        packs = self._packs(self._enrolment().task)
        return packs.current() if packs else None

    # What the user sees and decides

    def status(self) -> DeviceStatus:
        return device_status(self._state, self._policy, self._clock())

    def sent(self) -> list[SentTurn]:
        return sent_turns(self._state)

    def export(self) -> DeviceExport:
        return device_export(self._state)

    def pause(self) -> None:
        """Neither keep searches nor ask or tell the service anything, until ``resume``."""
        with self._state.transaction():
            self._enrolment()
            self._state.set_fact("paused", True)

    def resume(self) -> None:
        with self._state.transaction():
            self._enrolment()
            self._state.set_fact("paused", False)

    def erase(self) -> None:
        """Forget all searches and what was said about them. What was spent stays spent."""
        with self._state.transaction():
            self._state.erase()
        self._state.scrub()

    def leave(self) -> Outcome | None:
        """Erase, withdraw what can be withdrawn, and forget the task. The ledger stays for the next one.

        The first is committed before the service is asked. If that does not answer, server and code stay, without
        consent, until another ``leave`` has an answer or the round's window has closed.
        """
        with self._state.transaction():
            enrolment = self._state.enrolment()
            participant = self._participant(enrolment) if enrolment else None
            contributions = participant.open_contributions() if participant else []
            if participant:
                self._state.add_consent(self._clock(), OFF, None, None, 1)
                self._state.set_fact("mode", OFF)
            self._state.erase()
        withdrawn = participant.withdraw(contributions) if participant else None
        if enrolment and not (withdrawn and withdrawn.status == UNANSWERED):
            self._forget_task(enrolment)
        self._state.scrub()
        return withdrawn

    def _enrolment(self) -> Enrolment:
        enrolment = self._state.enrolment()
        if enrolment is None:
            raise UsageError("this device is not enrolled in a task; enrol first: searchblend device enrol LINK")
        return enrolment

    def _packs(self, task: str) -> Packs | None:
        """Beside the state; a device in memory has none."""
        return None if self._state.in_memory else Packs(self._state.path.parent / FOLDER, task, self._policy)

    def _is_enrolled(self, enrolment: Enrolment) -> bool:
        """Whether this is still the task; another process may have left it."""
        return self._state.enrolment() == enrolment

    def _forget_task(self, enrolment: Enrolment) -> None:
        with self._state.transaction():
            if self._is_enrolled(enrolment):
                for name in ("enrolment", "account", "mode", "paused", "last"):
                    self._state.forget_fact(name)
        self._close_transport()
        if (packs := self._packs(enrolment.task)) is not None:
            packs.erase()

    def _transport_to(self, enrolment: Enrolment) -> Transport:
        """The given one, or one to exactly this server: a later enrolment must not talk to the one before."""
        if self._given_transport is not None:
            return self._given_transport
        if self._own_transport is None or self._own_transport[0] != enrolment:
            self._close_transport()
            self._own_transport = enrolment, self._new_transport(enrolment)
        return self._own_transport[1]

    def _new_transport(self, enrolment: Enrolment) -> Transport:
        if not enrolment.relay:
            return Transport(enrolment.server, plain_http=enrolment.plain_http)
        return ObliviousTransport(
            enrolment.server,
            enrolment.relay,
            manifest_path(enrolment.task),
            lambda manifest: self._participant(enrolment).gateway_keys(manifest),
            plain_http=enrolment.plain_http,
        )

    def _close_transport(self) -> None:
        if self._own_transport is not None:
            self._own_transport[1].close()
            self._own_transport = None

    def _participant(self, enrolment: Enrolment) -> Participant:
        return Participant(
            self._state,
            enrolment,
            self._transport_to(enrolment),
            policy=self._policy,
            clock=self._clock,
            randomness=self._randomness,
            on_point=self._on_point,
        )

    def _stopped(self, enrolment: Enrolment) -> Outcome | None:
        if (self._state.fact("mode") or OFF) == OFF:
            return Outcome("off", "there is no consent; nothing is collected or sent")
        if self._state.fact("paused"):
            return Outcome("paused", "this device is paused")
        if self._state.fact(f"killed {enrolment.task}"):
            return Outcome("killed", "the task was stopped for good; nothing is sent any more")
        return None

    def _noted(self, outcome: Outcome, enrolment: Enrolment) -> Outcome:
        with self._state.transaction():
            if self._is_enrolled(enrolment):
                self._state.set_fact("last", {"at": self._clock(), **encode(outcome)})
        return outcome

    def _check_collecting(self) -> None:
        self._enrolment()
        if self._state.fact("mode") not in GIVING:
            raise UsageError("there is no consent: nothing is kept before `consent`")
        if self._state.fact("paused"):
            raise UsageError("this device is paused: nothing is kept before `resume`")

    def _keep(self, admission: Admission) -> None:
        self._state.add_search(self._clock(), admission.query, admission.url)
        self._prune()

    def _forget_old(self) -> None:
        """At every start and every sync, whatever is done then."""
        with self._state.transaction():
            is_erased = self._prune()
        if is_erased:
            self._state.empty_log()

    def _prune(self) -> bool:
        """Forget searches that are too old or too many; without consent, all of them. Whether any were too old."""
        before = self._clock() - self._policy.search_seconds
        is_erased = self._state.forget_searches(before=before, keep=self._policy.most_searches)
        if self._state.fact("mode") not in GIVING:
            self._state.forget_unsent()
        return is_erased


def _pinned(keys: Iterable[str], field: str) -> dict[str, str]:
    """Key id → public point in hexadecimal digits."""
    return {name: point.hex() for name, point in (read_public_point(key, field) for key in keys)}


def _is_writable(text: str) -> bool:
    """A lone surrogate, as from a broken argument of a command, has no UTF-8."""
    try:
        return text.encode("utf-8") is not None
    except UnicodeEncodeError:
        return False
