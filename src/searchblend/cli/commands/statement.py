"""``searchblend statement``: papers for a release, written from its folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from searchblend.cli.arguments import add_file_output
from searchblend.cli.printing import print_json, print_line, warn, write
from searchblend.core.errors import UsageError
from searchblend.files.durable import refuse_existing, write_new
from searchblend.releases.publication import ASKED, PURPOSES, Publication, open_fields

EXAMPLES = """\
examples:
  searchblend statement release --for nist                     NIST SP 800-226: its questions, answered; printed
  searchblend statement release --for registry -o entry.yaml   an entry of the registry of DP deployments, tier 3
  searchblend statement release --for dpia -o dpia.md --publisher 'Example Search' --purpose research
  searchblend statement release --for readme -o README.md --contact data@example.org --licence CC-BY-4.0
  searchblend statement release --for dataset -o dataset.json --doi 10.5281/zenodo.1234567
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `run`, `release run`, `select` or `save` wrote")
    parser.add_argument("--for", dest="paper", choices=PURPOSES, required=True, help="which paper to write")
    add_file_output(parser, "where it goes (standard output)")
    parser.add_argument("--json", action="store_true", help="print file, bytes and open fields as JSON; needs -o")
    given = parser.add_argument_group("what only you know; left out, it is an open field")
    for name, meaning in ASKED.items():
        given.add_argument(f"--{name}", metavar="TEXT", help=meaning)


def run(options: argparse.Namespace) -> None:
    from searchblend.releases.paperwork import paperwork_of_folder

    if options.json and options.output is None:
        raise UsageError("--json: name the file of the paper with --output")
    if options.output is not None:
        _refuse_inside(options.output, options.folder)
        refuse_existing(options.output, replace=options.force)
    given = Publication(**{name: getattr(options, name) for name in ASKED})
    document = paperwork_of_folder(options.folder, options.paper, given)
    if options.output is None:
        write(document)
    else:
        write_new(options.output, document.encode(), replace=options.force)
    if left := open_fields(document):
        warn(f"{left} open field{'s' * (left > 1)}, marked TO BE FILLED IN: only you can know them")
    if options.json:
        print_json({"file": str(options.output), "bytes": len(document.encode()), "open_fields": left})
    elif options.output is not None:
        print_line(f"{options.output}: for {options.paper}, from the files of {options.folder}")


def _refuse_inside(output: Path, folder: Path) -> None:
    """The statement lists every file of the folder; one more and the release could not be verified."""
    if output.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"--output: {output} is inside the release, whose statement lists all of its files")
