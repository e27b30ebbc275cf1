"""Synthetic sessions with the shape of the Yandex personalised search challenge, one chunk of users at a time.

Published figures of the train part: 5,736,333 users, 34,573,630 sessions, 65,172,853 queries, 64,693,054 clicks;
21,073,569 distinct queries and 70,348,426 distinct URLs with the test part; 4,970,073 users, 13,171,961 queries and
12,702,350 URLs with clicks ([BLJ] Fig. 8). The most popular queries were removed, so the head is flat: 0.3 % for the
first query here, 6 % for the first fifty. Queries, terms, URLs and domains are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from searchblend.synthetic.laws import Ints, RankLaw, Segment, draw_index, fixed_uniform

FULL_SIZE: Final = 5_736_333
DAYS: Final = 27
N_RESULTS: Final = 10
_MEDIAN_SESSIONS: Final = 3.653
_QUERIES_PER_SESSION: Final = 1.885
_NEVER_CLICKS: Final = 0.08
_CLICKED: Final = 0.695
_CONCENTRATION: Final = 4.0
_ONE_MORE_CLICK: Final = 0.355

_VOCABULARY: Final = 36_000_000
_NUMBERS: Final = 100_000_000
_HEAD_MASS: Final = 0.1626
QUERIES: Final = RankLaw(
    head=(),
    segments=(
        Segment(0, 1_000, exponent=1.0, mass=_HEAD_MASS, shift=10.5),
        Segment(1_000, _VOCABULARY, exponent=0.8555, mass=1 - _HEAD_MASS),
    ),
)
"""p(rank) = .0356/(rank + 10) for a thousand ranks, as ``yandex_query_shares``, then a power law."""
_ASKED_ONCE: Final = 0.195
_FIRST_RESULTS: Final = Segment(0, _NUMBERS, exponent=0.897, mass=1.0, shift=100.0)
_OTHER_RESULTS: Final = Segment(0, _NUMBERS, exponent=0.6485, mass=1.0, shift=100.0)
_CLICKS_ON_OTHERS: Final = np.arange(1.0, N_RESULTS) ** -1.5
_N_DOMAINS: Final = 5_200_000
_N_TERMS: Final = 4_700_000
MOST_TERMS: Final = 5
_INTENT_SALT, _RESULT_SALT, _DOMAIN_SALT, _TERM_SALT = 31, 32, 33, 34


@dataclass(frozen=True)
class YandexChunk:
    """Sessions, their queries and their clicks, each in order; a query row is followed by its clicks."""

    user: Ints
    day: Ints
    """of the sessions"""
    session: Ints
    serp: Ints
    query: Ints
    """of the query rows: which session (0 is the chunk's first), its n-th result page, the query's number"""
    clicked_row: Ints
    url: Ints
    """of the clicks: on which query row, on which URL"""
    query_time: Ints
    click_time: Ints

    @property
    def counts(self) -> dict[str, int]:
        """What the published figures count."""
        return {
            "sessions": len(self.user),
            "queries": len(self.query),
            "clicks": len(self.url),
            "clicking_users": len(np.unique(self.user[self.session[self.clicked_row]])),
        }


def sessions_per_user(n_users: int, generator: np.random.Generator) -> Ints:
    """The first draw of a chunk; whoever numbers the sessions draws it too."""
    drawn = np.rint(_MEDIAN_SESSIONS * np.exp(generator.standard_normal(n_users)))
    return np.maximum(1, drawn).astype(np.int64)


def yandex_chunk(first_user: int, n_users: int, generator: np.random.Generator) -> YandexChunk:
    """The sessions of users ``first_user`` and on."""
    n_sessions = sessions_per_user(n_users, generator)
    owner = np.repeat(np.arange(n_users), n_sessions)
    day = np.sort(owner * 32 + generator.integers(1, DAYS + 1, size=len(owner))) % 32
    n_queries = generator.geometric(1 / _QUERIES_PER_SESSION, size=len(owner))
    session = np.repeat(np.arange(len(owner)), n_queries)
    serp = np.arange(len(session)) - np.repeat(np.cumsum(n_queries) - n_queries, n_queries)
    clicks = generator.beta(_CLICKED * _CONCENTRATION, (1 - _CLICKED) * _CONCENTRATION, size=n_users)
    clicks[generator.random(n_users) < _NEVER_CLICKS] = 0
    is_clicked = generator.random(len(session)) < clicks[owner[session]]
    n_clicks = np.where(is_clicked, generator.geometric(1 - _ONE_MORE_CLICK, size=len(session)), 0)
    query = QUERIES.ranks(generator.random(len(session)))
    once = np.flatnonzero(~is_clicked & (generator.random(len(session)) < _ASKED_ONCE))
    query[once] = generator.integers(_VOCABULARY, _NUMBERS, size=len(once))
    clicked_row = np.repeat(np.arange(len(session)), n_clicks)
    query_time, click_time = _times(n_queries, n_clicks, generator)
    return YandexChunk(
        user=first_user + owner,
        day=day,
        session=session,
        serp=serp,
        query=query,
        clicked_row=clicked_row,
        url=results_at(query[clicked_row], _clicked_places(query[clicked_row], generator)),
        query_time=query_time,
        click_time=click_time,
    )


def _clicked_places(queries: Ints, generator: np.random.Generator) -> Ints:
    """The first result gets 40-95 % of a query's clicks, nine more share the rest."""
    place = 1 + draw_index(_CLICKS_ON_OTHERS, generator.random(len(queries)))
    place[generator.random(len(queries)) < 0.40 + 0.55 * fixed_uniform(queries, _INTENT_SALT)] = 0
    return place


def _times(n_queries: Ints, n_clicks: Ints, generator: np.random.Generator) -> tuple[Ints, Ints]:
    """Units passed since the session's first query: of the query rows, of the clicks."""
    before = np.cumsum(n_clicks) - n_clicks
    is_query = np.zeros(len(n_clicks) + int(n_clicks.sum()), dtype=np.bool_)
    query_at = np.arange(len(n_clicks)) + before
    is_query[query_at] = True
    elapsed = np.cumsum(1 + generator.geometric(1 / 40, size=len(is_query)))
    firsts = np.cumsum(n_queries) - n_queries
    query_time = elapsed[query_at]
    start = np.repeat(query_time[firsts], n_queries)
    return query_time - start, elapsed[~is_query] - np.repeat(start, n_clicks)


def results_at(queries: Ints, place: Ints) -> Ints:
    """The URL at a place (0 is the first) of a query's result page."""
    uniform = fixed_uniform(queries * 16 + place, _RESULT_SALT)
    first, urls = place == 0, np.empty(uniform.shape, dtype=np.int64)
    urls[first] = _FIRST_RESULTS.ranks(uniform[first])
    urls[~first] = _OTHER_RESULTS.ranks(uniform[~first])
    return urls


def result_pages(queries: Ints) -> Ints:
    """The ten URLs of each query, best first: one row per query."""
    return results_at(queries[:, None], np.broadcast_to(np.arange(N_RESULTS), (len(queries), N_RESULTS)))


def domains(urls: Ints) -> Ints:
    """The domain of each URL: p(domain) ∝ domain^(-2/3)."""
    uniform = fixed_uniform(urls, _DOMAIN_SALT)
    return (uniform * uniform * uniform * _N_DOMAINS).astype(np.int64)


def terms(queries: Ints) -> tuple[Ints, Ints]:
    """How many terms each query has, and five numbers per query of which so many count."""
    uniform = fixed_uniform(queries[:, None] * 8 + np.arange(MOST_TERMS + 1), _TERM_SALT)
    n_terms = 1 + (uniform[:, 0] * MOST_TERMS).astype(np.int64)
    numbers = uniform[:, 1:]
    return n_terms, (numbers * numbers * numbers * _N_TERMS).astype(np.int64)
