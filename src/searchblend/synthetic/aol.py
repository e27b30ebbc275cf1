"""Synthetic lines with the shape of the AOL log, one chunk of users at a time.

Published figures: 36,389,567 lines of 657,426 users, 21,011,340 new queries, 7,887,022 next-page requests,
19,442,629 clicks, 10,154,742 distinct queries; of these 519,371 users, 4,811,646 queries and 1,620,064 URLs with
clicks ([BLJ] Fig. 8) on 10,741,956 ⟨query, URL⟩ edges. A line is a click, or a result page without one.

1. A person has round(17·e^(s·z)) lines; 16 % never click, the others click on a first page with their own probability.
2. From line to line: one more click on the same page, the next page, or a new query (``_outline``).
3. A search with a click has its query from ``clicked_law``, whose head is Figure 9's. A search without one has a query
   that no one else asks in 29 % of cases, else one from ``clicked_law`` as well.
4. The first site of a frequent query gets 40-95 % of its clicks and ten more share the rest with weights r^-1.5; from
   rank 1,000 on it gets 10-65 %, and fifty share the rest with weights 1/r. Sites are shared between queries by a
   power law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.synthetic.laws import (
    Floats,
    Ints,
    RankLaw,
    Segment,
    draw_index,
    fixed_uniform,
)
from searchblend.synthetic.population import aol_query_shares
from searchblend.synthetic.words import (
    QUERY_LIMIT,
    SITE_LIMIT,
    SITE_OF_QUERY,
    intent,
    kinds,
)

FULL_SIZE: Final = 657_426
SECONDS: Final = 92 * 86_400
"""2006-03-01 to 2006-05-31."""
_LONGEST: Final = 279_430
_MEDIAN_LINES: Final = 17.0
_SPREAD_BELOW, _SPREAD_ABOVE = 1.785, 1.54

_NEVER_CLICKS: Final = 0.16
_FIRST_PAGE_CLICKED: Final = 0.654
_CONCENTRATION: Final = 4.0
_NEXT_PAGE_CLICKED: Final = 0.302  # relative to the first page
_ONE_MORE_CLICK: Final = 0.394
_NEXT_PAGE: Final = 0.280

_BREAK: Final = 100_000
_VOCABULARY: Final = 1 << 28
_TAIL_EXPONENT: Final = 1.0556
_ASKED_ONCE: Final = 0.29

_N_FREQUENT: Final = 1_000
_OTHERS_OF_FREQUENT: Final = np.arange(1.0, 11.0) ** -1.5
_OTHERS_OF_RARE: Final = 1 / np.arange(1.0, 51.0)
_SITES: Final = Segment(0, SITE_LIMIT, exponent=1.165, mass=1.0, shift=100.0)
_SITE_SALT: Final = 11

_FIRST_PAGE_RANKS: Final = np.array([0.421, 0.119, 0.085, 0.061, 0.049, 0.041, 0.034, 0.030, 0.028, 0.030])
_FIRST_RANK_SHARE: Final = np.array([0.70, 0.60, 0.37, 0.30])
"""Share of rank 1 by kind of query; the third is the one that gives 42.1 % over all clicks."""
_RANK_ZERO: Final = 8_089 / 19_442_629

Flags = NDArray[np.bool_]


@cache
def clicked_law() -> RankLaw:
    """Ranks 1-50 of one record per user, its power law down to rank 100,000, and a steeper one to the end."""
    shares = aol_query_shares()
    head, near = shares[:50].tolist(), float(shares[50:_BREAK].sum())
    slope = float(np.log(shares[_BREAK // 2] / shares[_BREAK]) / np.log(2))
    return RankLaw(
        tuple(head),
        (
            Segment(50, _BREAK, slope, near, shift=0.5),
            Segment(_BREAK, _VOCABULARY, _TAIL_EXPONENT, 1 - sum(head) - near, shift=0.5),
        ),
    )


MISSPELT: Final = QUERY_LIMIT
"""A number that is larger by this stands for the same query, with its second and third letter swapped."""
_REPEATS: Final = 0.3
_MISSPELLS: Final = 0.3
_MOST_MISSPELT: Final = 200
_AGAIN_WITHIN: Final = 1_800


@dataclass(frozen=True)
class AolChunk:
    """Lines in order. Without a click ``site`` and ``item_rank`` are -1."""

    user: Ints
    queries: Ints
    """of the searches"""
    search: Ints
    """which search a line belongs to"""
    second: Ints
    item_rank: Ints
    site: Ints
    n_pages: int
    n_clicking_users: int

    @property
    def counts(self) -> dict[str, int]:
        """What the published figures count."""
        return {
            "new_queries": len(self.queries),
            "next_pages": self.n_pages - len(self.queries),
            "clicks": int(np.count_nonzero(self.site >= 0)),
            "clicking_users": self.n_clicking_users,
        }


def aol_chunk(first_user: int, n_users: int, all_users: int, generator: np.random.Generator) -> AolChunk:
    """The lines of users ``first_user`` and on, out of ``all_users``."""
    n_lines = _lines_per_user(n_users, generator)
    busiest = all_users // 2
    if first_user <= busiest < first_user + n_users:
        longest = round(_LONGEST * min(1.0, all_users / FULL_SIZE))
        n_lines[busiest - first_user] = max(longest, n_lines[busiest - first_user])
    clicked, starts_page, starts_search = _outline(n_lines, generator)
    search_starts = np.flatnonzero(starts_search)
    search = np.cumsum(starts_search) - 1
    queries = _queries(np.logical_or.reduceat(clicked, search_starts), generator)
    page = np.cumsum(starts_page, dtype=np.int64)
    page -= page[search_starts][search]
    item_rank, site = np.full((2, len(page)), -1, dtype=np.int64)
    at = np.flatnonzero(clicked)
    item_rank[at], site[at] = _clicks(queries[search[at]], page[at], generator)
    ids = _anon_ids(np.arange(first_user, first_user + n_users))
    first_lines = np.cumsum(n_lines) - n_lines
    return AolChunk(
        user=np.repeat(ids, n_lines),
        queries=queries,
        search=search,
        second=_seconds(n_lines, starts_page, starts_search, generator),
        item_rank=item_rank,
        site=site,
        n_pages=int(np.count_nonzero(starts_page)),
        n_clicking_users=int(np.count_nonzero(np.logical_or.reduceat(clicked, first_lines))),
    )


def with_habits(chunk: AolChunk, generator: np.random.Generator) -> AolChunk:
    """The same lines of people who repeat queries and mend their spelling; only searches without a click change.

    A search without a click repeats the search before in three of ten cases. One that is followed by one of the 200
    most frequent queries within half an hour is a misspelling of that in three of ten.
    """
    n = len(chunk.queries)
    first = np.searchsorted(chunk.search, np.arange(n))
    user, second, clicked = chunk.user[first], chunk.second[first], np.zeros(n, dtype=np.bool_)
    clicked[chunk.search[chunk.site >= 0]] = True
    queries, together = chunk.queries.copy(), user[1:] == user[:-1]
    again = np.flatnonzero(~clicked[1:] & together & (generator.random(n - 1) < _REPEATS)) + 1
    queries[again] = queries[again - 1]
    soon = together & (second[1:] - second[:-1] < _AGAIN_WITHIN) & (queries[1:] < _MOST_MISSPELT)
    wrong = np.flatnonzero(~clicked[:-1] & soon & (generator.random(n - 1) < _MISSPELLS))
    queries[wrong] = queries[wrong + 1] + MISSPELT
    return replace(chunk, queries=queries)


def _lines_per_user(n_users: int, generator: np.random.Generator) -> Ints:
    normal = generator.standard_normal(n_users)
    spread = np.where(normal < 0, _SPREAD_BELOW, _SPREAD_ABOVE)
    return np.maximum(1, np.rint(_MEDIAN_LINES * np.exp(spread * normal))).astype(np.int64)


def _anon_ids(users: Ints) -> Ints:
    """Ascending, with gaps, in the range of the real ones."""
    return 38 * users + 1 + (fixed_uniform(users, 21) * 38).astype(np.int64)


def _outline(n_lines: Ints, generator: np.random.Generator) -> tuple[Flags, Flags, Flags]:
    """Which lines are clicks, which start a result page, which start a search.

    What a line would be as the start of a page, and whether it would go on clicking after a click, are drawn for
    every line. A line goes on clicking if the line before is a click, so clicks spread forward from a page start
    through the lines that would: each line takes the state of the last line before it that decides for itself.
    """
    n_users, n = len(n_lines), int(n_lines.sum())
    first = np.zeros(n, dtype=np.bool_)
    first[np.cumsum(n_lines) - n_lines] = True
    clicks = generator.beta(
        _FIRST_PAGE_CLICKED * _CONCENTRATION, (1 - _FIRST_PAGE_CLICKED) * _CONCENTRATION, size=n_users
    )
    clicks[generator.random(n_users) < _NEVER_CLICKS] = 0
    next_page = (generator.random(n) < _NEXT_PAGE) & ~first
    fresh = generator.random(n) < np.repeat(clicks, n_lines) * np.where(next_page, _NEXT_PAGE_CLICKED, 1.0)
    goes_on = (generator.random(n) < _ONE_MORE_CLICK) & ~first
    decides = np.where(fresh | ~goes_on, np.arange(n), 0)
    clicked = fresh[np.maximum.accumulate(decides)]
    starts_page = np.ones(n, dtype=np.bool_)
    starts_page[1:] = ~(goes_on[1:] & clicked[:-1])
    return clicked, starts_page, starts_page & ~next_page


def _queries(has_click: Flags, generator: np.random.Generator) -> Ints:
    """The query of each search."""
    queries = clicked_law().ranks(generator.random(len(has_click)))
    once = np.flatnonzero(~has_click & (generator.random(len(has_click)) < _ASKED_ONCE))
    queries[once] = generator.integers(_VOCABULARY, QUERY_LIMIT, size=len(once))
    return queries


def _clicks(queries: Ints, page: Ints, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """ItemRank and site of each click on result page ``page`` (0 is the first)."""
    n, intents = len(queries), intent(queries)
    frequent, uniform = queries < _N_FREQUENT, generator.random(n)
    place = 1 + np.where(frequent, draw_index(_OTHERS_OF_FREQUENT, uniform), draw_index(_OTHERS_OF_RARE, uniform))
    place[generator.random(n) < np.where(frequent, 0.40, 0.10) + 0.55 * intents] = 0
    kind_share = _FIRST_RANK_SHARE[kinds(queries, intents)] / _FIRST_PAGE_RANKS.sum()
    rank = 2 + draw_index(_FIRST_PAGE_RANKS[1:], generator.random(n))
    rank[generator.random(n) < kind_share] = 1
    beyond = np.flatnonzero(page)
    rank[beyond] = 10 * page[beyond] + generator.integers(1, 11, size=len(beyond))
    rank[generator.random(n) < _RANK_ZERO] = 0
    return rank, site_of(queries, place)


def site_of(queries: Ints, place: Ints) -> Ints:
    """The site at a place of a query's results: a hash of both, so that popular sites serve many queries."""
    sites = _SITES.ranks(fixed_uniform(queries * 64 + place, _SITE_SALT))
    top = np.flatnonzero((queries < len(SITE_OF_QUERY)) & (place == 0))
    sites[top] = SITE_OF_QUERY[queries[top]]
    return sites


def _seconds(n_lines: Ints, starts_page: Flags, starts_search: Flags, generator: np.random.Generator) -> Ints:
    """When each line happened: the clicks of a page together, pages of a user strictly one after another.

    A page follows in about a minute, in 40 % of new searches after a day or two. A person's pages are put somewhere
    in the three months, closer together where they would not fit.
    """
    gap: Floats = 1 + generator.standard_exponential(len(starts_page)) * 60
    pause = np.flatnonzero(starts_search & (generator.random(len(starts_page)) < 0.4))
    gap[pause] += generator.standard_exponential(len(pause)) * 130_000
    gap[~starts_page] = 0
    first_lines = np.cumsum(n_lines) - n_lines
    gap[first_lines] = 0
    elapsed = np.cumsum(gap)
    elapsed -= np.repeat(elapsed[first_lines], n_lines)
    pages = np.cumsum(starts_page, dtype=np.int64)
    pages -= np.repeat(pages[first_lines], n_lines)
    last_lines = first_lines + n_lines - 1
    room = SECONDS - 1.0 - pages[last_lines]
    needed = elapsed[last_lines]
    scale = np.minimum(1.0, room / np.maximum(needed, 1.0))
    start = generator.random(len(n_lines)) * (room - needed * scale)
    at = np.repeat(start, n_lines) + elapsed * np.repeat(scale, n_lines)
    seconds: Ints = at.astype(np.int64) + pages
    return np.minimum(seconds, SECONDS - 1)
