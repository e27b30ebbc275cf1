"""The index of a folder of experiments, and all of them as one self-contained page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from searchblend.evaluation.experiments.experiment import Finding, Table
from searchblend.evaluation.experiments.outputs import findings_table, markdown_table, write_whole
from searchblend.evaluation.experiments.registry import EXPERIMENTS

INDEX: Final = "index.md"
PAGE: Final = "index.html"
INTRODUCTION: Final = (
    "How searchblend does against the papers and against itself, on made-up people with the published shape of the AOL "
    "and Yandex logs. Method `paper` is the algorithm as printed, `best` the default of `searchblend run`. Lines and "
    "numbers are means over runs, bands the middle 80 % of them. A row agrees when method `paper` gives what the paper "
    "says; where it does not, the row says why if we know."
)
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.25; }
h2 { margin-top: 3rem; border-top: 1px solid #8885; padding-top: 1.5rem; }
img { max-width: 100%; height: auto; background: white; }
table { border-collapse: collapse; font-size: .88rem; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid #8884; vertical-align: top; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
nav li { margin: .1rem 0; }
.about { color: #888; }
.yes { color: #2f8f57; } .no { color: #d0453a; }
"""


def documents(folder: Path) -> list[dict[str, Any]]:
    """The JSON documents of the experiments that the folder holds, in the order of the registry."""
    paths = [folder / f"{name}.json" for name in EXPERIMENTS]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]


def write_index(folder: Path) -> None:
    """index.md: what there is, and the table of agreement."""
    found = documents(folder)
    lines = ["# Results", INTRODUCTION, "## What there is"]
    lines.append("\n".join(f"- [{d['title']}]({d['experiment']}.md) ({d['source']})" for d in found))
    if any(document["not_private"] for document in found):
        lines.append("**NOT PRIVATE**: some of these compare with a log itself. Not for release.")
    lines += ["## The papers and us", _summary(found)]
    for document in found:
        if document["findings"]:
            table = findings_table([finding(entry) for entry in document["findings"]])
            titled = Table(f"[{document['title']}]({document['experiment']}.md)", table.columns, table.rows)
            lines.append(markdown_table(titled))
    lines.append(f"Made by `{_command(found)}`; the same seed gives the same bytes.")
    write_whole(folder / INDEX, ("\n\n".join(lines) + "\n").encode())


def _summary(found: Sequence[Mapping[str, Any]]) -> str:
    compared = [entry for document in found for entry in document["findings"] if entry["agrees"] is not None]
    agreeing = sum(entry["agrees"] for entry in compared)
    return f"{agreeing} of {len(compared)} rows that can be compared agree."


def _command(found: Sequence[Mapping[str, Any]]) -> str:
    names = "all" if len(found) == len(EXPERIMENTS) else " ".join(d["experiment"] for d in found)
    quick = " --quick" if any(d["quick"] for d in found) else ""
    return f"searchblend evaluate {names}{quick} --seed {found[0]['seed'] if found else 1} -o DIR"


def finding(entry: Mapping[str, Any]) -> Finding:
    return Finding(**{name: value for name, value in entry.items() if name != "verdict"})


def write_page(folder: Path) -> None:
    """index.html with every plot inside: one file to send to somebody."""
    found = documents(folder)
    contents = "".join(f'<li><a href="#{d["experiment"]}">{escape(d["title"])}</a></li>' for d in found)
    sections = "".join(_section(document, folder) for document in found)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>searchblend: results</title><style>{_STYLE}</style></head><body><h1>searchblend: results</h1>"
        f"<p>{_code(INTRODUCTION)}</p><p>{_summary(found)}</p><nav><ul>{contents}</ul></nav>{sections}"
        f"<p class=about>Made by <code>{escape(_command(found))}</code></p></body></html>\n"
    )
    write_whole(folder / PAGE, page.encode())


def _section(document: Mapping[str, Any], folder: Path) -> str:
    svg = base64.b64encode((folder / f"{document['experiment']}.svg").read_bytes()).decode()
    tables = [Table(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"]))) for t in document["tables"]]
    if document["findings"]:
        tables.append(findings_table([finding(entry) for entry in document["findings"]]))
    warning = "<p><strong>NOT PRIVATE</strong>: it compares with a log itself. Not for release.</p>"
    return (
        f'<h2 id="{document["experiment"]}">{escape(document["title"])}</h2>'
        f'<p class="about">{escape(document["source"])}. {escape(document["about"])}</p>'
        f"{warning if document['not_private'] else ''}"
        f'<img alt="{escape(document["title"])}" src="data:image/svg+xml;base64,{svg}">'
        f"<p>{_code(document['text'])}</p>{''.join(map(_table, tables))}"
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{_code(column)}</th>" for column in table.columns)
    rows = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    return f"<table><caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(text: str) -> str:
    if text.startswith(("agrees", "differs")):
        return f'<td class="{"yes" if text.startswith("agrees") else "no"}">{escape(text)}</td>'
    return f'<td class="no">{escape(text)}</td>' if text.endswith("▲") else f"<td>{escape(text)}</td>"


def _code(text: str) -> str:
    """`words` in backticks as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
