"""The head lists and parameters on which the local mechanism is enumerated."""

from __future__ import annotations

from dataclasses import dataclass

from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList

TINY = 1e-300
"""A δ so small that it changes nothing: what is left is the mechanism's pure loss."""


@dataclass(frozen=True)
class ChannelCase:
    """One head list (listed URLs per query, ⋆ not counted) with the parameters of a report.

    ``pure`` says whether the loss stays within ε' even without the help of δ'. It does at every δ that one would
    use as long as f_C < 1, because the two stages never spend all of ε_Q + ε_U; it does not for a query-only list
    with f_C = 1, whose one stage spends all of ε' and then δ'/2, nor where (δ/2)(k−1) is not small beside e^ε.
    """

    n_urls: tuple[int, ...]
    epsilon: float = 4.0
    delta: float = 1e-5
    query_budget_fraction: float = 0.85
    records_per_client: int = 1
    pure: bool = True

    @property
    def head(self) -> HeadList:
        return HeadList((f"query {i}", [f"url {j}" for j in range(n)]) for i, n in enumerate(self.n_urls))

    @property
    def params(self) -> BlenderParams:
        return BlenderParams(
            budget=Budget(self.epsilon, self.delta),
            query_budget_fraction=self.query_budget_fraction,
            records_per_client=self.records_per_client,
        )

    def __str__(self) -> str:
        urls = ",".join(map(str, self.n_urls)) if len(self.n_urls) < 9 else f"{len(self.n_urls)} queries"
        return (
            f"[{urls}]-eps{self.epsilon:g}-delta{self.delta:g}-f{self.query_budget_fraction:g}"
            f"-m{self.records_per_client}"
        )


SMALL_CASES = [
    ChannelCase(()),  # k = 1: ⋆ alone
    ChannelCase((0,)),  # k = 2, query-only
    ChannelCase((1,)),
    ChannelCase((3,)),
    ChannelCase((1, 1)),
    ChannelCase((1, 2, 3)),
    ChannelCase((0, 1, 4)),  # a query without URLs among others
    ChannelCase((2, 2, 2, 2)),
    ChannelCase((5, 1)),
    ChannelCase((1, 2, 3), epsilon=1.0),
    ChannelCase((1, 2, 3), epsilon=0.1),
    ChannelCase((1, 2, 3), epsilon=10.0, delta=1e-7),
    ChannelCase((1, 2, 3), epsilon=1.0, delta=0.1, pure=False),
    ChannelCase((3, 1), query_budget_fraction=0.5),
    ChannelCase((3, 1), query_budget_fraction=0.1, epsilon=2.0),
    ChannelCase((1, 2), records_per_client=2),
    ChannelCase((0, 0, 3), records_per_client=2, epsilon=1.0, delta=1e-3),
    ChannelCase((2, 1), records_per_client=3, delta=TINY),
    ChannelCase((0, 0, 0)),  # query-only with the budget of a URL stage left over
    ChannelCase((0,), query_budget_fraction=1.0, pure=False),
    ChannelCase((0, 0, 0), query_budget_fraction=1.0, pure=False),
    ChannelCase((0, 0, 0), query_budget_fraction=1.0, delta=TINY),
    ChannelCase((0,) * 6, query_budget_fraction=1.0, epsilon=1.0, delta=TINY),
    ChannelCase((0, 0), query_budget_fraction=1.0, epsilon=0.5, delta=0.1, records_per_client=2, pure=False),
]
"""Small enough to drive every word that decides through the scalar ``randomize``."""

LARGE_CASES = [
    ChannelCase((1,) * 20),
    ChannelCase((2,) * 16),
    ChannelCase((8, *(1, 2, 3) * 6)),
    ChannelCase((40, 1, 1)),
    ChannelCase((0,) * 50, query_budget_fraction=1.0, pure=False),
    ChannelCase((0,) * 50, query_budget_fraction=1.0, delta=TINY),
    ChannelCase((0,) * 40, epsilon=1.0, delta=0.1, pure=False),
    ChannelCase((3,) * 10, epsilon=1.0, delta=0.2, pure=False),
]
