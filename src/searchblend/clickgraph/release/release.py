"""Everything that one release of a click graph publishes, what it promises, and what was taken to be public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from searchblend.clickgraph.release.attribute_counts import AttributeCounts, attribute_columns, kinds_of
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.release.noise_law import NoiseLaw
from searchblend.clickgraph.release.step import StepDesign
from searchblend.clickgraph.use.graph import ClickGraph, TableName
from searchblend.core.params import ClickGraphParams
from searchblend.core.privacy import Condition, GroupGuarantee, Guarantee, Neighbors, TrustModel
from searchblend.core.randomness import Randomness
from searchblend.core.tables import ROWS_SHOWN, ReleasedTables, chosen, html_table, short_promise


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A published query. ``count`` is as drawn and may be negative; use it in sums."""

    query: str
    count: int
    count_clamped: int
    debiased: float | None
    """corrected for having been selected by the same noise (``corrected_counts``); None with fresh noise"""
    lo95: int
    hi95: int


@dataclass(frozen=True, slots=True)
class ClickRow:
    """A pair of a published query and a URL."""

    query: str
    url: str
    count: int
    count_clamped: int
    debiased: float | None
    lo95: int
    hi95: int


@dataclass(frozen=True, slots=True)
class ReformulationRow:
    """A pair of published queries: ``typed`` in a row, or a click on a ``suggestion``."""

    query: str
    next_query: str
    kind: str
    count: int
    count_clamped: int
    debiased: float | None
    lo95: int
    hi95: int


@dataclass(frozen=True, repr=False)
class ClickGraphRelease(ReleasedTables[TableName]):
    """Everything that one run publishes: every field is private output or public, and safe to show.

    Nothing here is an exact total of the log: who takes part is secret.
    """

    params: ClickGraphParams
    design: ClickGraphDesign
    queries: Sequence[QueryRow]
    clicks: Sequence[ClickRow]
    reformulations: Sequence[ReformulationRow]
    by_attribute: Sequence[AttributeCounts]
    """searches and clicks by attribute, where any were declared"""
    guarantee: Guarantee
    treated_as_public: Mapping[str, str]
    """what was taken to be public, and why"""

    def __repr__(self) -> str:
        return (
            f"ClickGraphRelease({len(self.queries)} queries, {len(self.clicks)} clicks, "
            f"{len(self.reformulations)} reformulations, {short_promise(self.guarantee)})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        shown = sorted(self.queries, key=lambda row: (-row.count, row.query.encode()))[:ROWS_SHOWN]
        rows = ((row.query, f"{row.count_clamped:,}", f"{row.lo95:,} to {row.hi95:,}") for row in shown)
        header = ("query", "searches", "95 % interval")
        return html_table("Released queries", header, rows, len(self.queries), self.guarantee)

    def columns(self, table: TableName | None = None) -> dict[str, list[str | int | float | None]]:
        """``queries`` (the default), ``clicks`` or ``reformulations``, with the names of their files."""
        rows, kind = {
            "queries": (self.queries, QueryRow),
            "clicks": (self.clicks, ClickRow),
            "reformulations": (self.reformulations, ReformulationRow),
        }[chosen(table, "queries", "clicks", "reformulations")]
        return {column.name: [getattr(row, column.name) for row in rows] for column in fields(kind)}

    def attribute_tables(self) -> dict[str, dict[str, list[str] | list[int]]]:
        """``searches_by_attribute`` and ``clicks_by_attribute``, as far as they were counted, column by column."""
        kinds = kinds_of(self.params)
        return {f"{of}_by_attribute": attribute_columns(self.by_attribute, of, kinds[of]) for of in kinds}

    def noise(self) -> dict[TableName, NoiseLaw]:
        """The law of the noise on each table's counts."""
        return {name: step.law for name, step in self._edge_steps().items()} | {"queries": self.design.query_counts.law}

    def cuts(self) -> dict[TableName, float]:
        """The least counts at which an edge is taken for real; pairs that passed a threshold need none."""
        return {name: float(step.edge_cut) for name, step in self._edge_steps().items()}

    def _edge_steps(self) -> dict[TableName, StepDesign]:
        """Typed pairs have the noise of their own step; suggestions alone that of the clicks."""
        steps: dict[TableName, StepDesign] = {}
        if self.design.click_counts:
            steps["clicks"] = steps["reformulations"] = self.design.click_counts
        if self.design.reformulations:
            steps["reformulations"] = self.design.reformulations
        return steps

    def graph(self) -> ClickGraph:
        """The release as a graph to compute with. Of a pair that was both typed and suggested the typed count stays:
        a query that follows a click on its suggestion is counted there too."""
        typed_last = sorted(self.reformulations, key=lambda row: row.kind == "typed")
        return ClickGraph.of(
            {row.query: _figures(row) for row in self.queries},
            {(row.query, row.url): _figures(row) for row in self.clicks},
            {(row.query, row.next_query): _figures(row) for row in typed_last},
            noise=self.noise(),
            cuts=self.cuts(),
        )


def _figures(row: QueryRow | ClickRow | ReformulationRow) -> tuple[int, float, float, float]:
    return row.count, row.lo95, row.hi95, row.count if row.debiased is None else row.debiased


def click_graph_guarantee(design: ClickGraphDesign, randomness: Randomness) -> Guarantee:
    """The promise to every user of the log: proofs/click_graph_laplace.md, proofs/gaussian_threshold.md."""
    budget = design.params.budget
    return Guarantee(
        neighbors=Neighbors.ADD_REMOVE_ONE,
        groups=(GroupGuarantee("users", budget, TrustModel.CURATOR, design.delta),),
        conditions=(
            *(_contribution(step.name, step.cap.first, step.cap.distinct) for step in design.steps),
            *_threshold_conditions(design),
            Condition(
                "δ covers selection and sampler",
                design.delta <= budget.delta,
                f"the mechanisms use {design.mechanism_delta:.3g} at ε = {budget.epsilon:g}, "
                f"the noise samplers {design.sampler_delta:.2g}",
            ),
            Condition(
                "cryptographic randomness",
                randomness.cryptographic,
                "noise was drawn from the operating system's generator"
                if randomness.cryptographic
                else "a predictable generator was used: nothing here is private",
            ),
        ),
    )


def _contribution(name: str, first: int, distinct: bool) -> Condition:
    what = "different things" if distinct else "events"
    return Condition(f"bounded contribution to: {name}", True, f"the first {first} {what} of each user by time")


def _threshold_conditions(design: ClickGraphDesign) -> list[Condition]:
    """T above what one user adds to one count (K ≥ d of Theorem 1)."""
    return [
        Condition(
            f"threshold above one user's count in: {step.name}",
            step.threshold > least,
            f"T = {step.threshold}, one user adds at most {least} to a count",
        )
        for step in design.steps
        if step.threshold is not None
        for least in [step.largest_part]
    ]


def treated_as_public(params: ClickGraphParams, *, known: int = 0) -> dict[str, str]:
    """What the promise takes to be public, and why; ``known`` queries among it."""
    public = {
        "parameters": "all parameters, fixed before the log was read",
        "normal forms": "how queries and URLs are written, a fixed rule for each text",
    }
    if params.population is not None:
        public["population"] = "the declared number of users; it was not counted in the log"
    if known:
        public["known queries"] = f"{known} queries that earlier windows published; they were counted again"
    if params.attributes:
        public["attributes"] = f"the names and values of {', '.join(one.name for one in params.attributes)}, declared"
    if params.urls == "public":
        public["pairs of query and URL"] = (
            f"from {params.public_source}. A ranking that learned from clicks is not strictly independent of the log."
        )
    return public
