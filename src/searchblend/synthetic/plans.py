"""What a run or a release would give, before anyone is asked: what ``plan`` and ``release plan`` compute."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from searchblend.clickgraph.release.design import ClickGraphDesign, release_plan
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.outlet import Where
from searchblend.core.params import BlenderParams, ClickGraphParams
from searchblend.core.silent import SILENT
from searchblend.core.tables import ROWS_SHOWN, Column, Tables, chosen, html_table
from searchblend.files.durable import write_new
from searchblend.pages.draw import draw
from searchblend.synthetic.count_group import RecordModel, Situation
from searchblend.synthetic.plan import FIGURES, curve, plan_document
from searchblend.synthetic.population import MEDIAN_SEARCHES, PROFILES, profile_named
from searchblend.wire.release import decode_result, json_file

PLAN: Final = "plan.json"
EPSILONS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
"""drawn in the plot of a run"""
TableName = Literal["plan"]


@dataclass(frozen=True, repr=False)
class Plan(Tables[TableName]):
    """A forecast. It rests on parameters and on synthetic users or an earlier release: nothing private is read."""

    document: JsonObject
    """all of it, as ``--json`` prints it"""

    def save(self, folder: Where, *, replace: bool = False) -> None:
        """Write ``plan.json``, the document.

        Args:
            folder: where the file goes
            replace: whether an earlier one may go

        Example:
            ``plan.save("plans")``
        """
        write_new(Path(folder) / PLAN, json_file(self.document), replace=replace)

    def plot(self, file: Where | None = None, *, on_run: Callable[[], None] = SILENT) -> Any:
        """The forecast as a figure of Matplotlib (the extra ``plots``).

        Args:
            file: where the figure goes as well, .png or .svg
            on_run: called after each simulated run, of which the plan of a release has none

        Example:
            ``plan.plot("plan.png")``
        """
        return draw(lambda _: self._figure(on_run), file)

    @abstractmethod
    def _figure(self, on_run: Callable[[], None]) -> Any: ...

    @property
    def title(self) -> str:
        """In a few words."""
        return f"ε = {self.document['epsilon']:g}, nothing was read"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        columns = self.columns()
        cells = [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in column] for column in columns.values()]
        rows = list(zip(*cells, strict=True))
        return html_table("Plan", list(columns), rows[:ROWS_SHOWN], len(rows), self.title)


@dataclass(frozen=True, repr=False)
class ReleasePlan(Plan):
    """The plan of a released click graph: thresholds, noise, and from which count a query is published.

    Example:
        ``sb.plan_release(sb.ClickGraphParams(sb.Budget(2.0, 1e-6))).document["threshold"]``
    """

    def columns(self, table: TableName | None = None) -> dict[str, list[float]]:
        """The count of a query, and how likely it is published with it."""
        chosen(table, "plan")
        points = self.document["curve"]
        return {name: [point[name] for point in points] for name in ("count", "probability")}

    def _figure(self, on_run: Callable[[], None]) -> Any:
        from searchblend.synthetic.plan_plots import release_curve_figure

        return release_curve_figure(self.document)


@dataclass(frozen=True, repr=False)
class RunPlan(Plan):
    """The plan of a hybrid run, simulated with the shipped algorithms.

    Example:
        ``sb.plan_run(params, users=100_000, optin_fraction=0.02).plot()``
    """

    model: RecordModel = field(compare=False)
    situation: Situation = field(compare=False)

    def columns(self, table: TableName | None = None) -> dict[str, Column]:
        """Queries listed, searches covered, ± at fixed ranks and error, by method: mean, and the ends of the middle
        80 % of runs."""
        chosen(table, "plan")
        methods = self.document["methods"]
        rows = [(method, name, methods[method][name]) for method in methods for name in FIGURES]
        bands = {end: [band[end] for _, _, band in rows] for end in ("mean", "low", "high")}
        return {"method": [row[0] for row in rows], "figure": [row[1] for row in rows], **bands}

    def _figure(self, on_run: Callable[[], None]) -> Any:
        """Over ε, which takes twelve times as many simulated runs as ``runs``."""
        situation = self.situation
        curves = curve(self.model, situation, EPSILONS, runs=self.document["runs"], seed=2, on_run=on_run)
        share, delta = situation.optin_fraction, situation.params.budget.delta
        title = f"{situation.users:,} users, {share:.1%} opt-in, δ = {delta:g} ({self.document['profile']})"
        from searchblend.synthetic.plan_plots import plan_figure

        return plan_figure(EPSILONS, curves, title)


def plan_release(params: ClickGraphParams, *, selection_only: bool = False) -> ReleasePlan:
    """What the release of a click graph would do; reads no data.

    Args:
        params: those of the release
        selection_only: whether the whole budget goes to choosing queries

    Example:
        ``sb.plan_release(sb.ClickGraphParams(sb.Budget(2.0, 1e-6))).plot()``
    """
    return ReleasePlan(release_plan(ClickGraphDesign.of(params), selection_only=selection_only))


@dataclass(frozen=True)
class PlannedPeople:
    """Whom a plan simulates."""

    name: str
    model: RecordModel
    users: int
    optin_fraction: float
    max_head_queries: int


def planned_people(profile: str) -> PlannedPeople:
    """The people of a profile (``aol``, ``yandex``), or people who search as an earlier ``result.json`` says."""
    if profile in PROFILES:
        known = profile_named(profile)
        model = RecordModel.of_profile(known)
        return PlannedPeople(profile, model, known.n_users, known.optin_fraction, known.max_head_queries)
    try:
        result = decode_result(Path(profile).read_bytes())
    except OSError as error:
        raise InvalidParameter("profile", f"expected aol, yandex or a result.json, cannot read {profile}") from error
    except MessageError as error:
        raise InvalidParameter("profile", f"{profile}: expected a result.json of searchblend run ({error})") from error
    users = result.groups.optin_users + result.groups.clients
    return PlannedPeople(profile, RecordModel.of_result(result), users, result.groups.optin_users / max(users, 1), 50)


def plan_run(
    params: BlenderParams,
    *,
    users: int | None = None,
    optin_fraction: float | None = None,
    searches: int = MEDIAN_SEARCHES,
    profile: str | PlannedPeople = "aol",
    runs: int = 8,
    on_run: Callable[[], None] = SILENT,
) -> RunPlan:
    """What a hybrid run would give: queries listed, searches covered, error, and what one more ε or opt-in buys.

    Args:
        params: those of the run; ``records_per_optin`` says how many searches of an opt-in user count, settled
            as in a run of method ``best`` unless given
        users: people in both groups; the profile's unless given
        optin_fraction: share that opts in; the profile's unless given
        searches: how many half of the people have at most; 1: everyone has one
        profile: ``aol``, ``yandex``, or the path of an earlier ``result.json``
        runs: simulated runs per figure
        on_run: called after each of them

    Example:
        ``sb.plan_run(sb.BlenderParams(sb.Budget(4.0, 1e-5)), users=100_000).to_pandas()``
    """
    people = planned_people(profile) if isinstance(profile, str) else profile
    situation = planned_situation(people, params, users, optin_fraction, searches)
    document = plan_document(people.model, situation, profile=people.name, runs=runs, on_run=on_run)
    return RunPlan(document, people.model, situation)


def planned_situation(
    people: PlannedPeople, params: BlenderParams, users: int | None, optin_fraction: float | None, searches: int
) -> Situation:
    """Who takes part; what is not given is the people's own."""
    users, share = users or people.users, optin_fraction or people.optin_fraction
    if users * share < 2 or users * (1 - share) < 2:
        raise InvalidParameter("users", "at least 2 people are needed in each group, opt-in users and clients")
    return Situation(users, share, params, searches)
