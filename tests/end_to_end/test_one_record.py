"""One record's way through every hop of ARCHITECTURE.md, in the default method, and the same as printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import searchblend as sb
from searchblend.blender.best.subset_report import subset_report
from searchblend.blender.best.subset_report_bulk import ReportCounts
from searchblend.blender.method import METHODS, HeadFigures
from searchblend.blender.result import result_of
from searchblend.core.privacy import TrustModel
from searchblend.core.randomness import Tape
from searchblend.search.build_pack import build_pack
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
        figures = METHODS["best"].list_head(optin, PARAMS, randomness=Tape(NO_NOISE * 5))
        assert figures.head.queries == ("weather", "news")

    walked.append("design")
    figures = METHODS["best"].design_reports(figures, PARAMS, N_CLIENTS)

    walked.append("head list")
    message = decode_head_list(json.loads(json.dumps(encode_head_list(figures.head, PARAMS, figures.design))))
    assert (message.head.digest, message.design) == (figures.head.digest, figures.design)

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
    release = METHODS["best"].estimate(figures, reports, PARAMS, N_CLIENTS, trust=TrustModel.LOCAL)
    assert release.queries.probability[0] > 0.9  # every client held it; seeded, so always the same
    np.testing.assert_allclose(release.queries.probability.sum(), 1)

    walked.append("pack")
    content = build_pack(result_of(release)).content

    walked.append("answer")
    assert sb.SearchIndex(sb.decode_pack(content)).urls_for(" WEATHER") == [mine.url]

    assert walked == hop_names()


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
    figures = HeadFigures(head, 51, optin=optin, head_users=51, cryptographic=False)
    release = METHODS["paper"].estimate(figures, ReportCounts(two_stage=counts), PARAMS, 3, trust=TrustModel.LOCAL)
    np.testing.assert_array_equal(release.records.probability, blended.probability)
    content = build_pack(result_of(release)).content

    # answer
    assert sb.SearchIndex(sb.decode_pack(content)).urls_for(" WEATHER") == [mine[0].url]
