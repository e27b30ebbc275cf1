"""Python and JavaScript on the same random cases, more than ten thousand: the same answers, the same refusals."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from node_twin import Refused, Twin
from random_cases import WORDS, Cases, vectors

from searchblend.blender.best.subset_report import subset_report
from searchblend.blender.paper.local_report import local_report
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.blender.report_odds import ReportOdds, list_odds, report_odds
from searchblend.core.admission import admit
from searchblend.core.documents import decode
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.normalization import normalize, normalize_url
from searchblend.core.randomness import SystemRandomness, Tape, accept_below
from searchblend.core.records import WILDCARD, Record
from searchblend.core.suspects import Suspects
from searchblend.core.unicode14 import unassigned_ranges
from searchblend.core.visible import visible
from searchblend.device import policy
from searchblend.device.device_errors import REASONS, DeviceRefused
from searchblend.device.make_report import make_report
from searchblend.device.policy import POLICY
from searchblend.mechanisms.fixed_point import exp_bounds
from searchblend.mechanisms.subset_selection import PlainSubsetSelection, SubsetSelection
from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import decode_pack, encode_pack
from searchblend.search.pack_delta import apply_delta, encode_delta
from searchblend.wire.canonical import canonical_json, parse_canonical
from searchblend.wire.consent import BELIEF, optin_consent, task_consent
from searchblend.wire.head_list import decode_head_list
from searchblend.wire.manifest import Manifest, decode_payload, encode_signed
from searchblend.wire.report import ReportRefused, ReportShape, cells_as_parts, decode_report, encode_report
from searchblend.wire.sealed import Opener, SealingContext, new_round_key, seal_records
from searchblend.wire.signing import SigningKey, is_drawn_by_curator, read_public_point, sign_manifest, verify_manifest

N = {
    "normalize": 1500,
    "normalize_url": 1500,
    "suspicions": 1200,
    "admit": 1200,
    "exp_bounds": 200,
    "accept_below": 100,
    "thresholds": 400,
    "subset_thresholds": 400,
    "odds": 400,
    "consent": 25,
    "report": 1500,
    "decode_report": 600,
    "canonical": 400,
    "parse_canonical": 300,
    "decode_payload": 1000,
    "verify_manifest": 100,
    "decode_head_list": 800,
    "seal": 150,
    "open": 150,
    "check_manifest": 500,
    "check_request": 300,
    "check_head_list": 300,
    "encode_pack": 200,
    "decode_pack": 400,
    "apply_delta": 199,
    "search": 600,
}
"""how many cases of each question are compared, at least"""
TASK = bytes(range(16))
CODE = "sbe_an-enrolment-code-of-26"


@pytest.fixture(scope="module")
def twin() -> Twin:
    return Twin()


def answered(run: Callable[[], Any]) -> Any:
    """What Python answers, in the words of the twin."""
    try:
        return run()
    except ReportRefused as error:
        return Refused("ReportRefused", error.reason)
    except DeviceRefused as error:
        return Refused("PolicyRefused", error.reason)
    except InvalidParameter:
        return Refused("InvalidParameter")
    except MessageError:
        return Refused("MessageError")


def check_same(twin: Twin, cases: list[tuple[dict[str, Any], Callable[[], Any]]]) -> list[Any]:
    """The same answer to every question; the shown case is the shortest that differs."""
    questions = [question for question, _ in cases]
    found = twin.ask(questions)
    assert len(found) == len(cases)
    expected = [answered(run) for _, run in cases]
    wrong = [triple for triple in zip(questions, found, expected, strict=True) if triple[1] != triple[2]]
    assert not wrong, min(wrong, key=lambda triple: len(json.dumps(triple[0])))
    assert len(cases) >= N[str(questions[0]["do"])]
    return expected


def pair(record: Record) -> list[str | None]:
    return [part if isinstance(part, str) else None for part in record]


def params_list(params: Any) -> list[Any]:
    return [params.budget.epsilon, params.budget.delta, params.query_budget_fraction, params.records_per_client]


# --- texts -----------------------------------------------------------------------------------------------------------


def test_normal_forms(twin):
    cases = Cases(1)
    texts = [cases.text() for _ in range(N["normalize"])]
    check_same(twin, [({"do": "normalize", "text": text}, lambda t=text: normalize(t)) for text in texts])
    urls = [(cases.text() if i % 2 else cases.address(), i % 3 == 0) for i in range(N["normalize"])]
    check_same(
        twin,
        [
            (
                {"do": "normalize_url", "text": url, "host_only": host},
                lambda u=url, h=host: normalize_url(u, host_only=h),
            )
            for url, host in urls
        ],
    )


def test_every_code_point(twin):
    """All 1,114,112, each alone; and the same table of what is not assigned."""
    forms = ((point, normalize(chr(point))) for point in range(0x110000))
    text = "\n".join(f"{point}:{form}" for point, form in forms if form is not None)
    assert twin.one({"do": "every_code_point"}) == hashlib.sha256(text.encode()).hexdigest()
    assert twin.one({"do": "unassigned"}) == [list(edges) for edges in unassigned_ranges()]


def test_the_same_signs_are_spelt_out(twin):
    points = [*range(0xD800), *range(0xE000, 0x110000)]
    parts = (points[:0xD800], points[0xE000 - 0x800 : 0x10000], points[0x10000 + 0xD0000 - 0x800 :])
    pieces = [part[start : start + 4096] for part in parts for start in range(0, len(part), 4096)]
    answers = twin.ask({"do": "visible", "points": piece} for piece in pieces)
    for piece, answer in zip(pieces, answers, strict=True):
        assert answer == visible("".join(map(chr, piece)))


def test_what_looks_like_somebodys_own(twin):
    cases, suspects = Cases(2), Suspects()
    texts = [cases.personal() if i % 3 else cases.text() for i in range(N["suspicions"])]
    found = check_same(
        twin,
        [
            ({"do": "suspicions", "text": text}, lambda t=text: [suspicion.value for suspicion in suspects.in_text(t)])
            for text in texts
        ],
    )
    assert set().union(*found) == {"credentials-in-url", "e-mail", "card-number", "phone", "id-number", "ip-address"}


def admitted(query: str, url: str | None) -> dict[str, str | None]:
    return dataclasses.asdict(admit(query, url))


def test_which_searches_are_kept(twin):
    cases = Cases(3)
    pairs = [(cases.text(6) or "weather", cases.address() if i % 4 else None) for i in range(900)]
    pairs += [(cases.random.choice(WORDS), cases.address()) for _ in range(300)]
    pairs += [
        ("q" * 500, None),
        ("q" * 501, None),
        ("😀" * 500, None),
        ("ﷺ" * 200, None),
        ("a", "http://a.example/" + "x" * 2000),
    ]
    found = check_same(
        twin,
        [({"do": "admit", "query": q, "url": u}, lambda q=q, u=u: admitted(q, u)) for q, u in pairs],
    )
    assert {"too-long", "unusable-query", "private-address", "not-a-web-address", None} <= {
        one["reason"] for one in found
    }


# --- reports ---------------------------------------------------------------------------------------------------------


def test_exponentials_and_halves(twin):
    cases = Cases(4)
    check_same(
        twin,
        [
            (
                {"do": "exp_bounds", "x": [str(x.numerator), str(x.denominator)]},
                lambda x=x: list(map(str, exp_bounds(x))),
            )
            for x in (min(cases.fraction(), 64) for _ in range(200))
        ],
    )
    sizes = [1, 2, 3, 5, 2**31, 2**31 + 1, 2**32 - 1, *(cases.random.randrange(1, 2**32) for _ in range(100))]
    check_same(twin, [({"do": "accept_below", "n": n}, lambda n=n: accept_below(n)) for n in sizes])


def thresholds(head: Any, params: Any, *, exact: bool) -> list[str]:
    found = (ReportProbabilities.exact if exact else ReportProbabilities.of)(head, params)
    return [str(below) for below in (found.keep_query_below, *found.keep_record_below)]


def test_thresholds(twin):
    cases = Cases(5)
    asked = []
    for i in range(N["thresholds"]):
        head = cases.head()
        params, exact = cases.params(head), i % 2 == 0
        question = {"do": "thresholds", "queries": head.as_json(), "params": params_list(params), "exact": exact}
        asked.append((question, lambda h=head, p=params, e=exact: thresholds(h, p, exact=e)))
    check_same(twin, asked)


def subset_thresholds(plain: bool, epsilon: Any, m: int, d: int) -> list[str]:
    made = (PlainSubsetSelection if plain else SubsetSelection).of(epsilon, m, d)
    return [str(made.include_below), *([] if plain else [str(made.sink_below)])]


def test_subset_thresholds(twin):
    cases = Cases(6)
    asked = []
    for i in range(N["subset_thresholds"]):
        m = cases.random.choice([1, 2, 3, 50, 1247, 10**6, 2**31])
        d, epsilon = cases.random.randint(0, min(m, 60) + 1), cases.params(cases.head()).per_record[0]
        question = {"do": "subset_thresholds", "kind": "plain" if i % 2 else "sink", "n_items": m, "subset_size": d}
        question["epsilon"] = [str(epsilon.numerator), str(epsilon.denominator)]
        asked.append((question, lambda p=i % 2 == 1, e=epsilon, m=m, d=d: subset_thresholds(p, e, m, d)))
    check_same(twin, asked)


def odds_figures(odds: ReportOdds) -> list[Any]:
    figures = [odds.answers, odds.most_items, math.floor(100 * odds.named + 0.5)]
    return [
        odds.named,
        None if math.isinf(odds.growth) else odds.growth,
        *figures,
        math.ceil(100 * odds.belief_after(BELIEF)),
    ]


def test_odds_have_the_same_digits(twin):
    cases = Cases(18)
    asked = []
    for _ in range(N["odds"]):
        head = cases.head()
        params, design = cases.params(head), cases.design(head)
        question = {"do": "odds", "queries": head.as_json(), "params": params_list(params)}
        question["design"] = list(dataclasses.astuple(design)) if design else None
        asked.append(
            (
                question,
                lambda h=head, p=params, d=design: [
                    odds_figures(report_odds(h, p, d)),
                    odds_figures(list_odds(p, len(h) + 1)),
                ],
            )
        )
    assert not all(isinstance(answer, Refused) for answer in check_same(twin, asked))


def test_consents_are_the_same_sentences(twin):
    ours = [optin_consent(records) for records in (1, 2, 20)]
    words = [
        "",
        " ",
        "\n",
        "Mine.",
        *ours,
        *(f"{sentence}{end}" for sentence in ours for end in (" ", "\n", "\nMine.")),
    ]
    asked = [
        (
            {"do": "consent", "records": records, "own": own},
            lambda r=records, o=own: [task_consent(r, o), task_consent(r, task_consent(r, o)) == task_consent(r, o)],
        )
        for records in (1, 2, 20)
        for own in words
    ]
    check_same(twin, asked)


def reported(
    round_number: int, head: Any, params: Any, design: Any, records: list[Record], content: bytes
) -> list[Any]:
    tape = Tape(content)
    shape = ReportShape.of(TASK, round_number, head, params, design)
    if design is None:
        parts = cells_as_parts(local_report(records, head, params, randomness=tape))
    else:
        parts = subset_report(records, head, design, params, randomness=tape)
    message = encode_report(parts, shape, randomness=tape)
    return [[[about, list(items)] for about, items in parts], message.hex(), tape.left]


def test_reports_on_the_same_bytes(twin):
    """Every mechanism, any list, m_C of 1 to 3, and tapes on which draws are rejected."""
    cases = Cases(7)
    asked = []
    for i in range(N["report"]):
        head = cases.head()
        params, design = cases.params(head), cases.design(head)
        records, content = cases.records(head), cases.tape(1024)
        question = {
            "do": "report",
            "task": TASK.hex(),
            "round": i,
            "queries": head.as_json(),
            "params": params_list(params),
            "design": list(dataclasses.astuple(design)) if design else None,
            "records": [pair(record) for record in records],
            "tape": content.hex(),
        }
        asked.append((question, lambda a=(i, head, params, design, records, content): reported(*a)))
    found = check_same(twin, asked)
    assert sum(isinstance(one, list) for one in found) > 1200
    assert len({json.dumps(one[0]) for one in found if isinstance(one, list)}) > 300


def test_changed_reports(twin):
    cases, good = Cases(8), vectors("report_bytes")
    asked = []
    for i in range(N["decode_report"]):
        case = cases.random.choice(good)
        fields = {
            **case["shape"],
            "task": bytes.fromhex(case["shape"]["task"]),
            "digest": bytes.fromhex(case["shape"]["digest"]),
        }
        shape, message = ReportShape(**fields), bytes.fromhex(case["message"])
        changed = cases.changed_bytes(message[:-16]) if i % 3 else cases.changed_bytes(message)
        if i % 3:
            changed += hashlib.sha256(changed[-16:] + changed[:-16]).digest()[:16]
        question = {"do": "decode_report", "message": changed.hex(), "shape": case["shape"]}
        asked.append(
            (question, lambda m=changed, s=shape: [[about, list(items)] for about, items in decode_report(m, s)[1]])
        )
    found = check_same(twin, asked)
    reasons = {one.reason for one in found if isinstance(one, Refused)}
    assert {"malformed", "wrong-round", "wrong-head-list", "id-mismatch"} <= reasons
    assert any(isinstance(one, list) for one in found)


# --- messages --------------------------------------------------------------------------------------------------------


def test_canonical_json(twin):
    cases = Cases(9)
    documents = [cases.changed_document({"a": [1, "b", None, {"c": [True]}], "d": cases.text()}) for _ in range(400)]
    check_same(twin, [({"do": "canonical", "document": d}, lambda d=d: canonical_json(d).decode()) for d in documents])
    texts = [
        cases.changed_bytes(b'{"a":[1,-1,"\\u001f\\n",null],"b":{"c":true,"d":12345678901234567}}') for _ in range(300)
    ]
    texts += [
        b"-0",
        b"1.0",
        b"1e2",
        b"NaN",
        b"9007199254740991",
        b"9007199254740992",
        b"[" * 17 + b"]" * 17,
        b"[" * 16 + b"]" * 16,
    ]
    texts += [
        b"\xef\xbb\xbf1",
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'"\xf0\x9f\x98\x80"',
        b'"\\ud83d\\ude00"',
        b"[" * 9999,
        b'{"b":1,"a":2}',
        b'{"a":1,"a":1}',
    ]
    check_same(
        twin, [({"do": "parse_canonical", "content": t.hex()}, lambda t=t: parse_canonical(t, "it")) for t in texts]
    )


def test_changed_manifests(twin):
    cases, good = Cases(10), [case["manifest"] for case in vectors("manifest")]
    documents = [cases.changed_document(cases.random.choice(good)) for _ in range(1200)]
    documents += [cases.changed_document({**document, "minor": 1}) for document in documents[:100]]
    payloads = [canonical_json(d) for d in documents if _is_canonical(d)]
    found = check_same(
        twin, [({"do": "decode_payload", "payload": p.hex()}, lambda p=p: decode_payload(p).document) for p in payloads]
    )
    assert 100 < sum(isinstance(one, Refused) for one in found) < len(found) - 20


def _is_canonical(document: Any) -> bool:
    return not isinstance(answered(lambda: canonical_json(document)), Refused)


def test_changed_signatures(twin):
    cases, keys = Cases(11), [SigningKey.new() for _ in range(3)]
    pinned = {key.key_id: key.public_point for key in keys[:2]}
    asked = []
    for case in vectors("manifest") * 20:
        payload = canonical_json(case["manifest"])
        message = encode_signed(sign_manifest(payload, cases.random.sample(keys, cases.random.randint(1, 2))))
        if cases.random.random() < 0.6:
            message = cases.changed_bytes(message)
        question = {
            "do": "verify_manifest",
            "message": message.hex(),
            "pinned": {k: p.hex() for k, p in pinned.items()},
        }
        asked.append((question, lambda m=message: verify_manifest(m, pinned).document))
    found = check_same(twin, asked)
    assert 5 < sum(isinstance(one, Refused) for one in found) < len(found) - 5


def test_changed_head_lists(twin):
    cases, good = Cases(12), [case["document"] for case in vectors("head_list")]
    documents = [cases.changed_document(cases.random.choice(good)) for _ in range(N["decode_head_list"])]
    documents = [_with_digest(document) if i % 2 else document for i, document in enumerate(documents)]

    def decoded(document: Any) -> Any:
        message = decode_head_list(document)
        design = message.design and {
            re.sub("_(.)", lambda m: m[1].upper(), name): value
            for name, value in dataclasses.asdict(message.design).items()
        }
        return [message.head.as_json(), params_list(message.params), design]

    found = check_same(twin, [({"do": "decode_head_list", "document": d}, lambda d=d: decoded(d)) for d in documents])
    assert 100 < sum(isinstance(one, Refused) for one in found) < len(found) - 20


def _with_digest(document: Any) -> Any:
    """With the digest of the list as it now is, so that what comes after it is looked at."""
    if isinstance(document, dict) and isinstance(document.get("queries"), list):
        text = json.dumps(document["queries"], ensure_ascii=False, separators=(",", ":"))
        return {**document, "digest": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()}
    return document


def test_sealed_records_open_on_the_other_side(twin):
    cases = Cases(13)
    private, public = new_round_key()
    context = SealingContext(TASK, 9, hashlib.sha256(b"consent").digest())
    words = {"task": TASK.hex(), "round": 9, "consent": context.consent.hex(), "credential": CODE}
    tag = context.tag_of(CODE)
    opener = Opener(private, context, at_most=4)
    held = []
    for _ in range(N["seal"]):
        queries = [form for text in cases.texts(4, 40) if (form := normalize(text))] or ["weather"]
        held.append(
            [
                Record(
                    q,
                    WILDCARD
                    if cases.random.random() < 0.3
                    else "http://a.example/" + "x" * cases.random.randint(0, 700),
                )
                for q in queries
            ]
        )
    sealed = twin.ask(
        {
            "do": "seal",
            "records": [pair(r) for r in records],
            "context": words,
            "public_key": public.hex(),
            "ladder": i % 2 == 0,
        }
        for i, records in enumerate(held)
    )
    assert [opener.open(bytes.fromhex(message), tag) for message in sealed] == held
    asked = []
    for i, records in enumerate(held):
        message = seal_records(records, context, tag, public)
        message = cases.changed_bytes(message) if i % 3 == 0 else message
        question = {
            "do": "open",
            "message": message.hex(),
            "context": words,
            "private_key": private.hex(),
            "at_most": 3,
        }
        asked.append((question, lambda m=message: [pair(r) for r in Opener(private, context, at_most=3).open(m, tag)]))
    found = check_same(twin, asked)
    assert 40 < sum(isinstance(one, Refused) for one in found) < 140


# --- the policy ------------------------------------------------------------------------------------------------------


def camel(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)


def test_the_compiled_in_limits_are_the_same(twin):
    limits = {camel(name): value for name, value in dataclasses.asdict(POLICY).items()}
    assert twin.one({"do": "policy"}) == limits
    reasons = twin.one({"do": "reasons"})
    assert {name: text for name, text in reasons.items() if name in REASONS} == {
        name: text for name, text in REASONS.items() if name in reasons
    }


def typed(document: Any) -> Manifest:
    """As read from a payload, with whatever value: the policy has the last word."""
    manifest = decode(Manifest, document)
    object.__setattr__(manifest, "received", document)
    return manifest


def digest(document: Any) -> str:
    return typed(document).digest


def test_the_policy_refuses_the_same(twin):
    cases, good = Cases(14), [case["manifest"] for case in vectors("manifest")]
    day = 86_400
    asked = []
    for _ in range(N["check_manifest"]):
        manifest, pick = dict(cases.random.choice(good)), cases.random
        manifest |= {"issued": pick.choice([0, 10, 100]) * day, "expires": pick.choice([5, 31, 32, 120]) * day}
        manifest |= {"sequence": pick.randint(1, 4), "round": pick.randint(1, 4)}
        manifest["min_device_version"] = pick.choice(["0", "0.2", "0.2.9", "0.3", "1", "x", "0.0.0.0.0"])
        before = {**manifest, "sequence": pick.randint(1, 4), "round": pick.randint(1, 4)}
        now, task = pick.choice([1, 9, 30, 99, 119]) * day, pick.choice([manifest["task"], "00" * 16])
        seen = policy.LastManifest(before["sequence"], digest(before), before["round"], 0)
        memory = {
            "now": now,
            "sequence": seen.sequence,
            "round": seen.round,
            "deviceVersion": "0.2",
            "task": task,
            "manifest": before,
        }

        def checked(m: Any = manifest, t: str = task, s: Any = seen, n: int = now) -> None:
            policy.check_manifest(typed(m), task=t, last=s, now=n, policy=POLICY)

        asked.append(({"do": "check_manifest", "manifest": manifest, "memory": memory}, checked))
    found = check_same(twin, asked)
    refused = {one.reason for one in found if isinstance(one, Refused)}
    assert refused >= {
        "wrong-task",
        "rolled-back",
        "two-faces",
        "older-round",
        "clock-behind",
        "expired",
        "valid-too-long",
    }
    assert "device-too-old" in refused
    assert None in found


def test_the_policy_refuses_the_same_requests(twin):
    cases, good = Cases(15), [case["manifest"] for case in vectors("manifest") if case["manifest"]["phase"] == "client"]
    asked = []
    for _ in range(N["check_request"]):
        manifest, pick = json.loads(json.dumps(cases.random.choice(good))), cases.random
        manifest |= {
            "epsilon": pick.choice(["0", "4", "4.0", "4.1", "1e400", "0.5"]),
            "delta": pick.choice(["0", "1e-4", "0.001"]),
        }
        manifest |= {
            "records_per_client": pick.choice([0, 1, 20, 21]),
            "records_per_optin": pick.choice([0, 1, 20, 21]),
        }
        manifest["client"]["report_bytes"] = pick.choice([0, 73, 65536, 65537])
        asked.append(
            (
                {"do": "check_request", "manifest": manifest},
                lambda m=manifest: policy.check_request(typed(m), POLICY),
            )
        )
    found = check_same(twin, asked)
    assert None in found
    assert Refused("PolicyRefused", "over-policy") in found


def test_the_policy_refuses_the_same_lists(twin):
    cases, good = Cases(16), vectors("head_list")
    drawn = [case for case in vectors("policy") if case["ask"] == "list" and case["refused"] != "over-policy"]
    template = next(case["manifest"] for case in vectors("manifest") if case["manifest"]["phase"] == "client")
    asked = []
    for _ in range(N["check_head_list"]):
        pick = cases.random
        case = pick.choice(good)
        whole = pick.choice(drawn) if pick.random() < 0.4 else None
        document = json.loads(whole["list"]) if whole else dict(case["document"])
        if pick.random() < 0.3:
            document["query_budget_fraction"] = pick.choice([1.0, 0.5, 1e-19])
        message = json.dumps(document).encode()
        client = {**template["client"], "artifact": hashlib.sha256(message).hexdigest(), "digest": document["digest"]}
        client |= {
            "mechanism": document.get("design", {}).get("mechanism", "two-stage"),
            "report_bytes": whole["manifest"]["client"]["report_bytes"] if whole else case["report_bytes"],
        }
        manifest = {
            **template,
            "epsilon": repr(document["epsilon"]),
            "delta": repr(document["delta"]),
            "method": document["method"],
        }
        manifest |= {"records_per_client": document["records_per_client"], "client": client}
        kind = pick.random()
        if kind < 0.3:
            manifest[pick.choice(["epsilon", "delta"])] = pick.choice(["4", "1e-5", "7.5"])
        elif kind < 0.5:
            client[pick.choice(["report_bytes"])] += 1
        elif kind < 0.6:
            client["mechanism"] = "subset selection"
        elif kind < 0.7:
            manifest["records_per_client"] += 1

        curators = whole["curators"] if whole else []

        def checked(content: bytes = message, m: Any = manifest, pinned: Any = tuple(curators)) -> None:
            policy.check_request(typed(m), POLICY)
            points = dict(read_public_point(point, "curators") for point in pinned)
            message, shape = policy.check_head_list(
                content, typed(m), POLICY, partial(is_drawn_by_curator, curators=points)
            )
            try:  # JavaScript looks for this before, Python when it makes the report
                make_report([Record("google", "a")], message, shape, SystemRandomness())
            except InvalidParameter:
                raise DeviceRefused("bad-head-list") from None

        question = {"do": "check_head_list", "document": document, "manifest": manifest, "curators": curators}
        asked.append((question, checked))
    found = check_same(twin, asked)
    assert None in found
    assert {one.reason for one in found if one} >= {"wrong-parameters", "over-policy", "short-list", "not-drawn"}


# --- packs -----------------------------------------------------------------------------------------------------------


def rows(entries: Any) -> list[Any]:
    return [[e.query, e.lower, e.probability, [list(url) for url in e.urls]] for e in entries]


def test_packs(twin):
    cases = Cases(17)
    asked, wrong, searches, deltas = [], [], [], []
    before: bytes | None = None
    for i in range(N["encode_pack"]):
        info, entries = cases.pack(round_number=i + 1)
        content = encode_pack(info, entries)
        words = {
            "method": info.method,
            "epsilon": info.epsilon,
            "delta": info.delta,
            "task": info.task.hex(),
            "round": info.round,
        }
        question = {
            "do": "encode_pack",
            "info": words | {"fractionBits": info.fraction_bits},
            "entries": rows(entries)[::-1],
        }
        asked.append((question, lambda c=content: c.hex()))
        changed = cases.changed_bytes(content)
        for pack in (content, changed):
            wrong.append(({"do": "decode_pack", "pack": pack.hex()}, lambda p=pack: rows(decode_pack(p).entries())))
        if before is not None:
            delta = encode_delta(decode_pack(before), decode_pack(content))
            delta = cases.changed_bytes(delta) if i % 2 else delta
            question = {"do": "apply_delta", "base": before.hex(), "delta": delta.hex()}
            deltas.append((question, lambda b=before, d=delta: apply_delta(decode_pack(b), d).hex()))
        searches += [search_case(cases, content) for _ in range(3)]
        before = content
    check_same(twin, asked)
    refused = check_same(twin, wrong)
    assert 100 < sum(isinstance(one, Refused) for one in refused) <= 200
    assert 50 < sum(isinstance(one, Refused) for one in check_same(twin, deltas)) < 150
    found = check_same(twin, searches)
    assert {kind for answer in found for _, kind, _ in answer} == {"exact", "prefix", "typo"}


def search_case(cases: Cases, content: bytes) -> tuple[dict[str, Any], Callable[[], Any]]:
    index = SearchIndex(decode_pack(content))
    queries = [entry.query for entry in index.pack.entries()] or ["weather"]
    typed = list(cases.random.choice(queries))
    for _ in range(cases.random.choice([0, 1, 1, 2, 3])):
        place = cases.random.randrange(len(typed)) if typed else 0
        typed[place : place + cases.random.choice([0, 1, 5])] = cases.random.choice(["", "a", "x", "é", " "])
    text, limit = "".join(typed), cases.random.choice([1, 3, 10, 100])

    def found() -> Any:
        return [[rows([one.entry])[0], one.kind, one.distance] for one in index.search(text, limit)]

    return {"do": "search", "pack": content.hex(), "typed": text, "limit": limit}, found


def test_that_makes_ten_thousand():
    assert sum(N.values()) >= 10_000
