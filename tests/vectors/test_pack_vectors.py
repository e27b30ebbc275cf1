"""Replays the vectors of local search: the packs and deltas that every implementation makes, reads and refuses."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from searchblend.core.errors import MessageError
from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import Pack, PackEntry, PackInfo, PackUrl, decode_pack, encode_pack
from searchblend.search.pack_delta import apply_delta
from searchblend.wire.signing import verify_signed_pack

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"


def load(name):
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert document["version"] == 1
    return document


def cases(name):
    listed = load(name)["cases"]
    assert len({case["name"] for case in listed}) == len(listed)
    return pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in listed])


def pinned_of(case):
    return {name: bytes.fromhex(point) for name, point in case["pinned"].items()}


@cases("pack")
def test_pack(case):
    content = bytes.fromhex(case["pack"])
    info = PackInfo(**{**case["info"], "task": bytes.fromhex(case["info"]["task"])})
    entries = [PackEntry(q, low, p, tuple(PackUrl(*url) for url in urls)) for q, low, p, urls in case["entries"]]
    assert encode_pack(info, reversed(entries)) == content
    pack = decode_pack(content)
    assert pack.info == info
    assert list(pack.entries()) == entries
    assert [pack.find(entry.query) for entry in entries] == entries
    assert pack.digest == case["sha256"] == hashlib.sha256(content).hexdigest()


@cases("bad_pack")
def test_bad_pack(case):
    with pytest.raises(MessageError, match="pack: ") as refused:
        decode_pack(bytes.fromhex(case["pack"]))
    assert case["says"] in str(refused.value)


@cases("signed_pack")
def test_signed_pack(case):
    assert verify_signed_pack(bytes.fromhex(case["message"]), pinned_of(case)) == bytes.fromhex(case["pack"])


@cases("bad_signed_pack")
def test_bad_signed_pack(case):
    with pytest.raises(MessageError) as refused:
        verify_signed_pack(bytes.fromhex(case["message"]), pinned_of(case))
    assert case["says"] in str(refused.value)


@cases("pack_delta")
def test_pack_delta(case):
    base = decode_pack(bytes.fromhex(case["base"]))
    assert apply_delta(base, bytes.fromhex(case["delta"])).hex() == case["result"]


@cases("bad_pack_delta")
def test_bad_pack_delta(case):
    with pytest.raises(MessageError) as refused:
        apply_delta(Pack(bytes.fromhex(case["base"])), bytes.fromhex(case["delta"]))
    assert case["says"] in str(refused.value)


SEARCHES = load("pack_search")
INDEXES = {name: SearchIndex(Pack(bytes.fromhex(pack))) for name, pack in SEARCHES["packs"].items()}


@cases("pack_search")
def test_pack_search(case):
    found = INDEXES[case["pack"]].search(case["typed"], case["limit"])
    assert [
        {
            "query": item.entry.query,
            "kind": item.kind,
            "distance": item.distance,
            "lower": item.entry.lower,
            "probability": item.entry.probability,
            "urls": [list(url) for url in item.entry.urls],
        }
        for item in found
    ] == case["found"]
