"""One role per person and round, what the public learns, and what a plan would cost."""

from __future__ import annotations

import json

import pytest

from searchblend.accounting.client_spends import randomized_response_spend
from searchblend.accounting.spend import Spend, either_of
from searchblend.accounting.totals import BudgetCap, total_of
from searchblend.cli.main import main
from searchblend.core.errors import InputError
from searchblend.core.privacy import Budget, Neighbors
from searchblend.store.errors import BudgetExceeded, ConflictingRelease
from searchblend.store.ledger import open_ledger
from searchblend.store.ledger_plan import read_plan

LIST = Spend.generic(Budget(1.0, 1e-6), Neighbors.REPLACE_ONE, "head list")
REPORT = Spend(1.0, 0.0, Neighbors.REPLACE_ONE, "sets")
COUNTED = Spend(0.01, 1e-6, Neighbors.REPLACE_ONE, "10000 reports, counted")


def one_round(ledger, number, *, role_in=True):
    name = f"task/{number}"
    for group, spend in (("opt-in", LIST), ("clients", REPORT)):
        ledger.debit(f"{name}/{group}", "people", f"2027-W{number:02}", spend, role_in=name if role_in else None)
    ledger.publish(f"{name}/opt-in", {"statement.json": b"{}"})
    ledger.publish(f"{name}/clients", {"statement.json": b"{}"}, public_spend=COUNTED)


@pytest.mark.parametrize(("role_in", "epsilon"), [(True, 3.0), (False, 6.0)])
def test_a_round_with_one_role_each_is_charged_once(tmp_path, role_in, epsilon):
    with open_ledger(tmp_path / "l") as ledger:
        for number in (1, 2, 3):
            one_round(ledger, number, role_in=role_in)
        assert ledger.totals("people").summed_epsilon == epsilon
        assert ledger.totals("people").summed_delta == pytest.approx(3e-6)
        assert ledger.totals("people", "2027-W02").summed_epsilon == epsilon / 3


def test_a_cap_that_fits_one_role_takes_both_debits_and_no_second_round(tmp_path):
    with open_ledger(tmp_path / "l", cap=BudgetCap(lifetime=Budget(1.5, 1e-5))) as ledger:
        one_round(ledger, 1)
        with pytest.raises(BudgetExceeded):
            ledger.debit("task/2/clients", "people", "2027-W02", REPORT, role_in="task/2")


def test_another_round_under_the_same_id_is_refused(tmp_path):
    with open_ledger(tmp_path / "l") as ledger:
        ledger.debit("r", "people", "w", REPORT, role_in="a")
        ledger.debit("r", "people", "w", REPORT, role_in="a")
        with pytest.raises(ConflictingRelease):
            ledger.debit("r", "people", "w", REPORT, role_in="b")


def test_the_public_learns_of_a_client_what_was_counted(tmp_path):
    with open_ledger(tmp_path / "l") as ledger:
        one_round(ledger, 1)
        ledger.debit("graph", "people", "2027", LIST)
        ledger.debit("task/2/clients", "people", "2027-W02", REPORT, role_in="task/2")
    with open_ledger(tmp_path / "l") as again:
        book = again.book()
    assert book.spends_in_public("people", None) == [COUNTED, LIST, REPORT]  # what is not published counts in full
    assert book.public_spends == {"task/1/clients": COUNTED}


def test_either_of_covers_all_and_keeps_a_law_only_alone():
    pure = randomized_response_spend(0.5, 10)
    assert either_of([pure]) == pure == either_of([pure, pure])
    covered = either_of([pure, LIST])
    assert (covered.epsilon, covered.delta, covered.law.as_json()) == (1.0, 1e-6, {"kind": "generic"})
    other_relation = Spend(1.0, 0.0, Neighbors.ADD_REMOVE_ONE, "graph")
    assert either_of([other_relation, pure]).epsilon == 2.0


def test_rho_exists_where_every_release_is_pure():
    assert total_of([REPORT, REPORT], 1e-6).rho == 1.0
    assert total_of([REPORT, LIST], 1e-5).rho is None
    assert LIST.rho is None


PLAN = """
population = "people"
[[release]]
name = "weekly"
epsilon = 0.1
times = 4
values = 100
window = "2027-W{:02}"
[[release]]
name = "graph"
epsilon = 1
delta = 1e-7
neighbors = "add-remove"
"""


def test_a_plan_is_priced_and_nothing_is_debited(tmp_path, capsys):
    plan, ledger = tmp_path / "plan.toml", tmp_path / "l"
    plan.write_text(PLAN)
    with open_ledger(ledger, cap=BudgetCap(lifetime=Budget(2.0, 1e-5))) as opened:
        one_round(opened, 1)
        head = opened.book().head
    assert main(["ledger", "what-if", str(plan), "--ledger", str(ledger), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    lifetime = document["totals"][-1]
    assert (document["planned"], document["refused"]) == (5, "graph")
    assert lifetime["before"]["basic"]["epsilon"] == 1.0
    assert lifetime["after"]["basic"]["epsilon"] == pytest.approx(3.4)  # the graph under replace-one: twice ε
    with open_ledger(ledger) as opened:
        assert opened.book().head == head
    assert main(["ledger", "what-if", str(plan)]) == 0
    assert "no cap is on record" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one table"),
        ("[[release]]", "release 1.epsilon: expected a number"),
        ("release = 3", "at least one table"),
        ("release = [3]", "release 1: expected an object"),
        ("[[release]]\nepsilon = -1", "epsilon"),
        ("[[release]]\nepsilon = true", "release 1.epsilon: expected a number"),
        ("[[release]]\nepsilon = nan", "epsilon"),
        ("[[release]]\nepsilon = 1\ndelta = 1", "delta"),
        ("[[release]]\nepsilon = 1\ntimes = 0", "times"),
        ("[[release]]\nepsilon = 1\nweeks = 4", "unknown fields: weeks"),
        ("[[release]]\nepsilon = 1\nneighbors = 'none'", "neighbors"),
        ("[[release]]\nepsilon = 1\nvalues = 1", "n_values"),
        ("[[release]]\nepsilon = 1\nvalues = 9\ndelta = 0.1", "values"),
        ("[[release]]\nepsilon = 1\nwindow = '{x}'", "window"),
        ("[[release]]\nepsilon = 1\nname = ' a'", "name"),
        ("[[release]]\nname='a'\nepsilon = 1\n[[release]]\nname='a'\nepsilon = 1", "two releases"),
        ("epsilon = 1\n[[release]]\nepsilon = 1", "plan: unknown fields: epsilon"),
        ("[[release", "expected TOML"),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused_with_its_field(tmp_path, text, said):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_plan(path)


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_plan(tmp_path / "none.toml")
