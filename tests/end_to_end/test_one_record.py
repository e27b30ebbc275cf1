"""One record's way through every hop of ARCHITECTURE.md, with a scripted tape: the same hop names in the same order."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import searchblend as sb
from searchblend.randomness import Tape
from searchblend.search.build_pack import Estimate, pack_of_estimates
from searchblend.search.pack import PackInfo
from searchblend.wire.head_list import decode_head_list, encode_head_list

PARAMS = sb.BlenderParams(sb.Budget(4.0, 1e-5), max_head_queries=2)
NO_NOISE = b"\xff" * 8
"""A word whose magnitude is 0: all ones lies above every threshold of the table."""
TRUTH = b"\x00" * 8
"""A word below every keep threshold."""
PEOPLE = {"weather": 30, "news": 20, "rare": 1}


def write_log(path: Path) -> None:
    lines = ["user\tquery\turl"]
    people = [name for name, n in PEOPLE.items() for _ in range(n)]
    lines += [f"{user}\t {name.upper()}\thttp://{name}.example/" for user, name in enumerate(people)]
    path.write_text("\n".join(lines) + "\n")


def hop_names() -> list[str]:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
    table = text.split("## One record's way")[1].split("`tests/end_to_end")[0]
    return [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]


def test_one_record(tmp_path: Path):
    walked = []

    walked.append("log line")
    write_log(tmp_path / "log.tsv")
    with sb.read_log(tmp_path / "log.tsv") as log:
        everybody, nobody = log.split(optin_fraction=0.999999)
        assert everybody.n_users + nobody.n_users == sum(PEOPLE.values())

        walked.append("opt-in, set S")
        candidates = sb.create_head_list(everybody, PARAMS, randomness=Tape(NO_NOISE * 3))
        assert candidates.queries == ("news", "weather")

        walked.append("opt-in, set T")
        head, optin = sb.estimate_optin_probabilities(everybody, candidates, PARAMS, randomness=Tape(NO_NOISE * 3))
        assert head.queries == ("weather", "news")
        np.testing.assert_allclose(optin.queries.probability, np.array([30, 20, 1]) / 51)

    walked.append("head list")
    message = decode_head_list(json.loads(json.dumps(encode_head_list(head, PARAMS))))
    assert message.head.digest == head.digest

    walked.append("device")
    mine = [sb.Record("weather", "http://weather.example")]
    told = sb.local_report(mine, message.head, message.params, randomness=Tape(TRUTH))
    assert told == (head.cell_of(mine[0]),)

    walked.append("report")
    counts = sb.count_reports(np.array([*told, *told, 4]), head)
    assert counts.tolist() == [2, 0, 0, 0, 1]

    walked.append("denoise")
    client = sb.estimate_client_probabilities(counts, head, PARAMS)
    np.testing.assert_allclose(client.queries.probability.sum(), 1)

    walked.append("blend")
    blended = sb.blend_probabilities(optin.records, client.records)
    np.testing.assert_allclose(blended.probability.sum(), 1)

    walked.append("pack")
    queries = sb.blend_probabilities(optin.queries, client.queries)
    low, query_low = blended.raw.interval[:, 0], queries.raw.interval[:, 0]
    named = [Estimate(query, None, query_low[i], queries.probability[i]) for i, query in enumerate(head.queries)]
    cells = [
        Estimate(cell.query, cell.url, low[i], blended.probability[i])
        for i, cell in enumerate(head.cells())
        if isinstance(cell.url, str)
    ]
    content = pack_of_estimates(PackInfo("paper", 4.0, 1e-5), named, cells).content

    walked.append("answer")
    assert sb.SearchIndex(sb.decode_pack(content)).urls_for(" WEATHER") == [mine[0].url]

    assert walked == hop_names()
