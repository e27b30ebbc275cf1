"""``searchblend graph``: keywords, similar queries, suggestions, spelling, studies and synthetic logs of a release."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from searchblend.cli.arguments import Commands, add_actions, add_command, add_file_output, number, positive_int, share
from searchblend.cli.printing import json_text, print_json, print_line, print_table, step_progress, warn
from searchblend.core.documents import JsonObject
from searchblend.core.errors import UsageError
from searchblend.files.durable import refuse_existing, whole_files, write_new
from searchblend.wire.click_graph_inputs import read_categories, read_seeds, read_stop_list

if TYPE_CHECKING:
    from searchblend.clickgraph.use.graph import ClickGraph
    from searchblend.clickgraph.use.keywords import Keywords
    from searchblend.clickgraph.use.study import Study

EXAMPLES = """\
examples:
  searchblend graph keywords release/ --seed-domain shoes.example --threshold .7
  searchblend graph similar release/ 'running shoes'
  searchblend graph study release/ --pattern '^fear of (.+)$' --top 20
  searchblend graph synthesize release/ --searches 100000 -o synth.tsv
"""
KEYWORDS_EXAMPLES = """\
examples:
  searchblend graph keywords release/ --seed-domain shoes.example --threshold .7
  searchblend graph keywords release/ --seed-url http://shoes.example/run --seed-url http://boots.example
  searchblend graph keywords release/ --seeds seeds.csv -o keywords.csv    several classes: class,url-or-domain
  searchblend graph keywords release/ --seed-domain shoes.example --method arw2008 --json
"""
SIMILAR_EXAMPLES = """\
examples:
  searchblend graph similar release/ 'running shoes'                 shared clicks, with the relation of the URL sets
  searchblend graph similar release/ 'running shoes' --idf --limit 50
  searchblend graph similar release/ 'running shoes' --by backward --steps 101
  searchblend graph similar release/ 'running shoes' --by forward --urls      URLs for the query, clicked or not
"""
SUGGEST_EXAMPLES = """\
examples:
  searchblend graph suggest release/ 'running shoes'
  searchblend graph suggest release/ 'running shoes' --limit 5 --json
"""
SPELL_EXAMPLES = """\
examples:
  searchblend graph spell release/                         every correction that the release is sure of
  searchblend graph spell release/ 'runing shoes' --json
"""
STUDY_EXAMPLES = """\
examples:
  searchblend graph study release/ --pattern '^fear of (.+)$' --top 20
  searchblend graph study release/ --pattern '^fear of (.+)$' --categories map.csv --stop list.txt
  searchblend graph study release/ --pattern '^fear of (.+)$' --compare other-release/ --json
"""
SYNTHESIZE_EXAMPLES = """\
examples:
  searchblend graph synthesize release/ --searches 100000 -o synth.tsv
  searchblend graph synthesize release/ --searches 1000000 --users 50000 -o synth.tsv --force
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    _add_keywords(actions)
    _add_similar(actions)
    suggest = _action(actions, "suggest", "what to ask next, from reformulations and similar clicks", SUGGEST_EXAMPLES)
    suggest.add_argument("query", metavar="QUERY", help="a released query")
    _add_cut(suggest)
    _add_limit(suggest)
    spell = _action(actions, "spell", "spelling corrections that people made themselves", SPELL_EXAMPLES)
    spell.add_argument("query", metavar="QUERY", nargs="?", help="one released query (all of them)")
    add_file_output(spell, "all corrections as CSV, or TSV if it ends in .tsv")
    _add_study(actions)
    synthesize = _action(actions, "synthesize", "a synthetic log drawn from the release alone", SYNTHESIZE_EXAMPLES)
    synthesize.add_argument("--searches", type=positive_int, required=True, metavar="N", help="lines of the log")
    synthesize.add_argument("--users", type=positive_int, metavar="N", help="synthetic users (a tenth of the searches)")
    _add_cut(synthesize)
    add_file_output(synthesize, "the log, tab-separated", required=True)


def _add_keywords(actions: Commands) -> None:
    parser = _action(actions, "keywords", "queries that lead to seed URLs, by a random walk", KEYWORDS_EXAMPLES)
    parser.add_argument("--seed-domain", action="append", default=[], metavar="HOST", help="all URLs of this host")
    parser.add_argument(
        "--seed-url", action="append", default=[], metavar="URL", help="a URL to start from; repeatable"
    )
    parser.add_argument("--seeds", type=Path, metavar="FILE", help="CSV with lines of class,url-or-domain")
    parser.add_argument("--threshold", type=share, default=0.7, metavar="P", help="lowest relevance of a keyword (0.7)")
    parser.add_argument(
        "--alpha", type=share, default=0.001, metavar="A", help="chance of being lost at a step (0.001)"
    )
    parser.add_argument(
        "--method", choices=["cg", "arw2008"], default="cg", help="conjugate gradients (default), or as printed in 2008"
    )
    parser.add_argument("--compare", type=Path, metavar="DIR", help="another graph: keywords kept and confirmed")
    _add_cut(parser)
    add_file_output(parser, "all keywords as CSV, or TSV if it ends in .tsv")


def _add_similar(actions: Commands) -> None:
    parser = _action(actions, "similar", "queries like a query, by clicks", SIMILAR_EXAMPLES)
    parser.add_argument("query", metavar="QUERY", help="a released query")
    parser.add_argument(
        "--by", choices=["clicks", "forward", "backward"], default="clicks", help="shared clicks, or a random walk"
    )
    parser.add_argument(
        "--idf", action="store_true", help="weight of URLs by how few queries lead to them (--by clicks)"
    )
    parser.add_argument("--steps", type=positive_int, default=11, metavar="T", help="steps of the walk (11)")
    parser.add_argument("--stay", type=_stay, default=0.9, metavar="S", help="chance of not moving in a step (0.9)")
    parser.add_argument("--urls", action="store_true", help="rank URLs instead of queries (walks only)")
    _add_cut(parser)
    _add_limit(parser)


def _add_study(actions: Commands) -> None:
    parser = _action(actions, "study", "rank what queries ask about, with the doubt that noise leaves", STUDY_EXAMPLES)
    parser.add_argument("--pattern", required=True, metavar="REGEX", help="which queries; its first group is the term")
    parser.add_argument("--categories", type=Path, metavar="FILE", help="CSV with lines of term,category")
    parser.add_argument("--stop", type=Path, metavar="FILE", help="terms or queries to leave out, one a line")
    parser.add_argument("--top", type=positive_int, default=20, metavar="K", help="categories to show and compare (20)")
    parser.add_argument("--compare", type=Path, metavar="DIR", help="another release: overlap and Kendall's tau")
    add_file_output(parser, "all categories as CSV, or TSV if it ends in .tsv")


def _action(actions: Commands, name: str, what: str, examples: str) -> argparse.ArgumentParser:
    parser = add_command(actions, name, what, examples)
    parser.add_argument("release", type=Path, metavar="DIR", help="the folder of a released click graph")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    return parser


def _add_cut(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cut", type=_cut, metavar="N", help="least count of an edge (the release's false-edge cut)")


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=positive_int, default=10, metavar="N", help="rows at the most (10)")


def _cut(text: str) -> float:
    value = number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError("expected a count of at least 0")
    return value


def _stay(text: str) -> float:
    value = number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError("expected a number in [0, 1), for example 0.9")
    return value


SHOWN_ROWS: Final = 20
OnStep = Callable[[str], None]


def run(options: argparse.Namespace) -> None:
    if getattr(options, "output", None):
        refuse_existing(options.output, replace=options.force)
    _ACTIONS[options.action](options)


def _keywords(options: argparse.Namespace) -> None:
    from searchblend.cli.tables import ResultRows
    from searchblend.clickgraph.use.keywords import Keyword, KeywordComparison, compare_keywords

    seeds = _seeds(options)
    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        keywords = _walk(graph, seeds, options, on_step)
        other = _walk(_open(options.compare, on_step), seeds, options, on_step) if options.compare else None
    if keywords.unmatched_seeds:
        warn(f"{keywords.unmatched_seeds} seeds fit no URL of the released graph")
    document = {name: value for name, value in asdict(keywords).items() if name != "keywords"}
    thresholds = _thresholds(options.threshold)
    compared = ResultRows(KeywordComparison, compare_keywords(other, keywords, thresholds) if other else [])
    if other:
        document["comparison"] = compared.rows
    title = f"Keywords with a relevance of {keywords.threshold:g} or more"
    _show(options, graph, Keyword, keywords.keywords, document, title)
    if not options.json:
        print_line(_walk_note(keywords), style="dim")
        if other:
            print_table(compared.table(f"Against {options.compare} (first)", SHOWN_ROWS))


def _walk(
    graph: ClickGraph, seeds: Mapping[str, Sequence[str]], options: argparse.Namespace, on_step: OnStep
) -> Keywords:
    from searchblend.clickgraph.use.absorbing_walk import WalkSettings
    from searchblend.clickgraph.use.keywords import generate_keywords

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
    from searchblend.wire.click_graph_files import read_click_graph

    graph = read_click_graph(folder, on_step=on_step)
    if graph.notice is not None:
        warn(graph.notice, "bold red")
    return graph


def _seeds(options: argparse.Namespace) -> dict[str, list[str]]:
    """Seeds of the options form one class of their own, beside those of the file."""
    from searchblend.clickgraph.use.keywords import ONE_CLASS

    classes = read_seeds(options.seeds) if options.seeds else {}
    if single := [*options.seed_domain, *options.seed_url]:
        classes.setdefault(ONE_CLASS, []).extend(single)
    if not classes:
        raise UsageError("expected seeds: --seed-domain, --seed-url or --seeds FILE")
    return classes


def _walk_note(keywords: Keywords) -> str:
    seeds = ", ".join(f"{count} of {name}" for name, count in keywords.seed_urls.items())
    bound = "" if keywords.error_bound is None else f", relevances off by {keywords.error_bound:.1e} at most"
    return (
        f"{keywords.kept_edges:,} of {keywords.all_edges:,} click edges pass the cut; seed URLs: {seeds}; "
        f"{keywords.iterations} iterations{bound}."
    )


def _similar(options: argparse.Namespace) -> None:
    from searchblend.clickgraph.use.similar import ClickWalk, Reached, SimilarQuery, similar_queries

    if options.by == "clicks" and options.urls:
        raise UsageError("--urls needs a walk: --by forward or --by backward")
    if options.by != "clicks" and options.idf:
        raise UsageError("--idf weighs shared clicks: it needs --by clicks")
    kind: type
    results: Sequence[Any]
    query, limit, cut = options.query, options.limit, options.cut
    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        on_step("comparing")
        if options.by == "clicks":
            kind, results = SimilarQuery, similar_queries(graph, query, limit=limit, idf=options.idf, cut=cut)
        else:
            walk = ClickWalk(options.by, options.stay, options.steps)
            kind, results = Reached, (walk.urls if options.urls else walk.queries)(graph, query, limit=limit, cut=cut)
    text, what = ("url", "URLs") if options.urls else ("query", "Queries")
    _show(options, graph, kind, results, {"by": options.by}, f"{what} like {query}, by {options.by}", text=text)


def _suggest(options: argparse.Namespace) -> None:
    from searchblend.clickgraph.use.similar import Suggestion, suggest

    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        suggestions = suggest(graph, options.query, limit=options.limit, cut=options.cut)
    _show(options, graph, Suggestion, suggestions, {}, "What to ask next")


def _spell(options: argparse.Namespace) -> None:
    from searchblend.clickgraph.use.spell import Correction, spelling_corrections

    with step_progress() as on_step:
        graph = _open(options.release, on_step)
        on_step("comparing")
        corrections = spelling_corrections(graph)
    if options.query is not None:
        query = graph.queries[graph.number_of(options.query)]
        corrections = [correction for correction in corrections if correction.query == query]
    _show(options, graph, Correction, corrections, {}, "Corrections")


def _study(options: argparse.Namespace) -> None:
    from searchblend.clickgraph.use.study import run_study

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
    from searchblend.clickgraph.use.study import Category, compare_rankings

    document: dict[str, Any] = {"pattern": options.pattern, "matched": study.matched, "stopped": study.stopped}
    compared = compare_rankings(study.ranking, other.ranking, options.top) if other else None
    if compared:
        document["comparison"] = asdict(compared)
    title = f"{study.matched} queries match, {study.stopped} on the stop list"
    _show(options, graph, Category, study.categories, document, title, options.top)
    if compared and not options.json:
        tau = "–" if compared.kendall_tau is None else f"{compared.kendall_tau:.3f}"
        print_line(f"Against the other release: overlap@{compared.k} {compared.overlap:.2f}, Kendall's tau {tau}.")
    if not options.json:
        print_line("swap_probability: the chance that noise alone put a category above the next one.", style="dim")


def _synthesize(options: argparse.Namespace) -> None:
    from searchblend.clickgraph.use.synthesize import SEARCHES_PER_USER, synthesize_log
    from searchblend.wire.click_graph_files import MANIFEST_SUFFIX, SYNTHETIC, write_synthetic_log

    manifest = options.output.with_name(options.output.name + MANIFEST_SUFFIX)
    n_users = options.users or max(options.searches // SEARCHES_PER_USER, 1)
    with step_progress() as on_step, whole_files([options.output, manifest], replace=options.force) as partial:
        graph = _open(options.release, on_step)
        on_step("drawing searches")
        log = synthesize_log(graph, options.searches, users=n_users, cut=options.cut)
        on_step("writing")
        with partial[0].open("wb") as file:
            document = write_synthetic_log(file, graph, log, users=n_users, release=options.release)
        partial[1].write_text(json_text(document))
    if options.json:
        print_json(document)
        return
    print_line(f"{len(log):,} synthetic searches of {n_users:,} users: {options.output}")
    print_line(f"{SYNTHETIC}.", style="bold red")
    print_line(f"{manifest.name} says what it is, and what it is not.", style="dim")


def _show(
    options: argparse.Namespace,
    graph: ClickGraph,
    kind: type,
    released: Sequence[Any],
    document: JsonObject,
    title: str,
    limit: int = SHOWN_ROWS,
    **names: str,
) -> None:
    """One JSON document, or a table of the first rows; all rows into the file if one is named.

    ``released`` are results of a ``kind``, whose columns may have other ``names``; ``document`` is what else JSON says.
    """
    from searchblend.cli.tables import ResultRows

    results = ResultRows(kind, released, **names)
    path = getattr(options, "output", None)
    if path:
        content = results.text("\t" if path.suffix == ".tsv" else ",").encode()
        write_new(path, content, replace=options.force)
    if options.json:
        notice = {} if graph.notice is None else {"notice": graph.notice}
        print_json({**notice, **document, "rows": results.rows})
        return
    if not results.rows:
        print_line("Nothing found.")
    else:
        print_table(results.table(title, limit))
    more = len(results.rows) - limit
    if path:
        print_line(f"{len(results.rows):,} rows: {path}")
    elif more > 0:
        print_line(f"… and {more:,} more; --json prints all.", style="dim")


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], None]]] = {
    "keywords": _keywords,
    "similar": _similar,
    "suggest": _suggest,
    "spell": _spell,
    "study": _study,
    "synthesize": _synthesize,
}
