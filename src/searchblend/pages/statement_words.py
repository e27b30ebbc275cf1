"""The privacy statement of a release in plain words: what ``_statement.html`` shows at the end of every result page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from searchblend.core.privacy import ROW_UNIT
from searchblend.core.statement import Statement
from searchblend.pages.layout import Cell, PageTable, TableColumn, small_number

PAPERS: Final = {
    "blender": "B. Avent, A. Korolova, D. Zeber, T. Hovden, B. Livshits: BLENDER: Enabling Local Search with a Hybrid "
    "Differential Privacy Model. USENIX Security 2017.",
    "click-graph": "A. Korolova, K. Kenthapadi, N. Mishra, A. Ntoulas: Releasing Search Queries and Clicks Privately. "
    "WWW 2009.",
}


@dataclass(frozen=True)
class StatementWords:
    """A statement, and what a page states about it."""

    statement: Statement
    title: str
    digest: str
    """What names the release: the SHA-256 of its first table, or of its head list."""

    @property
    def created(self) -> str:
        """When the release was made."""
        try:
            created = datetime.fromisoformat(self.statement.created)
        except ValueError:
            return "at an unknown time"
        return f"on {created.day} {created:%B %Y} at {created:%H:%M} {created.tzname() or ''}".rstrip()

    @property
    def notices(self) -> list[str]:
        """What must be read before anything else."""
        promise = self.statement.promise
        failed = [condition.name for condition in promise.conditions if not condition.holds]
        broken = [] if promise.holds else [f"The guarantee does NOT hold: {', '.join(failed)}"]
        return [*([self.statement.notice] if self.statement.notice else []), *broken]

    @property
    def promise(self) -> str:
        promise = self.statement.promise
        if not promise.holds:
            return "Nothing is promised: a condition of the guarantee does not hold (see below)."
        whom, whose = ("one person", "that person's own")
        if promise.unit == ROW_UNIT:
            whom, whose = ("one counted row, which is one search and not one person,", "that row's")
        return (
            f"Whatever a reader concludes about {whom} from everything that was published, {whose} "
            f"data change the odds by a factor of {math.exp(promise.epsilon):.3g} at most (e to the power of "
            f"ε = {promise.epsilon:g}), except with probability δ = {small_number(promise.delta)}."
        )

    @property
    def groups(self) -> list[str]:
        return [
            f"{group.group}: {group.trust} (ε = {group.epsilon:g}, δ = {small_number(group.delta)})"
            for group in self.statement.promise.groups
        ]

    @property
    def published(self) -> list[str]:
        """What holds for the published files alone, where the statement has it."""
        published = self.statement.promise.published
        if published is None or not self.statement.promise.holds:
            return []
        return [
            f"{published.group}: ε = {published.epsilon:g}, δ = {small_number(published.delta)}, because "
            f"{published.people:,} reports were counted together and only counts are published",
            f"against {published.against}",
            f"if {published.assumption}",
        ]

    @property
    def conditions(self) -> list[str]:
        return [
            f"{'✓' if condition.holds else '✗'} {condition.name}: {condition.detail}"
            for condition in self.statement.promise.conditions
        ]

    @property
    def mechanisms(self) -> PageTable:
        """The steps of a click graph, as its statement lists them."""
        columns = [
            TableColumn("step"),
            TableColumn("counted of each user", True),
            TableColumn("noise"),
            TableColumn("threshold", True),
        ]
        rows = [
            [
                Cell(step["name"]),
                Cell(f"{step['first']:,}", step["first"]),
                Cell(f"{step['noise']['law'].replace('_', ' ')}, scale {step['noise']['scale'] / step['units']:.4g}"),
                Cell("–" if step["threshold"] is None else f"{-(-step['threshold'] // step['units']):,}"),
            ]
            for step in self.statement.parameters.get("design", {}).get("steps", [])
        ]
        return PageTable("Mechanisms", columns, rows)

    @property
    def citation(self) -> str:
        """A sentence that names exactly this release."""
        return (
            f"{self.title}. Released on {self._day} with searchblend {self._version}, method {self.statement.method}, "
            f"differentially private with {self._budget}. SHA-256 {self.digest}."
        )

    @property
    def bibtex(self) -> str:
        year = self._day[:4] if self._day[:4].isdigit() else "n.d."
        return (
            f"@misc{{searchblend-{self.digest[:8]},\n  title = {{{self.title}}},\n  year = {{{year}}},\n"
            f"  note = {{Made on {self._day} with searchblend {self._version}, method {self.statement.method}; "
            f"{self._budget}; SHA-256 {self.digest}}}\n}}"
        )

    @property
    def paper(self) -> str:
        """A service's release is a ``blender round``."""
        return PAPERS["click-graph" if self.statement.kind == "click-graph" else "blender"]

    @property
    def files(self) -> PageTable:
        """The files that the page was made of, to compare with."""
        columns = [TableColumn("file"), TableColumn("bytes", True), TableColumn("SHA-256")]
        rows = [
            [Cell(name), Cell(f"{entry.size:,}", entry.size), Cell(entry.sha256)]
            for name, entry in sorted(self.statement.files.items())
        ]
        return PageTable("", columns, rows)

    @property
    def software(self) -> str:
        return " · ".join(f"{name} {version}" for name, version in self.statement.software.items())

    @property
    def _day(self) -> str:
        return self.statement.created.partition("T")[0] or "an unknown day"

    @property
    def _version(self) -> str:
        return self.statement.software.get("searchblend", "")

    @property
    def _budget(self) -> str:
        return f"ε = {self.statement.promise.epsilon:g}, δ = {self.statement.promise.delta:g}"
