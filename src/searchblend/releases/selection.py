"""A selection of values with the folder it leaves: what ``searchblend select`` does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from searchblend.core.privacy import Budget, Neighbors
from searchblend.core.randomness import Randomness, SystemRandomness
from searchblend.core.silent import SILENT
from searchblend.logs.options import ReadOptions
from searchblend.releases.make_release import (
    Cost,
    Files,
    LedgerEntry,
    WrittenRelease,
    make_release,
    refuse_large_delta,
)
from searchblend.releases.select_values import HeavyValues, ValueTable, name_values, new_key, selection_design
from searchblend.wire.release import STATEMENT, encode_statement, json_file, log_caveats, make_statement
from searchblend.wire.selection import (
    SELECTION,
    SELECTION_CAVEATS,
    SELECTION_PUBLIC,
    STATEMENT_KIND,
    SelectedValue,
    Selection,
    decode_selection,
    selection_files,
)


@dataclass(frozen=True)
class SelectionSettings:
    """What to select from, and where the results go."""

    table: ReadOptions
    """with columns called ``user`` and ``value``"""
    budget: Budget
    output: Path
    replace: bool = False
    allow_large_delta: bool = False
    """whether δ may reach 1/users, at which a mechanism may expose a user outright"""
    ledger: LedgerEntry | None = None
    created: str = ""
    """when, in ISO 8601; enters the statement"""

    @property
    def cost(self) -> Cost:
        return Cost(self.budget, Neighbors.REPLACE_ONE, "selection of values")


def run_selection(
    settings: SelectionSettings,
    *,
    randomness: Randomness | None = None,
    on_step: Callable[[str], None] = SILENT,
) -> WrittenRelease[Selection]:
    """Read the table, select, write the release."""
    source, design = randomness or SystemRandomness(), selection_design(settings.budget)

    def read() -> ValueTable:
        """What can go wrong with the input does so here, before anything is paid."""
        on_step("reading")
        with contextlib.ExitStack() as on_failure:
            table = on_failure.enter_context(ValueTable(settings.table))
            on_step("counting")
            table.count(new_key(source))
            refuse_large_delta(settings.budget, table.n_users, allowed=settings.allow_large_delta)
            on_failure.pop_all()
            return table

    def make(table: ValueTable) -> tuple[Selection, Files]:
        selection = _document(name_values(table.tally, settings.budget, design, source))
        return selection, _files(selection, table, settings)

    return make_release(
        settings.output,
        settings.cost,
        open_log=read,
        make=make,
        read=lambda files: decode_selection(files[SELECTION]),
        replace=settings.replace,
        ledger=settings.ledger,
        on_step=on_step,
    )


def _document(found: HeavyValues) -> Selection:
    values = [SelectedValue(value, count) for value, count in found.counts.items()]
    return Selection(found.guarantee.stated(), found.threshold, values)


def _files(selection: Selection, table: ValueTable, settings: SelectionSettings) -> Files:
    """``values.csv``, ``selection.json``, and ``statement.json`` with their hashes."""
    files = selection_files(selection)
    budget = settings.budget
    statement = make_statement(
        files,
        kind=STATEMENT_KIND,
        method="stability histogram",
        created=settings.created,
        parameters={
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "threshold": selection.threshold,
            "log": dict(table.decided),
        },
        guarantee=selection.guarantee,
        public=SELECTION_PUBLIC,
        caveats=[*SELECTION_CAVEATS, *log_caveats(table.decided)],
    )
    return {**files, STATEMENT: json_file(encode_statement(statement))}
