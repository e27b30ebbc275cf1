"""``searchblend release``: parse, call, print."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import Commands, add_actions, add_command, add_old_spelling, positive_int
from searchblend.cli.log_options import (
    add_log,
    add_output,
    add_release_options,
    add_unit,
    ledger_entry,
    read_options,
    releasing,
    require_output,
    stated,
    warn_about_input,
)
from searchblend.cli.printing import new_table, print_json, print_line, print_table, run_progress, step_progress, warn
from searchblend.core.attributes import Attribute, declared_attributes, parse_attributes
from searchblend.core.documents import JsonObject, encode
from searchblend.core.errors import InputError, InvalidParameter, RunError, UsageError
from searchblend.core.params import AS_ALGORITHM, ATTRIBUTE_DETAILS, WINDOWS, ClickGraphParams, Shares, suggested_delta
from searchblend.core.privacy import Budget
from searchblend.core.suspects import EXPLAINED, Suspects

if TYPE_CHECKING:
    from rich.table import Table

    from searchblend.clickgraph.use.graph import ClickGraph
    from searchblend.clickgraph.use.review import Finding
    from searchblend.core.statement import Statement
    from searchblend.releases.verify_release import Check

EXAMPLES = """\
examples:
  searchblend release plan --epsilon 2.3 --delta 1e-6 --max-queries-per-user 20
  searchblend release run searches.tsv -o release --users 500000
  searchblend release verify release/
  searchblend release review release/ --terms adult.txt
"""
RUN_EXAMPLES = """\
examples:
  searchblend release run searches.tsv -o release --users 500000
  searchblend release run 'aol/user-ct-*.gz' -o release --urls private --users 650000 --epsilon 2.3
  searchblend release run searches.tsv -o release --public-urls results.csv --public-source 'results page of May'
  searchblend release run searches.tsv -o release --algorithm kkmn2009 --max-queries-per-user 5 --shares even
  searchblend release run searches.tsv -o release --attributes 'country=de|fr|at,device=phone|desktop'
  searchblend release run searches.tsv -o release --reformulations --from 2006-03-01 --to 2006-04-01
  searchblend release run march.tsv -o day5 --per day --from 2026-03-05 --ledger budget.ledger --release-id daily
  searchblend release run searches.tsv -o release --ledger budget.ledger --release-id march
"""
PLAN_EXAMPLES = """\
examples:
  searchblend release plan --users 500000                           the default at its default budget
  searchblend release plan --algorithm kkmn2009 --epsilon 2.302585 --delta 1e-5 --selection-only --json
  searchblend release plan --algorithm kkmn2009 --accounting exact --max-queries-per-user 5
  searchblend release plan --urls private --plot curve.png
"""
VERIFY_EXAMPLES = """\
examples:
  searchblend release verify release/            hashes, and (ε, δ) computed again; exit code 1 if a check fails
  searchblend release verify release/ --json
"""
REVIEW_EXAMPLES = """\
examples:
  searchblend release review release/                         what a person should look at before publishing
  searchblend release review release/ --terms adult.txt       a list of your own, one term a line
  searchblend release review release/ --top 500 --abandoned-below 0.05 --json
"""
ALGORITHMS = ("gaussian", "kkmn2009", "weighted_gaussian", "dp_sips", "adaptive_gaussian")
PRESETS = ("select-heavy", "even", "counts-heavy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    _add_run(actions)
    _add_plan(actions)
    verify = add_command(actions, "verify", "check a release without the log", VERIFY_EXAMPLES)
    review = add_command(actions, "review", "what to look at before publishing", REVIEW_EXAMPLES)
    for action in (verify, review):
        action.add_argument("folder", type=Path, metavar="DIR", help="the folder of a release")
        action.add_argument("--json", action="store_true", help="print one JSON document")
    review.add_argument("--terms", type=Path, metavar="FILE", help="terms of your own to look for, one a line")
    review.add_argument("--top", type=positive_int, default=100, metavar="N", help="queries looked at for clicks (100)")
    add_old_spelling(review, "--head", "--top")
    review.add_argument(
        "--abandoned-below", type=float, default=0.1, metavar="F", help="clicks per search below which to ask (0.1)"
    )


def _add_run(actions: Commands) -> None:
    parser = add_command(actions, "run", "release the click graph of a log", RUN_EXAMPLES)
    add_log(parser, memory="2500MB")  # who searched for what takes more room than draws
    add_unit(parser)
    add_output(parser, needed="needed")
    _add_parameters(parser)
    parser.add_argument("--public-urls", type=Path, metavar="TABLE", help="pairs query,url from outside the log")
    parser.add_argument("--public-source", metavar="TEXT", help="where that table comes from; enters the statement")
    parser.add_argument("--synonyms", type=Path, metavar="TABLE", help="public table query,meaning of queries to merge")
    parser.add_argument("--from", dest="first", type=_moment, metavar="TIME", help="leave out lines before this time")
    parser.add_argument("--to", dest="last", type=_moment, metavar="TIME", help="leave out lines from this time on")
    parser.add_argument(
        "--previous", type=Path, nargs="+", default=[], metavar="DIR", help="earlier windows, with --per"
    )
    add_release_options(parser)
    parser.add_argument("--people", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print the statement as one JSON document")


def _add_plan(actions: Commands) -> None:
    parser = add_command(actions, "plan", "thresholds, noise and release probabilities; reads no data", PLAN_EXAMPLES)
    _add_parameters(parser)
    add_old_spelling(parser, "--population", "--users")
    parser.add_argument("--selection-only", action="store_true", help="the whole budget for choosing queries")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the release probability, .png or .svg")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="gaussian", help="how queries are chosen (gaussian)")
    parser.add_argument(
        "--accounting", choices=["paper", "exact"], help="privacy account of kkmn2009: Theorem 1 (paper), or exact"
    )
    parser.add_argument("--epsilon", type=float, default=2.0, metavar="E", help="ε of the whole release (2)")
    parser.add_argument("--delta", type=float, metavar="D", help="δ (1e-6, or a tenth of 1/users if that is less)")
    parser.add_argument("--users", type=positive_int, metavar="N", help="users the log stands for, as you know it")
    parser.add_argument("--allow-large-delta", action="store_true", help="accept δ ≥ 1/users")
    parser.add_argument(
        "--max-queries-per-user", type=int, default=20, metavar="D", help="different queries counted per user (20)"
    )
    parser.add_argument("--max-clicks-per-user", type=int, default=20, metavar="D", help="clicks counted per user (20)")
    parser.add_argument(
        "--max-reformulations-per-user", type=int, default=20, metavar="D", help="reformulations counted per user (20)"
    )
    parser.add_argument("--count-unit", choices=["users", "impressions"], help="what is counted (the algorithm's)")
    parser.add_argument("--query-noise", choices=["fresh", "reuse"], help="noise of the counts (the algorithm's)")
    parser.add_argument(
        "--shares", default="even", metavar="PRESET", help=f"{', '.join(PRESETS)}, or select,counts,clicks"
    )
    parser.add_argument(
        "--urls", choices=["none", "public", "private"], help="clicks on URLs (none; public with a table)"
    )
    parser.add_argument(
        "--attributes",
        type=_attributes,
        default=(),
        metavar="NAME=VALUE|VALUE,…",
        help="count by these too, e.g. country=de|fr,device=phone|desktop,clicks.rank=1|2|3-10; or FILE.toml",
    )
    parser.add_argument(
        "--attribute-detail",
        choices=ATTRIBUTE_DETAILS,
        default="auto",
        help="how fine these counts are (by a forecast)",
    )
    parser.add_argument(
        "--per", choices=WINDOWS, default="none", help="one window of a month; needs --from and --ledger"
    )
    parser.add_argument("--cap", choices=["month"], help="how long a person's account is, with --per (month)")
    parser.add_argument("--reformulations", action="store_true", help="release which query was typed after which")


def _attributes(text: str) -> tuple[Attribute, ...]:
    """As typed, or of a declaration in TOML."""
    try:
        if not text.lower().endswith(".toml"):
            return parse_attributes(text)
        return declared_attributes(tomllib.loads(Path(text).read_text(encoding="utf-8")))
    except InvalidParameter as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text}: cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{text}: expected TOML: {error}") from error


def _moment(text: str) -> float:
    """Seconds since 1970, or a date and time in UTC."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("expected a date such as 2006-03-01, or seconds since 1970") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def run(options: argparse.Namespace) -> None:
    {"run": _run, "plan": _plan, "verify": _verify, "review": _review}[options.action](options)


def _params(options: argparse.Namespace, **fixed: Any) -> ClickGraphParams:
    delta = suggested_delta(options.users) if options.delta is None else options.delta
    choices = {
        "count_unit": options.count_unit or AS_ALGORITHM,
        "accounting": options.accounting or AS_ALGORITHM,
        "query_noise": options.query_noise or AS_ALGORITHM,
        "urls": options.urls or "none",
        "reformulations": "typed" if options.reformulations else "none",
        "attributes": options.attributes,
        "attribute_detail": options.attribute_detail,
        "per": options.per,
    }
    return ClickGraphParams(
        budget=Budget(options.epsilon, delta),
        population=options.users,
        algorithm=options.algorithm,
        max_queries_per_user=options.max_queries_per_user,
        max_clicks_per_user=options.max_clicks_per_user,
        max_reformulations_per_user=options.max_reformulations_per_user,
        shares=_shares(options.shares),
        allow_large_delta=options.allow_large_delta,
        **{**choices, **fixed},
    )


def _shares(text: str) -> Shares:
    if "," not in text:
        return Shares.preset(text)
    try:
        return Shares(*(float(part) for part in text.split(",")))
    except (ValueError, TypeError) as error:
        raise UsageError("--shares: expected a preset, or three to five numbers such as 0.5,0.3,0.2") from error


def _run(options: argparse.Namespace) -> None:
    from searchblend.releases.click_graph import ReleaseSettings, run_release
    from searchblend.releases.make_release import now
    from searchblend.wire.release import encode_statement

    if options.seed is not None:
        raise UsageError("--seed: a release draws its noise from the operating system; a known seed cancels privacy")
    _read_old_spellings(options)
    output = require_output(options, instead="searchblend release plan")
    _check_windows(options)
    if options.urls == "public" and not options.public_urls:
        raise UsageError("--urls public: name the table with --public-urls; URLs of the log itself are not public")
    if options.public_urls and options.urls not in (None, "public"):
        raise UsageError("--public-urls: only with --urls public")
    fixed = {"urls": "public", "public_source": options.public_source or ""} if options.public_urls else {}
    if options.public_urls and not options.public_source:
        raise UsageError("--public-urls: say where the table comes from with --public-source; it must not be the log")
    settings = ReleaseSettings(
        log=read_options(options),
        params=_params(options, **fixed),
        output=output,
        public_urls=options.public_urls,
        synonyms=options.synonyms,
        first_moment=options.first,
        last_moment=options.last,
        previous=options.previous,
        html=options.html,
        replace=options.force,
        ledger=ledger_entry(options),
        created=now(),
    )
    if options.users is None:
        warn("the number of users was not declared (--users): δ was not compared with it")
    with (
        releasing(options, settings.log, settings.cost, created=settings.created) as (reading, write_summary),
        run_progress() as (on_progress, on_step),
    ):
        result = run_release(
            replace(settings, log=reading),
            on_progress=on_progress,
            on_notice=lambda text: warn(text, "dim"),
            on_step=on_step,
        )
        write_summary(result.input_summary)
    warn_about_input(result, output, html=options.html)
    if options.json:
        print_json(encode_statement(result.released))
    else:
        _show_release(result.released, output)


def _check_windows(options: argparse.Namespace) -> None:
    if options.per == "none":
        for flag, value in (("--cap", options.cap), ("--previous", options.previous)):
            if value:
                raise UsageError(f"{flag}: only with --per day or --per week")
    elif options.ledger is None or options.window is not None:
        raise UsageError("--per: with --ledger and --release-id, and without --window; the ledger keeps the account")
    elif options.first is None or options.last is not None:
        raise UsageError("--per: say with --from when the window begins, and nothing with --to; its end follows")
    elif options.engine != "duckdb":
        raise UsageError("--per: only with --engine duckdb; on a cluster releases have no windows yet")


def _read_old_spellings(options: argparse.Namespace) -> None:
    """``--population`` was the number of users here, and ``--people`` the name. So a value of digits is the number."""
    if options.population is not None and not any(letter.isalpha() for letter in options.population):
        if options.users is not None:
            raise UsageError("--population: expected a name with a letter in it; the number of users is --users")
        try:
            options.users, options.population = positive_int(options.population), None
        except argparse.ArgumentTypeError as error:
            raise UsageError("--population: expected a name with a letter in it") from error
        warn("warning: --population with a number is called --users now")
    if options.people is not None:
        if options.population is not None:
            raise UsageError("--people: is called --population now, which is given too; leave one of them out")
        options.population = options.people
        warn("warning: --people is called --population now")


def _show_release(statement: Statement, folder: Path) -> None:
    from searchblend.wire.click_graph_files import read_click_graph

    with step_progress() as on_step:
        graph = read_click_graph(folder, on_step=on_step)
    print_table(_queries_table(graph))
    print_line(f"{len(graph.clicks):,} pairs of query and clicked URL, {len(graph.reformulations):,} reformulations")
    for forecast in statement.parameters["design"].get("attributes", []):
        print_line(_by_attribute(forecast))
    print_line(stated(statement.promise, "each user and everything together"))
    print_line(f"files: {folder}/ (before publishing: searchblend release review {folder})")


def _by_attribute(forecast: JsonObject) -> str:
    note = "" if forecast["readable"] else "; by the forecast most of these counts are noise"
    return (
        f"{forecast['of']} by attribute: {forecast['detail']}, each count ± {forecast['half_width']:.0f} (95 %){note}"
    )


def _queries_table(graph: ClickGraph) -> Table:
    searches = graph.searches
    rows = [
        (
            query,
            f"{searches.count[i]:,}",
            f"{max(searches.low[i], 0):,.0f} – {searches.high[i]:,.0f}",
            f"{searches.estimate[i]:,.0f}",
        )
        for i, query in enumerate(graph.queries[:20])
    ]
    title = f"Published queries ({len(graph.queries):,} in all)"
    return new_table(title, ("query", "count", "95 % interval", "estimate"), rows, words=("query",))


def _verify(options: argparse.Namespace) -> None:
    from searchblend.releases.verify_release import CANNOT_PROVE, verify_release

    with step_progress() as on_step:
        checks = verify_release(options.folder, on_step=on_step)
    failed = [check for check in checks if not check.holds]
    if options.json:
        print_json(
            {
                "verified": not failed,
                "checks": encode(checks),
                "cannot_prove": list(CANNOT_PROVE),
            }
        )
    else:
        print_table(_checks_table(options.folder, checks))
        print_line("What cannot be checked from the folder:")
        for what in CANNOT_PROVE:
            print_line(f"  - {what}")
    if failed:
        raise RunError(f"{options.folder}: {len(failed)} of {len(checks)} checks failed: {failed[0].name}")


def _checks_table(folder: Path, checks: Sequence[Check]) -> Table:
    columns = ("", "check", "what was found")
    rows = [("ok" if check.holds else "FAILED", check.name, check.detail) for check in checks]
    return new_table(f"{folder}", columns, rows, words=columns)


def _review(options: argparse.Namespace) -> None:
    from searchblend.clickgraph.use.review import ABANDONED, review
    from searchblend.wire.click_graph import STATEMENT_KIND
    from searchblend.wire.click_graph_files import read_click_graph
    from searchblend.wire.release import STATEMENT, read_statement

    with step_progress() as on_step:
        graph = read_click_graph(options.folder, on_step=on_step)
        statement = read_statement(options.folder / STATEMENT, kind=STATEMENT_KIND)
        on_step("reviewing")
        findings = review(
            graph,
            Suspects(_terms(options.terms)),
            has_all_clicks=statement.parameters.get("urls") == "public",
            head=options.top,
            abandoned_below=options.abandoned_below,
        )
    if options.json:
        print_json({"findings": encode(findings)})
        return
    if not findings:
        print_line("nothing that looks personal; this is a hint, not a guarantee")
        return
    print_table(_findings_table(findings))
    explained = {suspicion.value: text for suspicion, text in EXPLAINED.items()}
    explained[ABANDONED] = "searched often and clicked hardly ever: a weakness of the search engine"
    for reason in dict.fromkeys(reason for finding in findings for reason in finding.reasons):
        print_line(f"  {reason}: {explained[reason]}")


def _findings_table(findings: Sequence[Finding]) -> Table:
    title = f"Look at these before publishing ({len(findings)})"
    rows = [(each.table, str(each.row), ", ".join(each.reasons), " → ".join(each.texts)) for each in findings]
    return new_table(title, ("table", "row", "why", "text"), rows, words=("table", "why", "text"))


def _terms(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, "expected a text file in UTF-8 with a term on each line") from error


def _plan(options: argparse.Namespace) -> None:
    from searchblend.synthetic.plans import plan_release

    fixed: dict[str, Any] = {"public_source": "declared in the plan"} if options.urls == "public" else {}
    if options.selection_only:
        if options.urls or options.reformulations:
            raise UsageError("--selection-only: not with --urls or --reformulations")
        fixed = {"query_noise": "reuse"} if options.algorithm in ("kkmn2009", "gaussian") else {}
    plan = plan_release(_params(options, **fixed), selection_only=options.selection_only)
    document = plan.document
    if options.plot:
        plan.plot(options.plot)
    if options.json:
        print_json(document)
        return
    print_table(_steps_table(document))
    print_line(
        f"ε = {document['epsilon']:g}, δ = {document['budget_delta']:g} "
        f"(used with whole-number noise: {document['mechanism_delta']:.3g}); "
        f"a query needs about {document['threshold']:.4g} {document['unit']}"
    )
    print_line(
        f"published with 1 %, 50 %, 99 % probability at {', '.join(str(n) for n in document['quantiles'].values())} "
        f"{document['unit']}; {document['accounts_to_force']} accounts can force any text into the release"
    )
    for forecast in document.get("attributes", []):
        print_line(_by_attribute(forecast))
    if options.plot:
        print_line(f"plot: {options.plot}")


def _steps_table(document: JsonObject) -> Table:
    rows = [
        (
            step["name"],
            f"{step['first']} {'different' if step['unit'] == 'users' else 'in all'}",
            step["noise"]["law"].replace("_", " "),
            f"{step['noise']['scale']:.4g}",
            "–" if step["threshold"] is None else str(step["threshold"]),
            f"{step['half_width']:.0f}",
            f"{step['epsilon']:.3g}",
            f"{step['delta']:.2g}",
        )
        for step in document["steps"]
    ]
    columns = ("step", "first of a user", "noise", "scale", "threshold", "95 % ±", "ε", "δ")
    title = f"Release with {document['algorithm']}: nothing was read"
    return new_table(title, columns, rows, words=("step", "noise"))
