"""``searchblend compare``: its arguments, and what it prints. Light: the comparison is loaded when it runs."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from searchblend.cli.arguments import number, positive_int
from searchblend.cli.log_options import add_log, read_options, with_standard_input
from searchblend.cli.printing import json_text, new_table, print_line, print_table, run_progress, styled, warn, write
from searchblend.core.errors import RunError, UsageError
from searchblend.core.params import suggested_delta

if TYPE_CHECKING:
    from searchblend_lab.comparison.compare import Comparison, Settings

EXAMPLES = """\
examples:
  searchblend compare searches.tsv                                      releases at ε = 1, 2, 4 beside the 30/5 rule
  searchblend compare searches.tsv --rules threshold:30/5,threshold:50,filters:digits+e-mail -o comparison
  searchblend compare searches.tsv --rules allow-list:entities.txt,filters:personal --epsilon 2.302585 --json
  searchblend compare searches.tsv --algorithms gaussian --max-queries-per-user 2 --max-clicks-per-user 2 --runs 10
"""
ALGORITHMS = ("gaussian", "weighted_gaussian", "adaptive_gaussian", "dp_sips", "kkmn2009")
FILES = ("index.html", "published.csv", "panel.csv", "comparison.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_log(parser, memory="2500MB")
    parser.add_argument(
        "--rules",
        default="threshold:30/5",
        metavar="RULE,…",
        help="threshold:QUERY/PAIR, threshold:K, allow-list:FILE, filters:NAME+NAME of digits, e-mail, length and "
        "personal (threshold:30/5)",
    )
    parser.add_argument("--epsilon", type=_numbers, default=[1.0, 2.0, 4.0], metavar="E,…", help="of releases (1,2,4)")
    parser.add_argument("--delta", type=float, metavar="D", help="δ (1e-6, or a tenth of 1/users if that is less)")
    parser.add_argument("--users", type=positive_int, metavar="N", help="users the log stands for, as you know it")
    parser.add_argument("--allow-large-delta", action="store_true", help="accept δ ≥ 1/users")
    parser.add_argument(
        "--algorithms", type=_algorithms, default=ALGORITHMS, metavar="NAME,…", help=f"({','.join(ALGORITHMS)})"
    )
    parser.add_argument("--max-queries-per-user", type=positive_int, default=20, metavar="D", help="d (20)")
    parser.add_argument("--max-clicks-per-user", type=positive_int, default=20, metavar="D", help="d_c (20)")
    parser.add_argument("--runs", type=positive_int, default=3, metavar="N", help="runs of a release on the log (3)")
    parser.add_argument(
        "--attack-runs", type=positive_int, default=1000, metavar="N", help="runs of a release under attack (1000)"
    )
    parser.add_argument("--seed", type=positive_int, default=1, help="the same seed gives the same figures (1)")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help=f"folder for {', '.join(FILES)}; all are NOT PRIVATE"
    )
    parser.add_argument("--force", action="store_true", help="replace these files in DIR")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")


def _numbers(text: str) -> list[float]:
    values = [number(part) for part in text.split(",")]
    if not all(value > 0 for value in values) or len({f"{value:g}" for value in values}) < len(values):
        raise argparse.ArgumentTypeError("expected numbers above 0 that differ in six digits, with commas: 1,2,4")
    return values


def _algorithms(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= set(ALGORITHMS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"expected each at most once, of {', '.join(ALGORITHMS)}")
    return names


def run(options: argparse.Namespace) -> None:
    from searchblend.files.durable import refuse_existing, whole_files
    from searchblend.logs.read import open_log
    from searchblend_lab.comparison.compare import NOTICE, compare
    from searchblend_lab.comparison.show import files_of, promise

    settings = _settings(options)
    settings.designs(urls=True)  # what cannot be designed is refused before the log is read
    if options.output is not None:
        if options.output.exists() and not options.output.is_dir():
            raise UsageError(f"-o: {options.output}: exists and is not a folder")
        for name in FILES:
            refuse_existing(options.output / name, replace=options.force)
    if not options.json:
        print_line(NOTICE, style="bold red")
    with with_standard_input(read_options(options)) as reading, run_progress() as (on_progress, on_step):
        reading = replace(reading, draws=0, key=hashlib.sha256(f"compare {options.seed}".encode()).digest()[:16])
        opened = open_log(reading, on_progress=on_progress, on_notice=lambda text: warn(text, "dim"))
        with opened as log:
            comparison = compare(log.activity(), settings, urls=log.has_urls, on_step=on_step)
    document = json_text(comparison.document())
    if options.output is not None:
        files = files_of(comparison, document.encode())
        with whole_files([options.output / name for name in files], replace=options.force) as partial:
            for path, content in zip(partial, files.values(), strict=True):
                path.write_bytes(content)
    if options.json:
        write(document)
    else:
        _show(comparison, options.output)
    if not comparison.holds:
        raise RunError(promise(comparison))


def _settings(options: argparse.Namespace) -> Settings:
    from searchblend_lab.comparison.compare import Settings
    from searchblend_lab.comparison.rules import rules_of

    return Settings(
        epsilons=options.epsilon,
        delta=suggested_delta(options.users) if options.delta is None else options.delta,
        algorithms=options.algorithms,
        rules=rules_of(options.rules),
        queries_per_user=options.max_queries_per_user,
        clicks_per_user=options.max_clicks_per_user,
        population=options.users,
        allow_large_delta=options.allow_large_delta,
        runs=options.runs,
        attack_runs=options.attack_runs,
        seed=options.seed,
    )


def _show(comparison: Comparison, output: Path | None) -> None:
    from searchblend_lab.comparison.compare import NOTES
    from searchblend_lab.comparison.measures import HEADINGS
    from searchblend_lab.comparison.show import panel_columns, panel_lines, promise, published_lines

    _table("What is published of the log", HEADINGS.values(), published_lines(comparison))
    for line in comparison.rules_ahead:
        print_line(f"a rule does better: {line}")
    title = "What is told about planted people: published of each kind, and right guesses"
    _table(title, panel_columns(comparison), panel_lines(comparison))
    print_line(promise(comparison), style=None if comparison.holds else "bold red")
    print_line(NOTES[1])
    if output is not None:
        print_line(f"files: {output}/ (start with index.html)")


def _table(title: str, figures: Iterable[str], lines: Iterable[Sequence[str]]) -> None:
    from searchblend_lab.comparison.show import SUBJECT

    rows = [[styled(text, "bold red" if "▲" in text else "") for text in line] for line in lines]
    print_table(new_table(title, [SUBJECT, *figures], rows, words=(SUBJECT,)))
