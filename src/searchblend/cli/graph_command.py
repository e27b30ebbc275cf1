"""``searchblend graph``: keywords, similar queries, suggestions, spelling, studies and made-up logs of a release."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from searchblend.cli.progress import step_progress
from searchblend.cli.tables import new_table, output, say, warn
from searchblend.clickgraph.use.absorbing_walk import WalkSettings
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.clickgraph.use.keywords import (
    ONE_CLASS,
    Keyword,
    KeywordComparison,
    Keywords,
    compare_keywords,
    generate_keywords,
)
from searchblend.clickgraph.use.similar import ClickWalk, Reached, SimilarQuery, similar_queries
from searchblend.clickgraph.use.spell import Correction, spelling_corrections
from searchblend.clickgraph.use.study import Category, Study, compare_rankings, run_study
from searchblend.clickgraph.use.suggest import Suggestion, suggest
from searchblend.clickgraph.use.synthesize import SEARCHES_PER_USER, WHAT_IT_IS_NOT, synthesize_log
from searchblend.core.csv_cells import write_csv
from searchblend.core.errors import UsageError
from searchblend.store.whole_file import refuse_existing, whole_files
from searchblend.wire.click_graph_files import read_click_graph
from searchblend.wire.click_graph_inputs import read_categories, read_seeds, read_stop_list
from searchblend.wire.release import STATEMENT
from searchblend.wire.synthetic_log import MANIFEST_SUFFIX, SYNTHETIC, encode_synthetic_log, synthetic_manifest

SHOWN_ROWS: Final = 20
OnStep = Callable[[str], None]
Row = Mapping[str, Any]


def run(options: argparse.Namespace) -> None:
    if getattr(options, "output", None):
        refuse_existing(options.output, replace=options.force)
    _ACTIONS[options.action](options)


def _keywords(options: argparse.Namespace) -> None:
    seeds = _seeds(options)
    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        found = _walk(graph, seeds, options, on_step)
        other = _walk(_open(options.compare, on_step), seeds, options, on_step) if options.compare else None
    if found.unmatched_seeds:
        warn(f"{found.unmatched_seeds} seeds fit no URL of the released graph")
    document = {name: value for name, value in asdict(found).items() if name != "keywords"}
    compared = _Rows(KeywordComparison, compare_keywords(other, found, _thresholds(options.threshold)) if other else [])
    if other:
        document["comparison"] = compared.rows
    rows = _Rows(Keyword, found.keywords)
    _show(options, graph, rows, document, f"Keywords with a relevance of {found.threshold:g} or more")
    if not options.json:
        say(_walk_note(found), style="dim")
        if other:
            output.print(compared.table(f"Against {options.compare} (first)", SHOWN_ROWS))


def _walk(
    graph: ClickGraph, seeds: Mapping[str, Sequence[str]], options: argparse.Namespace, on_step: OnStep
) -> Keywords:
    return generate_keywords(
        graph,
        seeds,
        threshold=options.threshold,
        settings=WalkSettings(alpha=options.alpha, method=options.method),
        cut=options.cut,
        on_iteration=lambda iteration, left: on_step(f"walking: iteration {iteration}, {left:.1e} to go"),
    )


def _thresholds(least: float) -> list[float]:
    """The asked one and those of [KKMN09] Table 5 above it."""
    return [least, *(threshold for threshold in (0.5, 0.7, 0.9, 0.95) if threshold > least)]


def _open(folder: Path, on_step: OnStep) -> ClickGraph:
    """The graph; a notice in its statement is shown whatever is asked of it."""
    graph = read_click_graph(folder, on_step=on_step)
    if graph.notice is not None:
        warn(graph.notice, "bold red")
    return graph


def _seeds(options: argparse.Namespace) -> dict[str, list[str]]:
    """Seeds of the options form one class of their own, beside those of the file."""
    classes = read_seeds(options.seeds) if options.seeds else {}
    if single := [*options.seed_domain, *options.seed_url]:
        classes.setdefault(ONE_CLASS, []).extend(single)
    if not classes:
        raise UsageError("expected seeds: --seed-domain, --seed-url or --seeds FILE")
    return classes


def _walk_note(found: Keywords) -> str:
    seeds = ", ".join(f"{count} of {name}" for name, count in found.seed_urls.items())
    bound = "" if found.error_bound is None else f", relevances off by {found.error_bound:.1e} at most"
    return (
        f"{found.kept_edges:,} of {found.all_edges:,} click edges pass the cut; seed URLs: {seeds}; "
        f"{found.iterations} iterations{bound}."
    )


def _similar(options: argparse.Namespace) -> None:
    if options.by == "clicks" and options.urls:
        raise UsageError("--urls needs a walk: --by forward or --by backward")
    if options.by != "clicks" and options.idf:
        raise UsageError("--idf weighs shared clicks: it needs --by clicks")
    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        on_step("comparing")
        rows = _similar_rows(graph, options)
    what = "URLs" if options.urls else "Queries"
    _show(options, graph, rows, {"by": options.by}, f"{what} like the query, by {options.by}")


def _similar_rows(graph: ClickGraph, options: argparse.Namespace) -> _Rows:
    limit, cut = options.limit, options.cut
    if options.by == "clicks":
        return _Rows(SimilarQuery, similar_queries(graph, options.query, limit=limit, idf=options.idf, cut=cut))
    walk = ClickWalk(options.by, options.stay, options.steps)
    reached = (walk.urls if options.urls else walk.queries)(graph, options.query, limit=limit, cut=cut)
    return _Rows(Reached, reached, text="url" if options.urls else "query")


def _suggest(options: argparse.Namespace) -> None:
    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        found = suggest(graph, options.query, limit=options.limit, cut=options.cut)
    _show(options, graph, _Rows(Suggestion, found), {}, "What to ask next")


def _spell(options: argparse.Namespace) -> None:
    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        on_step("comparing")
        found = spelling_corrections(graph)
    if options.query is not None:
        query = graph.queries[graph.number_of(options.query)]
        found = [correction for correction in found if correction.query == query]
    _show(options, graph, _Rows(Correction, found), {}, "Corrections")


def _study(options: argparse.Namespace) -> None:
    categories = read_categories(options.categories) if options.categories else {}
    stop = read_stop_list(options.stop) if options.stop else []
    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        study = run_study(graph, options.pattern, stop=stop, categories=categories)
        other = None
        if options.compare:
            other = run_study(_open(options.compare, on_step), options.pattern, stop=stop, categories=categories)
    _show_study(options, graph, study, other)


def _show_study(options: argparse.Namespace, graph: ClickGraph, study: Study, other: Study | None) -> None:
    document: dict[str, Any] = {"pattern": options.pattern, "matched": study.matched, "stopped": study.stopped}
    compared = compare_rankings(study.ranking, other.ranking, options.top) if other else None
    if compared:
        document["comparison"] = asdict(compared)
    title = f"{study.matched} queries match, {study.stopped} on the stop list"
    _show(options, graph, _Rows(Category, study.categories), document, title, options.top)
    if compared and not options.json:
        tau = "–" if compared.kendall_tau is None else f"{compared.kendall_tau:.3f}"
        say(f"Against the other release: overlap@{compared.k} {compared.overlap:.2f}, Kendall's tau {tau}.")
    if not options.json:
        say("swap_probability: the chance that noise alone put a category above the next one.", style="dim")


def _synthesize(options: argparse.Namespace) -> None:
    manifest = options.output.with_name(options.output.name + MANIFEST_SUFFIX)
    n_users = options.users or max(options.searches // SEARCHES_PER_USER, 1)
    with step_progress() as on_step, whole_files([options.output, manifest], replace=options.force) as partial:
        graph = _open(options.release, on_step)
        on_step("drawing searches")
        log = synthesize_log(graph, options.searches, users=n_users, cut=options.cut)
        on_step("writing")
        digest = hashlib.sha256()
        with partial[0].open("wb") as file:
            for piece in encode_synthetic_log(graph, log):
                digest.update(piece)
                file.write(piece)
        document = synthetic_manifest(
            graph, log, users=n_users, sha256=digest.hexdigest(), statement=_drawn_from(options.release)
        )
        partial[1].write_text(_json(document))
    if options.json:
        output.file.write(_json(document))
        return
    say(f"{len(log):,} made-up searches of {n_users:,} users: {options.output}")
    say(f"{SYNTHETIC}.", style="bold red")
    say(f"It is {WHAT_IT_IS_NOT[0]}. {manifest.name} says what else it is not.", style="dim")


def _drawn_from(release: Path) -> dict[str, Any]:
    """The statement's digest, and what it says of the release."""
    content = (release / STATEMENT).read_bytes()
    return {"statement_sha256": hashlib.sha256(content).hexdigest(), "release": json.loads(content)["release"]}


class _Rows:
    """Results as rows, with the names that the files of a release use."""

    def __init__(self, kind: type, results: Sequence[Any], **names: str) -> None:
        renamed = {**_COLUMNS, **names}
        fields = [field.name for field in dataclasses.fields(kind)]
        self.columns = [renamed.get(name, name) for name in fields]
        self.rows: list[Row] = [
            dict(zip(self.columns, (getattr(result, name) for name in fields), strict=True)) for result in results
        ]

    def table(self, title: str, limit: int) -> Table:
        table = new_table(title)
        for name, value in self.rows[0].items():
            table.add_column(name, justify="left" if isinstance(value, str) else "right")
        for row in self.rows[:limit]:
            table.add_row(*(_cell(value) for value in row.values()))
        return table

    def text(self, delimiter: str) -> str:
        return write_csv(self.columns, self.rows, delimiter)


_COLUMNS: Final = {"low": "lo95", "high": "hi95", "seed_class": "class"}


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) > 1 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _show(
    options: argparse.Namespace, graph: ClickGraph, found: _Rows, document: Row, title: str, limit: int = SHOWN_ROWS
) -> None:
    """One JSON document, or a table of the first rows; all rows into the file if one is named."""
    path = getattr(options, "output", None)
    if path:
        with whole_files([path], replace=options.force) as (partial,):
            partial.write_bytes(found.text("\t" if path.suffix == ".tsv" else ",").encode())
    if options.json:
        notice = {} if graph.notice is None else {"notice": graph.notice}
        output.file.write(_json({**notice, **document, "rows": found.rows}))
        return
    if not found.rows:
        say("Nothing found.")
    else:
        output.print(found.table(title, limit))
    more = len(found.rows) - limit
    if path:
        say(f"{len(found.rows):,} rows: {path}")
    elif more > 0:
        say(f"… and {more:,} more; --json prints all.", style="dim")


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], None]]] = {
    "keywords": _keywords,
    "similar": _similar,
    "suggest": _suggest,
    "spell": _spell,
    "study": _study,
    "synthesize": _synthesize,
}
