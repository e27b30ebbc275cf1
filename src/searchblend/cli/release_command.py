"""``searchblend release``: parse, call, print."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from searchblend.cli.log_options import read_options
from searchblend.cli.progress import run_progress, step_progress
from searchblend.cli.release_options import ledger_entry, summary_file
from searchblend.cli.run_command import malformed_warnings, now, warn_without_page
from searchblend.cli.tables import new_table, output, say, warn
from searchblend.clickgraph.use.review import ABANDONED, review
from searchblend.core.errors import InputError, RunError, UsageError
from searchblend.core.params import AS_ALGORITHM, ClickGraphParams, Shares
from searchblend.core.privacy import Budget
from searchblend.core.suspects import EXPLAINED, Suspects
from searchblend.releases.click_graph import ReleaseResult, ReleaseSettings, run_release
from searchblend.releases.verify_release import CANNOT_PROVE, verify_release
from searchblend.wire.click_graph import STATEMENT
from searchblend.wire.click_graph_files import read_click_graph, read_statement

_LARGEST_DELTA = 1e-6


def run(options: argparse.Namespace) -> None:
    if options.action == "plan":  # the only one that draws: the others need not wait for it
        import_module("searchblend.cli.release_plan_command").run(options)
        return
    {"run": _run, "verify": _verify, "review": _review}[options.action](options)


def params_of(options: argparse.Namespace, **fixed: Any) -> ClickGraphParams:
    delta = options.delta
    if delta is None:
        delta = min(_LARGEST_DELTA, 0.1 / options.population) if options.population else _LARGEST_DELTA
    choices = {
        "count_unit": options.count_unit or AS_ALGORITHM,
        "accounting": options.accounting or AS_ALGORITHM,
        "query_noise": options.query_noise or AS_ALGORITHM,
        "urls": options.urls or "none",
        "reformulations": "typed" if options.reformulations else "none",
    }
    return ClickGraphParams(
        budget=Budget(options.epsilon, delta),
        population=options.population,
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
        raise UsageError("--shares: expected a preset, or three to four numbers such as 0.5,0.3,0.2") from error


def _run(options: argparse.Namespace) -> None:
    if options.seed is not None:
        raise UsageError("--seed: a release draws its noise from the operating system; a known seed cancels privacy")
    if options.urls == "public" and not options.public_urls:
        raise UsageError("--urls public: name the table with --public-urls; URLs of the log itself are not public")
    if options.public_urls and options.urls not in (None, "public"):
        raise UsageError("--public-urls: only with --urls public")
    fixed = {"urls": "public", "public_source": options.public_source or ""} if options.public_urls else {}
    if options.public_urls and not options.public_source:
        raise UsageError("--public-urls: say where the table comes from with --public-source; it must not be the log")
    settings = ReleaseSettings(
        log=read_options(options),
        params=params_of(options, **fixed),
        output=options.output,
        public_urls=options.public_urls,
        synonyms=options.synonyms,
        first_moment=options.first,
        last_moment=options.last,
        html=options.html,
        replace=options.force,
        ledger=ledger_entry(options, population="--people"),
        created=now(),
    )
    if options.population is None:
        warn("the number of users was not declared (--population): δ was not compared with it")
    with (
        summary_file(options.summary, options.output, replace=options.force) as write_summary,
        run_progress() as (on_progress, on_step),
    ):
        result = run_release(
            settings, on_progress=on_progress, on_notice=lambda text: warn(text, "dim"), on_step=on_step
        )
        write_summary(result.input_summary)
    _say_input(result)
    if result.input_summary is None:
        warn_without_page(options.output, html=options.html)
    if options.json:
        _print_json(result.statement)
    else:
        _show_release(result.statement, options.output)


def _say_input(result: ReleaseResult) -> None:
    if result.input_summary is None:
        warn("this release id was published before: the same files again, nothing was spent")
        return
    for line in malformed_warnings(result.input_summary):
        warn(line, "bold yellow")


def _show_release(statement: Mapping[str, Any], folder: Path) -> None:
    with step_progress() as on_step:
        graph = read_click_graph(folder, on_step=on_step)
    table = new_table(f"Published queries ({len(graph.queries):,} in all)")
    for name in ("query", "count", "95 % interval", "estimate"):
        table.add_column(name, justify="left" if name == "query" else "right", no_wrap=name != "query")
    searches = graph.searches
    for i in range(min(20, len(graph.queries))):
        interval = f"{max(searches.low[i], 0):,.0f} – {searches.high[i]:,.0f}"
        table.add_row(graph.queries[i], f"{searches.count[i]:,}", interval, f"{searches.estimate[i]:,.0f}")
    output.print(table)
    guarantee = statement["guarantee"]
    say(f"{len(graph.clicks):,} clicks on URLs, {len(graph.reformulations):,} reformulations")
    say(
        f"ε = {guarantee['epsilon']:g}, δ = {guarantee['delta']:g} for each user and everything together; "
        f"guarantee {'holds' if guarantee['holds'] else 'does NOT hold'}"
    )
    say(f"files: {folder}/ (before publishing: searchblend release review {folder})")


def _verify(options: argparse.Namespace) -> None:
    with step_progress() as on_step:
        checks = verify_release(options.folder, on_step=on_step)
    failed = [check for check in checks if not check.holds]
    if options.json:
        _print_json(
            {
                "verified": not failed,
                "checks": [check.as_json() for check in checks],
                "cannot_prove": list(CANNOT_PROVE),
            }
        )
    else:
        table = new_table(f"{options.folder}")
        for name in ("", "check", "what was found"):
            table.add_column(name)
        for check in checks:
            table.add_row("ok" if check.holds else "FAILED", check.name, check.detail)
        output.print(table)
        say("What nobody can check from the folder:")
        for what in CANNOT_PROVE:
            say(f"  - {what}")
    if failed:
        raise RunError(f"{options.folder}: {len(failed)} of {len(checks)} checks failed: {failed[0].name}")


def _review(options: argparse.Namespace) -> None:
    with step_progress() as on_step:
        graph = read_click_graph(options.folder, on_step=on_step)
        on_step("reviewing")
        findings = review(
            graph,
            Suspects(_terms(options.terms)),
            has_all_clicks=read_statement(options.folder / STATEMENT)["parameters"].get("urls") == "public",
            head=options.head,
            abandoned_below=options.abandoned_below,
        )
    if options.json:
        _print_json({"findings": [finding.as_json() for finding in findings]})
        return
    if not findings:
        say("nothing that looks like somebody's own; this is a hint, no guarantee")
        return
    table = new_table(f"Look at these before publishing ({len(findings)})")
    for name in ("table", "row", "why", "text"):
        table.add_column(name, justify="right" if name == "row" else "left")
    for finding in findings:
        table.add_row(finding.table, str(finding.row), ", ".join(finding.reasons), " → ".join(finding.texts))
    output.print(table)
    explained = {suspicion.value: text for suspicion, text in EXPLAINED.items()}
    explained[ABANDONED] = "searched often and clicked hardly ever: a weakness of the search engine"
    for reason in dict.fromkeys(reason for finding in findings for reason in finding.reasons):
        say(f"  {reason}: {explained[reason]}")


def _terms(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, "expected a text file in UTF-8 with a term on each line") from error


def _print_json(document: Mapping[str, Any]) -> None:
    output.file.write(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
