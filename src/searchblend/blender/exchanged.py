"""Methods of others: the printed algorithm with some of its steps exchanged, or a method that is wholly their own.

[BLJ] §2.2 builds BLENDER of sub-algorithms, each of which another may take the place of. What such code does to privacy
no one here can know. So its author states a promise (``guarantee``); without one nothing is promised; and whatever it
states, the release says that the code is from outside, and holds only if someone is named who vouches for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from searchblend.blender.method import BestMethod, MechanismFigures, Method, PaperMethod
from searchblend.blender.release import BlenderRelease, HeadFigures
from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Condition, GroupGuarantee, Guarantee, Neighbors, TrustModel
from searchblend.core.records import HeadList

STEPS: Final = ("create_head_list", "estimate_optin", "collect_reports", "estimate_clients", "blend")
"""what can be exchanged, each alone: [BLJ] Fig. 3, 4, 6, 5 and 7"""
_OF_PROMISE: Final = STEPS[:3]
"""those that see a person's data; what follows them is post-processing (proofs/post_processing.md)"""
OUTSIDE: Final = "code from outside"
WITHIN: Final = "a promise within the budget"
_MOST_LETTERS: Final = 200


class PrintedSteps(PaperMethod):
    """[BLJ] Fig. 2 with every step a method that can be overridden: derive from it, and exchange some.

    The steps that see a person's data are ``create_head_list``, ``estimate_optin`` and ``collect_reports``. If one of
    them is exchanged, ``guarantee`` must be, too: until then the release says that nothing is promised.
    """

    name = "printed steps"

    @property
    def exchanged(self) -> Sequence[str]:
        """Which steps are not the printed ones."""
        return [step for step in STEPS if getattr(type(self), step) is not getattr(PaperMethod, step)]

    def guarantee(self, figures: HeadFigures, params: BlenderParams, trust: TrustModel) -> Guarantee:
        """That of the printed steps while those that see a person's data are the printed ones; else none."""
        unknown = [step for step in self.exchanged if step in _OF_PROMISE]
        if not unknown:
            return super().guarantee(figures, params, trust)
        detail = f"{', '.join(unknown)}: exchanged, and this method states no promise of its own"
        groups = (("opt-in users", TrustModel.CURATOR), ("clients", trust))
        return Guarantee(
            Neighbors.REPLACE_ONE,
            tuple(GroupGuarantee(group, params.budget, whom, params.budget.delta) for group, whom in groups),
            (Condition("a stated promise", False, detail),),
        )

    def figures(self, head: HeadList, params: BlenderParams) -> MechanismFigures:
        """What a result says of both mechanisms: of the printed ones only while nothing is exchanged."""
        if not self.exchanged:
            return super().figures(head, params)
        return {
            "optin": {"name": f"steps of {type_path(self)}"},
            "client": {"name": f"steps of {type_path(self)}", "cells_per_report": params.records_per_client},
            "exchanged": {"steps": list(self.exchanged)},
        }


def is_outside(method: Method) -> bool:
    """Whether a method is not, to the letter, one of ours."""
    return type(method) not in (BestMethod, PaperMethod)


def type_path(method: Method) -> str:
    """Where its code is, which names it in a release: a name of its own could be one of ours."""
    return f"{type(method).__module__}:{type(method).__qualname__}"


def check_voucher(method: Method, vouched_by: str | None) -> None:
    """Refuse a voucher for what needs none, and one that could not be printed in a line."""
    if vouched_by is None:
        return
    if not is_outside(method):
        raise InvalidParameter("vouched-by", "only with a method from outside: what ours promise is proven here")
    if not vouched_by.strip() or not vouched_by.isprintable() or len(vouched_by) > _MOST_LETTERS:
        raise InvalidParameter("vouched-by", f"expected a name, of at most {_MOST_LETTERS} printable letters")


def from_outside(release: BlenderRelease, method: Method, vouched_by: str | None) -> BlenderRelease:
    """The release with what must be said of such a method, whatever it says of itself."""
    path = type_path(method)
    detail = f"{path} is not part of searchblend, and nothing here has checked what it states; "
    detail += "no one vouches for it" if vouched_by is None else f"{vouched_by} vouches for it"
    stated = release.guarantee
    conditions = (*stated.conditions, Condition(OUTSIDE, vouched_by is not None, detail), *_beyond(release))
    return replace(release, method=path, guarantee=replace(stated, conditions=conditions, published=None))


def _beyond(release: BlenderRelease) -> Sequence[Condition]:
    """That a method states more than what a ledger is debited, which is the budget for replacing a user."""
    stated, budget = release.guarantee, release.params.budget
    is_larger = stated.epsilon > budget.epsilon or stated.delta > budget.delta
    if stated.neighbors is Neighbors.REPLACE_ONE and not is_larger:
        return ()
    said, paid = f"ε = {stated.epsilon:g}, δ = {stated.delta:g}", f"ε = {budget.epsilon:g}, δ = {budget.delta:g}"
    detail = (
        f"the method states {said} for {stated.neighbors.value}, where {paid} for {Neighbors.REPLACE_ONE.value} is "
    )
    return (Condition(WITHIN, False, f"{detail}what a ledger is debited"),)
