"""One record's way through every hop of ARCHITECTURE.md, in the default method, and the same as printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import searchblend as sb
from searchblend.blender.best.blend import estimate_best
from searchblend.blender.best.choose_design import choose_design
from searchblend.blender.best.observations import OptinCounts
from searchblend.blender.best.stability_histogram import count_head_list, curator_design
from searchblend.blender.best.subset_report import subset_report
from searchblend.blender.estimates import Blended
from searchblend.core.randomness import Tape
from searchblend.search.build_pack import Estimate, pack_of_estimates
from searchblend.search.pack import PackInfo
from searchblend.service.workers.estimator import report_counts
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.wire.head_list import decode_head_list, encode_head_list
from searchblend.wire.report import ReportShape, counters_of, decode_report, encode_report

PARAMS = sb.BlenderParams(sb.Budget(4.0, 1e-5), max_head_queries=2)
NO_NOISE = b"\xff" * 8
"""A word whose magnitude is 0: all ones lies above every threshold of the table."""
TRUTH = b"\x00" * 8
"""A word below every keep threshold."""
N_CLIENTS = 2_000
PEOPLE = {"weather": 30, "news": 20, "rare": 1}


def write_log(path: Path) -> None:
    lines = ["user\tquery\turl"]
    people = [name for name, n in PEOPLE.items() for _ in range(n)]
    lines += [f"{user}\t {name.upper()}\thttp://{name}.example/" for user, name in enumerate(people)]
    path.write_text("\n".join(lines) + "\n")


def hop_names() -> list[str]:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
    table = text.split("## One record's way")[1].split("The table shows")[0]
    return [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]


def test_one_record(tmp_path: Path):
    walked = []

    walked.append("log line")
    write_log(tmp_path / "log.tsv")
    with sb.read_log(tmp_path / "log.tsv") as log:
        optin, _ = log.split(optin_fraction=1 - 1e-12)

        walked.append("opt-in")
        counted = count_head_list(optin, PARAMS, curator_design(PARAMS), randomness=Tape(NO_NOISE * 5))
        assert counted.head.queries == ("weather", "news")

    walked.append("design")
    chosen, _ = choose_design(counted.head, OptinCounts.of(counted), PARAMS, N_CLIENTS)

    walked.append("head list")
    message = decode_head_list(json.loads(json.dumps(encode_head_list(counted.head, PARAMS, chosen.design))))
    assert (message.head.digest, message.design) == (counted.head.digest, chosen.design)

    walked.append("device")
    devices = SeededRandomness(1)
    mine = sb.Record("weather", "http://weather.example")
    shape = ReportShape.of(bytes(16), 1, message.head, PARAMS, message.design)
    told = [subset_report([mine], message.head, message.design, PARAMS, randomness=devices) for _ in range(N_CLIENTS)]
    sent = [encode_report(report, shape, randomness=devices) for report in told]

    walked.append("report")
    counters = np.zeros(shape.n_counters, dtype=np.int64)
    for report in sent:
        np.add.at(counters, counters_of(decode_report(report, shape)[1], shape), 1)

    walked.append("denoise")
    reports = report_counts(counters, shape)

    walked.append("blend")
    blended = estimate_best(counted, reports, message.design, PARAMS, N_CLIENTS)
    assert blended.queries.probability[0] > 0.9  # every client held it; seeded, so always the same
    np.testing.assert_allclose(blended.queries.probability.sum(), 1)

    walked.append("pack")
    content = packed(message.head, blended.queries, blended.records, "best")

    walked.append("answer")
    assert sb.SearchIndex(sb.decode_pack(content)).urls_for(" WEATHER") == [mine.url]

    assert walked == hop_names()


def packed(head: sb.HeadList, queries: Blended, records: Blended, method: str) -> bytes:
    low, query_low = records.raw.interval[:, 0], queries.raw.interval[:, 0]
    named = [Estimate(query, None, query_low[i], queries.probability[i]) for i, query in enumerate(head.queries)]
    cells = [
        Estimate(cell.query, cell.url, low[i], records.probability[i])
        for i, cell in enumerate(head.cells())
        if isinstance(cell.url, str)
    ]
    return pack_of_estimates(PackInfo(method, 4.0, 1e-5), named, cells).content


def test_one_record_as_printed(tmp_path: Path):
    # log line
    write_log(tmp_path / "log.tsv")
    with sb.read_log(tmp_path / "log.tsv") as log:
        everybody, nobody = log.split(optin_fraction=1 - 1e-12)
        assert everybody.n_users + nobody.n_users == sum(PEOPLE.values())

        # opt-in, set S
        candidates = sb.create_head_list(everybody, PARAMS, randomness=Tape(NO_NOISE * 3))
        assert candidates.queries == ("news", "weather")

        # opt-in, set T
        head, optin = sb.estimate_optin_probabilities(everybody, candidates, PARAMS, randomness=Tape(NO_NOISE * 3))
        assert head.queries == ("weather", "news")
        np.testing.assert_allclose(optin.queries.probability, np.array([30, 20, 1]) / 51)

    # head list
    message = decode_head_list(json.loads(json.dumps(encode_head_list(head, PARAMS))))
    assert message.head.digest == head.digest

    # device
    mine = [sb.Record("weather", "http://weather.example")]
    told = sb.local_report(mine, message.head, message.params, randomness=Tape(TRUTH))
    assert told == (head.cell_of(mine[0]),)

    # report
    counts = sb.count_reports(np.array([*told, *told, 4]), head)
    assert counts.tolist() == [2, 0, 0, 0, 1]

    # denoise
    client = sb.estimate_client_probabilities(counts, head, PARAMS)
    np.testing.assert_allclose(client.queries.probability.sum(), 1)

    # blend
    blended = sb.blend_probabilities(optin.records, client.records)
    np.testing.assert_allclose(blended.probability.sum(), 1)

    # pack
    queries = sb.blend_probabilities(optin.queries, client.queries)
    content = packed(head, queries, blended, "paper")

    # answer
    assert sb.SearchIndex(sb.decode_pack(content)).urls_for(" WEATHER") == [mine[0].url]
