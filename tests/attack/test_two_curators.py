"""Two curators, two publishers: processes that know nothing of each other do each job once, and no key is lost."""

from __future__ import annotations

import contextlib

import pytest

from attack_child import WrongClock, let_go_on, stopping_at, wait_stopped
from attack_fleet import Fleet
from attack_service import COMMON, wait_for
from databases import DATABASES, fresh_database
from searchblend.service.workers.signing_keys import SigningKeys

HONEST = COMMON * 20
ROUNDS = 4
PASSES = 12


@pytest.fixture(params=DATABASES)
def fleet(request, tmp_path):
    with contextlib.ExitStack() as stack:
        yield Fleet(stack, tmp_path, fresh_database(request.param, tmp_path))


def play(service, rounds):
    """Several tasks at once: every record of every round is opened."""
    tasks = [service.task() for _ in range(rounds)]
    manifests = [service.open_round(task) for task in tasks]
    for task, manifest in zip(tasks, manifests, strict=True):
        service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    for task in tasks:
        service.act(task, "close-opt-in")
    for task in tasks:
        number = service.wait_state(task, "SHREDDED")["round"]
        assert service.drawn(task, number)["records"] == len(HONEST)


@pytest.mark.parametrize("folders", [("keys", "keys"), ("keys-1", "keys-2")], ids=["shared", "separate"])
def test_two_curators_open_every_round_and_keep_no_key(fleet, folders):
    service = fleet.service()
    for n, keys in enumerate(folders):
        fleet.curator(f"curator-{n}", keys)
    play(service, ROUNDS)
    for keys in folders:
        wait_for(lambda keys=keys: not list((fleet.folder / keys).glob("*.key")), "the end of all keys")


@pytest.mark.parametrize("folders", [("keys", "keys"), ("keys-1", "keys-2")], ids=["shared", "separate"])
def test_an_overtaken_curator_harms_no_live_key(fleet, folders):
    """The first stops before it makes the key; the second, whose clock is past the lease, makes one meanwhile."""
    service = fleet.service()
    first = fleet.curator("first", folders[0], stopping_at("service/workers/vault.py:create"))
    task = service.task()
    service.draft(task)
    service.act(task, "open")
    wait_stopped(first)
    late = WrongClock(fleet.folder, 400)
    fleet.curator("second", folders[1], late.environment)
    manifest = service.manifest(task, "opt-in")
    late.move(0)
    let_go_on(first)
    wait_for(lambda: "overtaken" in (fleet.folder / "first.log").read_text(), "the first to notice")
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    _, drawn = service.draw(task)
    assert drawn["records"] == len(HONEST)


@pytest.mark.parametrize(
    "point", ["service/workers/curator.py:_opened", "service/workers/curator.py:_commit_head_list"]
)
def test_an_overtaken_draw_is_never_committed_twice(fleet, point):
    service = fleet.service()
    task = service.task()
    first = fleet.curator("first", "keys", stopping_at(point))
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    service.act(task, "close-opt-in")
    wait_stopped(first)
    late = WrongClock(fleet.folder, 400)
    fleet.curator("second", "keys", late.environment)
    number = service.wait_state(task, "SHREDDED")["round"]
    late.move(0)
    let_go_on(first)
    wait_for(lambda: "overtaken" in (fleet.folder / "first.log").read_text(), "the first to notice")
    moves = [row["detail"] for row in service.audit() if row["detail"].get("to") == "HEADLIST_READY"]
    assert sum((move["task"], move["round"]) == (task, number) for move in moves) == 1
    debits = service.done("GET", "/ledger")["debits"]
    assert sum(task in debit["release_id"] for debit in debits) == 1


@pytest.mark.parametrize("signing", ["signing", "signing-2"], ids=["shared", "separate"])
def test_two_publishers_do_not_sign_without_end(fleet, signing):
    service = fleet.service()
    if signing != "signing":
        SigningKeys(fleet.folder / signing).add()
    other = fleet.publisher("publisher-2", signing)
    fleet.curator("curator", "keys")
    task = service.task()
    service.open_round(task)
    before = n_manifests(service, task)
    for _ in range(PASSES):  # a manifest of a new task is signed in a pass over all of them
        service.manifest(service.task())
    assert n_manifests(service, task) - before <= 1
    service.manifest(task, "opt-in")
    assert other.is_running


def n_manifests(service, task):
    """The newest sequence counts too: old rows may be dropped."""
    rows = service.sql("SELECT sequence FROM manifests WHERE task = ? ORDER BY sequence", task)
    sequences = [row[0] for row in rows]
    return sequences[-1] if sequences else 0
