"""The pack of a release in memory."""

from __future__ import annotations

from searchblend.blender.release import BlenderRelease
from searchblend.search.build_pack import Estimate, pack_of_estimates
from searchblend.search.pack import Pack, PackInfo


def pack_of_release(release: BlenderRelease) -> Pack:
    """The pack of a release in memory."""
    guarantee, head = release.guarantee, release.head
    info = PackInfo(release.method, guarantee.epsilon, guarantee.delta)
    low = release.queries.raw.interval[:, 0]
    queries = [
        Estimate(query, None, float(low[i]), float(release.queries.probability[i]))
        for i, query in enumerate(head.queries)
    ]
    low = release.records.raw.interval[:, 0]
    records = [
        Estimate(cell.query, cell.url, float(low[i]), float(release.records.probability[i]))
        for i, cell in enumerate(head.cells())
        if isinstance(cell.query, str) and isinstance(cell.url, str)
    ]
    return pack_of_estimates(info, queries, records).pack
