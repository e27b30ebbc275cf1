"""A task: its settings as a form with help, its rounds, and its codes for opt-in users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, get_type_hints

from searchblend.blender.report_odds import list_odds
from searchblend.core.documents import OneOf, decode, encode
from searchblend.core.errors import InvalidParameter
from searchblend.service.actions import Adjustment
from searchblend.service.checkup import settings_trouble
from searchblend.service.clock import DAY
from searchblend.service.console.words import words_of
from searchblend.service.round_model import settings_now, settings_of, task_now
from searchblend.service.task_settings import ADJUSTABLE, AS_METHOD, TaskSettings
from searchblend.store.rounds import Round, Task
from searchblend.store.service_store import ServiceStore
from searchblend.store.states import ENDED
from searchblend.wire.consent import odds_words

FormValues = dict[str, str | float | bool]
"""settings by name; times have a unit beside them"""
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": DAY}


@dataclass(frozen=True)
class Field:
    """One setting in a form."""

    name: str
    label: str
    help: str
    kind: str
    """``text``, ``long``, ``number``, ``choice``, ``yes`` or ``time``"""
    choices: tuple[str, ...] = ()
    step: str = "1"
    may_be_empty: bool = False


@dataclass(frozen=True)
class FieldGroup:
    title: str
    fields: tuple[Field, ...]
    is_open: bool = True


def _field(name: str, label: str, words: str) -> Field:
    """How a setting is asked for follows from its type."""
    hint = _HINTS[name]
    choices = next((rule.choices for rule in getattr(hint, "__metadata__", ()) if isinstance(rule, OneOf)), ())
    if choices:
        return Field(name, label, words, "choice", choices)
    if name.endswith("_seconds"):
        return Field(name, label, words, "time")
    base = getattr(hint, "__origin__", hint)
    kind = {bool: "yes", str: "text"}.get(base, "number") if name != "consent" else "long"
    may_be_empty = TaskSettings.__dataclass_fields__[name].default == ""
    return Field(name, label, words, kind, step="any" if hint is float else "1", may_be_empty=may_be_empty)


_HINTS: Final = get_type_hints(TaskSettings, include_extras=True)
GROUPS: Final = (
    FieldGroup(
        "What and whom",
        (
            _field("name", "Name", "What people call the task; each task has its own."),
            _field("engine", "Search engine", "Whose searches are asked for; each engine has its own list."),
            _field("market", "Market", "Country or language of the people who take part."),
            _field("population", "Population", "Whom the ledger charges; the same name in all tasks for these people."),
        ),
    ),
    FieldGroup(
        "Privacy",
        (
            _field("epsilon", "ε for each group", "What one round costs a person; 4 is usual, less protects more."),
            _field("delta", "δ for each group", "Far below 1 divided by the number of people."),
            _field("budget_window", "Budget window", "The cap bounds what is charged within one such period."),
            _field("uncapped", "Without a cap", "Open rounds although no cap bounds what they cost together."),
        ),
    ),
    FieldGroup(
        "The list",
        (
            _field("max_head_queries", "Longest list", "Largest number of queries that devices are asked about."),
            _field("has_urls", "With URLs", "Count clicked URLs as well as queries."),
            _field("method", "Method", "best, or the paper's own."),
        ),
    ),
    FieldGroup(
        "Fewest people",
        (
            _field("min_optin", "Opt-in users", "With fewer a round ends without a list."),
            _field("min_clients", "Reporting devices", "With fewer a round ends without a result."),
            _field(
                "min_queries",
                "Queries in the list",
                "With fewer after the review a round ends. Real devices answer about no list of fewer than 20.",
            ),
            _field("expected_clients", "Devices expected", "A guess, from which the form of the reports is chosen."),
        ),
    ),
    FieldGroup(
        "Times",
        (
            _field("optin_seconds", "Opt-in window", "How long sealed records are taken."),
            _field("client_seconds", "Client window", "How long reports are taken."),
            _field("grace_seconds", "Grace period", "For reports that are on their way."),
            _field("shred_seconds", "Longest life of raw records", "Whatever happens, they are gone after this."),
            _field("repeat_seconds", "Time between rounds", "0: only by hand."),
        ),
        is_open=False,
    ),
    FieldGroup(
        "Fine print",
        (
            _field("head_fraction", "Share of opt-in users who name the list", "Method paper only."),
            _field("query_budget_fraction", "Share of ε for queries", "The rest is for URLs."),
            _field(
                "records_per_optin",
                "Records of an opt-in user",
                "Sent sealed; together they weigh as one person. 0: as the method.",
            ),
            _field("records_per_client", "Records of a client", "They share one ε: each is randomized more."),
            _field("wide_list", "Wide list", "Lists queries without a listed URL too."),
            _field("silent_devices", "Devices without searches", "Stay silent, or report that they have none."),
            _field("min_device_version", "Oldest device version", "Older ones are told to update."),
            _field(
                "token_issuer",
                "Issuer of tokens",
                "Its address, as https://issuer.example: then each report needs one of its tokens.",
            ),
            _field(
                "consent", "Consent text", "Your own words, after the sentence that says how many searches are sent."
            ),
        ),
        is_open=False,
    ),
)
"""every setting once; a test compares with TaskSettings"""
_KINDS: Final = {field.name: field for group in GROUPS for field in group.fields}
_ASKS_UNCAPPED: Final = "asks_uncapped"
"""beside a box that sends nothing if it is not ticked"""
_DEFAULTS: Final = TaskSettings(name="x", records_per_optin=1)


def default_values() -> FormValues:
    """What the empty form shows."""
    return {**_form_values(_DEFAULTS), "records_per_optin": AS_METHOD}


def values_like(store: ServiceStore, name: str) -> FormValues:
    """What the form shows for a task like another: everything but the name, which is yours to choose."""
    return _form_values(settings_of(task_now(store, store.rounds.task(name))))


def _form_values(settings: TaskSettings) -> FormValues:
    """Without the sentence about the number: the number may be changed in the form."""
    return shown_values({**encode(settings), "name": "", "consent": settings.own_consent})


def shown_values(settings: FormValues) -> FormValues:
    """Settings as the form shows them: times as a number and a unit."""
    values: FormValues = {}
    for name, value in settings.items():
        field = _KINDS[name]
        if field.kind == "time" and isinstance(value, int):
            unit = next(unit for unit in ("days", "hours", "minutes", "seconds") if value % _UNITS[unit] == 0)
            values[name], values[f"{name}_unit"] = value // _UNITS[unit], unit
        else:
            values[name] = value
    return values


@dataclass(frozen=True)
class AdjustPage:
    """A task's settings that may change without a new consent."""

    task: Task
    groups: tuple[FieldGroup, ...]
    values: FormValues
    asks_uncapped: bool


def read_adjust(store: ServiceStore, name: str, entered: Mapping[str, str]) -> AdjustPage:
    """``entered``: what a form held that was refused."""
    task = store.rounds.task(name)
    made, now = settings_of(task), settings_now(store, task)
    asked = {name for name in ADJUSTABLE if name != "uncapped" or made.uncapped}  # it can only be switched off
    groups = ((group, tuple(field for field in group.fields if field.name in asked)) for group in GROUPS)
    shown = tuple(replace(group, fields=fields, is_open=True) for group, fields in groups if fields)
    values = {**shown_values(encode(now)), **entered}
    if _ASKS_UNCAPPED in entered:
        values["uncapped"] = entered.get("uncapped") == "yes"
    return AdjustPage(task, shown, values, made.uncapped)


def adjustment_of_form(form: Mapping[str, Sequence[str]]) -> Adjustment:
    """What the form for changing a task asks for; a wrong field is named."""
    entered = {name: values[0] for name, values in form.items() if values}
    asked = [name for name in ADJUSTABLE if name in entered or (name == "uncapped" and _ASKS_UNCAPPED in entered)]
    return Adjustment({name: _value_of(name, entered) for name in asked})


def entered_values(form: Mapping[str, str]) -> FormValues:
    """What a form shows again after a mistake; a box that is not ticked is not in the form."""
    ticked = {name: form.get(name) == "yes" for name, field in _KINDS.items() if field.kind == "yes"}
    return {**default_values(), **form, **ticked}


def settings_of_form(form: Mapping[str, str]) -> TaskSettings:
    """The settings that a form asks for; a wrong field is named."""
    return decode(TaskSettings, {field.name: _value_of(field.name, form) for field in fields(TaskSettings)})


def _value_of(name: str, form: Mapping[str, str]) -> str | float | bool:
    kind, entered = _KINDS[name].kind, form.get(name, "").strip()
    if kind == "yes":
        return entered == "yes"
    if kind in ("number", "time"):
        value = _number(name, entered, whole=isinstance(getattr(_DEFAULTS, name), int))
        return value * (_UNITS.get(form.get(f"{name}_unit", "seconds"), 1) if kind == "time" else 1)
    return entered.replace("\r\n", "\n")


def _number(name: str, digits: str, *, whole: bool) -> float:
    try:
        return int(digits) if whole else float(digits)
    except ValueError:
        raise InvalidParameter(name, "expected a whole number" if whole else "expected a number") from None


@dataclass(frozen=True)
class TaskPage:
    task: Task
    values: FormValues
    trouble: str | None
    """why the settings cannot be read, if so"""
    rounds: list[tuple[Round, str]]
    """newest first, with their state in words"""
    can_draft: bool
    is_busy: bool
    odds: str
    """what a client's report gives away, over a list as long as the settings allow"""


def read_task(store: ServiceStore, name: str) -> TaskPage:
    task = task_now(store, store.rounds.task(name))
    rounds = store.rounds.rounds(task.task)
    is_busy = bool(rounds) and rounds[-1].state not in ENDED
    trouble = settings_trouble(task)
    return TaskPage(
        task=task,
        values={} if trouble else shown_values(encode(settings_of(task))),
        trouble=trouble,
        rounds=[(round_, words_of(round_).title) for round_ in reversed(rounds)],
        can_draft=not is_busy and not task.killed and not trouble,
        is_busy=is_busy,
        odds="" if trouble else _odds(settings_of(task)),
    )


def _odds(settings: TaskSettings) -> str:
    return odds_words(list_odds(settings.params, settings.max_head_queries))
