"""``searchblend aggregate``: a round's counters from files of binary reports."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from searchblend.cli.arguments import positive_int, task_id
from searchblend.cli.printing import messages, run_progress
from searchblend.cli.service_options import print_document
from searchblend.core.errors import InputError, MessageError, OutputError, UsageError
from searchblend.files.durable import write_new

if TYPE_CHECKING:
    from searchblend.service.aggregate import Aggregate
    from searchblend.wire.report import ReportShape

EXAMPLES = """\
examples:
  searchblend aggregate 'r/*.bin' --head-list list.json --task 0123456789abcdef0123456789abcdef --round 4 -o counts.json
  searchblend aggregate /in --head-list list.json --task 0123456789abcdef0123456789abcdef --round 4 --engine spark
  searchblend round load-counts searches 4 counts.json         hand the counts to the round, in its grace
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reports", metavar="FILES", help="a file, glob or directory of binary reports")
    parser.add_argument("--head-list", type=Path, required=True, metavar="FILE", help="the round's head-list message")
    parser.add_argument("--task", type=task_id, required=True, metavar="ID", help="32 hexadecimal digits")
    parser.add_argument("--round", type=positive_int, required=True, metavar="N", help="the round's number")
    parser.add_argument(
        "--engine",
        choices=["local", "spark"],
        default="local",
        help="local: on this machine; spark: on a cluster (local)",
    )
    parser.add_argument("--master", metavar="URL", help="the Spark master, with --engine spark")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the counts as JSON")
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON document")


def run(options: argparse.Namespace) -> None:
    import json

    if options.master and options.engine != "spark":
        raise UsageError("--master: expected with --engine spark")
    if options.output and options.output.exists():
        raise OutputError(f"{options.output}: exists; choose a new name")
    aggregate = _aggregate(options)
    document = aggregate.as_json()
    if options.output:
        write_new(options.output, (json.dumps(document) + "\n").encode())
    shown = document if options.json else {name: value for name, value in document.items() if name != "counts"}
    print_document(shown, as_json=options.json)


def _aggregate(options: argparse.Namespace) -> Aggregate:
    from searchblend.logs.formats.files import expand_local
    from searchblend.logs.spark.session import SparkRunner
    from searchblend.service.aggregate import aggregate_files, aggregate_on_spark

    shape, paths = _shape(options), expand_local(options.reports)
    with run_progress() as (on_progress, on_step):
        if options.engine == "local":
            on_step("counting")
            return aggregate_files(paths, shape, on_progress=on_progress)
        on_step("counting on Spark")
        runner = SparkRunner(options.master, on_notice=messages().print)
        try:
            return aggregate_on_spark(paths, shape, runner)
        finally:
            runner.close()


def _shape(options: argparse.Namespace) -> ReportShape:
    import json

    from searchblend.wire.head_list import decode_head_list
    from searchblend.wire.report import ReportShape

    try:
        document = json.loads(options.head_list.read_bytes())
    except OSError as error:
        raise InputError(options.head_list, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise MessageError(f"{options.head_list}: not JSON") from error
    message = decode_head_list(document)
    return ReportShape.of(options.task, options.round, message.head, message.params, message.design)
