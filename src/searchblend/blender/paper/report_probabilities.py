"""The probabilities of a report, computed once and shared by device, estimator, variances and tests.

Standard library only: this runs on devices, which compute it themselves from the head list and the public
parameters and never take it from a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

from searchblend.core.errors import InvalidParameter
from searchblend.core.params import BlenderParams
from searchblend.core.records import HeadList
from searchblend.mechanisms.fixed_point import exp_fraction_bounds
from searchblend.mechanisms.randomized_response import keep_probability

WORDS: Final = 1 << 64


@dataclass(frozen=True)
class ReportProbabilities:
    """t and t_q of [BLJ] Fig. 6 as integer thresholds on one 64-bit word U.

    U < ``keep_record_below[q]`` reports the truth; else U < ``keep_query_below`` keeps the query and lies
    about the URL; else the query is a lie. Both thresholds are rounded down (proofs/local_report.md).
    """

    keep_query_below: int
    """floor(2^64 · t)"""
    keep_record_below: tuple[int, ...]
    """floor(``keep_query_below`` · t_q) for every query in order, ⋆ last"""
    n_urls: tuple[int, ...]
    """k_q for every query in order, ⋆ last"""

    @classmethod
    def of(cls, head: HeadList, params: BlenderParams) -> ReportProbabilities:
        """[BLJ] Fig. 6, lines 2-6."""
        keep_query = int(keep_probability(*params.query_share, head.n_queries) * WORDS)
        keep_url = {width: keep_probability(*params.url_share, width) for width in set(head.n_urls)}
        keep_both = {width: int(keep_query * keep) for width, keep in keep_url.items()}
        keep_record = tuple(keep_both[width] for width in head.n_urls)
        # The proof needs t ≥ 1/k and t_q ≥ 1/k_q of the *rounded* values: a truth at least as likely as any one lie.
        if keep_query * head.n_queries < WORDS:
            raise InvalidParameter("epsilon", "too small for thresholds of 64 bits")
        if any(below * width < keep_query for below, width in zip(keep_record, head.n_urls, strict=True)):
            raise InvalidParameter(
                "query_budget_fraction", "leaves nothing for the URLs; 1 is only for lists without URLs"
            )
        return cls(keep_query, keep_record, head.n_urls)

    @classmethod
    def exact(cls, head: HeadList, params: BlenderParams) -> ReportProbabilities:
        """The same two stages calibrated to lose exactly ε, without δ: t_q = min(e^{ε−ε_Q}/k_q, e^ε/(e^ε + k_q − 1)).

        The printed stages really lose max(ε_U, ε_Q + ln(k_q t_q)) only; this spends the rest on the URL
        (proofs/local_report.md). Both thresholds are rounded down.
        """
        epsilon, query_epsilon = params.per_record[0], params.query_share[0]
        keep_query = int(keep_probability(query_epsilon, Fraction(0), head.n_queries) * WORDS)
        growth, rest = exp_fraction_bounds(epsilon)[0], exp_fraction_bounds(epsilon - query_epsilon)[0]
        keep_url = {width: min(rest / width, growth / (growth + width - 1), Fraction(1)) for width in set(head.n_urls)}
        keep_url[1] = Fraction(1)
        keep_both = {width: int(keep_query * keep) for width, keep in keep_url.items()}
        keep_record = tuple(keep_both[width] for width in head.n_urls)
        return cls(keep_query, keep_record, head.n_urls)

    @property
    def n_queries(self) -> int:
        """k: the number of queries, ⋆ included."""
        return len(self.n_urls)

    @property
    def keep_query(self) -> float:
        """t, as the thresholds have it"""
        return self.keep_query_below / WORDS

    @cached_property
    def keep_url(self) -> tuple[float, ...]:
        """t_q for every query, as the thresholds have it"""
        return tuple(below / self.keep_query_below for below in self.keep_record_below)

    def channel_row(self, query: int, url: int) -> list[Fraction]:
        """P(reported cell | true cell), exactly, over all cells: what tests and accounting enumerate."""
        keep_query = Fraction(self.keep_query_below, WORDS)
        keep_record = Fraction(self.keep_record_below[query], WORDS)
        row: list[Fraction] = []
        for other, width in enumerate(self.n_urls):
            if other != query:
                row += [(1 - keep_query) / (self.n_queries - 1) / width] * width
            elif width == 1:
                row.append(keep_query)
            else:
                lie = (keep_query - keep_record) / (width - 1)
                row += [keep_record if position == url else lie for position in range(width)]
        return row
