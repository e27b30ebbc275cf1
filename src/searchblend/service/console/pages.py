"""The pages that are read: each asks the store once, in a fixed number of statements, and renders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from starlette.responses import Response

from searchblend.core.errors import InvalidParameter
from searchblend.service.actions import MOST_HOURS
from searchblend.service.api.answers import Refusal, number_of
from searchblend.service.console import (
    audit_page,
    budget_page,
    overview,
    planner_page,
    refusals_page,
    round_page,
    search_page,
    task_page,
    trends_page,
    users_page,
)
from searchblend.service.console.render import HEADERS
from searchblend.service.console.visit import (
    AUDITOR,
    OPERATOR,
    ROUND,
    TASK,
    ConsoleRoute,
    Visit,
    between_rounds,
    console_page,
    see_other,
)
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.services import Services
from searchblend.store.service_store import ServiceStore
from searchblend.store.tokens import ROLES

T = TypeVar("T")


class Pages:
    """The pages for people who are signed in."""

    def __init__(self, services: Services, planner: planner_page.Planner | None = None) -> None:
        self._services, self._planner = services, planner
        self._planning = asyncio.Lock()
        self._forecasts: dict[planner_page.PlannerQuestion, planner_page.Forecast] = {}

    def table(self) -> list[ConsoleRoute]:
        return [
            ConsoleRoute("GET", "/console", ROLES, self.overview),
            ConsoleRoute("GET", "/console/new-task", OPERATOR, self.new_task),
            ConsoleRoute("GET", TASK, ROLES, self.task),
            ConsoleRoute("GET", f"{TASK}/trends", ROLES, self.trends),
            ConsoleRoute("GET", ROUND, ROLES, self.round),
            ConsoleRoute("GET", f"{ROUND}/live", ROLES, self.live),
            ConsoleRoute("GET", f"{ROUND}/files/{{name}}", ROLES, self.file),
            ConsoleRoute("GET", "/console/trends", ROLES, self.all_trends),
            ConsoleRoute("GET", "/console/search", ROLES, self.all_searches),
            ConsoleRoute("GET", f"{TASK}/search", ROLES, self.search),
            ConsoleRoute("GET", "/console/budget", ROLES, self.budget),
            ConsoleRoute("GET", "/console/planner", ROLES, self.planner),
            ConsoleRoute("GET", "/console/refusals", ROLES, self.refusals),
            ConsoleRoute("GET", "/console/users", (*OPERATOR, *AUDITOR), self.users),
            ConsoleRoute("GET", "/console/audit", AUDITOR, self.audit),
            ConsoleRoute("GET", "/console/audit/{name}", AUDITOR, self.audit_file),
        ]

    async def _read(self, read: Callable[[ServiceStore], T]) -> T:
        return await self._services.console.call(read)

    async def new_task(self, visit: Visit) -> Response:
        like = visit.field("like")
        values = (
            await self._read(lambda store: task_page.values_like(store, like)) if like else task_page.default_values()
        )
        return console_page(visit, "new_task.html", groups=task_page.GROUPS, values=values, wrong="", problem="")

    async def overview(self, visit: Visit) -> Response:
        figures = await self._read(lambda store: overview.Figures.read(store, visit.now))
        return console_page(visit, "overview.html", view=overview.overview(figures, visit.now, visit.admin.role))

    async def task(self, visit: Visit) -> Response:
        view = await self._read(lambda store: task_page.read_task(store, visit.task))
        return console_page(visit, "task.html", view=view, groups=task_page.GROUPS, codes=None)

    async def round(self, visit: Visit) -> Response:
        place, containing = number_of(visit.field("from")) or 0, visit.field("find")[:200]
        view = await self._read(
            lambda store: round_page.read_round(store, visit.task, visit.number, first=place, containing=containing)
        )
        return console_page(
            visit,
            "round.html",
            view=view,
            live=view.live,
            find=containing,
            per_page=round_page.PER_PAGE,
            most_hours=MOST_HOURS,
        )

    async def live(self, visit: Visit) -> Response:
        """The parts of a round's page that change; when the round has moved on, its page without what was done last."""

        def read(store: ServiceStore) -> round_page.Live:
            round_ = store.rounds.round(store.rounds.task(visit.task).task, visit.number)
            return round_page.Live.read(store, round_)

        live = await self._read(read)
        # A job that was asked for shows in other parts of the page, too: what moves alone must not disagree with them.
        if visit.field("version") != str(live.round.version) or visit.field("working") != live.working:
            here = f"/console/tasks/{live.round.task}/rounds/{live.round.number}"
            return Response(status_code=200, headers={**HEADERS, "HX-Redirect": here, "Cache-Control": "no-store"})
        return console_page(visit, "live_answer.html", live=live)

    async def file(self, visit: Visit) -> Response:
        name = visit.request.path_params["name"]

        def read(store: ServiceStore) -> tuple[bytes, str]:
            round_ = store.rounds.round(store.rounds.task(visit.task).task, visit.number)
            sha256 = store.artifacts.of_round(round_.key).get(name)
            content = store.artifacts.get(sha256) if sha256 else None
            if content is None:
                raise Refusal("not-found")
            return content

        return _attachment(name, *await self._read(read))

    async def all_trends(self, visit: Visit) -> Response:
        return await self._choose(visit, "trends", "Trends")

    async def all_searches(self, visit: Visit) -> Response:
        return await self._choose(visit, "search", "Local search")

    async def _choose(self, visit: Visit, to: str, title: str) -> Response:
        """To the task's own page if there is one task, else a choice."""
        tasks = await self._read(lambda store: store.rounds.tasks())
        if len(tasks) == 1:
            return see_other(f"/console/tasks/{tasks[0].task}/{to}")
        return console_page(visit, "choose_task.html", tasks=tasks, to=to, title=title)

    async def search(self, visit: Visit) -> Response:
        typed = visit.field("typed")[: search_page.LONGEST_TYPED]
        view = await self._read(lambda store: search_page.read_search(store, visit.task, typed))
        return console_page(visit, "search.html", view=view)

    async def trends(self, visit: Visit) -> Response:
        wanted, between = visit.form.get("q", []), between_rounds(visit.form)
        view = await self._read(lambda store: trends_page.read_trends(store, visit.task, wanted, between))
        return console_page(visit, "trends.html", view=view)

    async def budget(self, visit: Visit) -> Response:
        book, tasks = await self._read(budget_page.read_budget)
        view = await asyncio.to_thread(budget_page.budget_page, book, tasks, visit.now)
        return console_page(visit, "budget.html", view=view)

    async def refusals(self, visit: Visit) -> Response:
        return console_page(visit, "refusals.html", view=await self._read(refusals_page.read_refusals))

    async def users(self, visit: Visit) -> Response:
        return console_page(
            visit, "users.html", users=await self._read(lambda store: users_page.read_users(store, visit.now))
        )

    async def audit(self, visit: Visit) -> Response:
        first = number_of(visit.field("from")) or 0
        view = await self._read(lambda store: audit_page.read_audit(store, first))
        return console_page(visit, "audit.html", view=view, per_page=audit_page.PER_PAGE)

    async def audit_file(self, visit: Visit) -> Response:
        name = visit.request.path_params["name"]
        if name not in audit_page.AUDIT_FILES:
            raise Refusal("not-found")
        media_type, written = audit_page.AUDIT_FILES[name]

        def export(store: ServiceStore) -> bytes:
            lifecycle = Lifecycle(store, self._services.clock)
            return written(lifecycle.export_audit(name.rpartition(".")[2], actor=visit.admin.name))

        return _attachment(name, await self._read(export), media_type)

    async def planner(self, visit: Visit) -> Response:
        """The form at once; the forecast when it is asked for, since it takes seconds."""
        problem, view = "", None
        question = planner_page.PlannerQuestion()
        try:
            question = planner_page.PlannerQuestion.of_form(visit.fields)
            if visit.field("show") and self._planner:
                view = planner_page.planner_page(question, await self._forecast(question))
        except InvalidParameter as error:
            problem = str(error)
        return console_page(
            visit,
            "planner.html",
            400 if problem else 200,
            question=question,
            sliders=planner_page.SLIDERS,
            view=view,
            problem=problem,
            can_plan=self._planner is not None,
        )

    async def _forecast(self, question: planner_page.PlannerQuestion) -> planner_page.Forecast:
        """One at a time, so that people who move sliders do not take the machine; the last ones are remembered."""
        assert self._planner is not None
        async with self._planning:
            if question not in self._forecasts:
                if len(self._forecasts) >= 32:
                    del self._forecasts[next(iter(self._forecasts))]
                epsilons = planner_page.asked_epsilons(question)
                self._forecasts[question] = await asyncio.to_thread(self._planner, question, epsilons)
        return self._forecasts[question]


def _attachment(name: str, content: bytes, media_type: str) -> Response:
    headers = {**HEADERS, "Cache-Control": "no-store", "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, headers=headers, media_type=media_type)
