"""What people do in the console: the table of actions as forms, the review, new tasks and the blocklist.

Every change goes through the round's lifecycle, under the name of the person who is signed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from starlette.responses import Response

from searchblend.core.documents import decode
from searchblend.core.errors import InvalidParameter
from searchblend.service.actions import Action, Extension, NewCodes, actions_for
from searchblend.service.api.answers import number_of, refusal_of
from searchblend.service.console import question_page, review_page, task_page
from searchblend.service.console.visit import (
    OPERATOR,
    REVIEWER,
    ROUND,
    TASK,
    ConsoleRoute,
    PageAnswer,
    Visit,
    console_page,
    see_other,
)
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.review import Review
from searchblend.service.services import Services
from searchblend.store.service_store import ServiceStore

_PLACES: Final = {"task": TASK, "round": ROUND}
T = TypeVar("T")


def _enrolment(form: Mapping[str, list[str]]) -> NewCodes:
    return decode(NewCodes, {"count": number_of((form.get("count") or [""])[0]) or 0})


def _extension(form: Mapping[str, list[str]]) -> Extension:
    return decode(Extension, {"hours": number_of((form.get("hours") or [""])[0]) or 0})


_READERS: Final[Mapping[type, Callable[[Mapping[str, list[str]]], Any]]] = {
    Review: review_page.review_of_form,
    NewCodes: _enrolment,
    Extension: _extension,
}
"""forms whose fields are not those of the request"""


class Forms:
    """Forms, and the review page, which only a reviewer may open."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> list[ConsoleRoute]:
        return [
            ConsoleRoute("POST", "/console/new-task", OPERATOR, self.add_task),
            *(
                ConsoleRoute("POST", f"{_PLACES[action.on]}/{action.path}", (action.role,), self._form(action))
                for action in actions_for("console")
            ),
            ConsoleRoute("GET", f"{ROUND}/review", REVIEWER, self.review),
            ConsoleRoute("GET", "/console/blocklist", REVIEWER, self.blocklist),
            ConsoleRoute("POST", "/console/blocklist", REVIEWER, self.set_blocklist),
        ]

    async def _act(self, act: Callable[[ServiceStore, Lifecycle], T]) -> T:
        clock = self._services.clock
        return await self._services.actions.call(lambda store: act(store, Lifecycle(store, clock)))

    def _page(self, visit: Visit, template: str, status: int = 200, **values: object) -> Response:
        return console_page(visit, template, self._services.clock.now(), status, **values)

    def _form(self, action: Action[Any, Any]) -> PageAnswer:
        """The route that takes an action, and shows where it led."""

        def take(store: ServiceStore, lifecycle: Lifecycle, visit: Visit) -> Any:
            reader = _READERS.get(action.needs)
            needs = reader(visit.form) if reader else decode(action.needs, visit.fields)
            task = store.rounds.task(visit.task)
            round_ = store.rounds.round(task.task, visit.number) if action.on == "round" else None
            if visit.field("sure") != "yes" and (asked := question_page.question(store, action, task, round_)):
                return asked
            return action.take(lifecycle, round_ or task, needs, visit.admin.name)

        async def answer(visit: Visit) -> Response:
            try:
                result = await self._act(lambda store, lifecycle: take(store, lifecycle, visit))
            except InvalidParameter as error:
                if action.role in REVIEWER:
                    return await self.review(visit, problem=str(error))
                raise
            if isinstance(result, question_page.QuestionPage):
                fields = question_page.kept_fields(visit.form)
                return self._page(visit, "question.html", view=result, fields=fields)
            if action.gives == "codes":
                view = await self._act(lambda store, lifecycle: task_page.read_task(store, visit.task))
                return self._page(visit, "task.html", view=view, groups=task_page.GROUPS, codes=result)
            place = f"/rounds/{result.number}" if action.gives == "round" else ""
            return see_other(f"/console/tasks/{result.task}{place}?done={action.name}")

        return answer

    async def review(self, visit: Visit, problem: str = "") -> Response:
        view = await self._act(
            lambda store, lifecycle: review_page.read_review(
                store, lifecycle, visit.task, visit.number, visit.admin.name
            )
        )
        # After a mistake what was ticked stays ticked: it may have taken an hour.
        ticked = {*visit.form.get("remove", ()), *visit.form.get("keep", ())} if problem else set()
        return self._page(
            visit,
            "review.html",
            400 if problem else 200,
            view=view,
            reasons=review_page.REASON_WORDS,
            problem=problem,
            ticked=ticked,
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
            values, problem = task_page.entered_values(visit.fields), refusal.detail or ""
            return self._page(
                visit, "new_task.html", 400, groups=task_page.GROUPS, values=values, wrong=wrong, problem=problem
            )
        return see_other(f"/console/tasks/{task.task}?done=task")

    async def blocklist(self, visit: Visit) -> Response:
        words = await self._act(lambda store, lifecycle: lifecycle.blocklist())
        return self._page(visit, "blocklist.html", words=words)

    async def set_blocklist(self, visit: Visit) -> Response:
        words = [line.strip() for line in visit.field("words").splitlines() if line.strip()]
        if not all(word.isprintable() and len(word) <= 200 for word in words):
            raise InvalidParameter("words", "expected one printable word or phrase per line")
        await self._act(lambda store, lifecycle: lifecycle.set_blocklist(words, actor=visit.admin.name))
        return see_other("/console/blocklist?done=blocklist")
