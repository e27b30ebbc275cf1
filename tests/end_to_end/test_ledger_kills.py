"""A release dies at any point: nothing seen is ever missing from the ledger, and a replay shows the same bytes.

Run as a script this file is the lean process that forks the workers and kills them: it loads the ledger and no more.
After *each* death the whole promise is checked, so that a debit which only a later run adds would be noticed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from searchblend.accounting.spend import Spend
from searchblend.core.privacy import Neighbors
from searchblend.store.database_sqlite import LedgerFile
from searchblend.store.ledger import Ledger, open_ledger, release_once

SPEND = Spend(0.1, 1e-9, Neighbors.REPLACE_ONE, "any")
LEDGERS, KILLS_PER_LEDGER = 25, 8
"""a ledger is read as a whole after every kill, so many short ones cost less than a long one"""


def test_200_random_kills(tmp_path):
    outcome = run("random", tmp_path)
    assert outcome["violations"] == []
    assert outcome["kills"] == LEDGERS * KILLS_PER_LEDGER == 200
    assert outcome["releases"] > 20
    assert outcome["died between debit and publication"] > 0
    assert outcome["died within a transaction"] > 0
    assert outcome["replays"] > 20


def test_a_kill_before_and_after_every_statement(tmp_path):
    outcome = run("sweep", tmp_path, "right")
    assert outcome["violations"] == []
    assert outcome["kills"] > 30


def test_wrong_orders_are_noticed(tmp_path):
    for number, order in enumerate(order for order in ORDERS if order != "right"):
        assert run("sweep", tmp_path / str(number), order)["violations"], order


def run(*arguments):
    command = [sys.executable, __file__, *map(str, arguments)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True, timeout=560)
    return json.loads(finished.stdout)


# What a worker does. ``show`` is the moment at which somebody else can see the release.


def in_the_right_order(ledger: Ledger, name: str, show: Callable[[bytes], None]) -> None:
    show(release_once(ledger, make, release_id=name, population="people", window="w", spend=SPEND)["data"])


def shown_before_published(ledger: Ledger, name: str, show: Callable[[bytes], None]) -> None:
    ledger.debit(name, "people", "w", SPEND)
    made = make()
    show(made["data"])
    ledger.publish(name, made)


def shown_before_debited(ledger: Ledger, name: str, show: Callable[[bytes], None]) -> None:
    made = make()
    show(made["data"])
    ledger.debit(name, "people", "w", SPEND)
    ledger.publish(name, made)


def shown_as_made(ledger: Ledger, name: str, show: Callable[[bytes], None]) -> None:
    ledger.debit(name, "people", "w", SPEND)
    made = make()
    ledger.publish(name, made)
    show(made["data"])


ORDERS = {
    "right": in_the_right_order,
    "shown before published": shown_before_published,
    "shown before debited": shown_before_debited,
    "shown as made": shown_as_made,
}


def make() -> dict[str, bytes]:
    """Noise that is different every time."""
    time.sleep(0.001)
    return {"data": os.urandom(600)}


def show_in(folder: Path, name: str) -> Callable[[bytes], None]:
    def show(content: bytes) -> None:
        (folder / "seen" / f"{name}.{os.getpid()}.{time.monotonic_ns()}").write_bytes(content)

    return show


def violations(folder: Path) -> list[str]:
    """What was seen without its debit, or other than it was published."""
    with open_ledger(folder / "ledger") as ledger:
        book, found = ledger.check(), []
        for path in (folder / "seen").iterdir():
            name, content = path.name.partition(".")[0], path.read_bytes()
            if name not in book.entries or name not in book.published:
                found.append(f"{name}: seen without a debit or before it was published")
            elif not ledger._files(book, name)["data"].startswith(content):
                found.append(f"{name}: seen with other bytes")
    return found


# Deaths.


def fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:  # a worker must end here, whatever happens
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)


def random_kills(root: Path) -> dict[str, object]:
    """Workers make one release after another until they are killed; the next one repeats the last two ids first."""
    chance = random.Random(5)
    within = between = releases = replays = 0
    usual = 0.01  # seconds for a release, on this machine at this moment
    found: list[str] = []
    for number in range(LEDGERS):
        folder = root / str(number)
        (folder / "seen").mkdir(parents=True)
        for _ in range(KILLS_PER_LEDGER):
            ready, tell = os.pipe()

            def work(folder: Path = folder, tell: int = tell) -> None:
                with open_ledger(folder / "ledger") as ledger:
                    position = max(len(ledger.entries()) - 2, 0)
                    while True:
                        os.write(tell, b"!")
                        in_the_right_order(ledger, f"r{position}", show_in(folder, f"r{position}"))
                        position += 1

            child = fork(work)
            os.close(tell)
            begun, n = time.monotonic(), chance.randrange(10)  # 0: it may die while it opens the ledger
            for _ in range(n):
                os.read(ready, 1)
            os.close(ready)
            usual = (time.monotonic() - begun) / n if n else usual
            time.sleep(chance.random() * usual)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                found.append("a worker ended by itself")
            within += (folder / "ledger-journal").exists()
            found += violations(folder)
            with open_ledger(folder / "ledger") as ledger:
                book = ledger.book()
                between += len(book.published) < len(book.entries)
        releases += len(book.published)
        replays += len(list((folder / "seen").iterdir())) - len(book.published)
    return {
        "kills": LEDGERS * KILLS_PER_LEDGER,
        "violations": found,
        "releases": releases,
        "replays": replays,
        "died between debit and publication": between,
        "died within a transaction": within,
    }


class Mortal(LedgerFile):
    """A database that kills its process before or after the n-th statement."""

    statements_left = 0

    def execute(self, statement, values=()):
        self.step()
        result = super().execute(statement, values)
        self.step()
        return result

    def step(self):
        Mortal.statements_left -= 1
        if Mortal.statements_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def sweep(root: Path, order: str) -> dict[str, object]:
    """Die at the first point, the second, …; each time repeat in peace; until a worker lives, or something is wrong."""
    found: list[str] = []
    point, died = 0, True
    while died and not found:
        point += 1
        folder = root / str(point)
        (folder / "seen").mkdir(parents=True)
        for statements in (point, 0):

            def work(folder: Path = folder, statements: int = statements) -> None:
                Mortal.statements_left = statements
                ORDERS[order](Ledger(Mortal(folder / "ledger")), "r0", show_in(folder, "r0"))

            _, status = os.waitpid(fork(work), 0)
            died = os.WIFSIGNALED(status) if statements else died
            if os.WIFEXITED(status) and os.WEXITSTATUS(status):
                found.append("a worker failed")
            found += violations(folder)
    return {"kills": point - 1, "violations": found}


if __name__ == "__main__":
    mode, where, *rest = sys.argv[1:]
    json.dump({"random": random_kills, "sweep": sweep}[mode](Path(where), *rest), sys.stdout)
