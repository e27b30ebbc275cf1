"""The publisher's jobs: open the clients' window, sign manifests, publish results and packs. Holds the signing keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from searchblend.accounting.spend import Spend
from searchblend.blender.release import HeadFigures
from searchblend.blender.result import Result
from searchblend.core.documents import encode
from searchblend.core.errors import MessageError
from searchblend.core.privacy import Neighbors
from searchblend.service.clock import DAY, Clock
from searchblend.service.lifecycle import OPTIN_RESULT
from searchblend.service.round_model import (
    drawn_by,
    key_signature_of,
    settings_digest,
    settings_of,
    shape_of,
    token_terms_of,
)
from searchblend.service.task_settings import TaskSettings
from searchblend.service.workers.estimator import FILE_PREFIX
from searchblend.service.workers.round_packs import keep_log_head, make_pack_files, pack_part
from searchblend.service.workers.signing_keys import (
    OtherSigningKeys,
    SigningKeys,
    adopt_keys,
    keys_on_record,
    keys_trouble,
)
from searchblend.service.workers.token_terms import fetch_terms
from searchblend.service.workers.worker import Postponed, RoundJobs
from searchblend.store.artifacts import TrendRow
from searchblend.store.errors import BudgetExceeded, StoreError, StoreUnavailable
from searchblend.store.jobs import LeasedJob
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State
from searchblend.wire.canonical import canonical_json
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.manifest import (
    FORMAT,
    MANIFEST_MINOR,
    MANIFEST_VERSION,
    MOST_GATEWAY_KEYS,
    MOST_SIGNATURES,
    ClientPart,
    Manifest,
    OptinPart,
    TokenPart,
    decode_payload,
    decode_signed,
    encode_manifest,
    encode_signed,
)
from searchblend.wire.merkle import EMPTY_ROOT, leaf_hash, root_of
from searchblend.wire.optin_result import OptinResult, decode_optin_result
from searchblend.wire.release import decode_result
from searchblend.wire.signing import (
    SigningKey,
    is_drawn_by_curator,
    is_round_key_signed,
    sign_checkpoint,
    sign_manifest,
)
from searchblend.wire.transparency import (
    CURATOR_KEY,
    SIGNING_KEY,
    Checkpoint,
    LogEntry,
    decode_checkpoint,
    encode_checkpoint,
    encode_entry,
)

PUBLISHER: Final = "publisher"
MANIFEST_SECONDS: Final = 7 * DAY
_EARLY_SECONDS: Final = 300
"""how far the clocks of two publishers may differ"""
HEAD_LIST: Final = "headlist.json"
REFUSED_KEY: Final = "refused key"
WAITING: Final = "waiting"
_FILES: Final = {
    "result.json": "application/json",
    "records.csv": "text/csv; charset=utf-8",
    "trends.csv": "text/csv; charset=utf-8",
    "statement.json": "application/json",
}


class Publisher(RoundJobs):
    """Runs the jobs that end in something public."""

    def __init__(
        self,
        store: ServiceStore,
        clock: Clock,
        keys: SigningKeys,
        curators: Mapping[str, bytes],
        fetch_terms: Callable[[str, int], TokenPart] = fetch_terms,
    ) -> None:
        super().__init__(store, clock, PUBLISHER, {"client-open": self._client_open, "publish": self._publish})
        self._keys, self._curators, self._fetch_terms = keys, curators, fetch_terms
        self._signed_log = self._last_log = 0, EMPTY_ROOT
        """size and root of the log as it was signed here last, and of the last of these that is committed"""

    def _client_open(self, job: LeasedJob, round_: Round) -> None:
        """The head list becomes public and every client is charged: one commit."""
        settings, figures = settings_of(round_), self._reviewed_list(round_)
        named = self._optin_result(round_)
        if named is None or not is_drawn_by_curator(named, figures.head, drawn_by(round_), self._curators):
            self._give_up(job, round_, "altered-list")
            return
        document = encode_head_list(figures.head, settings.params, figures.design, optin_result=named)
        content = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
        spend = client_spend(figures, settings)
        issuer = settings.token_issuer
        # One key for all devices, from the round's first report to its last: an issuer's new key is for later rounds.
        terms = self._terms(round_, issuer) if issuer else None
        try:
            self._open_to_clients(job, round_, content, settings, spend, terms)
        except BudgetExceeded:
            # Another task of the population was faster. Nothing of the list was published.
            self._give_up(job, round_, "budget-exceeded")

    def _terms(self, round_: Round, issuer: str) -> TokenPart:
        """What the issuer says now; while it says nothing, the mark stays with the round (``why_it_waits``)."""
        try:
            terms = self._fetch_terms(issuer, self._clock.now())
        except Postponed as error:
            self._store.artifacts.keep(round_.key, WAITING, str(error).encode())
            raise
        self._store.artifacts.drop(round_.key, WAITING)
        return terms

    def _optin_result(self, round_: Round) -> OptinResult | None:
        certified = self._store.artifacts.kept_json(round_.key, OPTIN_RESULT)
        return None if certified is None else decode_optin_result(certified)

    def _open_to_clients(
        self,
        job: LeasedJob,
        round_: Round,
        content: bytes,
        settings: TaskSettings,
        spend: Spend,
        terms: TokenPart | None,
    ) -> None:
        now = self._clock.now()
        closes, window = now + settings.client_seconds, settings.window_at(now)
        with self._store.transaction():
            self._store.ledger.debit(f"{round_.name}/clients", settings.population, window, spend, role_in=round_.name)
            sha256 = self._store.artifacts.put(content, "application/json")
            self._store.artifacts.attach(round_.key, {HEAD_LIST: sha256})
            self._store.rounds.advance(
                round_,
                State.CLIENT_OPEN,
                actor=PUBLISHER,
                now=now,
                budget_window=window,
                client_opens=now,
                client_closes=closes,
                grace_until=closes + settings.grace_seconds,
                tokens=canonical_json(encode(terms)).decode() if terms else None,
            )
            self._store.jobs.finish(job)
            self._store.on_point("client open: before commit")

    def _publish(self, job: LeasedJob, round_: Round) -> None:
        """What the estimator left becomes public as it is, once."""
        files = {name: self._store.artifacts.kept(round_.key, FILE_PREFIX + name) for name in _FILES}
        contents = {name: content for name, content in files.items() if content is not None}
        if len(contents) != len(_FILES):
            raise StoreError("a file of the result is missing")
        result = decode_result(contents["result.json"])
        rows = trend_rows(result)
        packs = make_pack_files(self._store, round_, result)
        self._store.on_point("publish: before")
        with self._store.transaction():
            self._store.rounds.advance(round_, State.PUBLISHED, actor=PUBLISHER, now=self._clock.now())
            typed = {name: (content, _FILES[name]) for name, content in contents.items()} | packs
            names = {name: self._store.artifacts.put(content, kind) for name, (content, kind) in typed.items()}
            self._store.artifacts.attach(round_.key, names)
            keep_log_head(self._store, round_)
            self._store.artifacts.add_trends(round_.key, rows)
            statement = {"statement.json": contents["statement.json"]}
            self._store.ledger.publish(f"{round_.name}/opt-in", statement)
            self._store.ledger.publish(f"{round_.name}/clients", statement, public_spend=public_spend(result))
            self._store.reports.forget_ids(round_.key)
            for name in _FILES:
                self._store.artifacts.drop(round_.key, FILE_PREFIX + name)
            self._store.jobs.finish(job)
            self._store.on_point("publish: before commit")
        self._store.on_point("publish: after commit")

    def refresh_manifests(self) -> int:
        """Sign what has changed, and what would expire; how many. A task that fails holds up no other."""
        keys = self._keys.all()
        if not keys:
            return 0
        self._compare_with_record([key.key_id for key in keys])
        self._log_keys(keys)
        signed, failed = 0, None
        for task in self._store.rounds.tasks():
            try:
                signed += self._refresh(task, keys)
            except StoreUnavailable:
                raise
            except Exception as error:  # whatever is wrong with a row of one task is that task's trouble
                failed = failed or error
        if failed is not None:
            raise failed
        return signed

    def _compare_with_record(self, key_ids: Sequence[str]) -> None:
        if keys_on_record(self._store) is None and len(key_ids) <= MOST_SIGNATURES:
            with self._store.transaction():
                if keys_on_record(self._store) is None:  # of two that start at once one comes first
                    adopt_keys(self._store, key_ids, actor=PUBLISHER, now=self._clock.now())
        if why := keys_trouble(self._store, key_ids):
            raise OtherSigningKeys(why)

    def _refresh(self, task: Task, keys: Sequence[SigningKey]) -> bool:
        now = self._clock.now()
        with self._store.transaction():
            latest = self._store.artifacts.manifest(task.task)
            # Never below the clock: a database restored from a backup must not fall behind what devices have seen.
            sequence = max(latest[0] + 1 if latest else 1, now)
            wanted = self._manifest(task, sequence, now)
            if wanted.optin is not None and not self._is_curators(wanted):
                return False
            if latest is not None:
                # One from a future that did not come is not fresh: devices refuse it until its time.
                fresh = MANIFEST_SECONDS // 2 < latest[1] - now <= MANIFEST_SECONDS + _EARLY_SECONDS
                if fresh and _is_current(latest[2], wanted, keys):
                    return self._log([_entry_of(task.task, latest)], keys)  # one of a version without a log
            payload = encode_manifest(wanted)
            message = encode_signed(sign_manifest(payload, keys))
            self._store.artifacts.add_manifest(task.task, sequence, wanted.expires, message)
            self._store.artifacts.put(payload, "application/json")
            self._log([LogEntry.of_manifest(task.task, sequence, payload)], keys)
        self._last_log = self._signed_log
        return True

    def _log_keys(self, keys: Sequence[SigningKey]) -> None:
        """Whose signatures are believed is as public as what they have signed."""
        points = [(SIGNING_KEY, key.public_point) for key in keys]
        points += [(CURATOR_KEY, point) for point in self._curators.values()]
        with self._store.transaction():
            is_new = self._log([LogEntry(kind, point.hex()) for kind, point in points], keys)
        if is_new:
            self._last_log = self._signed_log

    def _log(self, wanted: Sequence[LogEntry], keys: Sequence[SigningKey]) -> bool:
        """Append what is not in the log, and sign the new checkpoint: part of the caller's transaction."""
        log = self._store.log
        new = [entry for entry in map(encode_entry, wanted) if not log.has(entry)]
        note = log.checkpoint()
        before = None if note is None else decode_checkpoint(note)
        signers = {key.key_id: key.public_point for key in keys}
        if not new and before is not None and {each.key_id for each in before.signatures(signers)} == set(signers):
            return False
        entries = log.entries()
        leaves = [leaf_hash(entry) for entry in [*entries, *new]]
        known = (before.size, before.root) if before else (0, EMPTY_ROOT)
        # An older checkpoint is as genuine as the newest one, so both are compared: with the entries, and with what was
        # here before. Signing anything else would show devices another history than they know.
        size, root = self._last_log
        if (len(entries), root_of(leaves[: len(entries)])) != known or root_of(leaves[:size]) != root:
            raise StoreError("the entries of the log are not those of its checkpoint; nothing is signed")
        for position, entry in enumerate(new, len(entries)):
            log.append(entry, position)
        origin = before.origin if before else f"searchblend/{keys[0].key_id}"
        signed = sign_checkpoint(Checkpoint(origin, len(leaves), root_of(leaves)), keys)
        log.keep_checkpoint(encode_checkpoint(signed))
        self._signed_log = signed.size, signed.root
        return bool(new)

    def _manifest(self, task: Task, sequence: int, now: int) -> Manifest:
        rounds = self._store.rounds.rounds(task.task)
        current = rounds[-1] if rounds else None
        settings = settings_of(current or task)
        phase = {State.OPTIN_OPEN: "opt-in", State.CLIENT_OPEN: "client"}.get(
            current.state if current else State.DRAFT, "idle"
        )
        phase = "idle" if task.killed else phase
        return Manifest(
            format=FORMAT,
            version=MANIFEST_VERSION,
            minor=MANIFEST_MINOR,
            task=task.task,
            name=task.name,
            engine=settings.engine,
            market=settings.market,
            sequence=sequence,
            issued=now,
            expires=now + MANIFEST_SECONDS,
            phase=phase,
            round=current.number if current else 0,
            killed=task.killed,
            min_device_version=settings.oldest_device,
            silent_devices=settings.silent_devices,
            method=settings.method,
            epsilon=repr(float(settings.epsilon)),
            delta=repr(float(settings.delta)),
            records_per_client=settings.records_per_client,
            records_per_optin=settings.records_per_optin,
            optin=_optin_part(current, settings) if phase == "opt-in" and current else None,
            client=self._client_part(current) if phase == "client" and current else None,
            pack=pack_part(self._store, rounds),
            gateway=gateway_digests(self._store, now),
        )

    def _is_curators(self, wanted: Manifest) -> bool:
        """Whether the round's key is the curator's. If it is not, devices do not get it, and the audit log has it.

        The mark stays with the round, so that the log has it once and every process can see it (``gauges``).
        """
        round_ = self._store.rounds.round(wanted.task, wanted.round)
        is_signed, is_marked = is_round_key_signed(wanted, self._curators), has_refused_key(self._store, round_)
        if is_signed and is_marked:
            self._store.artifacts.drop(round_.key, REFUSED_KEY)
        if not is_signed and not is_marked:
            self._store.artifacts.keep(round_.key, REFUSED_KEY, b"")
            note = {"task": round_.task, "round": round_.number}
            self._store.audit.append(PUBLISHER, "round key refused", self._clock.now(), note)
        return is_signed

    def _client_part(self, round_: Round) -> ClientPart:
        figures = self._reviewed_list(round_)
        if round_.client_opens is None or round_.client_closes is None:
            raise StoreError("the round has no client window")
        return ClientPart(
            artifact=self._store.artifacts.of_round(round_.key)[HEAD_LIST],
            digest=figures.head.digest,
            mechanism=figures.design.mechanism if figures.design else "two-stage",
            report_bytes=shape_of(round_).size,
            opens=round_.client_opens,
            closes=round_.client_closes,
            tokens=token_terms_of(round_),
        )


def _entry_of(task: str, latest: tuple[int, int, bytes]) -> LogEntry:
    return LogEntry.of_manifest(task, latest[0], decode_signed(latest[2]).payload)


def gateway_digests(store: ServiceStore, now: int) -> tuple[str, ...]:
    """The manifest's ``gateway``: the keys that a gateway has put on record."""
    newest = store.artifacts.gateway_keys(now)[:MOST_GATEWAY_KEYS]
    return tuple(sorted(hashlib.sha256(configuration).hexdigest() for configuration in newest))


def _is_current(message: bytes, wanted: Manifest, keys: Sequence[SigningKey]) -> bool:
    """Whether a signed manifest is what would be signed now; one that no device can read is not."""
    try:
        signed = decode_signed(message)
        before = decode_payload(signed.payload)
    except MessageError:
        return False
    same = replace(before, sequence=wanted.sequence, issued=wanted.issued, expires=wanted.expires) == wanted
    return same and {signature.key_id for signature in signed.signatures} == {key.key_id for key in keys}


def _optin_part(round_: Round, settings: TaskSettings) -> OptinPart:
    return OptinPart(
        public_key=(round_.public_key or b"").hex(),
        consent=settings.consent_digest.hex(),
        closes=round_.optin_closes or 0,  # then it is not what the curator signed, and is refused
        settings=settings_digest(round_),
        curator=key_signature_of(round_),
    )


def has_refused_key(store: ServiceStore, round_: Round) -> bool:
    """Whether the publisher has refused the key of this open round."""
    return round_.state is State.OPTIN_OPEN and store.artifacts.kept(round_.key, REFUSED_KEY) is not None


def why_it_waits(store: ServiceStore, round_: Round) -> str | None:
    """What a reviewed round waits for before it opens to clients, if that is not in the service's hands."""
    content = store.artifacts.kept(round_.key, WAITING) if round_.state is State.REVIEWED else None
    return None if content is None else content.decode("utf-8", "replace")


def client_spend(figures: HeadFigures, settings: TaskSettings) -> Spend:
    """What a report costs: (ε, 0), or as the printed method says.

    Its exact law is not charged. How clients report is chosen after the list is seen, and totals by loss distributions
    hold for laws that were fixed beforehand (proofs/composition.md).
    """
    budget, design = settings.params.budget, figures.design
    if design is None:
        return Spend.generic(budget, Neighbors.REPLACE_ONE, "two-stage randomized response")
    return Spend(budget.epsilon, 0.0, Neighbors.REPLACE_ONE, design.mechanism)


def public_spend(result: Result) -> Spend | None:
    """What the counts of a round, published, cost one of its clients: its promise to those who see only that."""
    published = result.guarantee.published
    if published is None:
        return None
    what = f"{published.people} reports, counted"
    return Spend(published.epsilon, published.delta, Neighbors.REPLACE_ONE, what)


def trend_rows(result: Result) -> list[TrendRow]:
    """The published rows of a result, best first, ⋆ last."""
    return [
        TrendRow(
            place=place,
            query=row.query,
            probability=row.probability,
            low=row.interval[0],
            high=row.interval[1],
            variance=row.variance,
            optin=row.optin.probability if row.optin else None,
            client=row.client.probability if row.client else None,
            optin_weight=row.optin_weight,
            influence=row.report_influence,
        )
        for place, row in enumerate(result.trends)
    ]
