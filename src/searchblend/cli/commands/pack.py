"""``searchblend pack``: build, inspect, diff, apply, and a page that searches offline."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from searchblend.cli.arguments import Commands, add_actions, add_command, add_file_output, positive_int, task_id
from searchblend.cli.commands.search import add_pin, read_checked
from searchblend.cli.printing import new_table, print_json, print_line, print_table
from searchblend.cli.service_options import add_passphrase
from searchblend.core.documents import JsonObject
from searchblend.core.errors import UsageError
from searchblend.files.durable import refuse_existing, write_new
from searchblend.search.pack import NO_TASK, Pack, PackInfo

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLES = """\
examples:
  searchblend pack build hybrid -o answers.sbpack                from the folder of `searchblend run log.tsv -o hybrid`
  searchblend pack build out -o answers.sbpack --key signing.pem
  searchblend pack inspect answers.sbpack
  searchblend pack diff old.sbpack new.sbpack -o update.sbdelta
  searchblend pack apply old.sbpack update.sbdelta -o new.sbpack
  searchblend pack page answers.sbpack -o search.html            one page that searches offline
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    _add_build(actions)
    inspect = add_command(actions, "inspect", "check all of a pack or a delta, and say what is in it", EXAMPLES)
    inspect.add_argument("pack", type=Path, metavar="FILE", help="a pack, plain or signed, or a delta")
    add_pin(inspect)
    diff = add_command(actions, "diff", "the delta that leads from one pack to a later one", EXAMPLES)
    diff.add_argument("base", type=Path, metavar="A", help="the pack that a device has")
    diff.add_argument("pack", type=Path, metavar="B", help="the pack that it should get")
    add_file_output(diff, "where the delta goes", required=True)
    apply = add_command(actions, "apply", "the pack that a delta leads to", EXAMPLES)
    apply.add_argument("base", type=Path, metavar="A", help="the pack that the delta starts from")
    apply.add_argument("delta", type=Path, metavar="DELTA", help="a delta of `pack diff` or of a service")
    add_file_output(apply, "where the pack goes", required=True)
    page = add_command(actions, "page", "one HTML page that answers from a pack, offline", EXAMPLES)
    page.add_argument("pack", type=Path, metavar="PACK", help="a pack, plain or signed")
    page.add_argument("--title", default="Local search", help="shown on the page (Local search)")
    add_file_output(page, "where the page goes", required=True)
    for action in (inspect, diff, apply, page):
        action.add_argument("--json", action="store_true", help="print one JSON document")


def _add_build(actions: Commands) -> None:
    build = add_command(actions, "build", "the pack of a release: its certain answers in one file", EXAMPLES)
    build.add_argument("release", type=Path, metavar="RELEASE", help="a folder of `searchblend run`, or a result.json")
    add_file_output(build, "where the pack goes", required=True)
    build.add_argument(
        "--key", type=Path, action="append", default=[], metavar="PEM", help="sign with this P-256 key; may be repeated"
    )
    add_passphrase(build)
    build.add_argument("--task", type=task_id, metavar="HEX", help="the task that it belongs to, 32 hexadecimal digits")
    build.add_argument("--round", type=positive_int, metavar="N", help="the round of the task")
    build.add_argument("--json", action="store_true", help="print one JSON document")


def run(options: argparse.Namespace) -> None:
    if getattr(options, "output", None):
        refuse_existing(options.output, replace=options.force)
    document = _ACTIONS[options.action](options)
    if options.json:
        print_json(document)
        return
    print_table(_document_table(document))


def _document_table(document: JsonObject) -> Table:
    table = new_table(document["file"])
    table.show_header = False
    for name, value in document.items():
        if name != "file":
            table.add_row(name.replace("_", " "), _text(value))
    return table


def _build(options: argparse.Namespace) -> JsonObject:
    from searchblend.releases.pack_files import build_from_release, signed_content

    if (options.task is None) != (options.round is None):
        raise UsageError("--task and --round go together")
    built = build_from_release(options.release, task=options.task or NO_TASK, round_number=options.round or 0)
    content = built.content
    if options.key:
        from searchblend.service.workers.signing_keys import passphrase_of  # plain packs need no cryptography

        content = signed_content(content, options.key, passphrase_of(options.key_passphrase or ""))
    write_new(options.output, content, replace=options.force)
    left_out = built.pairs_listed - built.pairs_kept
    if left_out and not options.json:
        print_line(
            f"{left_out:,} entries are left out: their 95 % interval includes 0, or their text has no normal form."
        )
    return {
        "file": str(options.output),
        "bytes": len(content),
        **_about(built.pack),
        "listed": built.pairs_listed,
        "left_out": left_out,
        "signatures": len(options.key),
    }


def _inspect(options: argparse.Namespace) -> JsonObject:
    from searchblend.releases.pack_files import read_delta_file

    if delta := read_delta_file(options.pack):
        return {
            "file": str(options.pack),
            "bytes": options.pack.stat().st_size,
            "base": delta.base,
            "base_round": delta.base_round,
            "result": delta.result,
            **_info(delta.info),
        }
    read = read_checked(options)
    return {
        "file": str(options.pack),
        "bytes": len(read.pack.content),
        **_about(read.pack),
        "bytes_per_pair": round(len(read.pack.content) / max(read.pack.n_pairs or read.pack.n_queries, 1), 2),
        "signed_by": [signature.key_id for signature in read.signatures],
        "signature_checked": read.verified,
    }


def _diff(options: argparse.Namespace) -> JsonObject:
    from searchblend.releases.pack_files import diff_packs, read_pack_file

    base, result = read_pack_file(options.base).pack, read_pack_file(options.pack).pack
    delta = diff_packs(base, result)
    write_new(options.output, delta, replace=options.force)
    return {
        "file": str(options.output),
        "bytes": len(delta),
        "share_of_the_pack": round(len(delta) / len(result.content), 4),
        "base": base.digest,
        "result": result.digest,
    }


def _apply(options: argparse.Namespace) -> JsonObject:
    from searchblend.releases.pack_files import apply_delta_file, read_pack_file

    content = apply_delta_file(read_pack_file(options.base).pack, options.delta)
    write_new(options.output, content, replace=options.force)
    return {"file": str(options.output), "bytes": len(content), **_about(Pack(content))}


def _page(options: argparse.Namespace) -> JsonObject:
    from searchblend.pages.pack_page import pack_page
    from searchblend.releases.pack_files import read_pack_file

    read = read_pack_file(options.pack)
    content = pack_page(read.pack.content, options.title, _sentence(read.pack)).encode()
    write_new(options.output, content, replace=options.force)
    if not options.json:
        print_line(f"Open {options.output} in a browser: it needs no network.")
    return {"file": str(options.output), "bytes": len(content), **_about(read.pack)}


def _sentence(pack: Pack) -> str:
    info = pack.info
    of = "" if info.task == NO_TASK else f" in round {info.round}"
    return (
        f"{pack.n_queries:,} queries and {pack.n_urls:,} URLs that many people searched for{of}, released with "
        f"differential privacy: ε = {info.epsilon:g}, δ = {info.delta:g}."
    )


def _about(pack: Pack) -> JsonObject:
    return {
        "sha256": pack.digest,
        "queries": pack.n_queries,
        "pairs": pack.n_pairs,
        "urls": pack.n_urls,
        **_info(pack.info),
    }


def _info(info: PackInfo) -> JsonObject:
    return {
        "task": None if info.task == NO_TASK else info.task.hex(),
        "round": info.round or None,
        "method": info.method,
        "epsilon": info.epsilon,
        "delta": info.delta,
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return "–" if value is None else str(value)


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], JsonObject]]] = {
    "build": _build,
    "inspect": _inspect,
    "diff": _diff,
    "apply": _apply,
    "page": _page,
}
