"""Cells are computed once, kept, shared, and depend on nothing but themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from searchblend.core.errors import OutputError
from searchblend.core.records import HeadList, Record
from searchblend.mechanisms.tally import ListedRecords
from searchblend_lab.papers import cells as cells_module
from searchblend_lab.papers.cells import Cell, Kind
from searchblend_lab.papers.experiment import Request, hybrid
from searchblend_lab.papers.people import PROFILES, IndexedRecords, LogPeople
from searchblend_lab.papers.runner import chunks, code_of, compute_cells
from searchblend_lab.papers.store import CellStore

computed: list[int] = []
AOL = PROFILES["aol"]


def square(settings, run, seed):
    if settings["n"] < 0:
        raise KeyboardInterrupt
    computed.append(settings["n"])
    return {"value": settings["n"] ** 2 + run + seed / 10, "none": None}


def square_of(module: str) -> Callable[..., dict[str, Any]]:
    """The function, as if that module had it: its code is then that module's."""

    def compute(settings, run, seed):
        return square(settings, run, seed)

    compute.__module__ = module
    return compute


@pytest.fixture(autouse=True)
def kind(monkeypatch):
    computed.clear()
    monkeypatch.setitem(cells_module.KINDS, "square", Kind(square_of("searchblend.core.errors")))


def cell(n: int, run: int = 0, cost: float = 1.0) -> Cell:
    return Cell.of("square", run, cost=cost, n=n)


def test_a_cell_that_was_kept_is_not_computed_again(tmp_path):
    wanted = [cell(1), cell(2), cell(2)]
    with CellStore(tmp_path / "deep" / "cells") as store:
        first = compute_cells(wanted, seed=1, store=store)
    assert computed == [1, 2]
    told: list[float] = []
    with CellStore(tmp_path / "deep" / "cells") as store:
        second = compute_cells([*wanted, cell(3)], seed=1, store=store, on_cost=told.append)
    assert computed == [1, 2, 3]
    assert told == [2.0, 1.0]
    assert second[cell(2)] == first[cell(2)] == {"value": 4.1, "none": None}
    assert second.values([cell(1), cell(2)], "value") == [1.1, 4.1]
    assert second.values([cell(1)], "none") == []


def test_an_interrupted_evaluation_goes_on_where_it_stopped(tmp_path):
    with CellStore(tmp_path / "cells") as store, pytest.raises(KeyboardInterrupt):
        compute_cells([cell(5, cost=9), cell(6, 1), cell(-1, 2)], seed=1, store=store)
    assert computed == [5, 6]
    with CellStore(tmp_path / "cells") as store:
        compute_cells([cell(5, cost=9), cell(6, 1), cell(7, 2)], seed=1, store=store)
    assert computed == [5, 6, 7]


def test_another_seed_another_run_or_changed_code_is_another_cell(monkeypatch):
    keys = {cell(1).key(1), cell(1).key(2), cell(1, 1).key(1), cell(1).key(1, "own code"), cell(2).key(1)}
    monkeypatch.setitem(cells_module.KINDS, "square", Kind(square_of("searchblend.core.records")))
    assert len(keys | {cell(1).key(1)}) == 6
    assert cell(1, cost=3.0).key(1) == cell(1).key(1)


def test_the_code_of_an_own_algorithm_is_part_of_the_key(monkeypatch, tmp_path):
    file = tmp_path / "changing_algorithm.py"
    file.write_text("class A:\n    name = 'a'\n    def run(self): ...\n")
    monkeypatch.chdir(tmp_path)
    before = code_of(hybrid(AOL, "changing_algorithm:A", 0))
    file.write_text(file.read_text() + "# changed\n")
    assert code_of(hybrid(AOL, "changing_algorithm:A", 0)) != before != ""
    assert code_of(hybrid(AOL, "best", 0)) == ""


def test_chunks_keep_people_together_and_are_not_too_long():
    many = [replace(hybrid(AOL, "paper", run, epsilon=float(e)), cost=0.9) for e in range(1, 6) for run in (0, 1)]
    pieces = chunks(many)
    assert sorted(map(repr, (c for piece in pieces for c in piece))) == sorted(map(repr, many))
    assert all(len({c.run for c in piece}) == 1 for piece in pieces)
    assert max(len(piece) for piece in pieces) == 3


def test_hybrid_cells_do_not_depend_on_the_order_of_work():
    settings = [{"size": 10, "users": 30_000, "optin": optin} for optin in (0.2, 0.3)]
    one, other = (hybrid(AOL, "paper", 0, **s) for s in settings)
    there = compute_cells([one, other], seed=3)
    back = compute_cells([other, one], seed=3)
    for cell_ in (one, other):
        a, b = dict(there[cell_]), dict(back[cell_])
        a.pop("seconds"), b.pop("seconds")
        assert a == b
        assert a["queries"] > 0
    assert dict(compute_cells([one], seed=4)[one])["query_l1"] != there[one]["query_l1"]


def test_results_survive_json():
    found = hybrid(AOL, "best", 0, users=100_000, optin=0.1, size=20, fake=0.01, detail=True).compute(1)
    assert json.loads(json.dumps(found)) == found
    assert {"shift", "target_flagged", "trends", "ndcg_rank"} <= set(found)


def test_an_empty_list_is_a_result():
    found = hybrid(AOL, "paper", 0, users=2000, optin=0.03, size=5).compute(1)
    assert found["queries"] == 0
    assert "query_l1" not in found


def test_fake_clients_lift_the_query_they_promote_unless_the_optin_users_witness():
    settings = {"users": 200_000, "optin": 0.1, "size": 20}
    moved = {}
    for method in ("paper", "best"):
        honest, poisoned = (hybrid(AOL, method, 0, fake=fake, **settings).compute(1) for fake in (0.0, 0.01))
        moved[method] = poisoned["shift"] - honest["shift"]
    assert moved["paper"] > 0.005
    assert abs(moved["best"]) < 0.001
    assert poisoned["target_flagged"] == 1
    assert honest["alarm"] == 0


def test_indexed_records_find_the_same_cells():
    records = [Record("a", "u"), Record("a", "v"), Record("b", "u"), Record("c", "w")]
    numbers = np.array([3, 0, 1, 2, 2, 0])
    for head in (HeadList({"a": ["u", "v"], "b": ["u"], "c": ["w"]}), HeadList({"b": []}), HeadList({"x": ["u"]})):
        expected = ListedRecords(records).cells(head, numbers)
        assert IndexedRecords(records).cells(head, numbers).tolist() == expected.tolist()


def test_people_of_a_log_are_known_by_their_content():
    records = [Record("a", "u"), Record("b", "v")]
    one, same = (LogPeople(label, records, np.array([30, 20])) for label in ("one.tsv", "two.tsv"))
    other = LogPeople("one.tsv", records, np.array([30, 21]))
    assert one.name == same.name != other.name
    assert one.everyone(1, 0).n_users == 50
    assert one.everyone(1, 0, 1000).n_users == 1000


def test_a_store_that_cannot_be_opened_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot keep results"):
        CellStore(tmp_path / "file" / "cells")


def test_requests():
    quick = Request(quick=True)
    assert quick.thinned((1.0, 2.0, 3.0, 4.0)) == (1.0, 3.0, 4.0)
    assert Request().thinned((1.0, 2.0)) == (1.0, 2.0)
    assert (quick.n_runs(10, 2), Request(runs=5).n_runs(10, 2), Request().n_runs(10, 2)) == (2, 5, 10)
    assert [people.name for people in Request(people="yandex").people_of("aol")] == ["yandex"]
    assert Request(algorithm="a:b").methods == ("paper", "best", "a:b")
