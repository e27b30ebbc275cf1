"""``searchblend plan``: what a run would give, before any user is asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import add_budget, positive_int, share
from searchblend.cli.printing import new_table, print_json, print_line, print_table, progress_bar
from searchblend.core.documents import JsonObject
from searchblend.core.errors import MessageError, UsageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget

if TYPE_CHECKING:
    from rich.table import Table

    from searchblend.blender.result import Result
    from searchblend.synthetic.count_group import RecordModel
    from searchblend.synthetic.plan import Situation

EXAMPLES = """\
examples:
  searchblend plan                                              the AOL profile with the defaults
  searchblend plan --users 2000000 --opt-in 0.01 --epsilon 2 --delta 1e-7
  searchblend plan --profile yandex --max-queries 500 --plot plan.png
  searchblend plan --profile out/result.json --epsilon 1        like an earlier release, with another budget
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="aol", metavar="PROFILE", help="aol, yandex, or an earlier result.json")
    parser.add_argument("--users", type=positive_int, metavar="N", help="people in both groups (the profile's)")
    parser.add_argument("--opt-in", type=share, metavar="SHARE", help="share that opts in (the profile's)")
    add_budget(parser)
    parser.add_argument("--max-queries", type=positive_int, metavar="M", help="queries in the list (the profile's)")
    parser.add_argument("--runs", type=positive_int, default=8, metavar="N", help="simulated runs per figure (8)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the forecast over ε, .png or .svg")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")


EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


def run(options: argparse.Namespace) -> None:
    from searchblend.synthetic.plan import plan_document, runs_needed

    if options.plot:
        from searchblend.synthetic.plan_plots import check_suffix

        check_suffix(options.plot)
    model, situation = _situation(options)
    drawn = 2 * len(EPSILONS) * options.runs if options.plot else 0
    with progress_bar() as progress:
        task = progress.add_task("simulating", total=runs_needed(options.runs) + drawn)

        def advance() -> None:
            progress.advance(task)

        document = plan_document(model, situation, profile=options.profile, runs=options.runs, on_run=advance)
        if options.plot:
            _draw(model, situation, options, advance)
    if options.json:
        print_json(document)
    else:
        _show(document, options.plot)


def _situation(options: argparse.Namespace) -> tuple[RecordModel, Situation]:
    from searchblend.synthetic.count_group import RecordModel
    from searchblend.synthetic.plan import Situation, model_of_result
    from searchblend.synthetic.population import PROFILES, profile_named

    budget = Budget(options.epsilon, options.delta)
    if options.profile in PROFILES:
        profile = profile_named(options.profile)
        model, users, share, size = RecordModel.of_profile(profile), profile.n_users, profile.optin_fraction, 50
        size = profile.max_head_queries
    else:
        result = _read_result(Path(options.profile))
        model, users = model_of_result(result), result.groups.optin_users + result.groups.clients
        share, size = result.groups.optin_users / max(users, 1), 50
    users, share = options.users or users, options.opt_in or share
    if users * share < 2 or users * (1 - share) < 2:
        raise UsageError("--users, --opt-in: at least 2 people are needed in each group")
    return model, Situation(users, share, BlenderParams(budget, max_head_queries=options.max_queries or size))


def _read_result(path: Path) -> Result:
    from searchblend.wire.release import decode_result

    try:
        return decode_result(path.read_bytes())
    except OSError as error:
        raise UsageError(f"--profile: expected aol, yandex or a result.json, cannot read {path}") from error
    except MessageError as error:
        raise UsageError(f"--profile: {path}: expected a result.json of searchblend run ({error})") from error


def _draw(model: RecordModel, situation: Situation, options: argparse.Namespace, advance: Callable[[], None]) -> None:
    from searchblend.synthetic.plan import curve
    from searchblend.synthetic.plan_plots import plan_figure, save

    curves = curve(model, situation, EPSILONS, runs=options.runs, seed=2, on_run=advance)
    title = (
        f"{situation.users:,} users, {situation.optin_fraction:.1%} opt-in, δ = {options.delta:g} ({options.profile})"
    )
    save(plan_figure(EPSILONS, curves, title), options.plot)


def _show(document: JsonObject, plot: Path | None) -> None:
    print_table(_forecast_table(document))
    for name, what in (("one_more_percent_opt_in", "1 % more opt-in"), ("one_more_epsilon", "ε + 1")):
        print_line(f"{what:>16} (best): {_bought(document['buys'][name], document['runs'])}")
    fractions = document["recommended"]["paper"]
    options = " ".join(f"--{name.replace('_', '-')} {value:g}" for name, value in fractions.items())
    print_line(
        f"Recommended: method best. For paper: {options or 'the default fractions; no other was shown to be better'}"
    )
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
    if plot:
        print_line(f"plot: {plot}")


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
        ("error", "error over the most frequent queries", "{:.4f}", 1),
    ):
        table.add_row(label, *(_band(method[key], form, unit) for method in methods))
    for place, rank in enumerate(methods[0]["ranks"]):
        label = f"± of the query of rank {rank['rank']} ({100 * rank['share']:.2g} %)"
        table.add_row(label, *(_at_rank(method["ranks"][place]) for method in methods))
    table.caption = (
        "± is half of the 95 % interval. The error is L1 over the truly most frequent queries and their records; what "
        "is not listed counts as estimated 0, so that a short list is not rewarded."
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
        "error": ("error", "{:.4f}", 1),
    }
    parts = [
        f"{label} {form.format(unit * changes[name]['before'])} → {form.format(unit * changes[name]['after'])}"
        for name, (label, form, unit) in words.items()
        if changes[name]["shown"]
    ]
    return ", ".join(parts) or f"no difference that {runs} runs can show"
