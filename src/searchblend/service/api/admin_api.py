"""The admin API: bearer tokens, four roles, every change in the audit log under the token's name.

What changes a task or a round comes from the table of actions; reading, the blocklist and new tasks are declared here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from searchblend.core.documents import decode
from searchblend.service.actions import Action, Nothing, actions_for
from searchblend.service.api.answers import Refusal, bearer, document_response, read_json, round_number
from searchblend.service.api.documents import (
    AuditView,
    Blocklist,
    BlocklistSize,
    CandidateList,
    Codes,
    LedgerView,
    RoundDetail,
    RoundList,
    RoundView,
    TaskList,
    TaskView,
    WhoAmI,
)
from searchblend.service.api.operations import Operation
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.round_model import RoundNumbers, tasks_now
from searchblend.service.services import Services
from searchblend.service.task_settings import TaskSettings
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.tokens import ROLES, Admin

_ADMIN: Final = "/admin/v1"
_TASK: Final = f"{_ADMIN}/tasks/{{task}}"
_ROUND: Final = f"{_TASK}/rounds/{{round}}"
_OPERATOR: Final = ("operator",)
_REVIEWER: Final = ("reviewer",)
_AUDITOR: Final = ("auditor",)
_PROBLEMS: Final = (
    "bad-credential",
    "forbidden",
    "malformed",
    "invalid-request",
    "wrong-state",
    "budget-exceeded",
    "unknown-task",
    "too-large",
    "unsupported-media-type",
    "rate-limited",
    "storage-unavailable",
)
Needs = TypeVar("Needs")
Gives = TypeVar("Gives")


@dataclass(frozen=True)
class AdminCall:
    """What an endpoint works with: the store, the caller, and the task and round that the address names."""

    store: ServiceStore
    lifecycle: Lifecycle
    admin: Admin
    names: Mapping[str, str]

    @property
    def task(self) -> Task:
        return self.lifecycle.task(self.names["task"])

    @property
    def round(self) -> Round:
        number = round_number(self.names["round"])
        return self.store.rounds.round(self.task.task, number)


@dataclass(frozen=True)
class Endpoint(Generic[Needs, Gives]):
    """One method of one address."""

    method: str
    path: str
    roles: tuple[str, ...]
    summary: str
    needs: type[Needs]
    gives: type[Gives]
    answer: Callable[[AdminCall, Needs], Gives]

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")


class AdminApi:
    """The routes for people who run tasks. Each parses, calls one function, renders."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(
                endpoint.method,
                endpoint.path,
                self._handler(endpoint),
                endpoint.summary,
                "admin",
                roles=endpoint.roles,
                takes=endpoint.needs if endpoint.has_body else None,
                gives=endpoint.gives,
                problems=_PROBLEMS,
            )
            for endpoint in endpoints()
        ]

    def _handler(self, endpoint: Endpoint[Any, Any]) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            admin = await self._admin(request, endpoint.roles)
            body = await read_json(request) if endpoint.has_body else {}

            def run(store: ServiceStore) -> Any:
                call = AdminCall(store, Lifecycle(store, self._services.clock), admin, request.path_params)
                return endpoint.answer(call, decode(endpoint.needs, body))

            return document_response(await self._services.actions.call(run))

        return handle

    async def _admin(self, request: Request, roles: tuple[str, ...]) -> Admin:
        token = bearer(request)
        if token is None:
            raise Refusal("bad-credential")
        failed, now = self._services.failed_sign_ins, self._services.clock.now()
        try:
            failed.lock.refuse_if_locked(token)
        except Refusal:
            await failed.add("admin API")
            raise
        admin = await self._services.console.call(lambda store: store.tokens.admin(token, now))
        if admin is None:
            failed.lock.failed(token)
            await failed.add("admin API")
            raise Refusal("bad-credential")
        if admin.role not in roles:
            raise Refusal("forbidden")
        return admin


def endpoints() -> list[Endpoint[Any, Any]]:
    """Everything under ``/admin/v1``: what is read, what is set, and the actions."""
    return [*_READ, *_SET, *(_of_action(action) for action in actions_for("api"))]


def _of_action(action: Action[Any, Any]) -> Endpoint[Any, Any]:
    def answer(call: AdminCall, needs: Any) -> Any:
        target = call.task if action.on == "task" else call.round
        return _view(action.take(call.lifecycle, target, needs, call.admin.name))

    path = f"{_TASK if action.on == 'task' else _ROUND}/{action.path}"
    return Endpoint("POST", path, (action.role,), action.summary, action.needs, _VIEWS[action.gives], answer)


def _view(result: Round | Task | list[str]) -> RoundView | TaskView | Codes:
    if isinstance(result, Round):
        return RoundView.of(result)
    return TaskView.of(result) if isinstance(result, Task) else Codes(result)


_VIEWS: Final[Mapping[str, type]] = {"round": RoundView, "task": TaskView, "codes": Codes}


def _candidate(call: AdminCall, needs: Nothing) -> CandidateList:
    figures, hits = call.lifecycle.show_candidate(call.round, actor=call.admin.name)
    return CandidateList(figures.head.as_json(), hits, figures.n_users)


def _detail(call: AdminCall, needs: Nothing) -> RoundDetail:
    round_ = call.round
    return RoundDetail.with_numbers(round_, RoundNumbers.read(call.store, round_))


def _set_blocklist(call: AdminCall, blocklist: Blocklist) -> BlocklistSize:
    call.lifecycle.set_blocklist(blocklist.words, actor=call.admin.name)
    return BlocklistSize(len(blocklist.words))


def _get(
    path: str, roles: tuple[str, ...], summary: str, gives: type[Gives], answer: Callable[[AdminCall, Nothing], Gives]
) -> Endpoint[Nothing, Gives]:
    return Endpoint("GET", path, roles, summary, Nothing, gives, answer)


_READ: Final[tuple[Endpoint[Nothing, Any], ...]] = (
    _get(
        f"{_ADMIN}/whoami",
        ROLES,
        "Name and role of the token.",
        WhoAmI,
        lambda call, _: WhoAmI(call.admin.name, call.admin.role),
    ),
    _get(
        f"{_ADMIN}/tasks",
        ROLES,
        "All tasks.",
        TaskList,
        lambda call, _: TaskList([TaskView.of(task) for task in tasks_now(call.store)]),
    ),
    _get(_TASK, ROLES, "One task with its settings.", TaskView, lambda call, _: TaskView.of(call.task)),
    _get(
        f"{_TASK}/rounds",
        ROLES,
        "The rounds of a task.",
        RoundList,
        lambda call, _: RoundList([RoundView.of(round_) for round_ in call.store.rounds.rounds(call.task.task)]),
    ),
    _get(_ROUND, ROLES, "One round: state, sizes, refusals, conservation.", RoundDetail, _detail),
    _get(f"{_ROUND}/candidate", _REVIEWER, "The list to review, with filter hits.", CandidateList, _candidate),
    _get(
        f"{_ADMIN}/blocklist",
        _REVIEWER,
        "Words that no entry may contain.",
        Blocklist,
        lambda call, _: Blocklist(call.lifecycle.blocklist()),
    ),
    _get(
        f"{_ADMIN}/ledger",
        ROLES,
        "Debits and what they add up to.",
        LedgerView,
        lambda call, _: LedgerView.of(call.store.ledger.book()),
    ),
    _get(
        f"{_ADMIN}/audit",
        _AUDITOR,
        "The audit log with its hashes.",
        AuditView,
        lambda call, _: AuditView([row.entry for row in call.lifecycle.export_audit("json", actor=call.admin.name)]),
    ),
)
_SET: Final[tuple[Endpoint[Any, Any], ...]] = (
    Endpoint(
        "POST",
        f"{_ADMIN}/tasks",
        _OPERATOR,
        "Make a task.",
        TaskSettings,
        TaskView,
        lambda call, settings: TaskView.of(call.lifecycle.add_task(settings, actor=call.admin.name)),
    ),
    Endpoint(
        "PUT", f"{_ADMIN}/blocklist", _REVIEWER, "Replace the blocklist.", Blocklist, BlocklistSize, _set_blocklist
    ),
)
