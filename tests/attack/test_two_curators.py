"""Two curators, two publishers: processes that know nothing of each other do each job once, and no key is lost."""

from __future__ import annotations

import contextlib
import time

import httpx2
import pytest

from attack_child import WrongClock, let_go_on, stopping_at, wait_stopped
from attack_service import COMMON, AttackedService, changed_environment, wait_for
from databases import DATABASES, fresh_database
from searchblend.server.curator_key import make_curator_key
from searchblend.server.publisher import SigningKeys
from service_process import ServerProcess, running

HONEST = COMMON * 20
ROUNDS = 4


@pytest.fixture(params=DATABASES)
def stage(request, tmp_path):
    with contextlib.ExitStack() as stack:
        yield Stage(stack, tmp_path, fresh_database(request.param, tmp_path))


class Stage:
    """A server for everything but keys, and as many curators and publishers as the attack wants."""

    def __init__(self, stack, folder, where):
        self.stack, self.folder, self.where = stack, folder, where
        self.sqlite = not where.startswith("postgresql")

    def process(self, role, *arguments, name="", environment=None):
        folder = self.folder if self.sqlite else self.folder / (name or role)
        folder.mkdir(exist_ok=True)
        server = ServerProcess(folder, self.where, "--role", role, *arguments)
        server.log = self.folder / f"{name or role}.log"
        with changed_environment(environment or {}):
            self.stack.enter_context(running(server))
        return server

    def curator(self, name, keys, environment=None):
        return self.process("curator", "--key-dir", str(self.folder / keys), name=name, environment=environment)

    def publisher(self, name, signing):
        points = [make_curator_key(self.folder / keys).public_point.hex() for keys in ("keys", "keys-1", "keys-2")]
        arguments = ("--signing-dir", str(self.folder / signing), "--curator-key", ",".join(points))
        return self.process("publisher", *arguments, name=name)

    def service(self):
        """Staff and devices, whose requests go to the process of their role."""
        service = AttackedService(self.folder, self.where, "--role", "admin")
        self.stack.callback(service.stop)
        service.start()
        publisher, intake = self.publisher("publisher", "signing"), self.process("intake")
        service.http = Routed(service.http, publisher.address, intake.address)
        return service


class Routed:
    """One client for several servers."""

    def __init__(self, admin, publisher, intake):
        self._admin = admin
        self._publisher = httpx2.Client(base_url=publisher, timeout=90)
        self._intake = httpx2.Client(base_url=intake, timeout=90)

    def request(self, method, path, **arguments):
        if path.endswith("/contributions"):
            return self._intake.request(method, path, **arguments)
        return self._admin.request(method, path, **arguments)

    def get(self, path):
        return self._publisher.get(path)

    def close(self):
        for client in (self._admin, self._publisher, self._intake):
            client.close()


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
def test_two_curators_open_every_round_and_keep_no_key(stage, folders):
    service = stage.service()
    for n, keys in enumerate(folders):
        stage.curator(f"curator-{n}", keys)
    play(service, ROUNDS)
    for keys in folders:
        wait_for(lambda keys=keys: not list((stage.folder / keys).glob("*.key")), "the end of all keys")


@pytest.mark.parametrize("folders", [("keys", "keys"), ("keys-1", "keys-2")], ids=["shared", "separate"])
def test_an_overtaken_curator_harms_no_live_key(stage, folders):
    """The first stops before it makes the key; the second, whose clock is past the lease, makes one meanwhile."""
    service = stage.service()
    first = stage.curator("first", folders[0], stopping_at("server/vault.py:create"))
    task = service.task()
    service.draft(task)
    service.act(task, "open")
    wait_stopped(first)
    late = WrongClock(stage.folder, 400)
    stage.curator("second", folders[1], late.environment)
    manifest = service.manifest(task, "opt-in")
    late.move(0)
    let_go_on(first)
    wait_for(lambda: "overtaken" in (stage.folder / "first.log").read_text(), "the first to notice")
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    _, drawn = service.draw(task)
    assert drawn["records"] == len(HONEST)


@pytest.mark.parametrize("point", ["server/curator.py:_opened", "server/curator.py:_commit_head_list"])
def test_an_overtaken_draw_is_never_committed_twice(stage, point):
    service = stage.service()
    task = service.task()
    first = stage.curator("first", "keys", stopping_at(point))
    manifest = service.open_round(task)
    service.contribute(manifest, HONEST, service.codes(task, len(HONEST)))
    service.act(task, "close-opt-in")
    wait_stopped(first)
    late = WrongClock(stage.folder, 400)
    stage.curator("second", "keys", late.environment)
    number = service.wait_state(task, "SHREDDED")["round"]
    late.move(0)
    let_go_on(first)
    wait_for(lambda: "overtaken" in (stage.folder / "first.log").read_text(), "the first to notice")
    moves = [row["detail"] for row in service.audit() if row["detail"].get("to") == "HEADLIST_READY"]
    assert sum((move["task"], move["round"]) == (task, number) for move in moves) == 1
    debits = service.done("GET", "/ledger")["debits"]
    assert sum(task in debit["release_id"] for debit in debits) == 1


@pytest.mark.parametrize("signing", ["signing", "signing-2"], ids=["shared", "separate"])
def test_two_publishers_do_not_sign_without_end(stage, signing):
    service = stage.service()
    if signing != "signing":
        SigningKeys(stage.folder / signing).add()
    other = stage.publisher("publisher-2", signing)
    stage.curator("curator", "keys")
    task = service.task()
    service.open_round(task)
    time.sleep(2)
    before = n_manifests(service, task)
    time.sleep(5)
    assert n_manifests(service, task) - before <= 1
    service.manifest(task, "opt-in")
    assert other.is_running


def n_manifests(service, task):
    """The newest sequence counts too: old rows may be dropped."""
    rows = service.sql("SELECT sequence FROM manifests WHERE task = ? ORDER BY sequence", task)
    sequences = [row[0] for row in rows]
    return sequences[-1] if sequences else 0
