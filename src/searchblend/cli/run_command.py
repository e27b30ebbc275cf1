"""``searchblend run``: parse, run, print."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from searchblend.blender.groups import UserGroup
from searchblend.blender.release import BlenderRelease
from searchblend.cli.log_options import read_options
from searchblend.cli.progress import run_progress
from searchblend.cli.release_options import ledger_entry, summary_file
from searchblend.cli.tables import comparison_table, explanation, output, say, trends_table, warn
from searchblend.core.errors import UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.mechanisms.threshold import printed_threshold
from searchblend.pages.layout import PAGE
from searchblend.releases.hybrid import Evaluation, HybridResult, HybridSettings, LedgerEntry, run_hybrid
from searchblend.synthetic.expected_list import expected_head_queries
from searchblend.synthetic.metrics import Truth, score
from searchblend.synthetic.population import AOL_USERS
from searchblend.synthetic.seeded import SeededRandomness


def run(options: argparse.Namespace) -> None:
    if options.seed is not None and not options.evaluate:
        raise UsageError("--seed: only with --evaluate; a release draws its noise from the operating system")
    if options.html and options.output is None:
        raise UsageError("--html: the page goes into the folder of the release; name it with --output")
    params = BlenderParams(
        budget=Budget(options.epsilon, options.delta),
        max_head_queries=options.max_queries,
        head_fraction=options.head_fraction,
        query_budget_fraction=options.query_budget_fraction,
        records_per_client=options.records_per_client,
        records_per_optin=options.records_per_optin,
    )
    if options.dry_run:
        show_dry_run(params, options)
        return
    settings = HybridSettings(
        log=read_options(options, optin_column=options.opt_in_column),
        params=params,
        optin_fraction=None if options.opt_in_column else options.opt_in,
        method=options.method,
        project=not options.no_project,
        wide_list=options.wide_list,
        output=options.output,
        html=options.html,
        replace=options.force,
        ledger=_ledger_entry(options),
        created=now(),
    )
    randomness = SystemRandomness() if options.seed is None else SeededRandomness(options.seed)
    with summary_file(options.summary, options.output, replace=options.force) as write_summary:
        result = run_and_warn(settings, randomness, evaluate=options.evaluate)
        write_summary(result.input_summary)
    show_result(result, settings, as_json=options.json, explain=options.explain)


def _ledger_entry(options: argparse.Namespace) -> LedgerEntry | None:
    if options.ledger is not None and options.evaluate:
        raise UsageError("--ledger: not with --evaluate, which is not a release")
    return ledger_entry(options, population="--population")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def run_and_warn(settings: HybridSettings, randomness: Randomness, *, evaluate: bool) -> HybridResult:
    """Run with progress on stderr, then say what the person should know about the input and the budget."""
    with run_progress() as (on_progress, on_step):
        result = run_hybrid(
            settings,
            evaluate=compare_with_truth if evaluate else None,
            randomness=randomness,
            on_progress=on_progress,
            on_notice=lambda text: warn(text, "dim"),
            on_step=on_step,
        )
    delta = settings.params.budget.delta
    if delta >= 1 / result.n_users:
        warn(
            f"warning: δ = {delta:g} is not below 1/users = {1 / result.n_users:.2g}: at such a δ a mechanism may "
            "expose somebody outright; choose a smaller --delta"
        )
    if result.input_summary is None:
        warn("this release id was published before: the same files again, nothing was spent")
        warn_without_page(settings.output, html=settings.html)
        return result
    for line in malformed_warnings(result.input_summary):
        warn(line, "bold yellow")
    return result


def warn_without_page(folder: Path | None, *, html: bool) -> None:
    """A release that was published without a page stays without one: its files are what they were."""
    if html and folder is not None and not (folder / PAGE).exists():
        warn(f"it was published without a page; make one beside it: searchblend page {folder} -o FILE")


def compare_with_truth(release: BlenderRelease, optin_users: UserGroup, clients: UserGroup) -> Evaluation:
    """Scores against all users of both groups, with the very records that the run drew."""
    truth = Truth.of(release.head, optin_users.cell_counts(release.head) + clients.cell_counts(release.head))
    return Evaluation(asdict(score(release, truth)), truth.queries.tolist(), truth.cells.tolist())


def malformed_warnings(summary: Any) -> list[str]:
    """One line per reason, with the first places; nothing of what stood there."""
    malformed, lines = summary["malformed"], max(summary["lines"], 1)
    total = sum(entry["count"] for entry in malformed.values())
    if not total:
        return []
    loud = "WARNING: more than 1 % of the lines are malformed: " if total > lines / 100 else "warning: "
    return [f"{loud}{total:,} of {lines:,} lines were left out"] + [
        f"  {reason}: {entry['count']:,} (first: {', '.join(entry['first'])})" for reason, entry in malformed.items()
    ]


def show_result(
    result: HybridResult, settings: HybridSettings, *, as_json: bool, explain: bool = False, limit: int = 20
) -> None:
    document = result.document
    if as_json:
        output.file.write(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        return
    if "metrics" in document:
        output.print(comparison_table(document, limit))
        metrics = document["metrics"]
        say(f"L1: queries {metrics['query_l1']:.4f}, records {metrics['record_l1']:.4f}; NDCG {metrics['ndcg']:.4f}")
    else:
        output.print(trends_table(document, limit))
    check = document.get("group_check")
    if check and not check["agrees"]:
        say(
            f"Opt-in users and clients differ (p = {check['p_value']:.1g}, divergence {check['divergence']:.2f}): "
            "the opt-in counts were given less weight",
            style="yellow",
        )
    for part in explanation(document) if explain else []:
        output.print(part)
    guarantee = document["guarantee"]
    say(
        f"ε = {guarantee['epsilon']:g}, δ = {guarantee['delta']:g} for each person of either group; "
        f"guarantee {'holds' if guarantee['holds'] else 'does NOT hold'}"
    )
    if "notice" in document:
        say(document["notice"], style="bold red")
    if settings.output:
        say(f"files: {settings.output}/")


def show_dry_run(params: BlenderParams, options: argparse.Namespace) -> None:
    """What a run would promise, and what to expect of an AOL-shaped log; no file is opened."""
    threshold = printed_threshold(params.budget)
    share = 0.05 if options.opt_in_column else options.opt_in
    n_head_users = round(AOL_USERS * share * params.head_fraction)
    expected = expected_head_queries(n_head_users, threshold, params.max_head_queries)
    document = {
        "epsilon": params.budget.epsilon,
        "delta": params.budget.delta,
        "threshold": threshold.printed,
        "integer_threshold": threshold.integer,
        "selection_delta": threshold.single_person_rate,
        "expected": {"population": "AOL profile", "users": AOL_USERS, "opt_in": share, "head_queries": expected},
    }
    if options.json:
        output.file.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
        return
    say(
        f"ε = {params.budget.epsilon:g}, δ = {params.budget.delta:g} for each person; nothing was read.\n"
        f"A record needs about {threshold.integer} of the opt-in users that make the list "
        f"(τ = {threshold.printed:.4g}; a record of one person alone passes with probability "
        f"{threshold.single_person_rate:.2g}).\n"
        f"Expected on {AOL_USERS:,} people with the shape of the AOL log, {share:.0%} opting in: "
        f"about {expected:.0f} head queries (at most {params.max_head_queries} asked for)."
    )
