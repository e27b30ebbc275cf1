"""The index of a folder of experiments, and all of them as one self-contained page."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from searchblend.core.statement import PAGE
from searchblend.files.durable import whole_files
from searchblend.pages.layout import Cell, PageTable, TableColumn, page_assets, render
from searchblend_lab.papers.experiment import Agreement, Finding, Table
from searchblend_lab.papers.outputs import DOCUMENT_VERSION, findings_table, markdown_table
from searchblend_lab.papers.registry import EXPERIMENTS

INDEX: Final = "index.md"
INTRODUCTION: Final = (
    "How searchblend does against the papers and against itself, on synthetic users in the published shape of the AOL "
    "and Yandex logs. Method `paper` is the algorithm as printed, `best` the default of `searchblend run`. Lines and "
    "numbers are means over runs, bands the middle 80 % of them. A row *agrees* when method `paper` gives what the "
    "paper says, and of a number also when the other method would not pass as well; it *differs* with the reason, if "
    "we know it; it is *fitted* when a parameter of the synthetic users was chosen to give it, which is not evidence; "
    "it is *not comparable* when our data cannot tell. A fact that has rows on two pages is counted on one of them."
)


def documents(folder: Path) -> list[dict[str, Any]]:
    """The JSON documents of the experiments that the folder holds, in the order of the registry.

    Those of an earlier version are left out: their rows do not say how they stand to the papers.
    """
    paths = [folder / f"{name}.json" for name in EXPERIMENTS]
    contents = [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]
    return [document for document in contents if document["version"] == DOCUMENT_VERSION]


def write_index(folder: Path) -> None:
    """index.md: what there is, and the table of agreement."""
    shown = documents(folder)
    lines = ["# Results", INTRODUCTION, "## What there is"]
    lines.append("\n".join(f"- [{d['title']}]({d['experiment']}.md) ({d['source']})" for d in shown))
    if any(document["not_private"] for document in shown):
        lines.append("**NOT PRIVATE**: some of these compare with a log itself. Not for release.")
    lines += ["## The papers and us", _summary(shown)]
    for document in shown:
        if document["findings"]:
            table = findings_table([finding(entry) for entry in document["findings"]])
            titled = Table(f"[{document['title']}]({document['experiment']}.md)", table.columns, table.rows)
            lines.append(markdown_table(titled))
    lines.append(f"Made by `{_command(shown)}`; the same seed gives the same bytes.")
    _write(folder / INDEX, "\n\n".join(lines) + "\n")


def _summary(shown: Sequence[Mapping[str, Any]]) -> str:
    """How many facts of the papers come out how; each is counted once, where it has a row of its own."""
    pages = {document["experiment"] for document in shown}
    counts = Counter(
        entry["agreement"]
        for document in shown
        for entry in document["findings"]
        if entry["agreement"] != Agreement.OURS and entry["counted_in"] not in pages
    )
    agrees, differs, fitted, other = (counts[kind] for kind in list(Agreement)[:4])
    return (
        f"Of {agrees + differs} facts of the papers that were not used to make the synthetic users, {agrees} agree and "
        f"{differs} differ. {fitted} more are fitted and {other} not comparable."
    )


def _command(shown: Sequence[Mapping[str, Any]]) -> str:
    names = "all" if len(shown) == len(EXPERIMENTS) else " ".join(d["experiment"] for d in shown)
    options = dict.fromkeys(d["options"] for d in shown)
    return "; ".join(
        f"searchblend evaluate {names if len(options) == 1 else 'NAME'} {words} -o DIR" for words in options
    )


def finding(entry: Mapping[str, Any]) -> Finding:
    known = {name: value for name, value in entry.items() if name != "verdict"}
    return Finding(**{**known, "agreement": Agreement(entry["agreement"])})


def write_page(folder: Path) -> None:
    """index.html with every plot inside: one file to send on."""
    shown = documents(folder)
    content = render(
        "results.html",
        Path(__file__).parent / "templates",
        title="searchblend: results",
        assets=page_assets(),
        introduction=INTRODUCTION,
        summary=_summary(shown),
        sections=[_section(document, folder) for document in shown],
        command=_command(shown),
    )
    _write(folder / PAGE, content)


def _write(path: Path, content: str) -> None:
    with whole_files([path], replace=True) as (partial,):
        partial.write_text(content, encoding="utf-8")


class Section(NamedTuple):
    """One experiment on the page."""

    document: Mapping[str, Any]
    svg: str
    tables: list[PageTable]


def _section(document: Mapping[str, Any], folder: Path) -> Section:
    svg = base64.b64encode((folder / f"{document['experiment']}.svg").read_bytes()).decode()
    tables = [Table(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"]))) for t in document["tables"]]
    if document["findings"]:
        tables.append(findings_table([finding(entry) for entry in document["findings"]]))
    return Section(document, svg, [_table(table) for table in tables])


def _table(table: Table) -> PageTable:
    columns = [TableColumn(heading) for heading in table.columns]
    return PageTable(table.title, columns, [[Cell(text, tone=_tone(text)) for text in row] for row in table.rows])


def _tone(text: str) -> str:
    """How a verdict, or a value that is off, is coloured."""
    if text.startswith("agrees"):
        return "yes"
    return "no" if text.startswith("differs") or text.endswith("▲") else ""
