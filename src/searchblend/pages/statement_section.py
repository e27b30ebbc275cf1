"""The privacy statement of a release in plain words, how to cite it, and its files: the end of every result page."""

from __future__ import annotations

import math
from datetime import datetime
from html import escape
from typing import Final

from searchblend.core.statement import Statement
from searchblend.pages.layout import Cell, TableColumn, bullets, foreign, paragraphs, plain_table, small_number

PAPERS: Final = {
    "blender": "B. Avent, A. Korolova, D. Zeber, T. Hovden, B. Livshits: BLENDER: Enabling Local Search with a Hybrid "
    "Differential Privacy Model. USENIX Security 2017.",
    "click-graph": "A. Korolova, K. Kenthapadi, N. Mishra, A. Ntoulas: Releasing Search Queries and Clicks Privately. "
    "WWW 2009.",
}


def moment(statement: Statement) -> str:
    """When the release was made, for people."""
    try:
        made = datetime.fromisoformat(statement.created)
    except ValueError:
        return "at an unknown time"
    return f"on {made.day} {made:%B %Y} at {made:%H:%M} {made.tzname() or ''}".rstrip()


def notices(statement: Statement) -> str:
    """What must be read before anything else."""
    texts = [statement.notice] if statement.notice else []
    if not statement.promise.holds:
        failed = [condition.name for condition in statement.promise.conditions if not condition.holds]
        texts.append(f"The guarantee does NOT hold: {', '.join(failed)}")
    return "".join(f'<p class="notice" role="note">{escape(text)}</p>' for text in texts)


def privacy_section(statement: Statement) -> str:
    guarantee = statement.promise
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if guarantee.holds:
        promise = (
            "Whatever somebody concludes about one person from everything that was published, that person's own "
            f"searches change the odds by a factor of {math.exp(epsilon):.3g} at most (e to the power of "
            f"ε = {epsilon:g}), except with probability δ = {small_number(delta)}."
        )
    else:
        promise = "Nothing is promised: a condition of the guarantee does not hold (see below)."
    groups = [
        f"{group.group}: {group.trust} (ε = {group.epsilon:g}, δ = {small_number(group.delta)})"
        for group in guarantee.groups
    ]
    conditions = [
        f"{'✓' if condition.holds else '✗'} {condition.name}: {condition.detail}" for condition in guarantee.conditions
    ]
    return (
        '<section aria-labelledby="privacy"><h2 id="privacy">What is promised to the people in this data</h2>'
        + paragraphs(promise, f"The unit is {guarantee.unit}. Neighbours are {guarantee.neighbors}.")
        + "<h3>Whom people had to trust</h3>"
        + bullets(groups)
        + "<h3>Conditions, and whether they were met</h3>"
        + bullets(conditions, "checks")
        + _mechanisms(statement)
        + "<h3>What was treated as public</h3>"
        + bullets(statement.public)
        + "<h3>What is not promised</h3>"
        + bullets(statement.caveats)
        + "</section>"
    )


def _mechanisms(statement: Statement) -> str:
    """The steps of a click graph, as its statement lists them."""
    steps = statement.parameters.get("design", {}).get("steps", [])
    if not steps:
        return ""
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
        for step in steps
    ]
    return plain_table("Mechanisms", columns, rows)


def cite_section(statement: Statement, title: str, digest: str) -> str:
    """A sentence and a BibTeX entry that name exactly this release."""
    version = statement.software.get("searchblend", "")
    made = statement.created.partition("T")[0] or "an unknown day"
    year = made[:4] if made[:4].isdigit() else "n.d."
    budget = f"ε = {statement.promise.epsilon:g}, δ = {statement.promise.delta:g}"
    sentence = (
        f"{title}. Released on {made} with searchblend {version}, method {statement.method}, differentially private "
        f"with {budget}. SHA-256 {digest}."
    )
    bibtex = (
        f"@misc{{searchblend-{digest[:8]},\n  title = {{{title}}},\n  year = {{{year}}},\n"
        f"  note = {{Made on {made} with searchblend {version}, method {statement.method}; {budget}; "
        f"SHA-256 {digest}}}\n}}"
    )
    paper = PAPERS["click-graph" if statement.kind == "click-graph" else "blender"]  # a service's is "blender round"
    return (
        '<section aria-labelledby="cite"><h2 id="cite">How to cite this release</h2>'
        f"{paragraphs(sentence)}<pre>{escape(bibtex)}</pre>{paragraphs(f'The method: {paper}')}</section>"
    )


def files_section(statement: Statement) -> str:
    """The files that this page was made of, to compare with."""
    rows = [
        [Cell(name), Cell(f"{entry.size:,}", entry.size), Cell(entry.sha256)]
        for name, entry in sorted(statement.files.items())
    ]
    if not rows:
        return ""
    table = plain_table("", [TableColumn("file"), TableColumn("bytes", True), TableColumn("SHA-256")], rows)
    return f'<section aria-labelledby="files"><h2 id="files">Files of the release</h2>{table}</section>'


def footer(statement: Statement) -> str:
    made = " · ".join(f"{name} {version}" for name, version in statement.software.items())
    return (
        f"<footer><p>Everything on this page was computed from the released files alone. {foreign(made)}</p></footer>\n"
    )
