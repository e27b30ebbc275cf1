"""Several processes at one ledger: no debit is lost, the cap is never passed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from searchblend.accounting.totals import BudgetCap
from searchblend.core.privacy import Budget
from searchblend.store.ledger import open_ledger

WORKER = """
import sys
from searchblend.accounting.spend import Spend
from searchblend.accounting.totals import BudgetCap
from searchblend.core.privacy import Budget, Neighbors
from searchblend.store.ledger import open_ledger
from searchblend.store.errors import BudgetExceeded

path, name, attempts = sys.argv[1], sys.argv[2], int(sys.argv[3])
done = 0
for number in range(attempts):
    with open_ledger(path, cap=BudgetCap(lifetime=Budget(2.0, 1e-6))) as ledger:
        try:
            ledger.debit(f"{name}-{number}", "people", "w", Spend(0.1, 0.0, Neighbors.REPLACE_ONE, "any"))
            done += 1
        except BudgetExceeded:
            pass
        shared = ledger.debit("shared", "others", "w", Spend(0.1, 0.0, Neighbors.REPLACE_ONE, "any"))
        seen = ledger.publish("shared", {"winner": name.encode()})["winner"].decode()
print(done, seen, shared.position)
"""


@pytest.mark.parametrize("processes", [2, 4])
def test_debits_at_once(tmp_path, processes):
    path = tmp_path / "ledger"

    def work(name):
        command = [sys.executable, "-c", WORKER, str(path), name, str(40 // processes)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    with ThreadPoolExecutor(processes) as pool:
        results = list(pool.map(work, [f"p{number}" for number in range(processes)]))
    with open_ledger(path, create=False) as ledger:
        book = ledger.check()
        entries = ledger.entries("people")
    assert book.cap == BudgetCap(lifetime=Budget(2.0, 1e-6))
    assert len(entries) == sum(int(done) for done, _, _ in results) == 20, "exactly the cap, none lost"
    assert len({seen for _, seen, _ in results}) == len({position for _, _, position in results}) == 1
