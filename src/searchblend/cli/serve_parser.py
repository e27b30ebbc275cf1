"""The arguments of the collection service and of the commands that look after it."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from searchblend.cli.arguments import Commands, add_command, positive_int

SERVE_EXAMPLES = """\
examples:
  searchblend serve --demo                    a server, 20,000 made-up devices and a whole round; then it stays up
  searchblend serve --demo --by-hand          the same devices, but you run the rounds in the console
  searchblend serve --demo --once --json      the same, ends after the round and prints the trends
  searchblend serve --data-dir /var/lib/searchblend
  searchblend serve --role collector --database postgresql://db.internal/searchblend --port 8471
  searchblend serve --role curator --database postgresql://db.internal/searchblend --key-dir /run/searchblend-keys
"""
TASK_EXAMPLES = """\
examples:
  searchblend task cap --lifetime 50,1e-3 --per-window 8,1e-4
  searchblend task create searches --set epsilon=2 --set market=en-GB
  searchblend task create searches --settings task.json
  searchblend task list --json
  searchblend task enrol searches 100                  codes for opt-in users, shown once
  searchblend task ledger                              debits of all rounds, totals, what is left of the cap
  searchblend task kill searches
"""
ROUND_EXAMPLES = """\
examples:
  searchblend round draft searches
  searchblend round open searches 1                    the curator makes the key and opens it
  searchblend round show searches 1
  searchblend round close-opt-in searches 1
  searchblend round candidate searches 1 --token-file rob.token        what the reviewer looks at
  searchblend round review searches 1 --token-file rob.token --remove 4:other --remove 7/2:credentials --keep 3
  searchblend round close-clients searches 1
"""
KEYS_EXAMPLES = """\
examples:
  searchblend keys list                                ids and public points of the signing keys, and admin tokens
  searchblend keys add                                 one more signing key; from now on all of them sign
  searchblend keys remove 0123456789abcdef
  searchblend keys adopt                               after a key file was put there by hand, or the keys were lost
  searchblend keys token ann operator                  an admin token, shown once; keep it in a file of mode 600
  searchblend keys revoke ann
"""
DOCTOR_EXAMPLES = """\
examples:
  searchblend doctor                                   checks all that can be checked; exit code 1 if it finds a fault
  searchblend doctor --database postgresql://db.internal/searchblend --json
"""
DATABASE_EXAMPLES = """\
examples:
  searchblend database migrate                         make or renew the tables; take a backup first
  searchblend database migrate --database postgresql://owner@db.internal/searchblend
  searchblend database grants curator --user sb_curator | psql postgresql://owner@db.internal/searchblend
"""
BACKUP_EXAMPLES = """\
examples:
  searchblend backup write backup.db                   while the service runs; raw opt-in records are left out
  searchblend backup restore backup.db --data-dir new
  searchblend backup restore backup.db --database postgresql://db.internal/new
"""
AUDIT_EXAMPLES = """\
examples:
  searchblend audit-log verify                         the chain of hashes, from the first row to the last
  searchblend audit-log verify --head 3f5c…            a hash noted earlier must still be in the chain
  searchblend audit-log show --json > audit.json
"""
AGGREGATE_EXAMPLES = """\
examples:
  searchblend aggregate 'r/*.bin' --head-list list.json --task 0123456789abcdef0123456789abcdef --round 4 -o counts.json
  searchblend aggregate /in --head-list list.json --task 0123456789abcdef0123456789abcdef --round 4 --engine spark
  searchblend round load-counts searches 4 counts.json         hand the counts to the round, in its grace
"""
_ROUND_ACTIONS = {
    "draft": "make a round with the task's settings",
    "open": "ask the curator to open a round",
    "show": "state, sizes, refusals and the conservation law of a round",
    "close-opt-in": "end the opt-in window now",
    "candidate": "the list to review, with the filters' hits",
    "review": "approve the list without what is removed",
    "close-clients": "end the clients' window now",
    "end-grace": "take no more reports",
    "load-counts": "close a round with the counts of `searchblend aggregate`",
    "abort": "end a round without a result",
}


def add_serve(commands: Commands) -> None:
    """``serve`` and what belongs to it."""
    _add_serve(commands)
    _add_task(commands)
    _add_round(commands)
    _add_keys(commands)
    _add_aggregate(commands)
    doctor = add_command(commands, "doctor", "check a service's database, chains and keys", DOCTOR_EXAMPLES)
    _add_place(doctor)
    doctor.add_argument("--key-dir", metavar="DIR", help="the curator's keys")
    doctor.add_argument("--curator-key", metavar="HEX", help="the curator's public key, where its keys are not")
    database = add_command(commands, "database", "the tables of a service's database", DATABASE_EXAMPLES)
    actions = database.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_place(add_command(actions, "migrate", "make the tables, or bring them to this version", DATABASE_EXAMPLES))
    grants = add_command(actions, "grants", "print what a role may do in PostgreSQL, as SQL", DATABASE_EXAMPLES)
    grants.add_argument("grants_of", metavar="ROLE", help="a role of `serve`, or backup or auditor")
    grants.add_argument("--user", required=True, metavar="NAME", help="the database user that the role logs in as")
    grants.add_argument("--schema", default="public", metavar="NAME", help="where the tables are (public)")
    backup = add_command(commands, "backup", "copy a service's database, and put it back", BACKUP_EXAMPLES)
    actions = backup.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in (("write", "copy into a new file"), ("restore", "read a copy into a new database")):
        action = add_command(actions, name, what, BACKUP_EXAMPLES)
        action.add_argument("file", type=Path, metavar="FILE", help="the backup")
        _add_place(action)
    audit = add_command(commands, "audit-log", "who did what to which round, in a chain of hashes", AUDIT_EXAMPLES)
    actions = audit.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in (("verify", "check the chain"), ("show", "the rows")):
        action = add_command(actions, name, what, AUDIT_EXAMPLES)
        _add_place(action)
        if name == "verify":
            action.add_argument("--head", metavar="HASH", help="a hash noted earlier")


def _add_serve(commands: Commands) -> None:
    parser = add_command(commands, "serve", "the collection service", SERVE_EXAMPLES)
    parser.add_argument("--role", metavar="ROLE", help="all, collector, intake, curator, publisher or admin (all)")
    _add_place(parser)
    parser.add_argument("--key-dir", metavar="DIR", help="the rounds' private keys, for the curator")
    parser.add_argument("--signing-dir", metavar="DIR", help="the manifests' signing keys, for the publisher")
    parser.add_argument("--curator-key", metavar="HEX", help="the curator's public key, for the publisher")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML; flags and environment go first")
    parser.add_argument("--host", metavar="HOST", help="where to listen (127.0.0.1)")
    parser.add_argument("--port", metavar="PORT", help="0 for any that is free (8470)")
    parser.add_argument("--health-host", metavar="HOST", help="where health and metrics are answered (127.0.0.1)")
    parser.add_argument("--health-port", metavar="PORT", help="their port (1000 more than --port)")
    parser.add_argument("--tls-certificate", metavar="FILE", help="PEM; without it put a proxy in front")
    parser.add_argument("--tls-key", metavar="FILE", help="PEM")
    parser.add_argument("--token-key", metavar="FILE", help="an issuer's public key: each report then needs a token")
    parser.add_argument("--token-issuer", metavar="NAME", help="the issuer's name in the token challenge")
    parser.add_argument("--reports-per-second", metavar="N", help="beyond it 429; 0 for no limit (0)")
    parser.add_argument("--connections", metavar="N", help="open at once; beyond it the longest silent goes (4000)")
    parser.add_argument("--database-seconds", metavar="S", help="for the database to answer a request (15)")
    parser.add_argument("--peer-seconds", metavar="S", help="for a peer to send, to go on, or to read (30)")
    parser.add_argument("--stop-seconds", metavar="S", help="to end after SIGTERM, whatever the database does (30)")
    parser.add_argument("--queue", metavar="N", help="reports that may wait for a commit; beyond it 503 (20000)")
    parser.add_argument("--manifest-seconds", metavar="S", help="how long caches may keep a manifest (60)")
    parser.add_argument("--poll-seconds", metavar="S", help="how often workers look for work (1)")
    parser.add_argument("--demo", action="store_true", help="play a whole round with a made-up population")
    parser.add_argument("--once", action="store_true", help="with --demo: end after the round")
    parser.add_argument(
        "--by-hand", action="store_true", help="with --demo: devices take part, and you run the rounds in the console"
    )
    parser.add_argument("--people", type=positive_int, default=20_000, help="with --demo: devices (20000)")
    parser.add_argument("--method", choices=["best", "paper"], default="best", help="with --demo: how to estimate")
    parser.add_argument("--demo-server", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--end-with-input", action="store_true", help=argparse.SUPPRESS)


def _add_task(commands: Commands) -> None:
    parser = add_command(commands, "task", "what is asked, of whom, and at what cost", TASK_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in (
        ("create", "make a task"),
        ("list", "all tasks"),
        ("show", "one task with its settings"),
        ("kill", "stop a task for good"),
        ("enrol", "make enrolment codes for opt-in users"),
        ("cap", "put a cap on everybody's budget"),
        ("ledger", "what was released about whom, and what it cost"),
    ):
        action = add_command(actions, name, what, TASK_EXAMPLES)
        if name not in ("list", "cap", "ledger"):
            action.add_argument("task", metavar="TASK", help="its name" if name == "create" else "its name or id")
        _add_place(action)
        if name not in ("list", "show", "ledger"):
            _add_token_file(action)
        if name == "create":
            action.add_argument("--settings", type=Path, metavar="FILE", help="settings as a JSON object")
            action.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one setting")
        if name == "enrol":
            action.add_argument("count", type=positive_int, metavar="N", help="how many codes")
        if name == "cap":
            action.add_argument("--per-window", type=_epsilon_delta, metavar="E,D", help="ε and δ of each window")
            action.add_argument("--lifetime", type=_epsilon_delta, metavar="E,D", help="ε and δ of all time")


def _add_round(commands: Commands) -> None:
    parser = add_command(commands, "round", "drive one round of a task", ROUND_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in _ROUND_ACTIONS.items():
        action = add_command(actions, name, what, ROUND_EXAMPLES)
        action.add_argument("task", metavar="TASK", help="its name or id")
        if name != "draft":
            action.add_argument("round", type=positive_int, metavar="ROUND", help="its number")
        _add_place(action)
        if name != "show":
            _add_token_file(action)
        if name == "load-counts":
            action.add_argument("file", type=Path, metavar="FILE", help="what aggregate wrote")
        if name == "review":
            action.add_argument(
                "--remove", action="append", default=[], metavar="QUERY[/URL]:REASON", help="by position; repeatable"
            )
            action.add_argument(
                "--keep", action="append", default=[], metavar="QUERY[/URL]", help="a filter's hit to keep; repeatable"
            )


def _add_keys(commands: Commands) -> None:
    parser = add_command(commands, "keys", "signing keys and admin tokens", KEYS_EXAMPLES)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, what in (
        ("list", "what there is"),
        ("add", "make one more signing key"),
        ("remove", "remove a signing key"),
        ("adopt", "put the folder's signing keys on record: from now on they sign, and no others"),
        ("curator", "the curator's public key, for publishers and devices; makes it if there is none"),
        ("token", "make an admin token"),
        ("revoke", "revoke an admin token"),
    ):
        action = add_command(actions, name, what, KEYS_EXAMPLES)
        if name == "remove":
            action.add_argument("key_id", metavar="ID", help="16 hexadecimal digits")
        if name in ("token", "revoke"):
            action.add_argument("name", metavar="NAME", help="whose token")
        if name == "token":
            action.add_argument(
                "token_role",
                choices=["viewer", "operator", "reviewer", "auditor"],
                metavar="ROLE",
                help="what it may do",
            )
        _add_place(action)
        action.add_argument("--signing-dir", metavar="DIR", help="the manifests' signing keys")
        action.add_argument("--key-dir", metavar="DIR", help="the curator's keys")


def _add_aggregate(commands: Commands) -> None:
    parser = add_command(commands, "aggregate", "a round's counters from files of reports", AGGREGATE_EXAMPLES)
    parser.add_argument("reports", metavar="FILES", help="a file, glob or directory of binary reports")
    parser.add_argument("--head-list", type=Path, required=True, metavar="FILE", help="the round's head-list message")
    parser.add_argument("--task", type=_task, required=True, metavar="ID", help="32 hexadecimal digits")
    parser.add_argument("--round", type=positive_int, required=True, metavar="N", help="the round's number")
    parser.add_argument("--engine", choices=["local", "spark"], default="local", help="here, or on a cluster (local)")
    parser.add_argument("--master", metavar="URL", help="the Spark master, with --engine spark")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the counts as JSON")
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON document")


def _task(text: str) -> bytes:
    if len(text) != 32 or not all(letter in "0123456789abcdef" for letter in text):
        raise argparse.ArgumentTypeError("expected 32 hexadecimal digits")
    return bytes.fromhex(text)


def _add_token_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="an admin token: whose it is acts (your account here)"
    )


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data-dir", metavar="DIR", help="where the service keeps its files (searchblend-data)")
    parser.add_argument("--database", metavar="URL", help="postgresql://…; else a SQLite file in the data directory")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _epsilon_delta(text: str) -> tuple[float, float]:
    epsilon, comma, delta = text.partition(",")
    try:
        pair = float(epsilon), float(delta)
    except ValueError:
        pair = math.nan, math.nan
    if not comma or not (0 < pair[0] < math.inf and 0 < pair[1] < 1):
        raise argparse.ArgumentTypeError("expected ε,δ, for example 4,1e-5")
    return pair
