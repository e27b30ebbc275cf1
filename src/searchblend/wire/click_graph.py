"""A released click graph as documents: the tables' schema, GraphML, the data dictionary and the statement's noise.

The one place that names columns: writer, reader and data dictionary cannot disagree. ``click_graph_files.py`` makes
and reads the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args
from xml.sax.saxutils import escape

import numpy as np

from searchblend.clickgraph.release.attribute_counts import kinds_of
from searchblend.clickgraph.release.noise_law import LAWS, NoiseLaw
from searchblend.clickgraph.use.graph import ClickGraph, Counts, Edges, TableName
from searchblend.core.attributes import OF_CLICKS, OTHER, Attribute
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import ClickGraphParams

TABLE_NAMES: Final[tuple[TableName, ...]] = get_args(TableName)
GRAPHML: Final = "graph.graphml"
DATA_DICTIONARY: Final = "data-dictionary.md"
STATEMENT_KIND: Final = "click-graph"
"""``release.kind`` of the statement"""
NOISE: Final = "noise"
FALSE_EDGE_CUT: Final = "false_edge_cut"
"""Fields of the statement's ``parameters``: see ``noise_parameters``."""

ColumnType = Literal["text", "integer", "number"]


@dataclass(frozen=True)
class ReleasedColumn:
    name: str
    type: ColumnType
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table of a released graph; a Parquet file and a CSV twin with the same rows."""

    name: str
    meaning: str
    key: tuple[ReleasedColumn, ...]
    columns: tuple[ReleasedColumn, ...]
    """all of them, the key first"""

    @property
    def parquet(self) -> str:
        return f"{self.name}.parquet"

    @property
    def csv(self) -> str:
        return f"{self.name}.csv"


_QUERY: Final = ReleasedColumn("query", "text", "a released query in normal form (folded case, single blanks)")
_URL: Final = ReleasedColumn("url", "text", "a URL in normal form")
_NEXT: Final = ReleasedColumn("next_query", "text", "the released query that was typed or chosen next")


_OR: Final = " (where the statement's `count_unit` is impressions:"


def _count_columns(what: str) -> tuple[ReleasedColumn, ...]:
    return (
        ReleasedColumn("count", "integer", f"{what}, plus noise, as drawn; may be negative, use it in sums"),
        ReleasedColumn("count_clamped", "integer", "the same, but 0 where it is negative; sums of it are too large"),
        ReleasedColumn(
            "estimate", "number", "the count, corrected for having been selected by its own noise where it was"
        ),
        ReleasedColumn("lo95", "number", "lower end of the 95 % interval of the count without noise"),
        ReleasedColumn("hi95", "number", "upper end of the 95 % interval"),
    )


def _table(name: TableName, meaning: str, key: tuple[ReleasedColumn, ...], what: str) -> Table:
    return Table(name, meaning, key, (*key, *_count_columns(what)))


TABLES: Final[Mapping[TableName, Table]] = {
    "queries": _table(
        "queries", "One row for each released query.", (_QUERY,), f"users who searched the query{_OR} searches)"
    ),
    "clicks": _table(
        "clicks",
        "One row for each released pair of a query and a URL.",
        (_QUERY, _URL),
        f"users who clicked the URL for the query{_OR} clicks)",
    ),
    "reformulations": _table(
        "reformulations",
        "One row for each released pair of queries.",
        (_QUERY, _NEXT),
        f"users for whom the second came next{_OR} times)",
    ),
}


def attribute_tables(params: ClickGraphParams) -> dict[str, Table]:
    """The tables of counts by attribute that a release with these parameters has, by name."""
    return {f"{of}_by_attribute": _attribute_table(of, attributes) for of, attributes in kinds_of(params).items()}


def _attribute_table(of: str, attributes: Sequence[Attribute]) -> Table:
    of_clicks = of == OF_CLICKS
    key = [ReleasedColumn("query", "text", f"{_QUERY.meaning}; empty: people are counted, each at their first {of}")]
    if of_clicks:
        key.append(ReleasedColumn("url", "text", f"{_URL.meaning}; empty: people are counted"))
    key += [
        ReleasedColumn(one.name, "text", f"{', '.join(one.values)}, or {OTHER} for all else; empty: counted together")
        for one in attributes
    ]
    counts = [one for one in _count_columns(f"{of} with these values") if one.name != "estimate"]
    counts = [replace(one, type="integer") for one in counts]
    item = "pair of a query and a URL" if of_clicks else "query"
    meaning = (
        f"One row for each released {item} and each declared value or combination of values, whatever the log holds: "
        "a row says nothing by being there. Each user adds the first different ones, up to the bound in the statement."
    )
    return Table(f"{of}_by_attribute", meaning, tuple(key), (*key, *counts))


def noise_parameters(graph: ClickGraph) -> JsonObject:
    """What a statement's ``parameters`` must hold of noise and cuts, for the reader of the release.

    ``{"noise": {"queries": {"law": "discrete_laplace", "scale": 8.7}, …}, "false_edge_cut": {"clicks": 27, …}}``:
    scale is b or σ, cuts are least counts. Tables that were not released are left out.
    """
    return {
        NOISE: {name: {"law": law.law, "scale": law.scale} for name, law in graph.noise.items()},
        FALSE_EDGE_CUT: dict(graph.cuts),
    }


def decode_noise(parameters: Any) -> tuple[dict[TableName, NoiseLaw], dict[TableName, float]]:
    """Laws and cuts of a statement's ``parameters``, or ``MessageError`` naming the field that is wrong."""
    if not isinstance(parameters, dict):
        raise MessageError("parameters: expected a JSON object")
    laws: dict[TableName, NoiseLaw] = {}
    for name, entry in _by_table(parameters, NOISE):
        if not isinstance(entry, dict) or entry.get("law") not in LAWS or not _is_number(entry.get("scale")):
            raise MessageError(f"parameters.{NOISE}.{name}: expected law ({' or '.join(LAWS)}) and a positive scale")
        try:
            laws[name] = NoiseLaw(entry["law"], float(entry["scale"]))
        except InvalidParameter as error:
            raise MessageError(f"parameters.{NOISE}.{name}.{error}") from error
    cuts: dict[TableName, float] = {}
    for name, entry in _by_table(parameters, FALSE_EDGE_CUT):
        if not _is_number(entry) or not np.isfinite(entry) or entry < 0:
            raise MessageError(f"parameters.{FALSE_EDGE_CUT}.{name}: expected a count of at least 0")
        cuts[name] = float(entry)
    return laws, cuts


def _by_table(parameters: JsonObject, field: str) -> Iterator[tuple[TableName, Any]]:
    entries = parameters.get(field, {})
    if not isinstance(entries, dict) or not set(entries) <= set(TABLE_NAMES):
        raise MessageError(f"parameters.{field}: expected an object with some of {', '.join(TABLE_NAMES)}")
    for name in TABLE_NAMES:
        if name in entries:
            yield name, entries[name]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def data_dictionary(further: Iterable[Table] = ()) -> str:
    """``data-dictionary.md``: every file and every column, for people who get nothing but the folder.

    ``further`` are the tables by attribute, where the release has any.
    """
    lines = [
        "# Data dictionary",
        "",
        "A query click graph, released with differential privacy. `statement.json` states the guarantee, the noise "
        "and the SHA-256 of every file. Each table is a Parquet file and a CSV file (UTF-8, comma, header) with the "
        "same rows, from the largest count to the smallest. `graph.graphml` holds all tables as one graph.",
        "",
        "In CSV a string has an apostrophe where a spreadsheet would take a cell for a formula: at its start and after "
        "each of `, ; |`, tab and line break, wherever `= + - @` (full-width forms too), a tab or a line break "
        "follows, with nothing but blanks, invisible signs and quotes between. Take one apostrophe away at each of "
        "these places to have the string that was released. Parquet has the strings themselves.",
        "",
    ]
    for table in (*TABLES.values(), *further):
        lines += [
            f"## {table.parquet}, {table.csv}",
            "",
            table.meaning,
            "",
            "| column | type | meaning |",
            "|---|---|---|",
        ]
        lines += [f"| {column.name} | {column.type} | {column.meaning} |" for column in table.columns]
        lines.append("")
    lines += [
        "## How to read the counts",
        "",
        "Counts are of limited activity: every user adds a bounded number of searches and clicks, which the statement "
        "names. Intervals cover the limited count without noise in 95 % of all draws; they say nothing of the limit "
        "itself. A query or pair that is missing was rare, or noise left it out: missing does not mean zero. Edges "
        "below "
        "`false_edge_cut` in the statement's parameters may well be noise alone; leave them out before computing with "
        "the graph.",
        "",
    ]
    return "\n".join(lines)


_GRAPHML_HEAD: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="kind" for="all" attr.name="kind" attr.type="string"/>
<key id="label" for="node" attr.name="label" attr.type="string"/>
<key id="count" for="all" attr.name="count" attr.type="long"/>
<key id="lo95" for="all" attr.name="lo95" attr.type="double"/>
<key id="hi95" for="all" attr.name="hi95" attr.type="double"/>
<graph id="clicks" edgedefault="directed">
"""
_GRAPHML_END: Final = "</graph>\n</graphml>\n"


def encode_graphml(graph: ClickGraph) -> bytes:
    """``graph.graphml``: nodes of kind ``query`` and ``url``, edges of kind ``click`` and ``reformulation``."""
    return "".join(_graphml(graph)).encode()


def _graphml(graph: ClickGraph) -> Iterator[str]:
    yield _GRAPHML_HEAD
    for i, (query, figures) in enumerate(zip(graph.queries, _figures(graph.searches), strict=True)):
        yield f'<node id="q{i}">{_data(kind="query", label=query)}{figures}</node>\n'
    for i, url in enumerate(graph.urls):
        yield f'<node id="u{i}">{_data(kind="url", label=url)}</node>\n'
    yield from _graphml_edges(graph.clicks, "click", "u")
    yield from _graphml_edges(graph.reformulations, "reformulation", "q")
    yield _GRAPHML_END


def _graphml_edges(edges: Edges, kind: str, side: str) -> Iterator[str]:
    data = _data(kind=kind)
    rows = zip(edges.source.tolist(), edges.target.tolist(), _figures(edges.counts), strict=True)
    for source, target, figures in rows:
        yield f'<edge source="q{source}" target="{side}{target}">{data}{figures}</edge>\n'


def _figures(counts: Counts) -> Iterator[str]:
    for count, low, high in zip(counts.count.tolist(), counts.low.tolist(), counts.high.tolist(), strict=True):
        yield f'<data key="count">{count}</data><data key="lo95">{low}</data><data key="hi95">{high}</data>'


def _data(**strings: str) -> str:
    return "".join(f'<data key="{key}">{escape(_xml_text(string))}</data>' for key, string in strings.items())


def _xml_text(string: str) -> str:
    """XML has no place for most control characters, not even escaped ones: they become U+FFFD."""
    if string.isprintable():
        return string
    return "".join(letter if letter in "\t\n" or _in_xml(ord(letter)) else "\ufffd" for letter in string)


def _in_xml(code: int) -> bool:
    return 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000
