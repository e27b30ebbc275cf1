"""Local search: answers from a released head list, on the device, without a network."""

from __future__ import annotations

from searchblend.blender.release import BlenderRelease
from searchblend.normalization import normalize


class SearchIndex:
    """The URLs of every released query, best first."""

    def __init__(self, release: BlenderRelease) -> None:
        self._urls: dict[str, list[str]] = {}
        for i, query in enumerate(release.head.queries):
            urls = release.head.urls(query)
            self._urls[query] = [urls[j] for j in release.ranked_urls(i)]

    def urls_for(self, query: str, limit: int = 10) -> list[str]:
        """The best URLs for what somebody typed; empty for a query that is not in the head."""
        return self._urls.get(normalize(query) or "", [])[:limit]

    def __len__(self) -> int:
        return len(self._urls)
