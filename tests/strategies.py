"""Everything that hypothesis draws, in one place."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import HALF, accept_below
from searchblend.core.records import WILDCARD, HeadList, Record

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
"""Any text that UTF-8 can write: ``*``, the empty text and NUL among them."""


def head_lists(max_queries: int = 6, max_urls: int = 4, min_queries: int = 0) -> st.SearchStrategy[HeadList]:
    """Lists with unequal numbers of URLs, some of them without any."""
    urls = st.lists(TEXTS, max_size=max_urls, unique=True)
    return st.dictionaries(TEXTS, urls, min_size=min_queries, max_size=max_queries).map(HeadList)


def url_counts(max_queries: int = 6, max_urls: int = 4, min_queries: int = 1) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, max_urls), min_size=min_queries, max_size=max_queries)


def list_of_widths(n_urls: list[int]) -> HeadList:
    """A head list with this many listed URLs for each query (⋆ not counted)."""
    return HeadList((f"query {i}", [f"url {j}" for j in range(n)]) for i, n in enumerate(n_urls))


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[list[list[Record]], list[list[Record]]]:
    """Two logs, with or without URLs, in which one user has other records and perhaps another number of them."""
    urls = draw(st.sampled_from([st.sampled_from("uvw"), st.just(WILDCARD)]))
    person = st.lists(st.builds(Record, st.sampled_from("abcdef"), urls), min_size=1, max_size=4)
    users = draw(st.lists(person, min_size=1, max_size=25))
    position = draw(st.integers(0, len(users) - 1))
    return users, [*users[:position], draw(person), *users[position + 1 :]]


LISTS_OF_THESE = st.dictionaries(
    st.sampled_from("abcdeg"), st.lists(st.sampled_from("uvx"), max_size=3, unique=True), max_size=4
).map(HeadList)
"""Head lists on which the records of ``neighbours`` are partly found."""

USERS = neighbours().map(lambda pair: pair[0])
"""A log: the records of each user, nobody without one."""

BUDGETS = st.builds(Budget, epsilon=st.floats(0.05, 12), delta=st.floats(1e-12, 0.5))


def blender_params(min_epsilon: float = 0.05, max_epsilon: float = 12.0) -> st.SearchStrategy[BlenderParams]:
    return st.builds(
        BlenderParams,
        budget=st.builds(Budget, epsilon=st.floats(min_epsilon, max_epsilon), delta=st.floats(1e-12, 0.1)),
        query_budget_fraction=st.floats(0.1, 0.9),
        records_per_client=st.integers(1, 3),
    )


EXPONENTS = st.one_of(
    st.fractions(-40, 40, max_denominator=10**6),
    st.floats(-64, 64, allow_nan=False).map(Fraction),
    st.floats(0, 1e-6).map(Fraction),
)


def words_around(edges: list[int]) -> st.SearchStrategy[int]:
    """64-bit words, mostly at and beside the given thresholds."""
    top = (1 << 64) - 1
    beside = [min(max(edge + step, 0), top) for edge in edges for step in (-1, 0, 1)]
    return st.one_of(st.sampled_from(beside), st.integers(0, top))


def lie_words(moduli: list[int]) -> st.SearchStrategy[int]:
    """64-bit words whose halves often fall where they must be rejected and drawn again."""
    rejected = [half for n in moduli for half in (accept_below(n) - 1, accept_below(n)) if half < HALF]
    halves = st.one_of(st.sampled_from([*rejected, HALF - 1]), st.integers(0, HALF - 1))
    return st.builds(lambda high, low: high * HALF + low, halves, halves)


def vectors(min_size: int = 1, max_size: int = 12, bound: float = 2.0) -> st.SearchStrategy[np.ndarray]:
    size = st.integers(min_size, max_size)
    return size.flatmap(lambda n: arrays(np.float64, n, elements=st.floats(-bound, bound, width=32)))


def distributions(size: int) -> st.SearchStrategy[np.ndarray]:
    """Probability vectors, zeros included, of at least one person."""
    weights = arrays(np.int64, size, elements=st.integers(0, 1000))
    return weights.filter(lambda w: w.sum() > 0).map(lambda w: w / w.sum())
