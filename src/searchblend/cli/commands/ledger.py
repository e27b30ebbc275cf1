"""``searchblend ledger``: show, check, export, cap, what-if."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from searchblend.accounting.spend import UNIT
from searchblend.accounting.totals import BASIC, BudgetCap, Totals, fits, for_group, remaining, total_of
from searchblend.cli.arguments import add_actions, add_cap, add_command, share
from searchblend.cli.printing import new_table, print_json, print_line, print_table, warn, write
from searchblend.core.documents import JsonObject, encode
from searchblend.core.errors import UsageError
from searchblend.core.privacy import Budget
from searchblend.store.errors import LedgerError

if TYPE_CHECKING:
    from rich.table import Table

    from searchblend.store.ledger import Ledger
    from searchblend.store.ledger_book import Book, Entry, Row

EXAMPLES = """\
examples:
  searchblend ledger show budget.ledger                     debits, totals by summing and by loss distributions, the cap
  searchblend ledger show budget.ledger --population search --window 2026-W46 --delta 1e-6
  searchblend ledger check budget.ledger                    the hash chain and every stored file
  searchblend ledger export budget.ledger > rows.jsonl      the rows with their hashes, for others to verify
  searchblend ledger cap budget.ledger --lifetime 20,1e-4 --per-window 4,1e-5
  searchblend ledger what-if year.toml --ledger budget.ledger    what a batch of releases would cost, before any is made
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    show = add_command(actions, "show", "the debits, their totals and what is left of the cap", EXAMPLES)
    check = add_command(actions, "check", "verify the hash chain and every stored file", EXAMPLES)
    export = add_command(actions, "export", "the rows with their hashes, one JSON document a line", EXAMPLES)
    cap = add_command(actions, "cap", "put a cap on record; makes the ledger if there is none", EXAMPLES)
    what_if = add_command(actions, "what-if", "the totals after a batch of planned releases; debits nothing", EXAMPLES)
    what_if.add_argument(
        "plan", type=Path, metavar="PLAN.toml", help="the planned releases, one table [[release]] each"
    )
    what_if.add_argument("--ledger", metavar="LEDGER", help="what was debited before, and the cap (none)")
    what_if.add_argument("--delta", type=share, metavar="D", help="total δ (the cap's, else the debits' own + 1e-6)")
    for action in (show, check, export, cap):
        action.add_argument("ledger", metavar="LEDGER", help="the ledger's file, or the database of a service")
    for action in (show, export):
        action.add_argument("--population", metavar="NAME", help="only releases about these people")
        action.add_argument("--window", metavar="NAME", help="only what counts in this window")
    show.add_argument("--delta", type=share, metavar="D", help="total δ (the cap's, else the debits' own + 1e-6)")
    check.add_argument("--head", metavar="HASH", help="a hash noted earlier: it must still be in the chain")
    for action in (show, check, export, what_if):
        action.add_argument("--json", action="store_true", help="print one JSON document")
    add_cap(cap)
    cap.add_argument("--planned", action="store_true", help="releases are fixed in advance: the smaller total counts")


_GROUP_IDS: Final = (2, 3)
_GROUP_RULE: Final = "k ids of one person: kε, and δ(e^{kε} − 1)/(e^ε − 1)"
Scope = tuple[str, str | None]


def run(options: argparse.Namespace) -> None:
    if options.action == "cap":
        set_cap(options)
        return
    if options.action == "what-if":
        what_if(options)
        return
    with _opened(options.ledger, create=False) as ledger:
        if options.action == "check":
            check(ledger.check(), ledger.rows(), options)
            return
        book, rows = ledger.book(), ledger.rows()
    scopes = chosen_scopes(book, options)
    if options.action == "export":
        export(book, rows, options)
    else:
        show_totals(book, scopes, options)


def _opened(where: str, *, create: bool = True) -> Ledger:
    """The ledger in a file of its own, or the one in a service's database."""
    from searchblend.store.ledger import open_ledger
    from searchblend.store.service_store import is_service_database, open_store

    if is_service_database(where):
        return open_store(where, create=False).ledger
    return open_ledger(where, create=create)


def _named(where: str) -> str:
    return "the service's database" if "://" in where else where  # a URL may hold a password


def set_cap(options: argparse.Namespace) -> None:
    cap = BudgetCap(options.per_window, options.lifetime, options.planned)
    with _opened(options.ledger) as ledger:
        ledger.set_cap(cap)
    print_line(f"{_named(options.ledger)}: cap on record: {_cap_words(cap)}")


def check(book: Book, rows: Sequence[Row], options: argparse.Namespace) -> None:
    """The chain and the files are sound if this is reached; then the totals against the cap."""
    if options.head and options.head not in {row.hash for row in rows}:
        raise LedgerError(
            f"{_named(options.ledger)}: no row has the hash {options.head}: rows were removed, or it is another file"
        )
    over = [scope for scope in book.scopes() if _is_over(book, scope)]
    document = {
        "format": "searchblend-ledger-check",
        "version": 1,
        "rows": book.length,
        "head": book.head,
        "debits": len(book.entries),
        "published": len(book.published),
        "over_cap": [{"population": population, "window": window} for population, window in over],
    }
    if options.json:
        print_json(document)
    else:
        print_line(
            f"sound: {book.length} rows, {len(book.entries)} debits, {len(book.published)} of them published\n"
            f"head {book.head}\nKeep the head elsewhere: `check --head` then also notices rows cut off at the end.",
        )
    for scope in over:
        warn(f"warning: {_scope_words(scope)}: more is debited than the cap allows")


def export(book: Book, rows: Sequence[Row], options: argparse.Namespace) -> None:
    """The rows as they are chained: SHA-256 of the previous hash, a line feed and the canonical JSON of the body."""
    import json

    kept = {entry.release_id for entry in book.entries.values() if entry.counts_for(options.population, options.window)}
    documents = [row.as_json() for row in rows if row.release_id is None or row.release_id in kept]
    if options.json:
        print_json({"format": "searchblend-ledger", "version": 1, "head": book.head, "rows": documents})
    else:
        write("".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents))


def show_totals(book: Book, scopes: Sequence[Scope], options: argparse.Namespace) -> None:
    totals = {scope: book.totals(*scope, options.delta) for scope in scopes}
    entries = [entry for entry in book.entries.values() if entry.counts_for(options.population, options.window)]
    if options.json:
        print_json(show_document(book, entries, totals))
        return
    if not entries:
        print_line("no debits")
    else:
        print_table(_entries_table(book, entries))
        print_table(_totals_table(book, totals))
    print_line(f"cap: {_cap_words(book.cap) if book.cap else 'none on record'}")
    print_line(f"unit: {UNIT}. Two ids of one person are two units; {_GROUP_RULE}.")
    for scope, total in totals.items():
        if scope[1] is None and math.isfinite(total.epsilon) and total.epsilon > 0:
            print_line(f"  {_group_words(scope, total)}")


def show_document(book: Book, entries: Sequence[Entry], totals: dict[Scope, Totals]) -> JsonObject:
    return {
        "format": "searchblend-ledger-totals",
        "version": 1,
        "unit": UNIT,
        "group_privacy": _GROUP_RULE,
        "head": book.head,
        "cap": encode(book.cap),
        "entries": [
            {
                "release_id": entry.release_id,
                "population": entry.population,
                "window": entry.window,
                "recorded": entry.recorded,
                "published": entry.release_id in book.published,
                "spend": entry.spend.as_json(),
                "rho": entry.spend.rho,
                "role_in": entry.role_in,
                "public_spend": spend.as_json() if (spend := book.public_spends.get(entry.release_id)) else None,
            }
            for entry in entries
        ],
        "totals": [
            {
                "population": population,
                "window": window,
                **total.as_json(),
                "left": _left(book, (population, window)),
                "groups": _groups(total),
                "client_in_public": _json_of(_public(book, (population, window), total)),
            }
            for (population, window), total in totals.items()
        ],
    }


def what_if(options: argparse.Namespace) -> None:
    """The totals after a plan, beside those of today; the first release that the cap would refuse is named."""
    from searchblend.store.ledger_book import Book
    from searchblend.store.ledger_plan import read_plan

    book = Book()
    if options.ledger:
        with _opened(options.ledger, create=False) as ledger:
            book = ledger.book()
    before = {scope: book.totals(*scope, options.delta) for scope in book.scopes()}
    planned, refused = read_plan(options.plan), None
    for entry in planned:
        if refused is None and book.exceeded_by(entry):
            refused = entry.release_id
        book.entries[entry.release_id] = entry
    touched = [scope for scope in book.scopes() if any(entry.counts_for(*scope) for entry in planned)]
    after = {scope: book.totals(*scope, options.delta) for scope in touched}
    if options.json:
        print_json(_what_if_document(planned, before, after, refused))
        return
    print_table(_totals_table(book, after))
    verdict = f"the cap would refuse {refused}" if refused else "all of it fits" if book.cap else "no cap is on record"
    print_line(f"{len(planned)} planned releases: {verdict}. Nothing was debited.")


def _what_if_document(
    planned: Sequence[Entry], before: dict[Scope, Totals], after: dict[Scope, Totals], refused: str | None
) -> JsonObject:
    return {
        "format": "searchblend-ledger-what-if",
        "version": 1,
        "planned": len(planned),
        "refused": refused,
        "totals": [
            {
                "population": population,
                "window": window,
                "before": _json_of(before.get((population, window))),
                "after": total.as_json(),
            }
            for (population, window), total in after.items()
        ],
    }


def chosen_scopes(book: Book, options: argparse.Namespace) -> list[Scope]:
    """The windows and lifetimes that the options name; a name that is not there is a mistake."""
    for field in ("population", "window"):
        name, known = getattr(options, field), {getattr(entry, field) for entry in book.entries.values()}
        if name is not None and name not in known:
            raise UsageError(f"--{field} {name}: not in this ledger; it has {', '.join(sorted(known)) or 'no debits'}")
    return [
        (population, window)
        for population, window in book.scopes()
        if options.population in (None, population) and (options.window is None or window == options.window)
    ]


def _public(book: Book, scope: Scope, total: Totals) -> Totals | None:
    """A client of every round, against those who see only what is published; None where that is the same."""
    spends = book.spends_in_public(*scope)
    return total_of(spends, total.delta) if spends != book.spends(*scope) else None


def _json_of(total: Totals | None) -> JsonObject | None:
    return None if total is None else total.as_json()


def _left(book: Book, scope: Scope) -> dict[str, float] | None:
    budget = book.limit(scope[1])
    if budget is None or book.cap is None:
        return None
    epsilon, delta = remaining(book.spends(*scope), budget, planned=book.cap.planned)
    return {"epsilon": epsilon, "delta": delta}


def _is_over(book: Book, scope: Scope) -> bool:
    budget, spends = book.limit(scope[1]), book.spends(*scope)
    return budget is not None and book.cap is not None and not fits(spends, budget, planned=book.cap.planned)


def _groups(total: Totals) -> list[dict[str, float]]:
    if not (math.isfinite(total.epsilon) and total.epsilon > 0):
        return []
    groups = []
    for ids in _GROUP_IDS:
        epsilon, delta = for_group(Budget(total.epsilon, total.delta), ids)
        groups.append({"ids": ids, "epsilon": epsilon, "delta": delta})
    return groups


def _group_words(scope: Scope, total: Totals) -> str:
    parts = [f"{group['ids']} ids ε = {group['epsilon']:.4g}, δ = {group['delta']:.2g}" for group in _groups(total)]
    return f"{scope[0]}: {'; '.join(parts)}"


def _entries_table(book: Book, entries: Sequence[Entry]) -> Table:
    words = ("release", "population", "window", "mechanism")
    rows = [
        (
            entry.release_id,
            entry.population,
            entry.window,
            entry.spend.mechanism,
            f"{entry.spend.epsilon:g}",
            f"{entry.spend.delta:g}",
            "–" if entry.spend.rho is None else f"{entry.spend.rho:.3g}",
            "yes" if entry.release_id in book.published else "not yet",
        )
        for entry in entries
    ]
    return new_table("Debits", (*words, "ε", "δ", "ρ", "published"), rows, words=(*words, "published"))


def _totals_table(book: Book, totals: dict[Scope, Totals]) -> Table:
    rows = []
    for scope, total in totals.items():
        basic, composed = _epsilon(total.basic_epsilon), _epsilon(total.loss_distribution_epsilon)
        basic, composed = (f"◀ {basic}", composed) if total.method == BASIC else (basic, f"◀ {composed}")
        left, public = _left(book, scope), _public(book, scope, total)
        rows.append(
            (
                scope[0],
                "all (lifetime)" if scope[1] is None else scope[1],
                basic,
                composed,
                f"{total.delta:.3g}",
                f"ε {left['epsilon']:.4g}, δ {left['delta']:.2g}" if left else "–",
                str(total.releases),
                _epsilon(public.epsilon) if public else "the same",
                "–" if total.rho is None else f"{total.rho:.3g}",
            )
        )
    words = ("population", "window")
    figures = ("ε summed", "ε by PLD", "at δ", "left of the cap", "releases", "ε in public", "ρ")
    return new_table(
        "Cost to one user id",
        (*words, *figures),  # a narrow terminal has no room for the last ones
        rows,
        words=words,
        caption="◀ the smaller total. PLD: privacy loss distributions, for releases that were planned beforehand; "
        "the sum (basic composition) holds for any. – says nothing at this δ. ρ: zero-concentrated privacy, of "
        "releases without δ. In public: a client of every round, against those who see only what is published, if the "
        "other clients report honestly. Of a round in which a person has one role the larger debit counts.",
    )


def _epsilon(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _scope_words(scope: Scope) -> str:
    return f"population {scope[0]}, {'lifetime' if scope[1] is None else f'window {scope[1]}'}"


def _cap_words(cap: BudgetCap) -> str:
    parts = [
        f"{name} ε = {budget.epsilon:g}, δ = {budget.delta:g}"
        for name, budget in (("per window", cap.window), ("lifetime", cap.lifetime))
        if budget
    ]
    rule = "the smaller total (planned releases)" if cap.planned else "summing"
    return f"{'; '.join(parts)}; kept by {rule}"
