"""A stored round in the words of the algorithms: parameters, shape of its reports, what records are sealed to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from searchblend.blender.best.best import curator_design
from searchblend.blender.best.stability_histogram import CountedHeadList
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.estimates import Estimates, Floats, GroupEstimates
from searchblend.blender.paper.estimate_optin import optin_variance
from searchblend.core.documents import decode
from searchblend.core.errors import SearchblendError
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints
from searchblend.mechanisms.threshold import noise_for_one_record
from searchblend.service.task_settings import TaskSettings
from searchblend.store.rounds import Round, Task
from searchblend.wire.manifest import decode_signature
from searchblend.wire.report import ReportShape
from searchblend.wire.round_key import RoundKey
from searchblend.wire.sealed import SealingContext
from searchblend.wire.signing import is_signed


def settings_of(row: Task | Round) -> TaskSettings:
    """What a task asks for now, or a round since it was drafted."""
    return decode(TaskSettings, row.settings)


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


def settings_digest(round_: Round) -> str:
    """SHA-256 of the settings that the round was drafted with."""
    text = json.dumps(round_.settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_signed_by_curator(round_: Round, curators: Mapping[str, bytes]) -> bool:
    """Whether one of these curators has signed the round as it stands in the database now."""
    if round_.key_signature is None or round_.public_key is None or round_.optin_closes is None:
        return False
    try:
        signature = decode_signature(json.loads(round_.key_signature), "round")
        content = round_key_of(round_).signed_bytes
    except (SearchblendError, TypeError, ValueError):  # somebody wrote there by hand
        return False
    return is_signed(content, [signature], curators)


def shape_document(shape: ReportShape) -> dict[str, Any]:
    return {**asdict(shape), "task": shape.task.hex(), "digest": shape.digest.hex()}


def shape_of(round_: Round) -> ReportShape:
    assert round_.shape is not None
    fields = dict(round_.shape)
    return ReportShape(**{**fields, "task": bytes.fromhex(fields["task"]), "digest": bytes.fromhex(fields["digest"])})


@dataclass(frozen=True)
class HeadFigures:
    """The curator's private output: a head list with what the opt-in users say about it. Safe to keep and to review."""

    head: HeadList
    n_users: int
    refused: int
    """sealed records that could not be opened or read"""
    counts: Ints | None = None
    """method ``best``: noisy counts by cell, without ⟨⋆,⋆⟩"""
    optin: GroupEstimates | None = None
    """method ``paper``"""
    head_users: int = 0
    """method ``paper``: |S|"""
    design: ReportDesign | None = None
    """how clients report; chosen at the review, in method ``best``"""

    def as_bytes(self) -> bytes:
        document = {
            "head": self.head.as_json(),
            "n_users": self.n_users,
            "refused": self.refused,
            "counts": None if self.counts is None else self.counts.tolist(),
            "optin": None if self.optin is None else _estimates_json(self.optin),
            "head_users": self.head_users,
            "design": asdict(self.design) if self.design else None,
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()

    @classmethod
    def of_bytes(cls, content: bytes) -> HeadFigures:
        document = json.loads(content)
        return cls(
            head=HeadList(document["head"]),
            n_users=document["n_users"],
            refused=document["refused"],
            counts=None if document["counts"] is None else np.array(document["counts"], dtype=np.int64),
            optin=None if document["optin"] is None else _estimates(document["optin"]),
            head_users=document["head_users"],
            design=ReportDesign(**document["design"]) if document["design"] else None,
        )

    def counted(self, settings: TaskSettings) -> CountedHeadList:
        """For the estimator of method ``best``."""
        assert self.counts is not None
        curator = curator_design(settings.params, wide=settings.wide_list and settings.has_urls)
        return CountedHeadList(self.head, self.counts, self.n_users, curator)

    def without(self, removed: Sequence[tuple[int, int | None]], settings: TaskSettings) -> HeadFigures:
        """The list without some queries (url None) or URLs, by position. Post-processing of a private output.

        What a removed entry counted goes where its holders' reports go: to ⟨q,⋆⟩ of its query in method ``best``,
        to ⟨⋆,⋆⟩ in method ``paper``, which has no opt-in figure for ⟨q,⋆⟩. Of a removed query nothing stays.
        """
        queries = {query for query, url in removed if url is None}
        urls = {(query, url) for query, url in removed if url is not None}
        first = self.head.first_cells()
        listed: list[tuple[str, list[str]]] = []
        cells: list[int] = []
        moved: dict[int, int] = {}
        for i, query in enumerate(self.head.queries):
            if i in queries:
                continue
            names = self.head.urls(query)
            kept = [j for j in range(len(names)) if (i, j) not in urls]
            listed.append((query, [names[j] for j in kept]))
            cells += [first[i] + j for j in kept] + [first[i] + len(names)]
            moved |= {first[i] + j: first[i] + len(names) for j in range(len(names)) if (i, j) in urls}
        head = HeadList(listed)
        if self.counts is not None:
            counts = self.counts.copy()
            for cell, rest in moved.items():
                counts[rest] += counts[cell]
            return replace(self, head=head, counts=counts[cells])
        assert self.optin is not None
        return replace(self, head=head, optin=_paper_without(self.optin, head, cells, settings))


def _paper_without(
    optin: GroupEstimates, head: HeadList, cells: Sequence[int], settings: TaskSettings
) -> GroupEstimates:
    """The estimates of the kept cells; everything else is ⟨⋆,⋆⟩, with the printed variances."""
    probability = optin.records.probability
    kept = probability[list(cells)]
    rest = float(np.nansum(probability)) - float(np.nansum(kept))
    cell_probability = np.append(kept, rest)
    query_probability = np.add.reduceat(np.nan_to_num(cell_probability), head.first_cells())
    noise = noise_for_one_record(settings.params.budget).variance
    return GroupEstimates(
        optin.n,
        Estimates(cell_probability, optin_variance(cell_probability, optin.n, noise)),
        Estimates(query_probability, optin_variance(query_probability, optin.n, noise)),
    )


def _estimates_json(estimates: GroupEstimates) -> dict[str, Any]:
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


def _estimates(document: dict[str, Any]) -> GroupEstimates:
    def numbers(name: str) -> Floats:
        return np.array([np.nan if value is None else value for value in document[name]], dtype=np.float64)

    return GroupEstimates(
        document["n"],
        Estimates(numbers("records_probability"), numbers("records_variance")),
        Estimates(numbers("queries_probability"), numbers("queries_variance")),
    )
