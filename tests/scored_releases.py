"""Releases of a small head list whose scores can be worked out by hand. [BLJ] §4.1."""

from __future__ import annotations

import numpy as np

from searchblend.blender.estimates import Blended, Estimates, GroupEstimates
from searchblend.blender.release import BlenderRelease, GroupSizes
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, Guarantee, Neighbors
from searchblend.core.records import HeadList
from searchblend.synthetic.metrics import Truth

HEAD = HeadList({"a": ["u", "v"], "b": ["u"]})
TRUTH = Truth.of(HEAD, np.array([10, 30, 20, 20, 5, 15]))


def gain(share: float) -> float:
    return 2**share - 1


def released(head: HeadList, records: list[float]) -> BlenderRelease:
    """A release with these probabilities of cells, and of queries by adding them up."""
    cells = np.array(records)
    queries = np.add.reduceat(cells, head.first_cells())
    nothing = Estimates(np.array([]), np.array([]))
    return BlenderRelease(
        method="paper",
        params=BlenderParams(Budget(4, 1e-5)),
        head=head,
        sizes=GroupSizes(0, 0, 0, 0),
        mechanism={},
        optin=GroupEstimates(0, nothing, nothing),
        client=GroupEstimates(0, nothing, nothing),
        records=Blended(nothing, cells, cells),
        queries=Blended(nothing, queries, queries),
        projected=True,
        guarantee=Guarantee(Neighbors.REPLACE_ONE, (), ()),
    )
