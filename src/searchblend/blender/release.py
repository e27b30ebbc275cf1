"""Everything that one run publishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from searchblend.blender.best.group_check import GroupCheck
from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.estimates import Blended, Floats, GroupEstimates
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Guarantee
from searchblend.core.records import HeadList


@dataclass(frozen=True)
class GroupSizes:
    """How many people took part; public, since neighbours differ in values and not in participation."""

    optin_users: int
    clients: int
    head_users: int
    """opt-in users that make the head list (S)"""
    estimate_users: int
    """opt-in users that estimate it (T): others than S in the printed method, the same in ``best``"""


@dataclass(frozen=True)
class BlenderRelease:
    """Everything that one run publishes. ``repr`` and every field are safe to show."""

    method: str
    params: BlenderParams
    head: HeadList
    sizes: GroupSizes
    mechanism: Mapping[str, Any]
    """names and public figures of both groups' mechanisms"""
    optin: GroupEstimates
    client: GroupEstimates
    records: Blended
    queries: Blended
    projected: bool
    guarantee: Guarantee
    design: ReportDesign | None = None
    """how clients report, in method ``best``"""
    check: GroupCheck | None = None
    """whether the groups search alike, in method ``best``"""

    def ranked_queries(self) -> list[int]:
        """The positions of the listed queries, most probable first; ties by bytes, never by input order."""
        return _by_probability(self.queries.probability[:-1], self.head.queries)

    def ranked_urls(self, query: int) -> list[int]:
        """The positions of one query's listed URLs, most probable first; ties by bytes."""
        first, urls = self.head.first_cells()[query], self.head.urls(self.head.queries[query])
        return _by_probability(self.records.probability[first : first + len(urls)], urls)

    def __repr__(self) -> str:
        return f"BlenderRelease({self.head!r}, ε = {self.guarantee.epsilon:g}, δ = {self.guarantee.delta:g})"


def _by_probability(probability: Floats, names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=lambda i: (-probability[i], names[i].encode()))
