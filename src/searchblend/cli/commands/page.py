"""``searchblend page``: the page of a folder that ``run`` or ``release run`` wrote."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from searchblend.cli.arguments import add_file_output
from searchblend.cli.printing import print_json, print_line, step_progress, write
from searchblend.core.errors import UsageError
from searchblend.files.durable import refuse_existing, write_new

EXAMPLES = """\
examples:
  searchblend page out                               one file for people, printed: redirect it
  searchblend page release/ -o release.html          of a click graph; nothing is spent, nothing else is read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `run` or `release run` wrote")
    add_file_output(parser, "where the page goes (standard output)")
    parser.add_argument("--json", action="store_true", help="print file, bytes and SHA-256 as JSON; needs -o")


def run(options: argparse.Namespace) -> None:
    from searchblend.releases.paperwork import page_of_folder

    if options.output is None:
        if options.json:
            raise UsageError("--json: name the file of the page with --output")
        write(page_of_folder(options.folder))
        return
    refuse_existing(options.output, replace=options.force)
    with step_progress() as on_step:
        content = page_of_folder(options.folder, on_step=on_step).encode()
    write_new(options.output, content, replace=options.force)
    page = {"file": str(options.output), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if options.json:
        print_json(page)
    else:
        print_line(f"{page['file']} ({page['bytes']:,} bytes): one file that needs nothing else")
