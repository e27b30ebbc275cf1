"""``searchblend serve``: run the collection service, or play a whole round on it."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from searchblend.accounting.totals import BudgetCap
from searchblend.cli.arguments import add_old_spelling, positive_int
from searchblend.cli.printing import messages, new_table, print_line, print_table, progress_bar, warn
from searchblend.cli.service_options import add_passphrase, add_place, print_addresses, print_document, serve_settings
from searchblend.core.documents import encode
from searchblend.core.errors import RunError, UsageError
from searchblend.core.privacy import Budget
from searchblend.files.durable import make_private_folder
from searchblend.service.clock import SystemClock
from searchblend.service.process import SignalStop
from searchblend.service.settings import ServeSettings

if TYPE_CHECKING:
    from searchblend.core.records import Record
    from searchblend.service.console.planner_page import Forecast, PlannerQuestion
    from searchblend.service.demo import OnProgress, PlayedRound, Population, Staff
    from searchblend.synthetic.plan import RankForecast

EXAMPLES = """\
examples:
  searchblend serve --demo                    a server, 20,000 synthetic devices and a whole round; then it stays up
  searchblend serve --demo --by-hand          the same devices, but you run the rounds in the console
  searchblend serve --demo --once --json      the same, ends after the round and prints the trends
  searchblend serve --data-dir /var/lib/searchblend
  searchblend serve --role collector --database postgresql://db.internal/searchblend --port 8471
  searchblend serve --role curator --database postgresql://db.internal/searchblend --key-dir /run/searchblend-keys
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role",
        metavar="ROLE",
        help="part of the service: all, collector, intake, gateway, curator, publisher or admin (all)",
    )
    add_place(parser)
    parser.add_argument("--key-dir", metavar="DIR", help="the rounds' private keys, for the curator")
    parser.add_argument("--signing-dir", metavar="DIR", help="the manifests' signing keys, for the publisher")
    add_passphrase(parser)
    parser.add_argument("--gateway-dir", metavar="DIR", help="the keys of requests that come through a relay")
    parser.add_argument("--gateway-key-days", metavar="N", help="days for which such a key is preferred (30)")
    parser.add_argument("--curator-key", metavar="HEX", help="the curator's public key, for the publisher")
    parser.add_argument("--spare-key", metavar="HEX", help="a public signing key kept off line, for enrolments")
    parser.add_argument("--public-address", metavar="URL", help="where devices reach the service, for enrolments")
    parser.add_argument("--relay", metavar="URL", help="the relay that devices ask instead, for enrolments")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML; flags and environment go first")
    parser.add_argument("--host", metavar="HOST", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", metavar="PORT", help="port to listen on; 0 for any that is free (8470)")
    parser.add_argument("--health-host", metavar="HOST", help="where health and metrics are answered (127.0.0.1)")
    parser.add_argument("--health-port", metavar="PORT", help="port of health and metrics (1000 more than --port)")
    parser.add_argument(
        "--tls-certificate", metavar="FILE", help="certificate chain in PEM; without it put a proxy in front"
    )
    parser.add_argument("--tls-key", metavar="FILE", help="its private key in PEM")
    parser.add_argument(
        "--reports-per-second", metavar="N", help="reports taken a second; more are answered 429; 0 for no limit (0)"
    )
    parser.add_argument(
        "--connections", metavar="N", help="connections open at once; one more ends the longest silent one (4000)"
    )
    parser.add_argument("--database-seconds", metavar="S", help="seconds for the database to answer a request (15)")
    parser.add_argument("--peer-seconds", metavar="S", help="seconds for a peer to send, to go on, or to read (30)")
    parser.add_argument(
        "--stop-seconds", metavar="S", help="seconds to end after SIGTERM, whatever the database does (30)"
    )
    parser.add_argument("--queue", metavar="N", help="reports that may wait for a commit; beyond it 503 (20000)")
    parser.add_argument("--manifest-seconds", metavar="S", help="how long caches may keep a manifest (60)")
    parser.add_argument("--poll-seconds", metavar="S", help="how often workers look for work (1)")
    parser.add_argument(
        "--console-address", metavar="URL", help="where people reach the console, for sign-in elsewhere"
    )
    parser.add_argument("--oidc-issuer", metavar="URL", help="issuer at which people may sign in to the console")
    parser.add_argument("--oidc-client", metavar="ID", help="the console's id at the issuer")
    parser.add_argument("--oidc-secret-file", metavar="FILE", help="the client's secret; without it a public client")
    parser.add_argument(
        "--oidc-roles", metavar="VALUE=ROLE,…", help="values of the claim, and the role that each gives; the first wins"
    )
    parser.add_argument("--oidc-claim", metavar="NAME", help="the claim that gives roles (groups)")
    parser.add_argument("--oidc-name", metavar="NAME", help="the claim that names people (preferred_username)")
    parser.add_argument("--oidc-scope", metavar="SCOPES", help="what the issuer is asked for (openid profile)")
    parser.add_argument("--alert-webhook", metavar="URL", help="where alerts are posted")
    parser.add_argument("--alert-secret-file", metavar="FILE", help="a secret that signs these posts")
    parser.add_argument("--alert-mail", metavar="ADDRESSES", help="who gets alerts by e-mail")
    parser.add_argument("--alert-mail-from", metavar="ADDRESS", help="their sender (searchblend@localhost)")
    parser.add_argument("--smtp-server", metavar="HOST:PORT", help="mail server for alerts")
    parser.add_argument("--smtp-user", metavar="NAME", help="the account at the mail server")
    parser.add_argument("--smtp-password-file", metavar="FILE", help="its password")
    parser.add_argument("--publisher", metavar="NAME", help="who publishes, for the public page")
    parser.add_argument("--contact", metavar="ADDRESS", help="e-mail or web address, for the public page")
    parser.add_argument("--licence", metavar="TERMS", help="terms of use, a name or a web address, for the public page")
    parser.add_argument("--demo", action="store_true", help="play a whole round with a synthetic population")
    parser.add_argument("--once", action="store_true", help="with --demo: end after the round")
    parser.add_argument(
        "--by-hand", action="store_true", help="with --demo: devices take part, and you run the rounds in the console"
    )
    parser.add_argument(
        "--users", type=positive_int, default=20_000, metavar="N", help="with --demo: users with a device (20000)"
    )
    add_old_spelling(parser, "--people", "--users")
    parser.add_argument("--method", choices=["best", "paper"], default="best", help="with --demo: how to estimate")
    parser.add_argument("--demo-server", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--end-with-input", action="store_true", help=argparse.SUPPRESS)


_OPTIN_SHARE = 0.25
_START_SECONDS = 30.0
_PLANNER_RUNS = 3
_PLANNER_SEED = 2


def run(options: argparse.Namespace) -> None:
    from searchblend.service.serve import serve

    if (options.once or options.json) and not options.demo:
        raise UsageError("--once and --json: expected with --demo")
    if options.by_hand and (not options.demo or options.once or options.json):
        raise UsageError("--by-hand: expected with --demo, and without --once and --json")
    if options.demo:
        _demo(options)
        return
    settings = serve_settings(options)
    if options.end_with_input:
        threading.Thread(target=_end_with_input, name="parent", daemon=True).start()
    if settings.role == "all":
        warn("role all: one process holds every key; separation of duties is off. See docs/how-to/run-in-production.md")
    serve(
        settings,
        anonymous_intake=options.demo_server,
        on_ready=print_addresses,
        planner=forecast,
    )


def forecast(question: PlannerQuestion, epsilons: Sequence[float]) -> Forecast:
    """The console's planner, which the service itself does not know: the simulations of ``searchblend plan``.

    Both methods over ε on synthetic users: figures with the middle 80 % of runs.
    """
    from searchblend.core.params import BlenderParams
    from searchblend.synthetic.count_group import RecordModel, Situation
    from searchblend.synthetic.plan import curve
    from searchblend.synthetic.population import profile_named

    model = RecordModel.of_profile(profile_named("aol"))
    params = BlenderParams(
        Budget(question.epsilon, question.delta),
        max_head_queries=question.max_head_queries,
        records_per_optin=question.simulated_records,
    )
    situation = Situation(question.users, question.optin_percent / 100, params)
    curves = curve(model, situation, epsilons, runs=_PLANNER_RUNS, seed=_PLANNER_SEED, on_run=lambda: None)
    return {
        "curves": {
            method: {
                name: [asdict(band) if (band := getattr(point, name)) else None for point in forecasts]
                for name in ("head_queries", "covered")
            }
            | {f"within_{rank}": [_exactness(point.ranks, rank) for point in forecasts] for rank in (1, 10)}
            for method, forecasts in curves.items()
        }
    }


def _exactness(ranks: Sequence[RankForecast], rank: int) -> dict[str, float] | None:
    """± of the query with a true rank as a part of its share, where most runs list it."""
    ranked = next((row for row in ranks if row.rank == rank), None)
    if ranked is None or ranked.plus_minus is None or ranked.listed < 0.5:
        return None
    return {name: half / ranked.share for name, half in asdict(ranked.plus_minus).items()}


def _end_with_input() -> None:
    """End when whoever started us ends, however: then the other end of our input is closed."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _demo(options: argparse.Namespace) -> None:
    """A server process, and beside it the people of the demo."""
    import rich.progress  # noqa: F401  # an interruption can get lost in an import: what comes later is loaded now

    from searchblend.service.demo import DemoConnections, Population

    started = time.perf_counter()
    people = _people(options.users)
    stop = _interrupts()
    with contextlib.ExitStack() as stack:
        if options.data_dir is None:
            options.data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="searchblend-demo-"))
        if options.port is None:
            options.port = "0"
        settings = serve_settings(options)
        if settings.role != "all":
            raise UsageError("--demo: expected role all")
        task, staff, pinned = _prepare(settings, options)
        address = stack.enter_context(_server(settings))
        if not options.json:
            print_line(f"server at {address}, data in {settings.data_dir}")
        n_optin = int(_OPTIN_SHARE * len(people))
        with _progress() as on_progress:
            transport = DemoConnections(address)
            stack.callback(transport.close)
            population = Population(transport, pinned, on_progress)
            if options.by_hand:
                _print_staff(address, staff)
                _by_hand(population, staff, people[:n_optin], people[n_optin:], stop)
                return
            result = population.play_round(task, staff, people[:n_optin], people[n_optin:])
        if stop.is_set():
            raise KeyboardInterrupt
        _show(result, round(time.perf_counter() - started, 1), as_json=options.json)
        if not options.once:
            _print_staff(address, staff)
            with contextlib.suppress(KeyboardInterrupt):
                while not stop.wait(3600):
                    pass


def _print_staff(address: str, staff: Staff) -> None:
    """Where to look, and as whom."""
    print_line(f"console: {address}/console")
    print_line(f"sign in as an operator: {staff.operator}")
    print_line(f"sign in as a reviewer:  {staff.reviewer}")
    print_line("End it with Ctrl-C.")


def _interrupts() -> SignalStop:
    """From here on SIGTERM is as Ctrl-C, and what was started is ended.

    An interruption that falls into a callback of Python's own (of an import, of what is collected) is lost there; that
    it came is kept here.
    """
    stop = SignalStop()

    def interrupt(*_: object) -> None:
        stop.set()
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupt)
    return stop


def _by_hand(
    population: Population, staff: Staff, optin_users: Sequence[Record], clients: Sequence[Record], stop: SignalStop
) -> None:
    """Devices take part in whatever rounds people open, until SIGINT or SIGTERM."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    population.follow(staff.operator, optin_users, clients, stop)


def _prepare(settings: ServeSettings, options: argparse.Namespace) -> tuple[str, Staff, dict[str, bytes]]:
    """A task, two tokens and a signing key, made before the server starts."""
    from searchblend.service.demo import Staff
    from searchblend.service.lifecycle import Lifecycle
    from searchblend.service.task_settings import TaskSettings
    from searchblend.service.workers.signing_keys import SigningKeys
    from searchblend.store.service_store import open_store

    make_private_folder(settings.folder)
    keys = SigningKeys.of(settings)
    keys.add_if_none()
    now, label = SystemClock().now(), f"demo {time.time_ns()}"
    with open_store(settings.where) as store:
        if store.ledger.book().cap is None:
            store.ledger.set_cap(BudgetCap(window=Budget(80.0, 1e-2)))  # ten rounds a week: enough to play with
        n_clients = options.users - int(_OPTIN_SHARE * options.users)
        wanted = TaskSettings(
            name=label,
            method=options.method,
            expected_clients=max(n_clients, 2),
            min_optin=200,
            min_clients=200,
            min_queries=1,
            records_per_optin=1,  # all that people of the demo have
        )
        task = "" if options.by_hand else Lifecycle(store, SystemClock()).add_task(wanted, actor="demo").task
        taken = {each.name for each in store.tokens.admins()}  # by an earlier demo on the same database
        operator, reviewer = (
            store.tokens.add_admin(f"{role} of {label}" if role in taken else role, role, actor="demo", now=now)
            for role in ("operator", "reviewer")
        )
    return task, Staff(operator, reviewer), {key.key_id: key.public_point for key in keys.all()}


@contextlib.contextmanager
def _server(settings: ServeSettings) -> Iterator[str]:
    """A server process of its own, which ends with us; its log goes to a file in the data directory.

    In a session of its own: Ctrl-C is for us, and ends it in order.
    """
    command = [sys.executable, "-m", "searchblend.cli", "serve", "--demo-server", "--end-with-input"]
    command += ["--data-dir", settings.data_dir]
    command += ["--port", str(settings.port), "--host", settings.host, "--poll-seconds", "0.1"]
    command += ["--manifest-seconds", "1"]
    command += ["--database", settings.database] if settings.database else []
    log = Path(settings.data_dir) / "server.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603  # ourselves
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise RunError(f"the server did not start; see {log}")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _people(n: int) -> Sequence[Record]:
    from searchblend.synthetic.population import AOL

    group = AOL.population(n, seed=time.time_ns() % 2**32)
    return [group.record(number) for number in group.drawn.tolist()]


@contextlib.contextmanager
def _progress() -> Iterator[OnProgress]:
    """A bar on a terminal, a line per step elsewhere."""
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TaskID, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with progress_bar(*columns, transient=False) as progress:
        bars: dict[str, TaskID] = {}

        def on_progress(step: str, done: int, total: int) -> None:
            if step not in bars:
                bars[step] = progress.add_task(step, total=total)
                if not messages().is_terminal:
                    messages().print(step, soft_wrap=True)
            progress.update(bars[step], completed=done, total=total)

        yield on_progress


def _show(result: PlayedRound, seconds: float, *, as_json: bool) -> None:
    from searchblend.cli.tables import percent

    if as_json:
        print_document({**encode(result), "seconds": seconds}, as_json=True)
        return
    rows = [
        (
            row.query or "⋆ (all other)",
            percent(row.probability, 3),
            f"{percent(row.low, 3)} – {percent(row.high, 3)}",
            percent(row.optin, 3),
            percent(row.client, 3),
            percent(row.influence, 3),
        )
        for row in [*result.trends[:-1][:10], *result.trends[-1:]]
    ]
    columns = ("query", "share", "95 % interval", "opt-in", "clients", "one report moves it by")
    print_table(new_table("Published trends", columns, rows, words=("query",)))
    law = result.conservation
    print_line(
        f"{result.opt_in_users:,} sealed records and {result.reports_counted:,} reports over HTTP; "
        f"{law.counted:,} counts for {law.expected:,} expected; {seconds} s in all."
    )
