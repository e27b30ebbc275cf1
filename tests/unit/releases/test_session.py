"""A session debits before it draws and refuses beyond the cap, as the commands do with a ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import searchblend as sb

PEOPLE = np.arange(900)
TABLE = {"user": PEOPLE, "value": np.where(PEOPLE % 3 == 0, "tea", "coffee")}
LOG = {"user": PEOPLE, "query": np.where(PEOPLE % 3 == 0, "news", "weather"), "url": np.full(900, "w.example")}
BUDGET = sb.Budget(1.0, 1e-6)
RUN = sb.BlenderParams(BUDGET)
GRAPH = sb.ClickGraphParams(BUDGET)
CAP = sb.BudgetCap(lifetime=sb.Budget(4.0, 1e-5))
"""a click graph counts twice here: its neighbours differ in who takes part, the others' in what a user holds"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    sb.Ledger(tmp_path / "budget.ledger", cap=CAP).close()
    return tmp_path / "budget.ledger"


def spent(path: Path) -> list[str]:
    with sb.Ledger(path) as ledger:
        assert "Debits" in ledger._repr_html_()
        return list(ledger.columns()["release_id"])


def test_every_call_is_debited_and_gives_the_same_bytes_again(path: Path, tmp_path: Path) -> None:
    with sb.Session(path, "drinkers") as session:
        first = [
            session.select_values(TABLE, BUDGET, release_id="values"),
            session.run(LOG, RUN, optin_fraction=0.5, method="paper", release_id="run"),
            session.release(LOG, GRAPH, release_id="graph"),
        ]
    assert spent(path) == ["values", "run", "graph"]
    assert first[0].columns()["value"] == ["coffee", "tea"]
    with sb.Ledger(path) as ledger, sb.Session(ledger, "drinkers") as session:
        again = [
            session.select_values("nothing.parquet", BUDGET, release_id="values"),
            session.run("nothing.tsv", RUN, method="paper", release_id="run"),
            session.release("nothing.tsv", GRAPH, release_id="graph"),
        ]
    assert [one.files for one in again] == [one.files for one in first]
    assert len(spent(path)) == 3
    first[2].save(tmp_path / "graph")
    assert all(check.holds for check in sb.verify_release(tmp_path / "graph"))
    assert [one.guarantee.holds for one in first] == [True, True, True]
    assert [one.statement.kind for one in first] == ["values", "blender", "click-graph"]


@pytest.mark.thorough
def test_a_run_counts_many_records_as_the_command_does(path: Path) -> None:
    with sb.Session(path, "searchers") as session:
        released = session.run(LOG, RUN, optin_fraction=0.5, release_id="run")
    assert released.result().parameters["records_per_optin"] == 100


def test_beyond_the_cap_nothing_is_drawn_and_nothing_charged(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("searchblend.releases.select_values.noisy_counts", lambda *_, **__: pytest.fail("drawn"))
    with sb.Session(path, "drinkers") as session, pytest.raises(sb.BudgetExceeded, match="nothing was debited"):
        session.select_values(TABLE, sb.Budget(5.0, 1e-6), release_id="too much")
    assert spent(path) == []


def test_what_cannot_be_delivered_is_not_charged(path: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    wrong = [
        lambda s: s.select_values(tmp_path / "bad.parquet", BUDGET, release_id="a"),
        lambda s: s.select_values(TABLE, BUDGET, user="no such column", release_id="b"),
        lambda s: s.run(tmp_path / "none.tsv", RUN, release_id="c"),
        lambda s: s.run(LOG, RUN, method="other", release_id="d"),
        lambda s: s.run(LOG, sb.BlenderParams(sb.Budget(1.0, 0.01)), release_id="e"),
        lambda s: s.select_values(TABLE, sb.Budget(1.0, 1 / 900), release_id="h"),
        lambda s: s.run(LOG, RUN, optin_fraction=1e-9, release_id="f"),
        lambda s: s.release(LOG, sb.ClickGraphParams(BUDGET, urls="public", public_source="x"), release_id="g"),
    ]
    with sb.Session(path, "drinkers") as session:
        for call in wrong:
            with pytest.raises(sb.SearchblendError):
                call(session)
    assert spent(path) == []


def test_a_large_delta_is_taken_by_name_alone(path: Path) -> None:
    large = sb.Budget(1.0, 1 / 900)
    with sb.Session(sb.Ledger(path.with_name("other.ledger")), "drinkers") as session:
        with pytest.raises(sb.InvalidParameter, match="allow-large-delta"):
            session.select_values(TABLE, large, release_id="one")
        session.select_values(TABLE, large, release_id="one", allow_large_delta=True)
        session.select_values(TABLE, large, release_id="two", neighbors=sb.Neighbors.ADD_REMOVE_ONE)


def test_that_nothing_passed_is_paid_for_and_raised_again(path: Path) -> None:
    few = {name: column[:5] for name, column in LOG.items()}
    for log in (few, "nothing.tsv"):
        with sb.Session(path, "few", release_id="empty") as session, pytest.raises(sb.EmptyHeadList):
            session.release(log, GRAPH)
    assert spent(path) == ["empty"]


def test_a_session_needs_names_and_to_be_open(path: Path) -> None:
    session = sb.Session(path, "drinkers", release_id="one")
    with pytest.raises(sb.UsageError, match="not open"):
        session.select_values(TABLE, BUDGET)
    with session:
        session.select_values(TABLE, BUDGET)
        with pytest.raises(sb.UsageError, match="name this release"):
            session.select_values(TABLE, BUDGET)
        with pytest.raises(sb.LedgerError, match="another spend"):
            session.select_values(TABLE, sb.Budget(0.5, 1e-6), release_id="one")
    with pytest.raises(sb.InvalidParameter, match="population"):
        sb.Session(path, " ")
    assert "tea" not in repr(session)
