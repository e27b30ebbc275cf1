"""The two walks of ARCHITECTURE.md, hop by hop, in the default method; and the printed method's steps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import searchblend as sb
from searchblend.blender.best.subset_report_bulk import ReportCounts
from searchblend.blender.method import METHODS
from searchblend.blender.release import HeadFigures
from searchblend.blender.result import Result, result_of
from searchblend.core.privacy import Neighbors, TrustModel
from searchblend.core.randomness import Tape
from searchblend.device.agent import DeviceAgent
from searchblend.device.consent_texts import text_of
from searchblend.device.state import FILE, DeviceState
from searchblend.device.transport import Answer, Transport
from searchblend.logs.options import ReadOptions
from searchblend.logs.read import open_log
from searchblend.releases.hybrid import hybrid_files
from searchblend.releases.make_release import Cost, make_release
from searchblend.search.build_pack import build_pack
from searchblend.search.pack_index import PackIndex
from searchblend.store.states import State
from searchblend.synthetic.seeded import SeededRandomness
from searchblend.wire.head_list import decode_head_list, encode_head_list
from searchblend.wire.release import decode_result, read_statement
from service_http import http_service
from service_parts import enough_to_answer, people

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


def hop_names(walk: str) -> list[str]:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()
    table = text.split(f"## {walk}")[1].split("\n## ")[0]
    return [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]


def test_from_a_log_to_a_release(tmp_path: Path):
    method, randomness, walked = METHODS["best"], SeededRandomness(1), []

    walked.append("log line")
    people = [name for name, n in PEOPLE.items() for _ in range(10 * n)]
    lines = [f"{user}\t {name.upper()}\thttp://{name}.example/" for user, name in enumerate(people)]
    (tmp_path / "log.tsv").write_text("\n".join(["user\tquery\turl", *lines, "one field too few"]) + "\n")

    def make(log: sb.SearchLog) -> tuple[Result, dict[str, bytes]]:
        assert sum(entry["count"] for entry in log.summary.as_json()["malformed"].values()) == 1

        walked.append("groups")
        optin, clients = log.split(optin_fraction=0.4)
        assert optin.n_users + clients.n_users == len(people)

        walked.append("head list")
        params = method.settled(PARAMS, has_rows=optin.has_rows)
        assert params.records_per_optin == 100
        figures = method.list_head(optin, params, randomness=randomness)
        assert figures.head.queries == ("weather", "news")

        walked.append("design")
        figures = method.design_reports(figures, params, clients.n_users)

        walked.append("reports")
        reports = method.simulate_reports(clients, figures, params, randomness=randomness)

        walked.append("estimate")
        trust = TrustModel.HELD_LOG
        release = method.estimate(figures, reports, params, clients.n_users, trust=trust)

        walked.append("result")
        result = result_of(release)
        assert [row.query for row in result.trends] == ["weather", "news", None]
        assert not result.guarantee.holds  # a seed was used, and whoever drew says so

        walked.append("files")
        return result, hybrid_files(release, result, log.decided, created="2026-01-01T00:00:00+00:00")

    cost = Cost(PARAMS.budget, Neighbors.REPLACE_ONE, "a walk")
    options = ReadOptions((str(tmp_path / "log.tsv"),))
    written = make_release(
        tmp_path / "out",
        cost,
        open_log=lambda: open_log(options),
        make=make,
        summarize=lambda log: log.summary.as_json(),
        read=lambda files: decode_result(files["result.json"]),
    )

    walked.append("folder")
    assert decode_result((tmp_path / "out" / "result.json").read_bytes()) == written.released
    assert set(read_statement(tmp_path / "out" / "statement.json").files) == {
        "headlist.json",
        "records.csv",
        "result.json",
        "trends.csv",
    }
    assert walked == hop_names("Walk 1")


class InProcess(Transport):
    """The service's application, without a socket."""

    def __init__(self, client) -> None:
        super().__init__("http://127.0.0.1:1")
        self._client = client

    def send(self, method, path, body=None, *, headers=None, at_most):
        answer = self._client.request(method, path, content=body, headers=headers)
        assert len(answer.content) <= at_most
        return Answer(
            answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, answer.content
        )


def test_from_a_device_to_an_answer(tmp_path: Path):
    """660 opt-in users and 80 clients, of whom a fifth or more search for the weather: far from what noise decides."""
    walked, n_devices = [], 80
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        service = http.parts
        task = service.task(min_clients=n_devices, max_head_queries=30)
        point, agents = service.signing_keys.all()[0].public_point.hex(), []

        def device(consent: str, text: str, query: str, url: str, **enrolment) -> DeviceAgent:
            # The first of each group is kept on disk, as a pack needs it; the others in memory, which is faster.
            path = tmp_path / consent / FILE if not (tmp_path / consent).exists() else ":memory:"
            state = DeviceState(path, create=True)
            agent = DeviceAgent(state, transport=InProcess(http.client), clock=service.clock.now)
            agents.append(agent)
            agent.enrol("http://127.0.0.1:1", task.task, [point], **enrolment)
            agent.consent(consent, text)
            assert agent.record(query, url).kept
            return agent

        walked.append("search")
        round_ = service.open(task)
        contributor = device(
            "opt-in", text_of("opt-in"), "Weather", "http://weather.example/a#x", code=service.code_of(task.task, 1_000)
        )
        clients = [device("local", text_of("local"), *record) for record in people(n_devices, seed=2)]

        walked.append("manifest")
        assert clients[0].sync(immediately=True).status == "other-group"

        walked += ["sealed record", "intake"]
        optin_users = [*people(400, seed=1), *enough_to_answer()]
        service.contribute(round_, optin_users)
        assert contributor.sync(immediately=True).status == "reported"
        assert service.store.contributions.count(round_.key) == len(optin_users) + 1

        walked.append("head list")
        service.lifecycle.close_optin(service.current(task), actor="ann")
        service.work()
        assert service.store.contributions.count(round_.key) == 0
        figures, _ = service.lifecycle.candidate(service.current(task))
        assert "weather" in figures.head.queries
        assert figures.cryptographic is True

        walked.append("review")
        service.lifecycle.review(service.current(task), actor="rob")
        assert service.current(task).state is State.REVIEWED

        walked.append("client window")
        service.work()
        assert service.current(task).state is State.CLIENT_OPEN

        walked += ["report", "collect"]
        assert {agent.sync(immediately=True).status for agent in clients} == {"reported"}
        assert [len(agent.export().ledger) for agent in clients] == [1] * n_devices
        assert service.store.reports.n_seen(round_.key) == n_devices

        walked += ["estimate", "publish"]
        published = service.finish(task)
        assert published.state is State.PUBLISHED
        files = service.store.artifacts.of_round(published.key)
        result = decode_result(http.client.get(f"/v1/artifacts/{files['result.json']}").content)
        assert result.guarantee.holds
        assert result.groups.clients == n_devices

        walked.append("pack")
        service.work()
        clients[0].sync(immediately=True)
        pack = clients[0].pack()
        assert pack is not None
        for agent in agents:
            agent.close()

    walked.append("answer")
    assert PackIndex(pack).urls_for(" WEATHER")[0] == "http://weather.example/a"
    assert walked == hop_names("Walk 2")


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
