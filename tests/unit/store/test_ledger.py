"""The ledger: debited before it is seen, once for each id, never past the cap."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchblend.accounting.client_spends import randomized_response_spend
from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BudgetCap, fits
from searchblend.core.errors import EmptyHeadList, InvalidParameter, UsageError
from searchblend.core.privacy import Budget, Neighbors
from searchblend.store.errors import BudgetExceeded, ConflictingRelease, LedgerError
from searchblend.store.ledger import open_ledger, release_once

SPEND = Spend(0.1, 1e-8, Neighbors.REPLACE_ONE, "any")
FILES = {"trends.csv": b"query,share\n", "result.json": b"{}\n"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.ledger"


@pytest.fixture
def ledger(path):
    with open_ledger(path) as opened:
        yield opened


def debit(ledger, release_id="r1", population="people", window="2027-W01", spend=SPEND):
    return ledger.debit(release_id, population, window, spend)


def test_a_debit_is_there_after_reopening(path):
    with open_ledger(path) as ledger:
        entry = debit(ledger)
    with open_ledger(path, create=False) as ledger:
        assert ledger.entries() == [entry]
        assert ledger.totals("people", "2027-W01", delta=1e-6).summed_epsilon == 0.1


def test_the_same_id_costs_once(ledger):
    assert debit(ledger) == debit(ledger)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "other",
    [{"spend": Spend(0.2, 1e-8, Neighbors.REPLACE_ONE, "any")}, {"population": "others"}, {"window": "2027-W02"}],
)
def test_the_same_id_for_something_else_is_refused(ledger, other):
    debit(ledger)
    with pytest.raises(ConflictingRelease):
        debit(ledger, **other)
    assert len(ledger.entries()) == 1


def test_publishing_needs_a_debit(ledger):
    with pytest.raises(LedgerError, match="not debited"):
        ledger.publish("r1", FILES)
    assert ledger.published("r1") is None


def test_a_replay_returns_the_same_bytes(path):
    with open_ledger(path) as ledger:
        debit(ledger)
        assert ledger.publish("r1", FILES) == FILES
        assert ledger.publish("r1", {"trends.csv": b"other noise"}) == FILES
    with open_ledger(path) as ledger:
        assert ledger.published("r1") == FILES
        assert ledger.check().published["r1"]["result.json"].bytes == 3


def test_entries_by_population_and_window(ledger):
    for number, (population, window) in enumerate([("a", "2027"), ("a", "2028"), ("b", "2027")]):
        debit(ledger, f"r{number}", population, window)
    assert [entry.release_id for entry in ledger.entries("a")] == ["r0", "r1"]
    assert [entry.release_id for entry in ledger.entries(window="2027")] == ["r0", "r2"]
    assert ledger.book().scopes() == [("a", "2027"), ("a", "2028"), ("a", None), ("b", "2027"), ("b", None)]


@pytest.mark.parametrize(
    "windows", [("2027-W02", "2027-01", "2027"), ("2027", "2027-01", "2027-W02"), ("all time", "2027-W01")]
)
def test_windows_with_days_in_common_share_one_cap(path, windows):
    with open_ledger(path, cap=BudgetCap(window=Budget(0.1, 1e-6))) as ledger:
        debit(ledger, "first", window=windows[0])
        for window in windows[1:]:
            with pytest.raises(BudgetExceeded, match="nothing was debited"):
                debit(ledger, "second", window=window)
            debit(ledger, f"of others {window}", population=f"others {window}", window=window)
        assert [entry.release_id for entry in ledger.entries("people")] == ["first"]


ODD_NAMES = (
    "2026-w47 2026-W047 2026-W47-3 2026W47 202611 20261118 2026/11 2026-Q4 2026-11-18T10 2026-W54 2026-13 spring"
)


@pytest.mark.parametrize("window", [*ODD_NAMES.split(), "All time", "\uff12\uff10\uff12\uff16"])
def test_another_spelling_of_a_window_does_not_pass_its_cap(path, window):
    with open_ledger(path) as ledger:
        debit(ledger, "before the cap", window=window)
        ledger.set_cap(BudgetCap(window=Budget(0.2, 1e-6)))
        with pytest.raises(InvalidParameter, match=r"window: .*2027-W02") as refused:
            debit(ledger, "second", window=window)
        assert refused.value.exit_code == 2
        debit(ledger, "second", window="2026-W47")
        with pytest.raises(BudgetExceeded):
            debit(ledger, "third", window="2026-W47")
        assert debit(ledger, "before the cap", window=window).position == 1, "what is on record is read and replayed"


def test_the_cap_of_a_year_in_use_holds_over_its_weeks(path):
    """Each week alone would fit; the year, of which one release has been made, would not."""
    with open_ledger(path, cap=BudgetCap(window=Budget(0.3, 1e-6))) as ledger:
        for number, window in enumerate(("2027", "2027-W02", "2027-W03")):
            debit(ledger, f"r{number}", window=window)
        with pytest.raises(BudgetExceeded, match="window 2027:"):
            debit(ledger, "r3", window="2027-W04")
        debit(ledger, "r3", window="2028-W04")
        assert ledger.totals("people", "2027", delta=1e-6).releases == 3
        assert [entry.release_id for entry in ledger.entries("people", "2027-W02")] == ["r0", "r1"]


def test_exactly_up_to_the_cap_of_a_window_and_of_a_lifetime(path):
    cap = BudgetCap(window=Budget(0.3, 1e-6), lifetime=Budget(0.5, 1e-6))
    with open_ledger(path, cap=cap) as ledger:
        for number in range(3):
            debit(ledger, f"r{number}")
        with pytest.raises(BudgetExceeded, match="window 2027-W01"):
            debit(ledger, "r3")
        debit(ledger, "r3", window="2027-W02")
        debit(ledger, "r4", window="2027-W02")
        with pytest.raises(BudgetExceeded, match="lifetime"):
            debit(ledger, "r5", window="2027-W02")
        debit(ledger, "r5", population="others")
        assert debit(ledger, "r0").position == 2, "a replay is not refused when the budget is gone"
        assert len(ledger.entries("people")) == 5


def test_delta_counts_against_the_cap(path):
    with open_ledger(path, cap=BudgetCap(lifetime=Budget(9.0, 2e-8))) as ledger:
        debit(ledger, "r1")
        debit(ledger, "r2")
        with pytest.raises(BudgetExceeded):
            debit(ledger, "r3")


def test_planned_releases_are_capped_by_the_smaller_total(path):
    weekly = randomized_response_spend(0.1, 100)
    with open_ledger(path, cap=BudgetCap(lifetime=Budget(0.3, 1e-6), planned=True)) as ledger:
        for week in range(13):
            debit(ledger, f"week {week}", spend=weekly)
        total = ledger.totals("people", delta=1e-6)
        assert (total.basic_epsilon, total.epsilon <= 0.3) == (1.3, True)
        with pytest.raises(BudgetExceeded):
            debit(ledger, "week 13", spend=weekly)


def test_a_cap_is_kept_and_changed_only_on_purpose(path):
    first, second = BudgetCap(lifetime=Budget(1.0, 1e-6)), BudgetCap(lifetime=Budget(2.0, 1e-6))
    open_ledger(path, cap=first).close()
    with pytest.raises(LedgerError, match="another cap"):
        open_ledger(path, cap=second)
    with open_ledger(path, cap=first) as ledger:
        assert ledger.book().length == 1
        ledger.set_cap(second)
        assert ledger.book().cap == second
        assert ledger.check().length == 2


@pytest.mark.parametrize("name", ["", " x", "x\n", "\x00", "x" * 201, "\ud800"])
def test_names_must_be_plain(ledger, name):
    for arguments in ({"release_id": name}, {"population": name}, {"window": name}):
        with pytest.raises(InvalidParameter):
            debit(ledger, **arguments)
    debit(ledger)
    with pytest.raises(InvalidParameter):
        ledger.publish("r1", {name: b""})


@pytest.mark.parametrize("files", [{}, {"../x": b""}, {".hidden": b""}, {"a/b": b""}])
def test_files_must_be_plain(ledger, files):
    debit(ledger)
    with pytest.raises(InvalidParameter):
        ledger.publish("r1", files)


def test_what_is_not_a_ledger(tmp_path):
    with pytest.raises(UsageError, match="no such ledger"):
        open_ledger(tmp_path / "none", create=False)
    text = tmp_path / "notes.txt"
    text.write_text("precious notes " * 200)
    with pytest.raises(LedgerError, match="not a ledger"):
        open_ledger(text)
    assert text.read_text() == "precious notes " * 200
    with pytest.raises(LedgerError):
        open_ledger(tmp_path)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path / "no folder" / "ledger")


def test_a_commit_waits_for_the_disk(ledger):
    assert ledger._database.execute("PRAGMA journal_mode") == [("delete",)]
    assert ledger._database.execute("PRAGMA synchronous") == [(3,)], "EXTRA"


WHO = {"release_id": "r1", "population": "people", "window": "2027-W01", "spend": SPEND}


class TestReleaseOnce:
    def test_made_after_the_debit_and_only_once(self, ledger):
        made = []

        def make():
            made.append([entry.release_id for entry in ledger.entries()])
            return {"noise": bytes([len(made)])}

        assert release_once(ledger, make, **WHO) == release_once(ledger, make, **WHO) == {"noise": b"\x01"}
        assert made == [["r1"]]

    def test_a_failure_leaves_the_debit_and_may_be_repeated(self, ledger):
        def fail():
            raise MemoryError

        with pytest.raises(MemoryError):
            release_once(ledger, fail, **WHO)
        assert len(ledger.entries()) == 1
        assert ledger.published("r1") is None
        assert release_once(ledger, lambda: FILES, **WHO) == FILES
        assert len(ledger.entries()) == 1

    def test_an_empty_head_list_is_an_outcome_and_is_not_drawn_again(self, ledger):
        def nothing_passed():
            raise EmptyHeadList("no record passed")

        with pytest.raises(EmptyHeadList, match="no record passed"):
            release_once(ledger, nothing_passed, **WHO)
        with pytest.raises(EmptyHeadList, match="no record passed"):
            release_once(ledger, lambda: FILES, **WHO)

    def test_nothing_is_made_when_the_debit_is_refused(self, path):
        with open_ledger(path, cap=BudgetCap(lifetime=Budget(0.05, 1e-6))) as ledger, pytest.raises(BudgetExceeded):
            release_once(ledger, lambda: pytest.fail("made without a debit"), **WHO)


EPSILONS = st.sampled_from([0.1, 0.2, 0.3, 0.7])
DEBITS = st.tuples(st.sampled_from("abcdef"), st.sampled_from("pq"), st.sampled_from(["2027", "2028"]), EPSILONS)


@settings(max_examples=25, deadline=None)
@given(st.lists(DEBITS, max_size=12))
def test_any_sequence_of_debits(debits):
    """Each id at most once, caps never passed, refusals only where one more would pass, the chain always sound."""
    cap = BudgetCap(window=Budget(0.9, 1e-6), lifetime=Budget(1.2, 1e-6))
    accepted: dict[str, tuple[str, str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, open_ledger(Path(folder) / "ledger", cap=cap) as ledger:
        for release_id, population, window, epsilon in debits:
            wanted = (population, window, epsilon)
            spend = Spend(epsilon, 0.0, Neighbors.REPLACE_ONE, "any")
            try:
                ledger.debit(release_id, population, window, spend)
                assert accepted.setdefault(release_id, wanted) == wanted
            except ConflictingRelease:
                assert accepted[release_id] != wanted
            except BudgetExceeded:
                assert release_id not in accepted
                assert not within(cap, [*accepted.values(), wanted], population, window)
            assert within(cap, list(accepted.values()), population, window)
        book = ledger.check()
        assert {i: (e.population, e.window, e.spend.epsilon) for i, e in book.entries.items()} == accepted


def within(cap, debits, population, window):
    def spends(*windows):
        return [Spend(e, 0.0, Neighbors.REPLACE_ONE, "any") for p, w, e in debits if p == population and w in windows]

    return fits(spends(window), cap.window) and fits(spends("2027", "2028"), cap.lifetime)
