"""``searchblend plan``: what a run would give, before any user is asked."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import add_budget, positive_int, share
from searchblend.cli.printing import new_table, print_json, print_line, print_table, progress_bar
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, UsageError
from searchblend.core.params import MANY_RECORDS, BlenderParams
from searchblend.core.privacy import Budget

if TYPE_CHECKING:
    from rich.table import Table

    from searchblend.synthetic.plans import PlannedPeople

EXAMPLES = """\
examples:
  searchblend plan                                              the AOL profile with the defaults
  searchblend plan --users 2000000 --opt-in 0.01 --epsilon 2 --delta 1e-7
  searchblend plan --profile yandex --max-queries 500 --plot plan.png
  searchblend plan --profile hybrid/result.json --epsilon 1     like an earlier release, with another budget
  searchblend plan --users 80000 --searches 1                   a log in which everyone has one search
"""

_BUYS = {
    "one_more_percent_opt_in": "1 % more opt-in",
    "one_more_epsilon": "ε + 1",
    "one_record_per_optin": "one record per user",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="aol", metavar="PROFILE", help="aol, yandex, or an earlier result.json")
    parser.add_argument("--users", type=positive_int, metavar="N", help="people in both groups (the profile's)")
    parser.add_argument("--opt-in", type=share, metavar="SHARE", help="share that opts in (the profile's)")
    add_budget(parser)
    parser.add_argument("--max-queries", type=positive_int, metavar="M", help="queries in the list (the profile's)")
    parser.add_argument(
        "--searches", type=positive_int, metavar="N", help="searches of a person, the median; 1: all have one (9)"
    )
    parser.add_argument(
        "--records-per-optin",
        type=positive_int,
        metavar="N",
        help=f"records of an opt-in user that count ({MANY_RECORDS}; 1 if δ is too small for more)",
    )
    parser.add_argument("--runs", type=positive_int, default=8, metavar="N", help="simulated runs per figure (8)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the forecast over ε, .png or .svg")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


def run(options: argparse.Namespace) -> None:
    from searchblend.synthetic.plan import runs_needed
    from searchblend.synthetic.plans import EPSILONS, plan_run, planned_situation
    from searchblend.synthetic.population import MEDIAN_SEARCHES

    if options.plot:
        from searchblend.pages.plots import check_place

        check_place(options.plot)
    people = _people(options.profile)
    params = BlenderParams(
        Budget(options.epsilon, options.delta),
        max_head_queries=options.max_queries or people.max_head_queries,
        records_per_optin=options.records_per_optin,
    )
    searches = options.searches or MEDIAN_SEARCHES
    situation = planned_situation(people, params, options.users, options.opt_in, searches)
    drawn = 2 * len(EPSILONS) * options.runs if options.plot else 0
    with progress_bar() as progress:
        task = progress.add_task("simulating", total=runs_needed(options.runs, situation) + drawn)

        def advance() -> None:
            progress.advance(task)

        plan = plan_run(
            params,
            users=options.users,
            optin_fraction=options.opt_in,
            searches=searches,
            profile=people,
            runs=options.runs,
            on_run=advance,
        )
        if options.plot:
            plan.plot(options.plot, on_run=advance)
    if options.json:
        print_json(plan.document)
    else:
        _show(plan.document, options.plot)


def _people(profile: str) -> PlannedPeople:
    from searchblend.synthetic.plans import planned_people

    try:
        return planned_people(profile)
    except InvalidParameter as error:
        raise UsageError(f"--{error}") from error


def _show(document: JsonObject, plot: Path | None) -> None:
    print_table(_forecast_table(document))
    for name, bought in document["buys"].items():
        print_line(f"{_BUYS[name]:>19} (best): {_bought(bought, document['runs'])}")
    print_line(_recommended(document))
    if public := document["clients_in_public"]:
        print_line(
            f"A client's report tells the collector at most ε = {document['epsilon']:g}; the published files tell "
            f"at most ε = {public['epsilon']:g} at δ = {public['delta']:g}, if the other clients report honestly."
        )
    moves, colluding = document["one_report_moves"], document["colluding_optin_users"]
    if moves and colluding:
        print_line(
            f"One fabricated report moves the clients' figure of an item by at most "
            f"{max(filter(None, moves.values()), default=0):.1e}; "
            f"{colluding['half_of_the_time']} opt-in users who agree force a record in half of the time, "
            f"{colluding['99_percent']} almost surely."
        )
    print_line(f"Simulated on the profile {document['profile']} ({document['runs']} runs); no private data was read.")
    print_line(_searches(document))
    if plot:
        print_line(f"plot: {plot}")


def _recommended(document: JsonObject) -> str:
    """By queries listed, searches covered and ± at fixed ranks; nothing that the runs cannot show."""
    advice = document["recommended"]
    fractions = " ".join(f"--{name.replace('_', '-')} {value:g}" for name, value in advice["paper"].items())
    records = ""
    if advice["records_per_optin"] != document["records_per_optin"]:
        records = f" --records-per-optin {advice['records_per_optin']}"
    return (
        f"Recommended: method {advice['method']}{records}. For paper: "
        f"{fractions or 'the default fractions; no other was shown to be better'}"
    )


def _searches(document: JsonObject) -> str:
    n, taken = document["searches"], document["records_per_optin"]
    people = "Everyone has one search here" if n == 1 else f"Half of the people have at most {n} searches here"
    counted = f"up to {taken} different ones of an opt-in user count" if taken > 1 else "one of an opt-in user counts"
    simulated = f"{people}; {counted} in method best, one in paper."
    if (of_run := document["records_of_run"]) > taken:
        simulated += (
            f" So many opt-in users are simulated with one search each; a run counts up to {of_run}: it lists more."
        )
    return simulated


def _forecast_table(document: JsonObject) -> Table:
    table = new_table(
        f"{document['users']:,} users, {document['optin_fraction']:.2%} opt-in, ε = {document['epsilon']:g}, "
        f"δ = {document['delta']:g}, at most {document['max_head_queries']} queries"
    )
    for name in ("expected (80 % of runs)", "best", "paper"):
        table.add_column(name, justify="left" if name.startswith("expected") else "right")
    methods = [document["methods"][method] for method in ("best", "paper")]
    for key, label, form, unit in (
        ("head_queries", "queries listed", "{:.0f}", 1),
        ("covered", "searches they make up", "{:.1f} %", 100),
        ("plus_minus", "± at the ranks below, together", "{:.3f} %", 100),
        ("error", "error over the most frequent queries", "{:.4f}", 1),
    ):
        table.add_row(label, *(_band(method[key], form, unit) for method in methods))
    for place, rank in enumerate(methods[0]["ranks"]):
        label = f"± of the query of rank {rank['rank']} ({100 * rank['share']:.2g} %)"
        table.add_row(label, *(_at_rank(method["ranks"][place]) for method in methods))
    table.caption = (
        "± is half of the 95 % interval; together, a query that is not listed counts with its share. The error is L1 "
        "over the truly most frequent queries and their records; what is not listed counts as estimated 0, so that a "
        "short list is not rewarded."
    )
    return table


def _at_rank(rank: JsonObject) -> str:
    if rank["plus_minus"] is None:
        return "not listed"
    listed = "" if rank["listed"] == 1 else f", listed in {rank['listed']:.0%} of runs"
    return f"± {100 * rank['plus_minus']['mean']:.2g} %{listed}"


def _band(band: Mapping[str, float], form: str, unit: float) -> str:
    mean, low, high = (form.format(unit * band[name]) for name in ("mean", "low", "high"))
    return f"{mean} ({low} – {high})"


def _bought(changes: Mapping[str, Mapping[str, Any]], runs: int) -> str:
    """Only what the simulation can tell from nothing."""
    words = {
        "head_queries": ("queries", "{:.0f}", 1),
        "covered": ("covered", "{:.1f} %", 100),
        "plus_minus": ("±", "{:.3f} %", 100),
        "error": ("error", "{:.4f}", 1),
    }
    parts = [
        f"{label} {form.format(unit * changes[name]['before'])} → {form.format(unit * changes[name]['after'])}"
        for name, (label, form, unit) in words.items()
        if changes[name]["shown"]
    ]
    return ", ".join(parts) or f"no difference that {runs} runs can show"
