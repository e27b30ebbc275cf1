"""Every published round has its pack; a device that holds an earlier one updates by a delta to the same bytes."""

from __future__ import annotations

import pytest

from databases import DATABASES, fresh_database
from searchblend.search.build_pack import SearchIndex
from searchblend.search.pack import decode_pack
from searchblend.search.pack_delta import apply_delta
from searchblend.service.workers.round_packs import PACK_FILE, make_pack_files
from searchblend.wire.release import decode_result
from searchblend.wire.signing import verify_manifest
from service_http import http_service
from service_parts import Service, people


@pytest.fixture(params=DATABASES)
def service(request, tmp_path):
    made = Service.start(fresh_database(request.param, tmp_path), tmp_path)
    yield made
    made.store.close()


def play(service, task, n_round):
    service.contribute(service.open(task), people(400, seed=n_round))
    round_ = service.head_list(task)
    service.count(round_, service.messages(round_, people(1500, seed=100 + n_round)))
    return service.finish(task)


def manifest(service, task):
    pinned = {key.key_id: key.public_point for key in service.signing_keys.all()}
    return verify_manifest(service.store.artifacts.manifest(task.task)[2], pinned).document


def artifact(service, part):
    content, media_type = service.store.artifacts.get(part["artifact"])
    assert len(content) == part["bytes"]
    return content, media_type


@pytest.mark.thorough
def test_three_rounds_and_a_device_that_slept(service):
    task = service.task()
    service.work()
    assert manifest(service, task)["pack"] is None
    packs = []
    for n_round in (1, 2, 3):
        assert play(service, task, n_round).number == n_round
        part = manifest(service, task)["pack"]
        assert part["round"] == n_round
        content, media_type = artifact(service, part)
        assert media_type == "application/vnd.searchblend.pack"
        pack = decode_pack(content)
        assert pack.digest == part["artifact"]
        assert (pack.info.task.hex(), pack.info.round, pack.info.method) == (task.task, n_round, "best")
        assert (pack.info.epsilon, pack.info.delta) == (4.0, 1e-4)
        assert SearchIndex(pack).urls_for("Weather", 1) == ["http://weather.example/a"]
        assert {delta["base"] for delta in part["deltas"]} <= {earlier.digest for earlier in packs}
        packs.append(pack)
    part = manifest(service, task)["pack"]
    assert {delta["base"] for delta in part["deltas"]} == {packs[0].digest, packs[1].digest}
    for delta in part["deltas"]:
        content, media_type = artifact(service, delta)
        assert media_type == "application/vnd.searchblend.pack-delta"
        assert len(content) < part["bytes"]
        base = next(pack for pack in packs if pack.digest == delta["base"])
        assert apply_delta(base, content) == packs[2].content


def test_an_open_round_keeps_the_pack_of_the_last_published_one(service):
    task = service.task()
    play(service, task, 1)
    before = manifest(service, task)["pack"]
    service.open(task)
    assert manifest(service, task)["phase"] == "opt-in"
    assert manifest(service, task)["pack"] == before


def test_a_pack_is_made_of_public_numbers_alone_and_always_the_same(service):
    task = service.task()
    found = play(service, task, 1)
    files = service.store.artifacts.of_round(found.key)
    result = decode_result(service.store.artifacts.get(files["result.json"])[0])
    assert (
        make_pack_files(service.store, found, result)[PACK_FILE][0]
        == artifact(service, manifest(service, task)["pack"])[0]
    )


def test_a_task_of_queries_alone(tmp_path):
    service = Service.start(str(tmp_path / "service.db"), tmp_path)
    task = service.task(has_urls=False, method="paper")
    service.contribute(service.open(task), people(400, seed=1, urls=False))
    round_ = service.head_list(task)
    service.count(round_, service.messages(round_, people(1500, seed=2, urls=False)))
    service.finish(task)
    pack = decode_pack(artifact(service, manifest(service, task)["pack"])[0])
    assert pack.info.method == "paper"
    assert (pack.n_urls, pack.n_pairs) == (0, 0)
    assert [item.entry.query for item in SearchIndex(pack).search("wea")] == ["weather"]
    service.store.close()


def test_over_http(tmp_path):
    with http_service(str(tmp_path / "service.db"), tmp_path) as http:
        task = http.parts.task()
        play(http.parts, task, 1)
        pinned = {key.key_id: key.public_point for key in http.parts.signing_keys.all()}
        part = verify_manifest(http.client.get(f"/v1/tasks/{task.task}/manifest").content, pinned).document["pack"]
        answer = http.client.get(f"/v1/artifacts/{part['artifact']}")
        assert answer.headers["content-type"] == "application/vnd.searchblend.pack"
        assert "immutable" in answer.headers["cache-control"]
        assert decode_pack(answer.content).digest == part["artifact"]
        files = http.client.get(f"/v1/tasks/{task.task}/rounds/1/files").json()["files"]
        assert files[PACK_FILE] == part["artifact"]
