"""Write the vectors of the transparency log: checkpoints, and what a device makes of a log that it is shown.

Signatures are random, so the files change when they are made anew, though their meaning does not.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from make_policy import LONG, PARAMS, manifest

from searchblend.device.transparency import LastLog, Witnesses, check_log, entry_of
from searchblend.wire.canonical import canonical_json
from searchblend.wire.manifest import decode_payload
from searchblend.wire.merkle import TILE, leaf_hash, root_of
from searchblend.wire.signing import SigningKey, sign_checkpoint
from searchblend.wire.transparency import SIGNING_KEY, Checkpoint, LogEntry, encode_checkpoint, encode_entry

HERE = Path(__file__).parent / "v1"
KEY, OTHER = SigningKey.new(), SigningKey.new()
PINNED = {KEY.key_id: KEY.public_point.hex()}
ORIGIN = "searchblend/0123456789abcdef"
DOCUMENT = manifest(b"", LONG, PARAMS, phase="idle", client=None)


def logged(changes: dict[str, Any]) -> bytes:
    return entry_of(decode_payload(canonical_json({**DOCUMENT, **changes})))


def others(first: int, n: int) -> list[bytes]:
    return [encode_entry(LogEntry(SIGNING_KEY, f"{i:0130x}")) for i in range(first, first + n)]


ENTRY = logged({})


def note(entries: Sequence[bytes], key: SigningKey = KEY, origin: str = ORIGIN) -> bytes:
    leaves = [leaf_hash(entry) for entry in entries]
    return encode_checkpoint(sign_checkpoint(Checkpoint(origin, len(leaves), root_of(leaves)), [key]))


def files(entries: Sequence[bytes], checkpoint: bytes | None = None) -> dict[str, str]:
    """What a service serves below /v1/log."""
    served = {"checkpoint": checkpoint or note(entries)}
    for first in range(0, len(entries), TILE):
        tile = entries[first : first + TILE]
        suffix = "" if len(tile) == TILE else f".p/{len(tile)}"
        served[f"tile/0/{first // TILE:03d}{suffix}"] = b"".join(map(leaf_hash, tile))
    return {name: base64.b64encode(content).decode() for name, content in served.items()}


def last(entries: Sequence[bytes], origin: str = ORIGIN) -> dict[str, Any]:
    leaves = [leaf_hash(entry) for entry in entries]
    tiles = [root_of(leaves[first : first + TILE]).hex() for first in range(0, len(leaves) - TILE + 1, TILE)]
    return {"origin": origin, "size": len(leaves), "root": root_of(leaves).hex(), "tiles": tiles}


def case(name: str, refused: str | None, entries: Sequence[bytes], **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "pinned": PINNED,
        "manifest": {**DOCUMENT, **changes.pop("manifest", {})},
        "last": changes.pop("last", None),
        "files": changes.pop("files", None) or files(entries),
        "refused": refused,
        "remembered": None if refused else last(entries),
    }


def with_pack(entries: Sequence[bytes]) -> dict[str, Any]:
    known = last(entries)
    pack = {"artifact": "ab" * 32, "bytes": 1, "round": 1, "deltas": []}
    return {"pack": {**pack, "log": {"size": known["size"], "root": known["root"]}}}


def logs() -> list[dict[str, Any]]:
    few, many = [*others(0, 4), ENTRY], [*others(0, TILE + 3), ENTRY]
    early = [ENTRY, *others(0, TILE + 3)]
    packed = with_pack(many[:7])
    seen = [*many[:-1], logged(packed)]
    elsewhere = with_pack(others(50, 7))
    lied, longer = [*many[:-1], logged(elsewhere)], with_pack(others(0, 9))
    swapped = files(early) | {"tile/0/000": files(others(50, TILE))["tile/0/000"]}
    return [
        case("the first time", None, few),
        case("the same again", None, few, last=last(few)),
        case("grown", None, few, last=last(few[:3])),
        case("over the end of a tile", None, many, last=last(many[: TILE - 2])),
        case("from the end of a tile on", None, many, last=last(many[:TILE])),
        case("in an earlier tile", None, early, last=last(early)),
        case("a pack's log, in a full tile", None, seen, manifest=packed, last=last(seen)),
        case("not in the log", "not-logged", others(0, 5)),
        case("another manifest of its number", "not-logged", few, manifest={"name": "for one person"}),
        case("signed by a stranger", "log-forged", few, files=files(few, note(few, OTHER))),
        case("no note", "log-forged", few, files=files(few, b"{}")),
        case("another root", "log-forked", few, files=files(few, note([*few[:-1], *others(9, 1)]))),
        case("shorter than before", "log-forked", few, last=last([*few, *others(9, 1)])),
        case("another log", "log-forked", few, last=last(few[:2], "searchblend/another")),
        case("another history", "log-forked", few, last=last(others(50, 3))),
        case("another history of the same length", "log-forked", few, last=last([*others(50, 4), ENTRY])),
        case("another full tile", "log-forked", many, last=last([*others(50, TILE), *many[TILE : TILE + 1]])),
        case("a tile of another log", "log-forked", early, last=last(early), files=swapped),
        case("a pack's log that was another", "log-forked", lied, manifest=elsewhere),
        case("a pack's log that was longer", "log-forked", [*few, logged(longer)], manifest=longer),
    ]


def checkpoints() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    good = note(others(0, 3))
    text = good.decode()
    both = sign_checkpoint(Checkpoint(ORIGIN, 0, root_of([])), [OTHER, KEY])
    witnessed = both.with_cosignature("w.example", OTHER.public_point, OTHER.sign(both.cosigned_bytes(9)), 9)
    lines = text.splitlines()
    fine = {"three entries": good, "empty, two keys": encode_checkpoint(both), "cosigned": encode_checkpoint(witnessed)}
    wrong = {
        "a stranger's": (note(others(0, 3), OTHER).decode(), "pinned key"),
        "another origin": (text.replace("searchblend/0", "searchblend/1"), "pinned key"),
        "another size": (text.replace("\n3\n", "\n4\n", 1), "pinned key"),
        "another root": (text.replace(lines[2], f"B{lines[2][1:]}"), "pinned key"),
        "no signature": ("\n".join(lines[:3]) + "\n\n", "signed note"),
        "no blank line": ("\n".join([*lines[:3], *lines[4:]]) + "\n", "signed note"),
        "a size with a zero in front": (text.replace("\n3\n", "\n03\n", 1), "signed note"),
        "a size that is no number": (text.replace("\n3\n", "\nthree\n", 1), "signed note"),
        "a short root": (text.replace(lines[2], lines[2][4:]), "signed note"),
        "more text": (text.replace("\n\n", "\nmore\n\n", 1), "signed note"),
        "no line feed at the end": (text[:-1], "signed note"),
        "too many signatures": ("\n".join([*lines, *[lines[-1]] * 32]) + "\n", "signed note"),
        "empty": ("", "signed note"),
    }
    return (
        [{"name": name, "pinned": PINNED, "note": content.decode()} for name, content in fine.items()],
        [{"name": name, "pinned": PINNED, "note": content, "says": says} for name, (content, says) in wrong.items()],
    )


def main() -> None:
    good, bad = checkpoints()
    made = {"checkpoint": good, "bad_checkpoint": bad, "log": logs()}
    for one in made["log"]:
        if one["refused"] is None:
            read = {path: base64.b64decode(content) for path, content in one["files"].items()}
            asked = decode_payload(canonical_json(one["manifest"]))
            known = LastLog(**one["last"]) if one["last"] else LastLog()
            points = {key: bytes.fromhex(point) for key, point in PINNED.items()}
            check_log(asked, known, lambda path, most, read=read: read[path], points, Witnesses({}, 0))  # type: ignore[misc]
    for name, cases in made.items():
        rows = ",\n".join(json.dumps(each, ensure_ascii=False) for each in cases)
        (HERE / f"{name}.json").write_text(f'{{"version": 1, "cases": [\n{rows}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
