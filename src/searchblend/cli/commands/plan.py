"""``searchblend plan``: what a run would give, before anybody is asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchblend.cli.arguments import add_budget, positive_int, share
from searchblend.cli.printing import new_table, print_json, print_line, print_table, progress_bar
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


def _show(document: Mapping[str, Any], plot: Path | None) -> None:
    print_table(_forecast_table(document))
    for name, what in (("one_more_percent_opt_in", "1 % more opt-in"), ("one_more_epsilon", "ε + 1")):
        print_line(f"{what:>16} (best): {_bought(document['methods']['best'], document['buys'][name])}")
    fractions = document["recommended"]["paper"]
    if fractions["head_fraction"]:
        print_line(
            f"Recommended: method best. For paper: --head-fraction {fractions['head_fraction']:g} "
            f"--query-budget-fraction {fractions['query_budget_fraction']:g}"
        )
    moves, colluding = document["one_report_moves"], document["colluding_optin_users"]
    if moves and colluding:
        print_line(
            f"One made-up report moves the clients' figure of an item by at most "
            f"{max(filter(None, moves.values()), default=0):.1e}; "
            f"{colluding['half_of_the_time']} opt-in users who agree force a record in half of the time, "
            f"{colluding['99_percent']} almost surely."
        )
    print_line(f"Simulated on the profile {document['profile']} ({document['runs']} runs); no private data was read.")
    if plot:
        print_line(f"plot: {plot}")


def _forecast_table(document: Mapping[str, Any]) -> Table:
    table = new_table(
        f"{document['users']:,} users, {document['optin_fraction']:.2%} opt-in, ε = {document['epsilon']:g}, "
        f"δ = {document['delta']:g}, at most {document['max_head_queries']} queries"
    )
    for name in ("expected (80 % of runs)", "best", "paper"):
        table.add_column(name, justify="left" if name.startswith("expected") else "right")
    for key, label, form in (
        ("head_queries", "queries in the list", "{:.0f}"),
        ("query_l1", "L1 of queries", "{:.4f}"),
        ("record_l1", "L1 of records", "{:.4f}"),
        ("ndcg", "NDCG", "{:.4f}"),
    ):
        table.add_row(label, *(_band(document["methods"][method][key], form) for method in ("best", "paper")))
    return table


def _band(band: Mapping[str, float] | None, form: str) -> str:
    if band is None:
        return "–"
    mean, low, high = (form.format(band[name]) for name in ("mean", "low", "high"))
    return f"{mean} ({low} – {high})"


def _bought(now: Mapping[str, Any], then: Mapping[str, float | None]) -> str:
    parts = [f"queries {now['head_queries']['mean']:.0f} → {then['head_queries']:.0f}"]
    for key, label in (("query_l1", "query L1"), ("record_l1", "record L1")):
        if now[key] and then[key]:
            parts.append(f"{label} {now[key]['mean']:.4f} → {then[key]:.4f}")
    return ", ".join(parts)
