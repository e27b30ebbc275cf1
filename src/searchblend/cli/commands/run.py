"""``searchblend run``: parse, run, print."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from searchblend.cli.arguments import Suggested, add_budget, positive_int, share
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
from searchblend.cli.printing import print_json, print_line, print_table, progress_bar, run_progress, warn
from searchblend.core.errors import UsageError
from searchblend.core.params import MANY_RECORDS, BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import Randomness, SystemRandomness

if TYPE_CHECKING:
    from searchblend.blender.groups import UserGroup
    from searchblend.blender.release import BlenderRelease
    from searchblend.blender.result import Result
    from searchblend.releases.hybrid import Evaluation, HybridSettings
    from searchblend.releases.make_release import WrittenRelease

PLAYED: Final = (
    "note: this run plays the clients' devices, and you hold their rows; to publish a log, `searchblend release run` "
    "says more at the same promise"
)
_BY_COUNT: Final = "a record needs about {} opt-in users to be listed"
_BY_WEIGHT: Final = (
    "a query needs about {} opt-in users who search for nothing else, more if they search for other things too"
)
_ONE_QUERY_EACH: Final = 0.9
"""ρ = E[s²]/E[s] of a user's own share s of a query, from which on one record says as much as all"""
_DRY_RUNS: Final = 2
"""simulated runs behind what a dry run expects"""

EXAMPLES = """\
examples:
  searchblend run searches.tsv -o hybrid                      the defaults: ε = 4, δ = 1e-5, 5 % opt-in, 50 queries
  searchblend run log.csv.gz -o hybrid --columns user=AnonID,query=Query,url=ClickURL
  searchblend run searches.tsv -o hybrid --opt-in-column consent --epsilon 2 --delta 1e-6
  searchblend run 'aol/user-ct-*.gz' -o hybrid --memory 2GB   the ten files of AOL's collection
  searchblend run - -o hybrid --format jsonl                  a log by standard input, with a pipe in front
  searchblend run searches.tsv --dry-run                      what it would promise; reads nothing
  searchblend run searches.tsv --evaluate --json              compare with the truth (NOT PRIVATE)
"""


_UNITS_OF_TRUTH = 10_000
"""of one user's shares, in an evaluation"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_log(parser)
    add_unit(parser)
    add_output(parser, needed="needed but for --dry-run and --evaluate")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--opt-in", type=share, default=0.05, metavar="SHARE", help="random share that opts in (0.05)")
    group.add_argument("--opt-in-column", metavar="NAME", help="a column with 1/true/yes for opt-in users")
    add_budget(parser)
    parser.add_argument("--max-queries", type=int, default=50, metavar="M", help="queries in the head list (50)")
    parser.add_argument(
        "--head-fraction",
        type=float,
        default=0.95,
        metavar="F",
        help="opt-in users that make the list, in method paper (0.95)",
    )
    parser.add_argument(
        "--query-budget-fraction", type=float, default=0.85, metavar="F", help="share of a client's ε for the query"
    )
    parser.add_argument("--records-per-client", type=int, default=1, metavar="N", help="cells per report (1)")
    parser.add_argument(
        "--records-per-optin",
        type=positive_int,
        metavar="N",
        help=f"records of an opt-in user that count ({MANY_RECORDS}; 1 if δ is too small for more and in method paper)",
    )
    parser.add_argument("--allow-large-delta", action="store_true", help="accept δ ≥ 1/users")
    parser.add_argument(
        "--method",
        choices=Suggested(("best", "paper")),
        default="best",
        metavar="NAME",
        help="best, paper (the algorithm as printed), a method that an installed package offers, or "
        "package.module:object (best)",
    )
    parser.add_argument("--vouched-by", metavar="NAME", help="who vouches for the promise of a method from outside")
    parser.add_argument("--wide-list", action="store_true", help="list queries without a listed URL too (method best)")
    parser.add_argument("--explain", action="store_true", help="say which mechanisms were chosen and why")
    parser.add_argument("--no-project", action="store_true", help="leave out the projection onto the simplex")
    add_release_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be promised; read nothing")
    parser.add_argument(
        "--users", type=positive_int, metavar="N", help="with --dry-run: users to expect (519371, of the AOL log)"
    )
    parser.add_argument("--evaluate", action="store_true", help="compare with the truth; every output is NOT PRIVATE")
    parser.add_argument("--seed", type=int, help="repeatable noise, only with --evaluate")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON document")


def run(options: argparse.Namespace) -> None:
    from searchblend.releases.hybrid import HybridSettings, method_at
    from searchblend.releases.make_release import now

    if options.seed is not None and not options.evaluate:
        raise UsageError("--seed: only with --evaluate; a release draws its noise from the operating system")
    if options.users is not None and not options.dry_run:
        raise UsageError("--users: only with --dry-run; a run counts the users of its log")
    if options.ledger is not None and options.evaluate and not options.dry_run:
        raise UsageError("--ledger: not with --evaluate, which is not a release")
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
    ledger = ledger_entry(options)
    if options.dry_run:
        show_dry_run(params, options)
        return
    if not options.evaluate:
        require_output(options, instead="--dry-run")
    if not options.json:  # whose document has it as the clients' trust
        warn(PLAYED, "dim")
    settings = HybridSettings(
        log=read_options(options, optin_column=options.opt_in_column),
        params=params,
        optin_fraction=None if options.opt_in_column else options.opt_in,
        method=method_at(options.method),
        vouched_by=options.vouched_by,
        project=not options.no_project,
        wide_list=options.wide_list,
        output=options.output,
        html=options.html,
        replace=options.force,
        ledger=ledger,
        allow_large_delta=options.allow_large_delta,
        created=now(),
    )
    randomness = SystemRandomness() if options.seed is None else _seeded(options.seed)
    cost = None if options.evaluate else settings.cost
    with releasing(options, settings.log, cost, created=settings.created) as (reading, write_summary):
        result = run_and_warn(replace(settings, log=reading), randomness, evaluate=options.evaluate)
        write_summary(result.input_summary)
    show_result(result.released, settings, as_json=options.json, explain=options.explain)


def _seeded(seed: int) -> Randomness:
    from searchblend.synthetic.seeded import SeededRandomness

    return SeededRandomness(seed)


def run_and_warn(settings: HybridSettings, randomness: Randomness, *, evaluate: bool) -> WrittenRelease[Result]:
    """Run with progress on stderr, then say what the person should know about the input."""
    from searchblend.releases.hybrid import run_hybrid

    with run_progress() as (on_progress, on_step):
        result = run_hybrid(
            settings,
            evaluate=compare_with_truth if evaluate else None,
            randomness=randomness,
            on_progress=on_progress,
            on_notice=lambda text: warn(text, "dim"),
            on_step=on_step,
        )
    warn_about_input(result, settings.output, html=settings.html)
    return result


def compare_with_truth(release: BlenderRelease, optin_users: UserGroup, clients: UserGroup) -> Evaluation:
    """Scores against all users of both groups, with what the run counted of them."""
    from searchblend.releases.hybrid import Evaluation
    from searchblend.synthetic.metrics import Truth, score

    truth = Truth.of(release.head, sum_over(release, optin_users) + sum_over(release, clients))
    return Evaluation(asdict(score(release, truth)), truth.queries.tolist(), truth.cells.tolist())


def sum_over(release: BlenderRelease, users: UserGroup) -> Any:
    """What users hold of each cell: their own shares where all their records count, else the drawn records."""
    if release.params.counted_records_per_optin > 1:
        return users.own_shares(release.head, _UNITS_OF_TRUTH).cells
    return users.cell_counts(release.head)


def show_result(
    result: Result, settings: HybridSettings, *, as_json: bool, explain: bool = False, limit: int = 20
) -> None:
    from searchblend.cli.tables import comparison_table, explanation, group_warnings, trends_table
    from searchblend.wire.release import encode_result

    if as_json:
        print_json(encode_result(result))
        return
    if (metrics := result.metrics) is not None:
        print_table(comparison_table(result, limit))
        for line in metric_lines(metrics):
            print_line(line)
    else:
        print_table(trends_table(result, limit))
    for hint in (short_list_hint(result, settings.params), one_record_hint(result)):
        if hint:
            print_line(hint)
    for warning in group_warnings(result):
        print_line(warning, style="yellow")
    for part in explanation(result) if explain else []:
        print_table(part)
    show_promise(result)
    if settings.output:
        kind = "files with true shares, not for release" if result.notice else "files"
        print_line(f"{kind}: {settings.output}/")


def show_promise(result: Result) -> None:
    """What is promised, or, beside the truth, what would be: true shares void every promise."""
    guarantee = result.guarantee
    if result.notice:
        budget = f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g}"
        print_line(
            f"{result.notice}. Without the true shares the run promises {budget} to each person.", style="bold red"
        )
        return
    print_line(stated(guarantee, "each person of either group"))


def metric_lines(metrics: Mapping[str, Any]) -> list[str]:
    """How far the estimates are from the truth, each figure with its meaning."""
    if metrics["query_l1"] is None:
        return []
    return [
        f"L1 (all errors of the listed shares added up): queries {metrics['query_l1']:.4f}, "
        f"records {metrics['record_l1']:.4f}",
        f"NDCG (1: every query and URL is in its true order): {metrics['ndcg']:.4f}",
    ]


def short_list_hint(result: Result, params: BlenderParams) -> str | None:
    """Why a list is short, and what would make it longer; of methods from outside nothing is known."""
    optin = result.mechanism.get("optin", {})
    if result.head.queries >= params.max_head_queries or "integer_threshold" not in optin:
        return None
    needed = math.ceil(optin["integer_threshold"] / optin.get("units_per_user", 1))
    what = _BY_COUNT if result.parameters["records_per_optin"] == 1 else _BY_WEIGHT
    return (
        f"{result.head.queries} of at most {params.max_head_queries} queries: {what.format(needed)}. "
        "More users, a larger --opt-in or --epsilon, or --host-only lists more."
    )


def one_record_hint(result: Result) -> str | None:
    """What the released figures say of a log in which everyone has one query: then one record would be counted better.

    Only for the next log: what was measured of this one cost its ε.
    """
    rho = result.mechanism.get("measured", {}).get("rho")
    if rho is None or rho < _ONE_QUERY_EACH:
        return None
    return (
        f"Opt-in users have about one query each (ρ = {rho:.2f}): for another log like this, --records-per-optin 1 "
        "gives narrower intervals."
    )


def _needed(users: int, params: BlenderParams) -> str:
    if params.records_per_optin == 1:
        return f"a record needs about {users} of the opt-in users that make the list, who have one search each here"
    return f"a query needs at most about {users} opt-in users, fewer where they search few other things"


def show_dry_run(params: BlenderParams, options: argparse.Namespace) -> None:
    """What a run would promise, and what to expect of an AOL-shaped log; no file is opened."""
    from searchblend.blender.method import METHODS, method_named
    from searchblend.synthetic.count_group import RecordModel, Situation
    from searchblend.synthetic.plan import simulate
    from searchblend.synthetic.population import MEDIAN_SEARCHES, profile_named

    if options.method not in METHODS:
        raise UsageError(f"--dry-run: only with {' or '.join(METHODS)}; what another method gives only it can know")
    profile = profile_named("aol")
    users, share = options.users or profile.n_users, 0.05 if options.opt_in_column else options.opt_in
    method = method_named(options.method, wide_list=options.wide_list)
    params = method.settled(params)
    needed = method.users_to_be_listed(params)
    situation, model = Situation(users, share, params), RecordModel.of_profile(profile)
    with progress_bar() as progress:
        task = progress.add_task("simulating", total=_DRY_RUNS)
        forecast = simulate(
            model, situation, options.method, runs=_DRY_RUNS, seed=1, on_run=lambda: progress.advance(task)
        )
    listed, covered = forecast.head_queries.mean, forecast.covered.mean
    document = {
        "epsilon": params.budget.epsilon,
        "delta": params.budget.delta,
        "method": options.method,
        "users_to_be_listed": needed,
        "expected": {
            "population": "AOL profile",
            "users": users,
            "opt_in": share,
            "records_per_optin": params.records_per_optin,
            "head_queries": listed,
            "covered": covered,
        },
    }
    if options.json:
        print_json(document)
        return
    fewer = f" Users who search less than AOL's, half of whom clicked {MEDIAN_SEARCHES} results or more, list fewer."
    print_line(
        f"ε = {params.budget.epsilon:g}, δ = {params.budget.delta:g} for each person; nothing was read.\n"
        f"Method {options.method}: {_needed(needed, params)}.\n"
        f"Expected on {users:,} users with the shape of the AOL log, {100 * share:.0f} % opting in: about "
        f"{listed:.0f} head queries (at most {params.max_head_queries} asked for) with {100 * covered:.0f} % of all "
        f"searches.{fewer if params.counted_records_per_optin > 1 else ''}"
    )
