"""What a release is, as facts for people who must write about it: each read from its files, none typed by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from searchblend.core.errors import InputError, MessageError, RunError
from searchblend.core.outlet import Where
from searchblend.core.privacy import StatedGuarantee
from searchblend.core.statement import FileEntry, Statement
from searchblend.pages.layout import small_number
from searchblend.pages.release_pages import CLICK_GRAPH_TITLE, HYBRID_TITLE
from searchblend.pages.statement_words import StatementWords
from searchblend.releases.saved_release import SavedRelease, read_release
from searchblend.releases.verify_release import check_promise
from searchblend.wire.click_graph import STATEMENT_KIND, TABLES, attribute_tables
from searchblend.wire.click_graph_statement import params_of_statement
from searchblend.wire.release import STATEMENT
from searchblend.wire.values import VALUES, VALUES_KIND

PRIORS: Final = (0.01, 0.1, 0.5)
"""what a reader may believe of a person before seeing the release"""
_NORMAL_FORM: Final = "Queries and URLs were brought into a normal form by a fixed rule, text by text."
_PROJECTED: Final = "Estimates were projected so that shares lie between 0 and 1 and sum to 1."
_SHARES: Final[Mapping[str, str]] = {
    "query": "a query in normal form; empty in the row of all other queries (⋆)",
    "url": "a URL in normal form; empty for all other URLs of the query (⋆)",
    "kind": "what the row is about; tells ⋆ from an empty string",
    "probability": "the share of all searches, estimated from both groups",
    "low": "lower end of the 95 % interval of the share",
    "high": "upper end of the 95 % interval",
    "variance": "variance of the estimate",
    "raw_probability": "the estimate before it was projected",
    "optin_probability": "what the opt-in users alone say",
    "optin_variance": "variance of that",
    "client_probability": "what the clients alone say",
    "client_variance": "variance of that",
    "optin_weight": "how much the opt-in users count in the estimate, from 0 to 1",
    "report_influence": "by how much one fabricated report can move the share",
}
_VALUES: Final[Mapping[str, str]] = {
    "value": "a value that enough users have, as it was written",
    "count": "how many users drew it, plus noise, as drawn",
}


@dataclass(frozen=True)
class TableFacts:
    """One table of a release."""

    file: str
    rows: int
    columns: Mapping[str, str]
    """name → meaning"""


@dataclass(frozen=True)
class KindFacts:
    """What is true of a release because of its kind, with the figures of this one."""

    title: str
    digest: str
    """what names it: the SHA-256 of its first table, or of its head list"""
    description: str
    data: str
    """the datasets that could have been the input"""
    people: Sequence[str]
    """how many they are, as far as that is public"""
    tables: Sequence[TableFacts]
    model: str
    """Central, or Varies: the registry knows no hybrid"""
    model_details: str
    mechanisms: Sequence[str]
    composition: str
    preprocessing: str
    post_processing: str
    has_paper: bool


def _hybrid(release: SavedRelease) -> KindFacts:
    result = release.result()
    optin, client = result.mechanism["optin"], result.mechanism["client"]
    groups, parameters = result.groups, release.statement.parameters
    records = f"{client['cells_per_report']} record{'s' * (client['cells_per_report'] > 1)}"
    kept = " and ".join(
        f"the true {what} with probability {client[name]:.4g}"
        for name, what in (("keep_query", "query"), ("keep_cell", "record"))
        if client.get(name) is not None
    )
    return KindFacts(
        title=HYBRID_TITLE,
        digest=result.head.digest,
        description=(
            f"Shares of the {result.head.queries:,} most frequent queries and {result.head.records:,} records (a query "
            "with the URL that was chosen) of a search log, each with a 95 % interval."
        ),
        data="Search logs: for each user a number of records, each a query with the URL that was chosen, or none.",
        people=[f"{groups.optin_users:,} opt-in users", f"{groups.clients:,} clients"],
        tables=_tables(release, _SHARES),
        model="Varies",
        model_details=(
            "Hybrid (BLENDER): two groups of users under two trust models at once. "
            + " ".join(f"{group.group}: {group.trust}." for group in release.guarantee.groups)
            + " What both groups say is averaged."
        ),
        mechanisms=[
            f"Opt-in users: {optin['name']}; noise of scale {optin['noise_scale']:.4g} on counts to which one user "
            f"adds up to {optin.get('units_per_user', 1):,}; named from {optin['integer_threshold']:,} on.",
            f"Clients: {client['name']}; one report each, of {records}, which keeps {kept}.",
        ],
        composition=(
            "Parallel over the groups: each user is in one of them, and the promise of each is stated for all that is "
            f"taken from its users together. {_of_groups(release)}"
        ),
        preprocessing=(
            f"{_NORMAL_FORM} Each client's report is of {records}, drawn at random. At most "
            f"{parameters['max_head_queries']} queries are listed."
        ),
        post_processing=(
            "Both groups' estimates were blended, the more precise one counting more; intervals were computed. "
            + (_PROJECTED if parameters.get("projected") else "Estimates were not projected.")
        ),
        has_paper=True,
    )


def _click_graph(release: SavedRelease) -> KindFacts:
    parameters = release.statement.parameters
    design = parameters["design"]
    tables = [
        TableFacts(table.csv, _rows(release, name), {column.name: column.meaning for column in table.columns})
        for name, table in TABLES.items()
    ]
    sizes = ", ".join(f"{table.rows:,} {name}" for table, name in zip(tables, TABLES, strict=True))
    tables += [
        TableFacts(table.csv, _rows(release, name), {column.name: column.meaning for column in table.columns})
        for name, table in attribute_tables(params_of_statement(parameters)).items()
    ]
    population = parameters.get("population")
    return KindFacts(
        title=CLICK_GRAPH_TITLE,
        digest=release.statement.files[tables[0].file].sha256,
        description=f"Noisy counts of what many users of a search log share, with 95 % intervals: {sizes}.",
        data="Search logs: for each user the searches with their times, and the results that were clicked.",
        people=[f"{population:,} users, as declared; they were not counted in the log"] if population else [],
        tables=tables,
        model="Central",
        model_details=f"{release.guarantee.groups[0].trust}. Readers need not be trusted.",
        mechanisms=[_step(step) for step in design["steps"]],
        composition=(
            f"All steps are in one account of (ε, δ) ({parameters['accounting']} accounting); the ε of a step alone is "
            f"not added up. {_of_groups(release)}"
        ),
        preprocessing=f"{_NORMAL_FORM} Each user's earliest activity up to the bounds counts.",
        post_processing="Clamped counts, estimates corrected for selection, and intervals: from noisy counts alone.",
        has_paper=True,
    )


def _values(release: SavedRelease) -> KindFacts:
    threshold = release.statement.parameters["integer_threshold"]
    most = release.statement.parameters.get("values_per_user", 1)
    values = "one was" if most == 1 else f"up to {most:,} were"
    tables = _tables(release, _VALUES)
    return KindFacts(
        title="The common values of a table",
        digest=release.statement.files[VALUES].sha256,
        description=f"The {tables[0].rows:,} values that many users of a table share, with noisy numbers of users.",
        data="Tables with a row for each user and value.",
        people=[],
        tables=tables,
        model="Central",
        model_details=f"{release.guarantee.groups[0].trust}. Readers need not be trusted.",
        mechanisms=[
            f"{release.statement.method}: noise on the number of users of each value that occurs, "
            f"named from {threshold} on."
        ],
        composition=f"One mechanism, used once. {_of_groups(release)}",
        preprocessing=f"Of each user's different values {values} counted, drawn at random.",
        post_processing="Values were sorted by their noisy counts.",
        has_paper=False,
    )


def _step(step: Mapping[str, Any]) -> str:
    """Scale and threshold in whole counts, whatever units the step counts in."""
    units, threshold = step["units"], step["threshold"]
    published = "all are published" if threshold is None else f"published from {-(-threshold // units):,} on"
    return (
        f"{step['name']}: the first {step['first']:,} of each user; noise {step['noise']['law'].replace('_', ' ')} of "
        f"scale {step['noise']['scale'] / units:.4g}; {published}."
    )


def _of_groups(release: SavedRelease) -> str:
    return " ".join(
        f"{group.group}: ε = {group.epsilon:g}, δ = {small_number(group.delta)}, of which the mechanisms use "
        f"{small_number(group.mechanism_delta)}."
        for group in release.guarantee.groups
    )


def _tables(release: SavedRelease, meanings: Mapping[str, str]) -> list[TableFacts]:
    return [
        TableFacts(file, _rows(release, name), {column: meanings[column] for column in release.columns(name)})
        for name, file in release.table_files.items()
    ]


def _rows(release: SavedRelease, table: str) -> int:
    return len(next(iter(release.columns(table).values())))


DESCRIBED: Final[Mapping[str, Callable[[SavedRelease], KindFacts]]] = {
    "blender": _hybrid,
    STATEMENT_KIND: _click_graph,
    VALUES_KIND: _values,
}
"""``release.kind`` → how a release of it is described"""


@dataclass(frozen=True)
class ReleaseFacts:
    """One release: what it is, what it promises, how that came about."""

    folder: str
    """its name"""
    statement: Statement
    kind: KindFacts
    guarantee: StatedGuarantee
    created: date
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
        """A belief about a person's data, and the largest that the release can make of it, up to δ."""
        return [(prior, self.odds * prior / (1 - prior + self.odds * prior)) for prior in PRIORS]

    @property
    def replaces_one(self) -> bool:
        return self.guarantee.neighbors.startswith("replace-one")

    @property
    def bounds(self) -> list[str]:
        """How much of one person enters, in the words of the conditions."""
        bounding = [
            one for one in self.guarantee.conditions if one.name.startswith(("bounded contribution", "one record"))
        ]
        return [f"{one.name}: {one.detail}" for one in bounding]

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

    ``RunError`` for what must not be released: it needs no papers.
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
        created=datetime.fromisoformat(release.statement.created).date(),
        words=StatementWords(release.statement, kind.title, kind.digest),
    )
