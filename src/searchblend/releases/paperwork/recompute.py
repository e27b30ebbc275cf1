"""The promise of a release, computed again from its parameters: papers state no figure that a file merely claims."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from searchblend.blender.best.many_records_design import ManyRecordsDesign, design_of
from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.blender.guarantees import best_guarantee, paper_guarantee, selection_guarantee
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, Guarantee, StatedGuarantee, TrustModel
from searchblend.core.randomness import SystemRandomness
from searchblend.releases.saved_release import SavedRelease
from searchblend.releases.verify_release import budget_checks
from searchblend.wire.click_graph import STATEMENT_KIND
from searchblend.wire.values import VALUES_KIND

_CLOSE: Final = 1e-6


def check_promise(release: SavedRelease) -> None:
    """``MessageError`` unless the stated guarantee is what the stated parameters give."""
    try:
        _check(release)
    except (KeyError, TypeError, ValueError, InvalidParameter) as error:
        raise MessageError("parameters: expected those of a release, as searchblend writes them") from error


def _check(release: SavedRelease) -> None:
    statement, stated = release.statement, release.guarantee
    if statement.kind == STATEMENT_KIND:
        if failed := [check.name for check in budget_checks(statement) if not check.holds]:
            raise MessageError(f"guarantee: does not follow from the parameters: {', '.join(failed)}")
        return
    if statement.kind != VALUES_KIND and release.result().guarantee != stated:
        raise MessageError("guarantee: differs from that of result.json")
    if not any(_same(stated, promise.stated()) for promise in _promises(release)):
        raise MessageError("guarantee: is not the one that the parameters give")


def _promises(release: SavedRelease) -> Iterator[Guarantee]:
    """What the parameters give; a statement does not say whether its list was wide, so either may be meant."""
    parameters = release.statement.parameters
    if release.statement.kind == VALUES_KIND:
        budget = Budget(parameters["epsilon"], parameters["delta"])
        design = CuratorDesign.of(budget)
        if parameters["integer_threshold"] == design.threshold.integer:
            yield selection_guarantee(budget, design, SystemRandomness())
        return
    params, trust = _params(parameters), TrustModel(release.guarantee.groups[-1].trust)
    if release.statement.method == "paper":
        yield paper_guarantee(params, trust, cryptographic=True)
    elif release.statement.method == "best":
        optin = release.result().mechanism["optin"]
        for curator in _curators(params):
            if _same_figures(optin, curator.figures):
                yield best_guarantee(params, curator, trust, cryptographic=True)


def _curators(params: BlenderParams) -> list[CuratorDesign | ManyRecordsDesign]:
    if params.records_per_optin > 1:
        return [design_of(params)]
    return [CuratorDesign.of(params.budget, wide=wide) for wide in (False, True)]


def _params(parameters: JsonObject) -> BlenderParams:
    known = {name: parameters[name] for name in BlenderParams.__dataclass_fields__ if name in parameters}
    return BlenderParams(budget=Budget(parameters["epsilon"], parameters["delta"]), **known)


def _same(stated: StatedGuarantee, computed: StatedGuarantee) -> bool:
    """Equal promises, numbers up to rounding. Whether a source was cryptographic is the one thing to be believed."""
    numbers = [
        (one.mechanism_delta, other.mechanism_delta) for one, other in zip(stated.groups, computed.groups, strict=False)
    ]
    return _without_numbers(stated) == _without_numbers(computed) and all(
        math.isclose(one, other, rel_tol=_CLOSE, abs_tol=1e-300) for one, other in numbers
    )


def _without_numbers(promise: StatedGuarantee) -> StatedGuarantee:
    """Without what may differ in a last digit, and the bound for published files, which no parameters give."""
    return replace(
        promise,
        groups=tuple(replace(group, mechanism_delta=0.0) for group in promise.groups),
        conditions=tuple(replace(condition, detail="") for condition in promise.conditions),
        published=None,
    )


def _same_figures(stated: JsonObject, computed: JsonObject) -> bool:
    return stated.keys() == computed.keys() and all(
        math.isclose(value, computed[name], rel_tol=_CLOSE)
        if isinstance(value, float) and isinstance(computed[name], float)
        else value == computed[name]
        for name, value in stated.items()
    )
