"""What people do: every change goes through the round's lifecycle, under the name of who is signed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import quote

from starlette.responses import Response

from searchblend.core.errors import InvalidParameter
from searchblend.service.api.answers import Refusal, number_of, refusal_of
from searchblend.service.console import review_page, task_page
from searchblend.service.console.visit import (
    OPERATOR,
    REVIEWER,
    ROUND,
    TASK,
    Answer,
    ConsoleRoute,
    Visit,
    console_page,
    see_other,
)
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.services import Services
from searchblend.store.service_store import ServiceStore

_MOST_CODES: Final = 10_000
T = TypeVar("T")


class Actions:
    """Forms, and the review, which only its reviewer may even look at."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> list[ConsoleRoute]:
        return [
            ConsoleRoute("POST", "/console/new-task", OPERATOR, self.add_task),
            ConsoleRoute("POST", f"{TASK}/rounds", OPERATOR, self.draft),
            ConsoleRoute("POST", f"{TASK}/kill", OPERATOR, self.kill),
            ConsoleRoute("POST", f"{TASK}/enrolments", OPERATOR, self.enrol),
            *(
                ConsoleRoute("POST", f"{ROUND}/{name}", OPERATOR, self._arrow(name))
                for name in ("open", "close-opt-in", "close-clients", "end-grace", "abort")
            ),
            ConsoleRoute("GET", f"{ROUND}/review", REVIEWER, self.review),
            ConsoleRoute("POST", f"{ROUND}/approve", REVIEWER, self.approve),
            ConsoleRoute("POST", f"{ROUND}/reject", REVIEWER, self.reject),
            ConsoleRoute("GET", "/console/blocklist", REVIEWER, self.blocklist),
            ConsoleRoute("POST", "/console/blocklist", REVIEWER, self.set_blocklist),
        ]

    async def _act(self, act: Callable[[ServiceStore, Lifecycle], T]) -> T:
        clock = self._services.clock
        return await self._services.actions.call(lambda store: act(store, Lifecycle(store, clock)))

    def _page(self, visit: Visit, template: str, status: int = 200, **values: object) -> Response:
        return console_page(visit, template, self._services.clock.now(), status, **values)

    async def review(self, visit: Visit) -> Response:
        return await self._review(visit)

    async def _review(self, visit: Visit, problem: str = "") -> Response:
        view = await self._act(
            lambda store, lifecycle: review_page.read_review(
                store, lifecycle, visit.task, visit.number, visit.admin.name
            )
        )
        return self._page(
            visit, "review.html", 400 if problem else 200, view=view, reasons=review_page.REASON_WORDS, problem=problem
        )

    async def add_task(self, visit: Visit) -> Response:
        try:
            settings = task_page.settings_of_form(visit.fields)
            task = await self._act(lambda store, lifecycle: lifecycle.add_task(settings, actor=visit.admin.name))
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None or refusal.problem != "invalid-request":
                raise
            wrong = error.field if isinstance(error, InvalidParameter) else "name"
            values = {**task_page.default_values(), **visit.fields}
            for name in ("has_urls", "wide_list"):
                values[name] = visit.field(name) == "yes"
            return self._page(
                visit,
                "new_task.html",
                400,
                groups=task_page.GROUPS,
                values=values,
                wrong=wrong,
                problem=refusal.detail or "",
            )
        return see_other(f"/console/tasks/{task.task}?done=task")

    async def draft(self, visit: Visit) -> Response:
        round_ = await self._act(
            lambda store, lifecycle: lifecycle.draft_round(store.rounds.task(visit.task), actor=visit.admin.name)
        )
        return see_other(f"/console/tasks/{round_.task}/rounds/{round_.number}?done=drafted")

    async def kill(self, visit: Visit) -> Response:
        if visit.field("sure") != "yes":
            raise Refusal("invalid-request", "tick the box that says you are sure")
        await self._act(lambda store, lifecycle: lifecycle.kill(store.rounds.task(visit.task), actor=visit.admin.name))
        return see_other(f"/console/tasks/{quote(visit.task)}?done=kill")

    async def enrol(self, visit: Visit) -> Response:
        count = number_of(visit.field("count"))
        if count is None or not 1 <= count <= _MOST_CODES:
            raise InvalidParameter("count", f"expected 1 to {_MOST_CODES}")
        codes, view = await self._act(
            lambda store, lifecycle: (
                lifecycle.enrol(store.rounds.task(visit.task), count, actor=visit.admin.name),
                task_page.read_task(store, visit.task),
            )
        )
        return self._page(visit, "task.html", view=view, groups=task_page.GROUPS, codes=codes)

    def _arrow(self, name: str) -> Answer:
        def act(store: ServiceStore, lifecycle: Lifecycle, visit: Visit) -> None:
            round_ = store.rounds.round(store.rounds.task(visit.task).task, visit.number)
            actor = visit.admin.name
            if name == "abort":
                lifecycle.abort(round_, actor=actor, reason="operator")
                return
            arrows: dict[str, Callable[..., Any]] = {
                "open": lifecycle.request_open,
                "close-opt-in": lifecycle.close_optin,
                "close-clients": lifecycle.close_clients,
                "end-grace": lifecycle.end_grace,
            }
            arrows[name](round_, actor=actor)

        async def answer(visit: Visit) -> Response:
            if name == "abort" and visit.field("sure") != "yes":
                raise Refusal("invalid-request", "tick the box that says you are sure")
            await self._act(lambda store, lifecycle: act(store, lifecycle, visit))
            return see_other(f"{visit.here}?done={name}")

        return answer

    async def approve(self, visit: Visit) -> Response:
        def act(store: ServiceStore, lifecycle: Lifecycle) -> None:
            remove, keep = review_page.removals(visit.form)
            round_ = store.rounds.round(store.rounds.task(visit.task).task, visit.number)
            lifecycle.review(round_, actor=visit.admin.name, remove=remove, keep=keep)

        try:
            await self._act(act)
        except InvalidParameter as error:
            return await self._review(visit, problem=str(error))
        return see_other(f"{visit.here}?done=approved")

    async def reject(self, visit: Visit) -> Response:
        def act(store: ServiceStore, lifecycle: Lifecycle) -> None:
            round_ = store.rounds.round(store.rounds.task(visit.task).task, visit.number)
            lifecycle.reject(round_, actor=visit.admin.name, reason=visit.field("reason"))

        try:
            await self._act(act)
        except InvalidParameter as error:
            return await self._review(visit, problem=str(error))
        return see_other(f"{visit.here}?done=rejected")

    async def blocklist(self, visit: Visit) -> Response:
        words = await self._act(lambda store, lifecycle: lifecycle.blocklist())
        return self._page(visit, "blocklist.html", words=words)

    async def set_blocklist(self, visit: Visit) -> Response:
        words = [line.strip() for line in visit.field("words").splitlines() if line.strip()]
        if not all(word.isprintable() and len(word) <= 200 for word in words):
            raise InvalidParameter("words", "expected one printable word or phrase a line")
        await self._act(lambda store, lifecycle: lifecycle.set_blocklist(words, actor=visit.admin.name))
        return see_other("/console/blocklist?done=blocklist")
