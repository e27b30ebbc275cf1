"""``searchblend log``: check the public log of a service, and cosign it as a witness."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from searchblend.cli.arguments import add_actions, add_command
from searchblend.cli.service_options import add_place, opened, print_document
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InputError, MessageError, RunError, UsageError

if TYPE_CHECKING:
    from searchblend.service.log_audit import LogCopy
    from searchblend.wire.signing import SigningKey
    from searchblend.wire.transparency import Checkpoint

EXAMPLES = """\
examples:
  searchblend log verify https://lists.example --key 04…                    every entry, against the signed checkpoint
  searchblend log verify https://lists.example --key 04… --save mirror      and keep a copy that verifies on its own
  searchblend log verify mirror --key 04… --checkpoint friends.txt          is what a friend was shown its beginning?
  searchblend log cosign https://lists.example --key 04… --name w.example --witness-key w.pem --state w.txt
  searchblend log attach w.txt --witness 04…                                a witness' signature, beside the service's
  searchblend log restore mirror --key 04…                                  after a backup was restored
"""
_LARGEST_NOTE = 16 << 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    verify = add_command(actions, "verify", "read all of a log and check it", EXAMPLES)
    cosign = add_command(
        actions, "cosign", "sign a log's checkpoint as a witness, after checking that it only grew", EXAMPLES
    )
    for action in (verify, cosign):
        action.add_argument("log", metavar="URL|DIR", help="address of a service, or a folder that --save has made")
        action.add_argument(
            "--key", action="append", required=True, metavar="HEX", help="signing key of the service, of `keys list`"
        )
        action.add_argument("--json", action="store_true", help="print one JSON document")
    verify.add_argument(
        "--checkpoint", action="append", default=[], type=Path, metavar="FILE", help="checkpoint of the same log"
    )
    verify.add_argument("--save", type=Path, metavar="DIR", help="folder for a copy of the log")
    cosign.add_argument("--witness-key", required=True, type=Path, metavar="FILE", help="own key, made if it is absent")
    cosign.add_argument("--name", required=True, help="own name in the signature")
    cosign.add_argument(
        "--state", required=True, type=Path, metavar="FILE", help="checkpoint that was cosigned last, and the new one"
    )
    what = "after a backup was restored: take the later entries from a copy of the log"
    restore = add_command(actions, "restore", what, EXAMPLES)
    restore.add_argument("log", metavar="DIR", help="copy of this service's log, as --save makes it")
    restore.add_argument("--key", action="append", required=True, metavar="HEX", help="signing key of the service")
    add_place(restore)
    attach = add_command(actions, "attach", "publish a witness' signature with the checkpoint", EXAMPLES)
    attach.add_argument("file", type=Path, metavar="FILE", help="cosigned checkpoint")
    attach.add_argument("--witness", action="append", required=True, metavar="HEX", help="key of a witness")
    add_place(attach)


def run(options: argparse.Namespace) -> None:
    acts = {"verify": _verify, "cosign": _cosign, "attach": _attach, "restore": _restore}
    document = acts[options.action](options)
    print_document(document, as_json=options.json)


def _verify(options: argparse.Namespace) -> JsonObject:
    from searchblend.files.durable import write_whole

    copy = _read(options)
    for path in options.checkpoint:
        copy.check_earlier(_signed(path, options.key))
    if options.save is not None:
        for name, content in copy.files.items():
            path = options.save / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, content)
            except OSError as error:
                raise RunError(f"{path}: cannot be written: {error.strerror}") from None
    kinds = Counter(entry.kind for entry in copy.entries)
    compared = len(options.checkpoint)
    return {"whole": True, **_head(copy.checkpoint), "entries": dict(kinds), "checkpoints_compared": compared}


def _cosign(options: argparse.Namespace) -> JsonObject:
    from searchblend.files.durable import write_whole
    from searchblend.service.clock import SystemClock
    from searchblend.service.log_audit import cosign
    from searchblend.wire.transparency import encode_checkpoint

    copy, witness = _read(options), _witness_key(options.witness_key)
    last = _signed(options.state, options.key) if options.state.exists() else None
    cosigned = cosign(copy, last, witness, name=options.name, now=SystemClock().now())
    try:
        write_whole(options.state, encode_checkpoint(cosigned))
    except OSError as error:
        raise RunError(f"{options.state}: cannot be written: {error.strerror}") from None
    return {**_head(cosigned), "witness": witness.public_point.hex(), "cosigned": str(options.state)}


def _attach(options: argparse.Namespace) -> JsonObject:
    from searchblend.wire.signing import attached, witnesses_of
    from searchblend.wire.transparency import decode_checkpoint, encode_checkpoint

    given, witnesses = _note(options.file), _points(options.witness, "witness")
    if not witnesses_of(given, witnesses):
        raise InputError(options.file, "no valid signature of these witnesses")
    with opened(options) as store, store.transaction():
        note = store.log.checkpoint()
        present = None if note is None else decode_checkpoint(note)
        if present is None or present != given:
            raise RunError("the log has another checkpoint by now; let the witness sign that one")
        present = attached(present, given, witnesses)
        store.log.keep_checkpoint(encode_checkpoint(present))
    return {**_head(present), "witnesses": sorted(witnesses_of(present, witnesses))}


def _restore(options: argparse.Namespace) -> JsonObject:
    from searchblend.wire.merkle import leaf_hash
    from searchblend.wire.transparency import encode_entry

    copy = _read(options)
    with opened(options) as store, store.transaction():
        present = [leaf_hash(entry) for entry in store.log.entries()]
        if list(copy.leaves[: len(present)]) != present:
            raise RunError(
                "the database's log is not the beginning of this copy; something was signed since the backup"
            )
        for position, entry in enumerate(copy.entries[len(present) :], len(present)):
            store.log.append(encode_entry(entry), position)
        store.log.keep_checkpoint(copy.files["checkpoint"])
    return {**_head(copy.checkpoint), "added": len(copy.leaves) - len(present)}


def _head(checkpoint: Checkpoint) -> JsonObject:
    return {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex()}


def _read(options: argparse.Namespace) -> LogCopy:
    from searchblend.service.log_audit import read_log

    pinned = _points(options.key, "key")
    if "://" not in options.log:
        return read_log(lambda path, most: _file(Path(options.log) / path, most), pinned)
    from searchblend.device.transport import Transport

    transport = Transport(options.log.rstrip("/"))

    def fetch(path: str, most: int) -> bytes:
        answer = transport.send("GET", f"/v1/log/{path}", at_most=most)
        if answer.status != 200:
            raise RunError(f"{options.log}: {path}: status {answer.status}")
        return answer.body

    try:
        return read_log(fetch, pinned)
    finally:
        transport.close()


def _witness_key(path: Path) -> SigningKey:
    from searchblend.files.durable import keep_first_secret, read_private
    from searchblend.wire.signing import SigningKey

    try:
        if not path.exists():
            keep_first_secret(path, SigningKey.new().as_pem())
        return SigningKey.of_pem(read_private(path))
    except OSError as error:
        raise InputError(path, f"cannot be used: {error.strerror}") from None
    except MessageError as error:
        raise InputError(path, str(error)) from None


def _signed(path: Path, keys: list[str]) -> Checkpoint:
    from searchblend.wire.signing import verify_checkpoint

    try:
        return verify_checkpoint(_file(path, _LARGEST_NOTE), _points(keys, "key"))
    except MessageError as error:
        raise InputError(path, str(error)) from None


def _note(path: Path) -> Checkpoint:
    from searchblend.wire.transparency import decode_checkpoint

    try:
        return decode_checkpoint(_file(path, _LARGEST_NOTE))
    except MessageError as error:
        raise InputError(path, str(error)) from None


def _file(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise InputError(path, f"expected at most {most} bytes")
    return content


def _points(keys: list[str], field: str) -> dict[str, bytes]:
    from searchblend.wire.signing import read_public_point

    if not keys:
        raise UsageError(f"{field}: expected a public key")
    return dict(read_public_point(key, field) for key in keys)
