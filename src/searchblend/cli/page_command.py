"""``searchblend page``: the page of a folder that ``run`` or ``release run`` wrote."""

from __future__ import annotations

import argparse
import hashlib
import json

from searchblend.cli.progress import step_progress
from searchblend.cli.tables import output, say
from searchblend.core.errors import OutputError, UsageError
from searchblend.releases.release_page import page_of_folder
from searchblend.store.whole_file import refuse_existing, whole_files


def run(options: argparse.Namespace) -> None:
    if options.output is None:
        if options.json:
            raise UsageError("--json: name the file of the page with --output")
        output.file.write(page_of_folder(options.folder))
        return
    refuse_existing(options.output, replace=options.force)
    with step_progress() as on_step:
        content = page_of_folder(options.folder, on_step=on_step).encode()
    try:
        with whole_files([options.output], replace=options.force) as (partial,):
            partial.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{options.output}: cannot be written: {error.strerror or error}") from error
    made = {"file": str(options.output), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if options.json:
        output.file.write(json.dumps(made, ensure_ascii=False, indent=2) + "\n")
    else:
        say(f"{made['file']} ({made['bytes']:,} bytes): one file that needs nothing else")
