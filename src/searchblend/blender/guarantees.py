"""What each method promises, and whether its conditions hold for a run."""

from __future__ import annotations

import math
from typing import Final

from searchblend.blender.best.many_records_design import ManyRecordsDesign
from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, Condition, GroupGuarantee, Guarantee, Neighbors, TrustModel
from searchblend.core.randomness import Randomness
from searchblend.mechanisms.threshold import Threshold, printed_threshold
from searchblend.mechanisms.value_selection import SelectionDesign


def best_guarantee(
    params: BlenderParams,
    curator: CuratorDesign | ManyRecordsDesign,
    clients: TrustModel,
    *,
    cryptographic: bool | None,
) -> Guarantee:
    """The promise of method ``best``: proofs/stability_histogram.md or many_records.md, proofs/subset_selection.md.

    ``clients`` is whom they trust: it differs between real devices and a log whose holder plays them.
    ``cryptographic`` is what whoever drew the noise has on record about its source.
    """
    budget = params.budget
    return Guarantee(
        neighbors=Neighbors.REPLACE_ONE,
        groups=(
            GroupGuarantee("opt-in users", budget, TrustModel.CURATOR, curator.delta),
            GroupGuarantee("clients", budget, clients, 0.0),
        ),
        conditions=_curator_conditions(budget, curator, cryptographic),
    )


def selection_guarantee(design: SelectionDesign, randomness: Randomness) -> Guarantee:
    """The promise of a selection alone, by a curator: proofs/value_selection.md."""
    return Guarantee(
        neighbors=design.neighbors,
        groups=(GroupGuarantee("users", design.budget, TrustModel.CURATOR, design.delta),),
        conditions=_curator_conditions(design.budget, design, randomness.cryptographic),
    )


def _curator_conditions(
    budget: Budget, curator: CuratorDesign | ManyRecordsDesign | SelectionDesign, cryptographic: bool | None
) -> tuple[Condition, ...]:
    return (
        Condition("bounded contribution", True, curator.contribution),
        Condition(
            "selection within δ",
            curator.delta <= budget.delta,
            f"records of one person alone are named with probability {curator.selection_delta:.3g} at most; "
            f"the noise sampler adds {curator.sampler_delta:.2g}",
        ),
        _randomness_condition(cryptographic),
    )


def paper_guarantee(params: BlenderParams, clients: TrustModel, *, cryptographic: bool | None) -> Guarantee:
    """The promise of the printed method: opt-in by Theorems 3.1 and 3.2 on disjoint users, clients by 3.3."""
    budget, threshold = params.budget, printed_threshold(params.budget)
    rate, sampler = threshold.single_person_rate, threshold.sampler_delta(budget.epsilon)
    return Guarantee(
        neighbors=Neighbors.REPLACE_ONE,
        groups=(
            GroupGuarantee("opt-in users", budget, TrustModel.CURATOR, rate + sampler),
            GroupGuarantee("clients", budget, clients, budget.delta / 2),
        ),
        conditions=(
            Condition("one record per opt-in user (m_O = 1)", True, "Theorems 3.1 and 3.2"),
            _budget_condition(budget, threshold),
            Condition("threshold at least 1", threshold.printed >= 1, f"τ = {threshold.printed:.4g} (Theorem 3.1)"),
            Condition(
                "selection within δ",
                rate + sampler <= budget.delta,
                f"a single person's record is named with probability {rate:.3g}; the noise sampler adds {sampler:.2g}",
            ),
            _randomness_condition(cryptographic),
        ),
    )


def _budget_condition(budget: Budget, threshold: Threshold) -> Condition:
    if budget.epsilon > math.log(2):
        return Condition("ε > ln 2", True, "Theorem 3.1")
    return Condition(
        "e^(ε/2)(1 − π₁) ≥ 1",
        threshold.small_budget_condition(),
        f"stands in for ε > ln 2 of Theorem 3.1 (proofs/create_head_list.md); π₁ = {threshold.single_person_rate:.3g}",
    )


_DRAWN_FROM: Final = {
    True: "noise and reports were drawn from the operating system's generator",
    False: "a predictable generator was used: nothing here is private",
    None: "what the noise was drawn from is not on record, so that no one vouches for it",
}


def _randomness_condition(cryptographic: bool | None) -> Condition:
    """Met only if it is on record that the source cannot be predicted."""
    return Condition("cryptographic randomness", cryptographic is True, _DRAWN_FROM[cryptographic])
