"""Write the vectors of what devices refuse whoever signed it, and of the curator's word for a head list.

Signatures and salts are random, so the files change when they are made anew, though their meaning does not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import HeadList
from searchblend.device.policy import POLICY
from searchblend.wire.head_list import encode_head_list
from searchblend.wire.optin_result import DrawnBy, OptinResult, certify, encode_optin_result
from searchblend.wire.report import ReportShape
from searchblend.wire.signing import SigningKey

HERE = Path(__file__).parent / "v1"
TASK = bytes(range(16))
ROUND: Final = 7
LONG = HeadList((f"query {i}", [f"site{i}.example"][: i % 3]) for i in range(POLICY.fewest_queries))
SHORT = HeadList([("météo ⋆", ["https://weather.example/ü"]), ("news", ["a.example", "b.example"]), ("maps", [])])
PARAMS = BlenderParams(Budget(POLICY.largest_epsilon, 1e-5))
DRAWN_BY = DrawnBy(TASK.hex(), ROUND, repr(PARAMS.budget.epsilon), repr(PARAMS.budget.delta))
CURATOR, OTHER = SigningKey.new(), SigningKey.new()


def drawn(head: HeadList, drawn_by: DrawnBy = DRAWN_BY, key: SigningKey = CURATOR) -> OptinResult:
    return certify(head, drawn_by, key.sign, key.public_point, SystemRandomness())


def optin_results() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Results that fit their list and are signed by the pinned curator, and such that do not or are not."""
    whole = drawn(SHORT)
    reviewed = whole.without(SHORT, {(0, 0), (2, None)})
    left = HeadList([("météo ⋆", []), ("news", ["a.example", "b.example"])])

    def case(name: str, head: HeadList, result: OptinResult | Mapping[str, Any], **changes: Any) -> dict[str, Any]:
        document = encode_optin_result(result) if isinstance(result, OptinResult) else result
        return {
            "name": name,
            "drawn_by": vars(DRAWN_BY),
            "curators": [CURATOR.public_point.hex()],
            "queries": head.as_json(),
            "result": document,
            **changes,
        }

    good = [
        case("as it was drawn", SHORT, whole),
        case("after a review", left, reviewed),
        case("of a curator that no one pinned", SHORT, drawn(SHORT, key=OTHER), curators=[]),
        case(
            "of the second of two curators", SHORT, drawn(SHORT, key=OTHER), curators=[_point(CURATOR), _point(OTHER)]
        ),
        case("in another order", HeadList(reversed(SHORT.as_json())), replace(whole, salts=whole.salts[::-1])),
    ]
    for one in good:
        head, result = HeadList(one["queries"]), one["result"]
        read = OptinResult(result["salts"], result["removed"], result["key"], CURATOR.sign(b""))
        one["root"] = read.root(head)
    added = HeadList([*SHORT.as_json(), ("one person's own", [])])
    own_salts = [*whole.salts, ["00" * 16]]
    document = encode_optin_result(whole)
    bad = [
        case("a query more", added, replace(whole, salts=own_salts)),
        case("another query", HeadList([("meteo", SHORT.urls("météo ⋆")), *SHORT.as_json()[1:]]), whole),
        case("another URL", HeadList([("météo ⋆", ["https://weather.example/u"]), *SHORT.as_json()[1:]]), whole),
        case("one salt changed", SHORT, replace(whole, salts=[["11" * 16, *whole.salts[0][1:]], *whole.salts[1:]])),
        case("an entry left out without a word", left, replace(reviewed, removed=reviewed.removed[:1])),
        case("an entry said to be removed that never was", SHORT, replace(whole, removed=["ab" * 32])),
        case("a salt too few", SHORT, replace(whole, salts=whole.salts[:-1])),
        case("a salt too many", SHORT, replace(whole, salts=[[*whole.salts[0], "00" * 16], *whole.salts[1:]])),
        case("another round", SHORT, drawn(SHORT, replace(DRAWN_BY, round=ROUND + 1))),
        case("another task", SHORT, drawn(SHORT, replace(DRAWN_BY, task="ff" * 16))),
        case("drawn at a larger epsilon", SHORT, drawn(SHORT, replace(DRAWN_BY, epsilon="100.0"))),
        case("drawn at a larger delta", SHORT, drawn(SHORT, replace(DRAWN_BY, delta="0.5"))),
        case("of a stranger", SHORT, drawn(SHORT, key=OTHER)),
        case("of a stranger who names the curator's key", SHORT, replace(drawn(SHORT, key=OTHER), key=whole.key)),
        case("another key than the one that signed", SHORT, replace(whole, key=_point(OTHER)), curators=[]),
        case("no point of the curve", SHORT, replace(whole, key="04" + "00" * 64), curators=[]),
    ]
    malformed: list[tuple[str, Any, str]] = [
        ("a list", [], "expected curator, key, removed, salts"),
        ("a field more", {**document, "note": ""}, "expected curator, key, removed, salts"),
        ("no salts", {k: v for k, v in document.items() if k != "salts"}, "expected curator, key, removed, salts"),
        ("salts in one list", {**document, "salts": ["00" * 16]}, "list of lists"),
        ("a query without a salt", {**document, "salts": [[]]}, "list of lists"),
        ("a short salt", {**document, "salts": [["00"]]}, "salts: expected 32"),
        ("a salt in capitals", {**document, "salts": [["AB" * 16]]}, "salts: expected 32"),
        ("a salt that is a number", {**document, "salts": [[3]]}, "salts: expected 32"),
        ("removed: a text", {**document, "removed": "ab" * 32}, "removed: expected 64"),
        ("removed: a short entry", {**document, "removed": ["ab"]}, "removed: expected 64"),
        ("a short key", {**document, "key": "04"}, "key: expected 130"),
        ("another algorithm", {**document, "curator": {**document["curator"], "algorithm": "none"}}, "algorithm"),
    ]
    return good, bad + [case(name, SHORT, wrong, says=says) for name, wrong, says in malformed]


def manifest(content: bytes, head: HeadList, params: BlenderParams, **changes: Any) -> dict[str, Any]:
    shape = ReportShape.of(TASK, ROUND, head, params, None)
    client = {
        "artifact": hashlib.sha256(content).hexdigest(),
        "digest": head.digest,
        "mechanism": "two-stage",
        "report_bytes": shape.size,
        "opens": 1_800_000_000,
        "closes": 1_800_400_000,
    }
    return {
        "format": "searchblend-manifest",
        "version": 1,
        "minor": 1,
        "task": TASK.hex(),
        "name": "searches",
        "engine": "any",
        "market": "any",
        "sequence": 5,
        "issued": 1_800_000_000,
        "expires": 1_800_604_800,
        "phase": "client",
        "round": ROUND,
        "killed": False,
        "min_device_version": "0.1",
        "silent_devices": "skip",
        "method": "paper",
        "epsilon": repr(params.budget.epsilon),
        "delta": repr(params.budget.delta),
        "records_per_client": params.records_per_client,
        "records_per_optin": 1,
        "optin": None,
        "client": client,
        "pack": None,
        **changes,
    }


def list_case(
    name: str, refused: str | None, head: HeadList = LONG, result: OptinResult | None = None, **changes: Any
) -> dict[str, Any]:
    params = changes.pop("params", PARAMS)
    curators = changes.pop("curators", [CURATOR.public_point.hex()])
    document = encode_head_list(head, params, optin_result=result)
    # As text, so that every language hashes the same bytes.
    text = json.dumps(document, ensure_ascii=False)
    asked = manifest(text.encode(), head, params, **changes)
    return {"name": name, "ask": "list", "manifest": asked, "list": text, "curators": curators, "refused": refused}


def lists() -> list[dict[str, Any]]:
    fewer = HeadList(LONG.as_json()[1:])
    louder = BlenderParams(Budget(POLICY.largest_epsilon + 0.5, 1e-5))
    louder_by = replace(DRAWN_BY, epsilon=repr(louder.budget.epsilon))
    salts = [["00" * 16, *["00" * 16] * len(LONG.urls(query))] for query in LONG.queries]
    targeted = HeadList([*fewer.as_json(), ("one person's own", [])])
    more = HeadList([*LONG.as_json(), ("a", []), ("b", [])])
    reviewed = drawn(more).without(more, {(len(LONG), None), (len(LONG) + 1, None)})
    return [
        list_case("the shortest list, drawn by the pinned curator", None, result=drawn(LONG)),
        list_case("after a review", None, result=reviewed),
        list_case("no curator was pinned", None, result=drawn(LONG), curators=[]),
        list_case("no curator was pinned: another's", None, result=drawn(LONG, key=OTHER), curators=[]),
        list_case("one query too few", "short-list", fewer, drawn(fewer)),
        list_case("a single query", "short-list", (one := HeadList([LONG.as_json()[1]])), drawn(one)),
        list_case("no word of a curator", "not-drawn"),
        list_case("of a stranger", "not-drawn", result=drawn(LONG, key=OTHER)),
        list_case("a query put in the place of another", "not-drawn", targeted, drawn(LONG)),
        list_case("a query more", "not-drawn", HeadList([*LONG.as_json(), ("x", [])]), drawn(LONG)),
        list_case("of another round", "not-drawn", result=drawn(LONG, replace(DRAWN_BY, round=ROUND - 1))),
        list_case("drawn with more ε", "not-drawn", result=drawn(LONG, louder_by)),
        list_case("salts of our own", "not-drawn", result=replace(drawn(LONG), salts=salts)),
        list_case("more ε than ever", "over-policy", result=drawn(LONG, louder_by), params=louder),
    ]


def requests() -> list[dict[str, Any]]:
    """ε, δ and records of one round."""
    asked: list[tuple[str, dict[str, Any], str | None]] = [
        ("the most of everything", {"epsilon": "4.0", "delta": "0.0001", "records_per_client": 20}, None),
        ("more ε", {"epsilon": "4.000001"}, "over-policy"),
        ("the ε of earlier versions", {"epsilon": "8.0"}, "over-policy"),
        ("no ε", {"epsilon": "0"}, "over-policy"),
        ("more δ", {"delta": "0.00011"}, "over-policy"),
        ("more records of a client", {"records_per_client": 21}, "over-policy"),
        ("more records of an opt-in user", {"records_per_optin": 21}, "over-policy"),
    ]
    return [
        {"name": name, "ask": "request", "manifest": manifest(b"", LONG, PARAMS) | changes, "refused": refused}
        for name, changes, refused in asked
    ]


def budgets() -> list[dict[str, Any]]:
    """ε in a week, ε and δ in all, and the cost of another round."""
    asked: list[tuple[str, float, tuple[float, float], tuple[float, float], str | None]] = [
        ("the first round", 0, (0, 0), (4, 1e-5), None),
        ("the second of a week", 4, (4, 1e-5), (4, 1e-5), None),
        ("the third of a week", 8, (8, 2e-5), (4, 1e-5), "over-budget"),
        ("a little too much for the week", 4.5, (4.5, 1e-5), (4, 1e-5), "over-budget"),
        ("the last of its life", 0, (204, 1e-3), (4, 1e-5), None),
        ("after the last of its life", 0, (208, 1e-3), (0.5, 1e-5), "over-budget"),
        ("the last δ", 0, (4, 0.0078125), (0.5, 0.00146484375), None),
        ("more δ than there is", 0, (4, 0.0078125), (0.5, 0.00244140625), "over-budget"),
    ]
    return [
        {
            "name": name,
            "ask": "budget",
            "recent": recent,
            "ever": {"epsilon": ever[0], "delta": ever[1]},
            "own": {"epsilon": own[0], "delta": own[1]},
            "refused": refused,
        }
        for name, recent, ever, own, refused in asked
    ]


def _point(key: SigningKey) -> str:
    return key.public_point.hex()


def main() -> None:
    good, bad = optin_results()
    made = {"optin_result": good, "bad_optin_result": bad, "policy": [*lists(), *requests(), *budgets()]}
    for name, cases in made.items():
        rows = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        (HERE / f"{name}.json").write_text(f'{{"version": 1, "cases": [\n{rows}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
