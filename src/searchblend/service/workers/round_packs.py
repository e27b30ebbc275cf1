"""The pack of a published round and the deltas to it: made, stored among the round's files, named in the manifest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from searchblend.blender.result import Result
from searchblend.core.documents import decode
from searchblend.search.build_pack import build_pack
from searchblend.search.pack import PACK_MEDIA_TYPE, Pack
from searchblend.search.pack_delta import DELTA_MEDIA_TYPE, encode_delta
from searchblend.store.rounds import Round
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import State
from searchblend.wire.manifest import LogHead, PackDelta, PackPart
from searchblend.wire.transparency import decode_checkpoint

PACK_FILE: Final = "local-search.sbpack"
EARLIER_PACKS: Final = 3
"""how many rounds a device may have slept through and still update by a delta"""
PACK_LOG: Final = "pack log"
"""the inner document that says what the log was when a pack was published"""
DELTA_FILE: Final = re.compile(r"local-search-from-([0-9]+)\.sbdelta")


def make_pack_files(store: ServiceStore, round_: Round, result: Result) -> dict[str, tuple[bytes, str]]:
    """Name, bytes and media type of the pack of a round and of its deltas; a delta that saves nothing is left out.

    Made from what was estimated and from packs that are public already, so doing it twice gives the same bytes.
    """
    pack = build_pack(result, task=bytes.fromhex(round_.task), round_number=round_.number).pack
    files = {PACK_FILE: (pack.content, PACK_MEDIA_TYPE)}
    for number, base in _earlier(store, round_):
        delta = encode_delta(base, pack)
        if len(delta) < len(pack.content):
            files[f"local-search-from-{number}.sbdelta"] = (delta, DELTA_MEDIA_TYPE)
    return files


def pack_part(store: ServiceStore, rounds: Sequence[Round]) -> PackPart | None:
    """The manifest's ``pack``: the newest pack of a task's rounds and the deltas to it."""
    packs: dict[int, str] = {}
    deltas: list[PackDelta] = []
    key = 0
    for round_ in (round_ for round_ in rounds if round_.state is State.PUBLISHED):
        files = store.artifacts.of_round(round_.key)
        if PACK_FILE not in files:
            continue
        deltas = [
            PackDelta(packs[int(name[1])], sha256, store.artifacts.size(sha256))
            for name, sha256 in ((DELTA_FILE.fullmatch(name), sha256) for name, sha256 in files.items())
            if name and int(name[1]) in packs
        ]
        packs[round_.number], key = files[PACK_FILE], round_.key
    if not packs:
        return None
    number = max(packs)
    ordered = tuple(sorted(deltas, key=lambda delta: delta.base))
    return PackPart(packs[number], store.artifacts.size(packs[number]), number, ordered, _log_head(store, key))


def keep_log_head(store: ServiceStore, round_: Round) -> None:
    """Put on record what the public log is now, with the round's pack: part of the caller's transaction."""
    if note := store.log.checkpoint():
        known = decode_checkpoint(note)
        store.artifacts.keep_json(round_.key, PACK_LOG, LogHead(known.size, known.root.hex()))


def _log_head(store: ServiceStore, round_key: int) -> LogHead | None:
    head = store.artifacts.kept_json(round_key, PACK_LOG)
    return None if head is None else decode(LogHead, head)


def _earlier(store: ServiceStore, round_: Round) -> list[tuple[int, Pack]]:
    """The packs of the last published rounds of the same task, each content once."""
    packs: dict[str, tuple[int, Pack]] = {}
    for earlier in reversed(store.rounds.rounds(round_.task)):
        if earlier.state is not State.PUBLISHED or earlier.number >= round_.number or len(packs) == EARLIER_PACKS:
            continue
        sha256 = store.artifacts.of_round(earlier.key).get(PACK_FILE)
        content = store.artifacts.get(sha256) if sha256 else None
        if sha256 and content:
            packs[sha256] = earlier.number, Pack(content[0])
    return list(packs.values())
