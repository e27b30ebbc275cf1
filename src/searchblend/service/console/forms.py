"""What people do in the console: the table of actions as forms, the review, new tasks and the blocklist.

Every change goes through the round's lifecycle, under the name of the person who is signed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from starlette.responses import Response

from searchblend.core.documents import decode
from searchblend.core.errors import InvalidParameter
from searchblend.service.actions import Action, Adjustment, Extension, NewCodes, actions_for, is_done
from searchblend.service.api.answers import number_of, refusal_of
from searchblend.service.caps import ask_for_cap
from searchblend.service.checkup import settings_trouble
from searchblend.service.console import budget_page, task_page
from searchblend.service.console.review_page import REASON_WORDS, read_queue, read_review, review_of_form
from searchblend.service.console.round_page import Spent
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
from searchblend.service.console.words import number, plain
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.review import Review
from searchblend.service.round_model import settings_of
from searchblend.service.services import Services
from searchblend.service.task_settings import TaskSettings
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED, TAKES_REPORTS, State
from searchblend.store.tokens import ROLES

_PLACES: Final = {"task": TASK, "round": ROUND}
_NOT_KEPT: Final = ("form", "sure")
T = TypeVar("T")


@dataclass(frozen=True)
class QuestionPage:
    """The page before a step that cannot be undone: what there is so far, what the step costs, yes or no.

    A form without the answer gets this page, which sends the same form again; so it works without a script. No to a
    review sends it too, so that what was ticked is ticked on the page that it leads back to.
    """

    words: str
    price: str
    so_far: Sequence[str]
    task: Task
    round: Round | None
    back: str
    keeps_form: bool
    by_two: bool
    asked_by: str | None
    """who has asked for a step that needs two people"""


def _question(
    store: ServiceStore, lifecycle: Lifecycle, action: Action[Any, Any], task: Task, round_: Round | None
) -> QuestionPage | None:
    """What is asked before an action; nothing where it needs no answer, or would be refused in this state anyway."""
    if action.asks is None or (round_ is not None and round_.state not in action.before):
        return None
    current = round_ or _under_way(store, task)
    settings = None if current is None or settings_trouble(current) else settings_of(current)
    so_far = [] if current is None or settings is None else _so_far(store, current, settings)
    back = f"/console/tasks/{task.task}" + (f"/rounds/{round_.number}" if round_ else "")
    back += "/review" if action.role == "reviewer" else ""
    price = action.asks.price.format(epsilon=plain(settings.epsilon if settings else None))
    asked_by = (
        (lifecycle.asked_by(round_.key, "abort") if round_ else lifecycle.asked_by(0, f"kill {task.task}"))
        if action.by_two
        else None
    )
    return QuestionPage(
        action.asks.words, price, so_far, task, round_, back, action.needs is Review, action.by_two, asked_by
    )


def _kept_fields(form: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """What the form held, to be sent again with the answer."""
    return [(name, value) for name, values in form.items() if name not in _NOT_KEPT for value in values]


def _under_way(store: ServiceStore, task: Task) -> Round | None:
    rounds = store.rounds.rounds(task.task)
    return rounds[-1] if rounds and rounds[-1].state not in ENDED else None


def _so_far(store: ServiceStore, round_: Round, settings: TaskSettings) -> list[str]:
    """How many took part, whether they are enough, and what the round was charged."""
    lines = []
    if round_.state is State.OPTIN_OPEN:
        lines += _taken(store.contributions.count(round_.key), _codes(store, round_), settings.min_optin, "records")
    elif round_.state in TAKES_REPORTS:
        reports = store.reports.n_seen(round_.key)
        lines += _taken(reports, settings.expected_clients, settings.min_clients, "reports")
    debits = Spent.of(store.ledger.book(), round_, settings.population).of_round
    lines += [f"Charged already, and not given back: ε = {plain(row.epsilon)} to {row.group}." for row in debits]
    return lines


def _taken(taken: int, expected: int, fewest: int, what: str) -> list[str]:
    of = f" of {number(expected)} expected" if expected else ""
    lines = [f"{number(taken)}{of} {what} so far."]
    if taken < fewest:
        lines.append(f"The task asks for at least {number(fewest)}: with fewer the round ends without a result.")
    return lines


def _codes(store: ServiceStore, round_: Round) -> int:
    """How many opt-in users could take part. The codes themselves are not for the console's account to read."""
    return sum(entry.detail.get("codes", 0) for entry in store.audit.of_task(round_.task))


def _one_number(needs: type[T], field: str) -> Callable[[Mapping[str, list[str]]], T]:
    return lambda form: decode(needs, {field: number_of((form.get(field) or [""])[0]) or 0})


_READERS: Final[Mapping[type, Callable[[Mapping[str, list[str]]], Any]]] = {
    Review: review_of_form,
    NewCodes: _one_number(NewCodes, "count"),
    Extension: _one_number(Extension, "hours"),
    Adjustment: task_page.adjustment_of_form,
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
            ConsoleRoute("GET", f"{TASK}/adjust", OPERATOR, self.adjust),
            ConsoleRoute("POST", "/console/budget", OPERATOR, self.ask_for_cap),
            ConsoleRoute("GET", "/console/review", ROLES, self.queue),
            ConsoleRoute("GET", f"{ROUND}/review", REVIEWER, self.review),
            ConsoleRoute("GET", "/console/blocklist", REVIEWER, self.blocklist),
            ConsoleRoute("POST", "/console/blocklist", REVIEWER, self.set_blocklist),
        ]

    async def _act(self, act: Callable[[ServiceStore, Lifecycle], T]) -> T:
        clock = self._services.clock
        return await self._services.actions.call(lambda store: act(store, Lifecycle(store, clock)))

    def _form(self, action: Action[Any, Any]) -> PageAnswer:
        """The route that takes an action, and shows where it led."""

        def take(store: ServiceStore, lifecycle: Lifecycle, visit: Visit) -> Any:
            reader = _READERS.get(action.needs)
            needs = reader(visit.form) if reader else decode(action.needs, visit.fields)
            task = store.rounds.task(visit.task)
            round_ = store.rounds.round(task.task, visit.number) if action.on == "round" else None
            if visit.field("sure") != "yes" and (asked := _question(store, lifecycle, action, task, round_)):
                return asked
            return action.take(lifecycle, round_ or task, needs, visit.admin.name)

        async def answer(visit: Visit) -> Response:
            if action.needs is Review and visit.field("sure") == "no":
                return await self.review(visit)
            try:
                result = await self._act(lambda store, lifecycle: take(store, lifecycle, visit))
            except InvalidParameter as error:
                if action.role in REVIEWER:
                    return await self.review(visit, problem=error.expected)
                if action.needs is Adjustment:
                    return await self.adjust(visit, error)
                raise
            if isinstance(result, QuestionPage):
                fields = _kept_fields(visit.form)
                return console_page(visit, "question.html", view=result, fields=fields)
            if action.gives == "codes":
                view = await self._act(lambda store, lifecycle: task_page.read_task(store, visit.task))
                return console_page(visit, "task.html", view=view, groups=task_page.GROUPS, codes=result)
            place = f"/rounds/{result.number}" if action.gives == "round" else ""
            done = action.name if is_done(action, result) else "asked"
            return see_other(f"/console/tasks/{result.task}{place}?done={done}")

        return answer

    async def queue(self, visit: Visit) -> Response:
        """Read like other pages: the thread of actions may be busy with a list for seconds."""
        return console_page(visit, "queue.html", rounds=await self._services.console.call(read_queue))

    async def review(self, visit: Visit, problem: str = "") -> Response:
        view = await self._act(
            lambda store, lifecycle: read_review(store, lifecycle, visit.task, visit.number, visit.admin.name)
        )
        # After a mistake or a second thought what was ticked stays ticked: it may have taken an hour.
        ticked = {*visit.form.get("remove", ()), *visit.form.get("keep", ())}
        return console_page(
            visit,
            "review.html",
            400 if problem else 200,
            view=view,
            reasons=REASON_WORDS,
            problem=problem,
            ticked=ticked,
            reason=visit.field("reason"),
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
            return console_page(
                visit, "new_task.html", 400, groups=task_page.GROUPS, values=values, wrong=wrong, problem=problem
            )
        return see_other(f"/console/tasks/{task.task}?done=task")

    async def adjust(self, visit: Visit, refused: InvalidParameter | None = None) -> Response:
        """The form that changes what needs no new consent; after a mistake with what was entered."""
        view = await self._services.console.call(lambda store: task_page.read_adjust(store, visit.task, visit.fields))
        wrong, problem = (refused.field, str(refused)) if refused else ("", "")
        return console_page(visit, "adjust.html", 400 if refused else 200, view=view, wrong=wrong, problem=problem)

    async def ask_for_cap(self, visit: Visit) -> Response:
        """The curator sets it, since no one who is signed in here may write the ledger."""
        cap = budget_page.cap_of_form(visit.fields)
        actor, now = visit.admin.name, self._services.clock.now()
        await self._services.actions.call(lambda store: ask_for_cap(store, cap, actor=actor, now=now))
        return see_other("/console/budget?done=cap")

    async def blocklist(self, visit: Visit) -> Response:
        words = await self._act(lambda store, lifecycle: lifecycle.blocklist())
        return console_page(visit, "blocklist.html", words=words)

    async def set_blocklist(self, visit: Visit) -> Response:
        words = [line.strip() for line in visit.field("words").splitlines() if line.strip()]
        if not all(word.isprintable() and len(word) <= 200 for word in words):
            raise InvalidParameter("words", "expected one printable word or phrase per line")
        await self._act(lambda store, lifecycle: lifecycle.set_blocklist(words, actor=visit.admin.name))
        return see_other("/console/blocklist?done=blocklist")
