"""Counts from files: the same as the service's own, and a round that is closed with them."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from databases import DATABASES, fresh_database
from searchblend.cli.main import main
from searchblend.core.errors import InputError, MessageError
from searchblend.service.aggregate import aggregate_files, read_counts
from searchblend.service.clock import SystemClock
from searchblend.service.round_model import shape_of
from searchblend.service.workers.publisher import HEAD_LIST
from searchblend.store.errors import WrongState
from searchblend.store.states import State
from service_parts import Service, crowd, people


@pytest.fixture(params=DATABASES)
def opened(request, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    service = Service.start(fresh_database(request.param, folder), folder, SystemClock())
    task = service.task(client_seconds=100_000)
    service.contribute(service.open(task), crowd(seed=1))
    yield service, task, service.head_list(task), tmp_path
    service.store.close()


def write(folder, messages):
    """Three files with overlaps, and reports that must be refused."""
    broken = messages[0][:-1] + bytes([messages[0][-1] ^ 1])
    foreign = bytearray(messages[1])
    foreign[21] ^= 1
    parts = [[*messages[:80], broken], [*messages[60:], bytes(foreign)], []]
    (folder / "reports").mkdir()
    for i, part in enumerate(parts):
        (folder / "reports" / f"{i}.bin").write_bytes(b"".join(part))
    return sorted((folder / "reports").iterdir())


def test_files_give_the_same_counts_as_the_service(opened):
    service, _, round_, folder = opened
    messages = service.messages(round_, people(200, seed=2))
    made = aggregate_files(write(folder, messages), shape_of(round_))
    service.count(round_, messages)
    assert (made.reports, made.repeated) == (200, 20)
    assert made.refused == {"id-mismatch": 1, "wrong-round": 1}
    assert made.counts.tolist() == service.store.reports.counts(round_.key, shape_of(round_).n_counters).tolist()


def test_a_file_that_cannot_be_opened_is_named(opened, monkeypatch):
    """A socket can be looked at like a file, and not opened like one."""
    _, _, round_, folder = opened
    monkeypatch.chdir(folder)  # the name of a socket is short
    path = Path("reports.bin")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        with pytest.raises(InputError, match=r"reports\.bin: cannot be read: "):
            aggregate_files([path], shape_of(round_))


def test_a_round_is_closed_with_the_counts_of_files(opened, capsys):
    service, task, round_, folder = opened
    messages = service.messages(round_, people(200, seed=2))
    write(folder, messages)
    head_list, output = folder / "headlist.json", folder / "counts.json"
    head_list.write_bytes(service.store.artifacts.get(service.store.artifacts.of_round(round_.key)[HEAD_LIST])[0])
    command = ["aggregate", str(folder / "reports"), "--head-list", str(head_list), "--task", round_.task]
    command += ["--round", str(round_.number), "-o", str(output)]
    assert main(command) == 0
    assert "reports: 200" in capsys.readouterr().out
    assert main(command) == 1, "an output is never overwritten"
    document = json.loads(output.read_text())
    grace = service.lifecycle.close_clients(round_, actor="ann")
    with pytest.raises(MessageError):
        service.lifecycle.close_with_counts(grace, {**document, "reports": 201}, actor="ann")
    with pytest.raises(MessageError):
        service.lifecycle.close_with_counts(grace, {**document, "round": 9}, actor="ann")
    assert service.lifecycle.close_with_counts(grace, document, actor="ann").state is State.CLOSED
    service.work()
    assert service.current(task).state is State.PUBLISHED
    assert service.current(task).reports == 200


def test_counts_of_files_and_of_the_service_are_not_mixed(opened):
    service, _, round_, folder = opened
    messages = service.messages(round_, people(100, seed=2))
    document = aggregate_files(write(folder, messages), shape_of(round_)).as_json()
    service.count(round_, messages[:1])
    grace = service.lifecycle.close_clients(round_, actor="ann")
    with pytest.raises(WrongState, match="of its own"):
        service.lifecycle.close_with_counts(grace, document, actor="ann")


def test_files_that_are_no_reports_are_refused(opened):
    _, _, round_, folder = opened
    shape = shape_of(round_)
    torn = folder / "torn.bin"
    torn.write_bytes(b"x" * (shape.size + 1))
    with pytest.raises(InputError, match="not whole"):
        aggregate_files([torn], shape)
    with pytest.raises(InputError, match="cannot be read"):
        aggregate_files([folder / "none.bin"], shape)
    for document in (None, {}, {"format": "searchblend-counts"}):
        with pytest.raises(MessageError):
            read_counts(document, shape)
