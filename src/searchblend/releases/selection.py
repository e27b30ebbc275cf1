"""A selection of values with the folder it leaves: what ``searchblend select`` and a session do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from searchblend.core.privacy import Neighbors
from searchblend.core.randomness import SystemRandomness
from searchblend.core.silent import SILENT
from searchblend.releases.make_release import (
    Cost,
    Files,
    LedgerEntry,
    WrittenRelease,
    make_release,
    now,
    refuse_large_delta,
)
from searchblend.releases.saved_release import SavedRelease
from searchblend.releases.select_values import Selection, ValueTable
from searchblend.wire.values import encode_values


def cost_of(selection: Selection) -> Cost:
    return Cost(selection.budget, Neighbors.REPLACE_ONE, "selection of values")


def run_selection(
    selection: Selection,
    output: Path | None = None,
    *,
    replace: bool = False,
    allow_large_delta: bool = False,
    ledger: LedgerEntry | None = None,
    created: str | None = None,
    on_step: Callable[[str], None] = SILENT,
) -> WrittenRelease[SavedRelease]:
    """Read the table, select, write the release.

    Args:
        selection: what to select from, and with which budget
        output: the folder, if one is wanted
        replace: whether another release in the folder may be replaced
        allow_large_delta: whether δ may reach 1/users, at which a mechanism may expose a user outright
        ledger: where the release is debited, before any noise is drawn
        created: when, in ISO 8601; now unless given
        on_step: called with the name of each step
    """
    source = SystemRandomness()

    @contextmanager
    def read() -> Iterator[ValueTable]:
        """What can go wrong with the input does so here, before anything is paid."""
        on_step("reading")
        with selection.read(source) as table:
            refuse_large_delta(selection.budget, table.n_users, allowed=allow_large_delta)
            yield table

    def make(table: ValueTable) -> tuple[SavedRelease, Files]:
        on_step("selecting")
        found = selection.draw(table, source)
        files = encode_values(
            found.counts, found.guarantee, threshold=found.threshold, created=created or now(), table=table.decided
        )
        return SavedRelease.of_files(files), files

    return make_release(
        output,
        cost_of(selection),
        open_log=read,
        make=make,
        summarize=lambda table: table.summary.as_json(),
        read=SavedRelease.of_files,
        replace=replace,
        ledger=ledger,
        on_step=on_step,
    )
