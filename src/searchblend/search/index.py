"""Local search over a pack or straight over a release in memory."""

from __future__ import annotations

from searchblend.blender.release import BlenderRelease
from searchblend.search.build_pack import pack_of_release
from searchblend.search.pack import Pack
from searchblend.search.pack_index import EXACT, PREFIX, TYPO, Found, PackIndex

__all__ = ["EXACT", "PREFIX", "TYPO", "Found", "SearchIndex"]


class SearchIndex(PackIndex):
    """Finds the released queries that fit what somebody typed, and their URLs, best first."""

    def __init__(self, source: BlenderRelease | Pack) -> None:
        super().__init__(source if isinstance(source, Pack) else pack_of_release(source))
