"""What a release is, as facts for people who must write about it: each read from its files, none typed by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final

from searchblend.core.errors import InputError, MessageError, RunError
from searchblend.core.outlet import Where
from searchblend.core.privacy import StatedGuarantee
from searchblend.core.statement import FileEntry, Statement
from searchblend.pages.statement_words import StatementWords
from searchblend.releases.paperwork.kinds import DESCRIBED, KindFacts
from searchblend.releases.paperwork.recompute import check_promise
from searchblend.releases.saved_release import SavedRelease, read_release
from searchblend.wire.release import STATEMENT

PRIORS: Final = (0.01, 0.1, 0.5)
"""what somebody may believe of a person before they see the release"""


@dataclass(frozen=True)
class ReleaseFacts:
    """One release: what it is, what it promises, how that came about."""

    folder: str
    """its name"""
    statement: Statement
    kind: KindFacts
    guarantee: StatedGuarantee
    made: date
    words: StatementWords
    """promise and citation, as the release's page has them"""

    @property
    def odds(self) -> float:
        """By how much the odds between two versions of one person's data can change, up to ``odds_delta``.

        Where neighbours add or remove a person, replacing their data takes two steps.
        """
        return math.exp(self.guarantee.epsilon * (1 if self.replaces_one else 2))

    @property
    def odds_delta(self) -> float:
        """δ, or (1 + e^ε)·δ over two steps."""
        return self.guarantee.delta * (1 if self.replaces_one else 1 + math.exp(self.guarantee.epsilon))

    @property
    def beliefs(self) -> list[tuple[float, float]]:
        """A belief about somebody's data, and the largest that the release can make of it, up to δ."""
        return [(prior, self.odds * prior / (1 - prior + self.odds * prior)) for prior in PRIORS]

    @property
    def replaces_one(self) -> bool:
        return self.guarantee.neighbors.startswith("replace-one")

    @property
    def bounds(self) -> list[str]:
        """How much of one person enters, in the words of the conditions."""
        found = [
            one for one in self.guarantee.conditions if one.name.startswith(("bounded contribution", "one record"))
        ]
        return [f"{one.name}: {one.detail}" for one in found]

    @property
    def files(self) -> Mapping[str, FileEntry]:
        return dict(sorted(self.statement.files.items()))

    @property
    def source(self) -> Sequence[str]:
        """The papers whose algorithm this is; a selection has none of its own."""
        return [self.words.paper] if self.kind.has_paper else []

    @property
    def version(self) -> str:
        return self.statement.software.get("searchblend", "of an unknown version")


def facts_of_folder(where: Where) -> ReleaseFacts:
    """The facts of a release folder, whose files must have their hashes and whose promise its parameters must give.

    ``RunError`` for what must not be released: nobody needs papers for it.
    """
    folder = Path(where)
    release = read_release(folder)
    if not (release.statement.private and release.guarantee.holds):
        raise RunError(f"{folder}: must not be released, by its own statement; there are no papers for it")
    try:
        check_promise(release)
        return _facts(folder, release)
    except MessageError as error:
        raise InputError(folder / STATEMENT, str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
        raise InputError(folder, "expected the files of a release as searchblend writes them") from error


def _facts(folder: Path, release: SavedRelease) -> ReleaseFacts:
    kind = DESCRIBED[release.statement.kind](release)
    return ReleaseFacts(
        folder=folder.resolve().name,
        statement=release.statement,
        kind=kind,
        guarantee=release.guarantee,
        made=datetime.fromisoformat(release.statement.created).date(),
        words=StatementWords(release.statement, kind.title, kind.digest),
    )
