"""A stored round in the words of the algorithms: parameters, shape of its reports, what records are sealed to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

import numpy as np

from searchblend.blender.best.many_records import Measurement
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.estimates import Estimates, Floats, GroupEstimates
from searchblend.blender.method import Method, method_named
from searchblend.blender.release import HeadFigures
from searchblend.core.documents import JsonObject, Natural, Sha256, decode, encode
from searchblend.core.errors import MessageError, SearchblendError
from searchblend.core.records import HeadList
from searchblend.service.task_settings import TaskSettings
from searchblend.store.reports import ConservationLaw
from searchblend.store.rounds import RawLeft, Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State
from searchblend.wire.manifest import Signature, TokenPart, decode_signature
from searchblend.wire.optin_result import DrawnBy
from searchblend.wire.report import ReportShape
from searchblend.wire.sealed import SealingContext
from searchblend.wire.signing import RoundKey, is_signed
from searchblend.wire.tokens import TokenVerifier

_ADJUSTED: Final = "adjusted settings of "


def settings_of(row: Task | Round) -> TaskSettings:
    """What a task asks for now, or a round since it was drafted."""
    return decode(TaskSettings, row.settings)


def settings_now(store: ServiceStore, task: Task) -> TaskSettings:
    """What rounds that are drafted now are asked with: the task's settings, and what was adjusted since.

    The adjustments are a document of their own: no process may change the settings that people agreed to.
    """
    changes = store.artifacts.kept_json(0, adjusted_name(task))
    return settings_of(task).adjusted(changes) if changes else settings_of(task)


def task_now(store: ServiceStore, task: Task) -> Task:
    """The task as its coming rounds see it."""
    return _with(task, store.artifacts.kept(0, adjusted_name(task)))


def tasks_now(store: ServiceStore) -> list[Task]:
    """All tasks as their coming rounds see them."""
    contents = store.artifacts.kept_under(0, _ADJUSTED)
    return [_with(task, contents.get(adjusted_name(task))) for task in store.rounds.tasks()]


def _with(task: Task, content: bytes | None) -> Task:
    """Adjustments that cannot be read leave empty settings, which no use accepts."""
    if content is None:
        return task
    try:
        return replace(task, settings=encode(settings_of(task).adjusted(json.loads(content))))
    except (SearchblendError, AttributeError, TypeError, ValueError, RecursionError):
        return replace(task, settings={})


def adjusted_name(task: Task) -> str:
    """Of the document that holds what was adjusted."""
    return f"{_ADJUSTED}{task.task}"


def sealing_context(round_: Round) -> SealingContext:
    return SealingContext(bytes.fromhex(round_.task), round_.number, settings_of(round_).consent_digest)


def round_key_of(round_: Round) -> RoundKey:
    """What the curator signs of an open round."""
    assert round_.public_key is not None
    assert round_.optin_closes is not None
    settings = settings_of(round_)
    return RoundKey(
        task=round_.task,
        round=round_.number,
        public_key=round_.public_key.hex(),
        consent=settings.consent_digest.hex(),
        closes=round_.optin_closes,
        epsilon=repr(float(settings.epsilon)),
        delta=repr(float(settings.delta)),
        records_per_optin=settings.records_per_optin,
        settings=settings_digest(round_),
    )


def drawn_by(round_: Round) -> DrawnBy:
    """The round in the words of what the curator signs of its list."""
    settings = settings_of(round_)
    return DrawnBy(round_.task, round_.number, repr(float(settings.epsilon)), repr(float(settings.delta)))


def shredding_deadline(round_: Round | RawLeft) -> int | None:
    """When raw records and their key must be gone, by whatever in the row says so soonest; None if nothing does.

    ``shred_by`` is not signed, and whoever writes to the database can put it off. When opt-in ends and all settings
    are: with them the curator has signed when it opened the round, and for how long.
    """
    optin, shred = (round_.settings.get(name) for name in ("optin_seconds", "shred_seconds"))
    signed = None
    if round_.optin_closes is not None and isinstance(optin, int) and isinstance(shred, int):
        signed = round_.optin_closes - optin + shred
    return min((moment for moment in (signed, round_.shred_by) if moment is not None), default=None)


def settings_digest(round_: Round) -> str:
    """SHA-256 of the settings that the round was drafted with."""
    content = json.dumps(round_.settings, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(content).hexdigest()


def is_signed_by_curator(round_: Round, curators: Mapping[str, bytes]) -> bool:
    """Whether one of these curators has signed the round as it stands in the database now."""
    if round_.key_signature is None or round_.public_key is None or round_.optin_closes is None:
        return False
    signature = key_signature_of(round_)
    try:
        content = round_key_of(round_).signed_bytes
    except (SearchblendError, TypeError, ValueError):  # the settings were written by hand
        return False
    return signature is not None and is_signed(content, [signature], curators)


def key_signature_of(round_: Round) -> Signature | None:
    """The curator's signature as it is stored; None if there is none, or if it was written by hand."""
    try:
        return decode_signature(json.loads(round_.key_signature or "null"), "round")
    except (MessageError, ValueError, RecursionError):
        return None


def token_terms_of(round_: Round) -> TokenPart | None:
    """What pays for a report of the round, once it is open to clients; None if nothing has to."""
    if not settings_of(round_).token_issuer or round_.tokens is None:
        return None
    return decode(TokenPart, json.loads(round_.tokens))


def token_verifier_of(round_: Round) -> TokenVerifier | None:
    terms = token_terms_of(round_)
    return TokenVerifier(terms, bytes.fromhex(round_.task), round_.number) if terms else None


def shape_document(shape: ReportShape) -> JsonObject:
    return {**asdict(shape), "task": shape.task.hex(), "digest": shape.digest.hex()}


def shape_of(round_: Round) -> ReportShape:
    assert round_.shape is not None
    fields = dict(round_.shape)
    return ReportShape(**{**fields, "task": bytes.fromhex(fields["task"]), "digest": bytes.fromhex(fields["digest"])})


def method_of(settings: TaskSettings) -> Method:
    """The method that curator, estimator and review of a round call."""
    return method_named(settings.method, wide_list=settings.wide_list and settings.has_urls)


@dataclass(frozen=True)
class RoundNumbers:
    """Public numbers of a round: how many messages, why some were refused, and whether the law holds."""

    opt_in_records: Natural
    reports_counted: Natural
    refusals: Mapping[str, int]
    conservation: ConservationLaw
    files: Mapping[str, Sha256]

    @classmethod
    def read(cls, store: ServiceStore, round_: Round) -> RoundNumbers:
        """A few statements, whatever the round holds."""
        per_report = shape_of(round_).counts_per_report if round_.shape else 0
        return cls(
            opt_in_records=store.contributions.count(round_.key),
            reports_counted=store.reports.n_seen(round_.key) if round_.reports is None else round_.reports,
            refusals=store.reports.refusals(round_.key),
            conservation=store.reports.conservation(round_.key, per_report, round_.reports),
            files=store.artifacts.of_round(round_.key) if round_.state is State.PUBLISHED else {},
        )


def encode_figures(figures: HeadFigures) -> bytes:
    """The curator's output as it is kept with its round. What follows from the parameters is not in it."""
    document = {
        "head": figures.head.as_json(),
        "n_users": figures.n_users,
        "counts": None if figures.counts is None else figures.counts.tolist(),
        "measurement": figures.measurement.as_json() if figures.measurement else None,
        "merged": None if figures.merged is None else figures.merged.tolist(),
        "optin": None if figures.optin is None else _estimates_json(figures.optin),
        "head_users": figures.head_users,
        "cryptographic": figures.cryptographic,
        "design": asdict(figures.design) if figures.design else None,
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def decode_figures(content: bytes) -> HeadFigures:
    """Rounds drawn by earlier versions have no record of the generator: then the guarantee says so."""
    document = json.loads(content)
    cryptographic = document.get("cryptographic")
    return HeadFigures(
        head=HeadList(document["head"]),
        n_users=document["n_users"],
        counts=None if document["counts"] is None else np.array(document["counts"], dtype=np.int64),
        measurement=Measurement.of_json(document["measurement"]) if document.get("measurement") else None,
        merged=None if document.get("merged") is None else np.array(document["merged"], dtype=np.int64),
        optin=None if document["optin"] is None else _estimates(document["optin"]),
        head_users=document["head_users"],
        cryptographic=cryptographic if isinstance(cryptographic, bool) else None,
        design=ReportDesign(**document["design"]) if document["design"] else None,
    )


def _estimates_json(estimates: GroupEstimates) -> JsonObject:
    def numbers(values: Floats) -> list[float | None]:
        return [None if np.isnan(value) else float(value) for value in values]

    return {
        "n": estimates.n,
        **{
            f"{name}_{field}": numbers(getattr(getattr(estimates, name), field))
            for name in ("records", "queries")
            for field in ("probability", "variance")
        },
    }


def _estimates(document: JsonObject) -> GroupEstimates:
    def numbers(name: str) -> Floats:
        return np.array([np.nan if value is None else value for value in document[name]], dtype=np.float64)

    return GroupEstimates(
        document["n"],
        Estimates(numbers("records_probability"), numbers("records_variance")),
        Estimates(numbers("queries_probability"), numbers("queries_variance")),
    )
