"""``searchblend aggregate``: a round's counters from files of binary reports."""

from __future__ import annotations

import argparse
import json

from searchblend.cli.progress import run_progress
from searchblend.cli.service_options import show
from searchblend.cli.tables import messages
from searchblend.core.errors import InputError, MessageError, OutputError, UsageError
from searchblend.logs.formats.files import expand
from searchblend.logs.spark.session import SparkRunner
from searchblend.service.aggregate import Aggregate, aggregate_files
from searchblend.service.aggregate_spark import aggregate_on_spark
from searchblend.wire.head_list import decode_head_list
from searchblend.wire.report import ReportShape


def run(options: argparse.Namespace) -> None:
    if options.master and options.engine != "spark":
        raise UsageError("--master: expected with --engine spark")
    if options.output and options.output.exists():
        raise OutputError(f"{options.output}: exists; choose a new name")
    found = _aggregate(options)
    document = found.as_json()
    if options.output:
        try:
            options.output.write_text(json.dumps(document) + "\n")
        except OSError as error:
            raise OutputError(f"{options.output}: cannot be written: {error.strerror}") from error
    shown = document if options.json else {name: value for name, value in document.items() if name != "counts"}
    show(shown, as_json=options.json)


def _aggregate(options: argparse.Namespace) -> Aggregate:
    shape, paths = _shape(options), expand(options.reports)
    with run_progress() as (on_progress, on_step):
        if options.engine == "local":
            on_step("counting")
            return aggregate_files(paths, shape, on_progress=on_progress)
        on_step("counting on Spark")
        runner = SparkRunner(options.master, on_notice=messages.print)
        try:
            return aggregate_on_spark(paths, shape, runner)
        finally:
            runner.close()


def _shape(options: argparse.Namespace) -> ReportShape:
    try:
        document = json.loads(options.head_list.read_bytes())
    except OSError as error:
        raise InputError(options.head_list, f"cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise MessageError(f"{options.head_list}: not JSON") from error
    message = decode_head_list(document)
    return ReportShape.of(options.task, options.round, message.head, message.params, message.design)
