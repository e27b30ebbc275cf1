"""The admin API: bearer tokens, four roles, every change in the audit log under the token's name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from searchblend.core.errors import InvalidParameter
from searchblend.service.api.answers import Refusal, bearer, read_json, round_number
from searchblend.service.lifecycle import Lifecycle
from searchblend.service.operations import Operation
from searchblend.service.services import Services
from searchblend.service.task_settings import TaskSettings
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.tokens import ROLES, Admin

Call = Callable[[ServiceStore, Lifecycle, Admin, dict[str, Any]], Any]
_OPERATOR: Final = ("operator",)
_REVIEWER: Final = ("reviewer",)
_AUDITOR: Final = ("auditor",)
_MOST_CODES: Final = 10_000
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
    "storage-unavailable",
)


class AdminApi:
    """The routes for people who run tasks. Each parses, calls one function, renders."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        task, found = "/admin/v1/tasks/{task}", "/admin/v1/tasks/{task}/rounds/{round}"
        positions = {"type": "array", "items": {"type": "object"}}
        table: list[tuple[str, str, tuple[str, ...], Call, str, dict[str, Any] | None]] = [
            ("GET", "/admin/v1/whoami", ROLES, _whoami, "Name and role of the token.", None),
            ("GET", "/admin/v1/tasks", ROLES, _tasks, "All tasks.", None),
            ("POST", "/admin/v1/tasks", _OPERATOR, _add_task, "Make a task.", {"name": {"type": "string"}}),
            ("GET", task, ROLES, _task, "One task with its settings.", None),
            ("POST", f"{task}/kill", _OPERATOR, _kill, "Stop a task for good.", {}),
            (
                "POST",
                f"{task}/enrolments",
                _OPERATOR,
                _enrol,
                "Make enrolment codes; they are shown once.",
                {"count": {"type": "integer"}},
            ),
            ("GET", f"{task}/rounds", ROLES, _rounds, "The rounds of a task.", None),
            ("POST", f"{task}/rounds", _OPERATOR, _draft, "Draft a round.", {}),
            ("GET", found, ROLES, _round, "One round: state, sizes, refusals, conservation.", None),
            ("POST", f"{found}/open", _OPERATOR, _open, "Ask the curator to open the round.", {}),
            ("POST", f"{found}/close-opt-in", _OPERATOR, _close_optin, "End the opt-in window now.", {}),
            ("POST", f"{found}/close-clients", _OPERATOR, _close_clients, "End the clients' window now.", {}),
            ("POST", f"{found}/end-grace", _OPERATOR, _end_grace, "Take no more reports.", {}),
            ("POST", f"{found}/abort", _OPERATOR, _abort, "End the round without a result.", {}),
            ("GET", f"{found}/candidate", _REVIEWER, _candidate, "The list to review, with filter hits.", None),
            (
                "POST",
                f"{found}/review",
                _REVIEWER,
                _review,
                "Approve the list without what is removed; filter hits go unless kept.",
                {"remove": positions, "keep": positions},
            ),
            (
                "POST",
                f"{found}/reject",
                _REVIEWER,
                _reject,
                "End the round: the list as a whole should not be published.",
                {"reason": {"type": "string"}},
            ),
            ("GET", "/admin/v1/blocklist", _REVIEWER, _blocklist, "Words that no entry may contain.", None),
            (
                "PUT",
                "/admin/v1/blocklist",
                _REVIEWER,
                _set_blocklist,
                "Replace the blocklist.",
                {"words": {"type": "array", "items": {"type": "string"}}},
            ),
            ("GET", "/admin/v1/ledger", ROLES, _ledger, "Debits and what they add up to.", None),
            ("GET", "/admin/v1/audit", _AUDITOR, _audit, "The audit log with its hashes.", None),
        ]
        return [
            Operation(
                method,
                path,
                self._handler(call, roles),
                summary,
                "admin",
                roles=roles,
                takes=None if schema is None else "application/json",
                schema=None if schema is None else {"type": "object", "properties": schema},
                problems=_PROBLEMS,
            )
            for method, path, roles, call, summary, schema in table
        ]

    def _handler(self, call: Call, roles: tuple[str, ...]) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            admin = await self._admin(request, roles)
            values = await read_json(request) if request.method in ("POST", "PUT") else {}
            arguments = {**values, **{f"path_{name}": text for name, text in request.path_params.items()}}

            def run(store: ServiceStore) -> Any:
                return call(store, Lifecycle(store, self._services.clock), admin, arguments)

            document = await self._services.actions.call(run)
            return JSONResponse(document, headers={"Cache-Control": "no-store"})

        return handle

    async def _admin(self, request: Request, roles: tuple[str, ...]) -> Admin:
        token = bearer(request)
        if token is None:
            raise Refusal("bad-credential")

        def look(store: ServiceStore) -> Admin | None:
            return store.tokens.admin(token)

        admin = await self._services.console.call(look)
        if admin is None:
            await self._services.failed_sign_ins.add("admin API")
            raise Refusal("bad-credential")
        if admin.role not in roles:
            raise Refusal("forbidden")
        return admin


def _whoami(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return {"name": admin.name, "role": admin.role}


def _tasks(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return {"tasks": [_task_json(task) for task in store.rounds.tasks()]}


def _add_task(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _task_json(lifecycle.add_task(TaskSettings.of_json(arguments), actor=admin.name))


def _task(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _task_json(_named_task(store, arguments))


def _kill(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    lifecycle.kill(_named_task(store, arguments), actor=admin.name)
    return _task_json(_named_task(store, arguments))


def _enrol(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    count = arguments.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_CODES:
        raise InvalidParameter("count", f"expected 1 to {_MOST_CODES}")
    task = _named_task(store, arguments)
    return {"codes": lifecycle.enrol(task, count, actor=admin.name)}


def _rounds(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return {"rounds": [_round_json(found) for found in store.rounds.rounds(_named_task(store, arguments).task)]}


def _draft(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _round_json(lifecycle.draft_round(_named_task(store, arguments), actor=admin.name))


def _round(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    found = _named_round(store, arguments)
    return {**_round_json(found), **lifecycle.figures(found)}


def _open(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    found = _named_round(store, arguments)
    lifecycle.request_open(found, actor=admin.name)
    return _round_json(found)


def _close_optin(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _round_json(lifecycle.close_optin(_named_round(store, arguments), actor=admin.name))


def _close_clients(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _round_json(lifecycle.close_clients(_named_round(store, arguments), actor=admin.name))


def _end_grace(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _round_json(lifecycle.end_grace(_named_round(store, arguments), actor=admin.name))


def _abort(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _round_json(lifecycle.abort(_named_round(store, arguments), actor=admin.name, reason="operator"))


def _candidate(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    figures, hits = lifecycle.look_at_candidate(_named_round(store, arguments), actor=admin.name)
    return {"head": figures.head.as_json(), "hits": hits, "opt_in_users": figures.n_users}


def _review(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    remove = [(*_position(entry), _reason(entry)) for entry in _entries(arguments, "remove")]
    keep = [_position(entry) for entry in _entries(arguments, "keep")]
    return _round_json(lifecycle.review(_named_round(store, arguments), actor=admin.name, remove=remove, keep=keep))


def _reject(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return _round_json(lifecycle.reject(_named_round(store, arguments), actor=admin.name, reason=_reason(arguments)))


def _blocklist(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return {"words": lifecycle.blocklist()}


def _set_blocklist(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    words = arguments.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) and word.isprintable() for word in words):
        raise InvalidParameter("words", "expected a list of texts")
    lifecycle.set_blocklist(words, actor=admin.name)
    return {"words": len(words)}


def _ledger(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    book = store.ledger.book()
    return {
        "cap": book.cap.as_json() if book.cap else None,
        "debits": [
            {
                "release_id": entry.release_id,
                "population": entry.population,
                "window": entry.window,
                "epsilon": entry.spend.epsilon,
                "delta": entry.spend.delta,
                "mechanism": entry.spend.mechanism,
                "published": entry.release_id in book.published,
            }
            for entry in book.entries.values()
        ],
        "head": book.head,
    }


def _audit(store: ServiceStore, lifecycle: Lifecycle, admin: Admin, arguments: dict[str, Any]) -> Any:
    return {"rows": [row.as_json() for row in store.audit.rows()]}


def _named_task(store: ServiceStore, arguments: dict[str, Any]) -> Task:
    return store.rounds.task(arguments["path_task"])


def _named_round(store: ServiceStore, arguments: dict[str, Any]) -> Round:
    number = round_number(arguments["path_round"])
    return store.rounds.round(_named_task(store, arguments).task, number)


def _entries(arguments: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = arguments.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidParameter(name, "expected a list of objects with query, url and reason")
    return entries


def _position(entry: dict[str, Any]) -> tuple[int, int | None]:
    query, url = entry.get("query"), entry.get("url")
    if not isinstance(query, int) or isinstance(query, bool) or isinstance(url, bool):
        raise InvalidParameter("query", "expected a position of the candidate list")
    if url is not None and not isinstance(url, int):
        raise InvalidParameter("url", "expected a position, or null for the query itself")
    return query, url


def _reason(entry: dict[str, Any]) -> str:
    reason = entry.get("reason")
    return reason if isinstance(reason, str) else ""


def _task_json(task: Task) -> dict[str, Any]:
    return {
        "task": task.task,
        "name": task.name,
        "killed": task.killed,
        "created": task.created,
        "settings": dict(task.settings),
    }


def _round_json(found: Round) -> dict[str, Any]:
    return {
        "task": found.task,
        "round": found.number,
        "state": found.state,
        "version": found.version,
        "budget_window": found.budget_window,
        "optin_closes": found.optin_closes,
        "shred_by": found.shred_by,
        "client_closes": found.client_closes,
        "grace_until": found.grace_until,
        "reports": found.reports,
        "changed": found.changed,
    }
