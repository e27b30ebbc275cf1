"""The files of an experiment: the same seed gives the same bytes, so they hold no date and no version."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import duckdb
import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from searchblend.core.csv_cells import write_csv
from searchblend.core.errors import OutputError
from searchblend.files.durable import whole_files
from searchblend_lab.papers.cells import Scalar
from searchblend_lab.papers.experiment import Experiment, Finding, Outcome, Request, Table
from searchblend_lab.papers.people import people_named

DOCUMENT_VERSION: Final = 2
_TYPES: Final = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
_FORMS: Final[Mapping[str, Callable[[Any], Scalar]]] = {name: form for form, name in _TYPES.items()}


def write_outcome(experiment: Experiment, outcome: Outcome, request: Request, folder: Path) -> list[Path]:
    """NAME.png, .svg, .csv, .parquet, .json and .md; all of them appear complete or not at all."""
    png, svg = drawn(outcome.figure, experiment.name)
    files = {
        ".png": png,
        ".svg": svg,
        ".csv": write_csv(columns(outcome.rows), outcome.rows).encode(),
        ".json": as_json(document(experiment, outcome, request)),
        ".md": page(experiment, outcome, request).encode(),
    }
    paths = [folder / f"{experiment.name}{suffix}" for suffix in (*files, ".parquet")]
    with whole_files(paths, replace=True) as partial:
        for path, content in zip(partial, files.values(), strict=False):
            path.write_bytes(content)
        write_parquet(outcome.rows, partial[-1])
    return paths


def drawn(figure: Figure, name: str) -> tuple[bytes, bytes]:
    """The figure as PNG and as SVG, without dates, versions or random ids."""
    png, svg = io.BytesIO(), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return png.getvalue(), svg.getvalue()


def columns(rows: Sequence[dict[str, Scalar]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def as_json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def write_parquet(rows: Sequence[dict[str, Scalar]], path: Path) -> None:
    """The same rows with their types, through the database that reads logs; one thread, so that they stay in order."""
    values = {name: [row.get(name) for row in rows] for name in columns(rows) or ["nothing"]}
    fields = ", ".join(f"{_name(name)}::{_type_of(column)} AS {_name(name)}" for name, column in values.items())
    try:
        with duckdb.connect(config={"threads": 1}) as database:
            database.execute(f"SET pandas_analyze_sample = {len(rows)}")  # a column may be empty for long
            database.register("written", {name: _array(column) for name, column in values.items()})
            database.execute(f"COPY (SELECT {fields} FROM written) TO {_text(str(path))} (FORMAT parquet)")  # noqa: S608
    except duckdb.Error as error:
        raise OutputError(f"{path.name}: cannot be written: {error}") from error


def _array(values: list[Scalar]) -> NDArray[Any]:
    """Of one type: a column of strings and numbers is one of strings."""
    form = _FORMS[_type_of(values)]
    return np.array([None if value is None else form(value) for value in values], dtype=object)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _text(value: str) -> str:
    """As SQL has it."""
    return "'" + value.replace("'", "''") + "'"


def _type_of(values: list[Scalar]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return "DOUBLE"
    return _TYPES[kinds.pop()] if len(kinds) == 1 else "VARCHAR"


def document(experiment: Experiment, outcome: Outcome, request: Request) -> dict[str, Any]:
    """The experiment as one JSON document."""
    return {
        "format": "searchblend-evaluation",
        "version": DOCUMENT_VERSION,
        "experiment": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "about": experiment.about,
        "seed": request.seed,
        "quick": request.quick,
        "options": request.options,
        "people": people_named(request.people).label if request.people else None,
        "not_private": request.log is not None or bool(request.logs),
        "text": outcome.text,
        "tables": [asdict(table) for table in outcome.tables],
        "findings": [asdict(finding) | {"verdict": finding.verdict} for finding in outcome.findings],
        "rows": outcome.rows,
    }


def page(experiment: Experiment, outcome: Outcome, request: Request) -> str:
    """The experiment as a page: plot, paragraph, tables."""
    is_of_log = request.log is not None or bool(request.logs)
    warning = ["**NOT PRIVATE**: it compares with a log itself. Not for release."] if is_of_log else []
    parts = [
        f"# {experiment.title}",
        *warning,
        f"{experiment.about} ({experiment.source})",
        f"![{experiment.title}]({experiment.name}.png)",
        outcome.text,
        *(markdown_table(table) for table in outcome.tables),
    ]
    if outcome.findings:
        parts.append(markdown_table(findings_table(outcome.findings)))
    how = f"searchblend evaluate {experiment.name} {request.options} -o DIR"
    parts.append(f"Made by `{how}`. Data: [{experiment.name}.csv]({experiment.name}.csv).")
    return "\n\n".join(parts) + "\n"


def findings_table(findings: Sequence[Finding]) -> Table:
    rows = tuple((f.what, f.published, f.paper, f.best, f.verdict) for f in findings)
    return Table("The paper and us", ("", "published", "ours, `paper`", "ours, `best`", "agreement"), rows)


def markdown_table(table: Table) -> str:
    lines = [
        f"**{table.title}**\n",
        "| " + " | ".join(table.columns) + " |",
        "|" + "---|" * len(table.columns),
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table.rows),
    ]
    return "\n".join(lines)
