"""What people may do to a task or a round, declared once: admin API, console and command line derive from this table.

An action names its role, the arrow it takes (from which state to which), what it needs and the words that people read.
Workers take the other arrows (``JOB_ARROWS``); both tables together are the state diagram of the documentation. Rules
that depend on more than the state (budget, who opened the round, how many people) stay in ``Lifecycle``, which every
action calls. The module imports little, because the command line builds its parsers from the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Literal, TypeVar

from searchblend.core.documents import Between, JsonObject
from searchblend.service.review import Rejection, Review
from searchblend.store.states import ENDED, State

if TYPE_CHECKING:
    from searchblend.service.lifecycle import Lifecycle
    from searchblend.store.rounds import Round, Task

Face = Literal["api", "console", "command"]
EVERYWHERE: Final[frozenset[Face]] = frozenset({"api", "console", "command"})
Target = TypeVar("Target")
Needs = TypeVar("Needs")
ASK_AGAIN: Final = "a second operator has to ask for the same within a day"
MOST_CODES: Final = 10_000
MOST_HOURS: Final = 24 * 28


@dataclass(frozen=True)
class Nothing:
    """An action that needs nothing but its round."""


@dataclass(frozen=True)
class NewCodes:
    """How many enrolment codes to make."""

    count: Annotated[int, Between(1, MOST_CODES)] = 1


@dataclass(frozen=True)
class Extension:
    """How much longer a window stays open."""

    hours: Annotated[int, Between(1, MOST_HOURS)] = 24


@dataclass(frozen=True)
class Adjustment:
    """New values of a task's settings, by name; only those that need no new consent."""

    settings: JsonObject


@dataclass(frozen=True)
class CountsFile:
    """What ``searchblend aggregate`` wrote about a round."""

    document: object
    """as it was read; ``Lifecycle.close_with_counts`` checks it"""


@dataclass(frozen=True)
class Confirmation:
    """What the console asks before a step that cannot be undone."""

    words: str
    """the step, as a command"""
    price: str
    """what is lost or spent; ``{epsilon}`` is that of the task"""


@dataclass(frozen=True)
class Action(Generic[Target, Needs]):
    """Something that a person does."""

    name: str
    """its word on the command line, and the last part of its address"""
    role: str
    """who may"""
    summary: str
    needs: type[Needs]
    take: Callable[[Lifecycle, Target, Needs, str], Any]
    """the last argument is the name of who acts, for the audit log"""
    on: Literal["task", "round"] = "round"
    gives: Literal["task", "round", "codes"] = "round"
    before: frozenset[State] = frozenset()
    """states of the round from which it may be taken"""
    after: State | None = None
    """the state that it leads to; None where the round stays in its own"""
    address: str = ""
    """where the last part of the address is not the name"""
    button: str = ""
    """the words on the console's button, where the action is the next step of a state"""
    done: str = ""
    """what the console says afterwards"""
    asks: Confirmation | None = None
    """where it cannot be undone"""
    faces: frozenset[Face] = field(default=EVERYWHERE)
    by_two: bool = False
    """whether a second person has to ask for the same, where there is one"""

    @property
    def path(self) -> str:
        return self.address or self.name

    @property
    def help(self) -> str:
        """The summary in the form of the command line's help."""
        return self.summary[0].lower() + self.summary[1:].rstrip(".")


TASK_ACTIONS: Final[tuple[Action[Task, Any], ...]] = (
    Action(
        "draft",
        "operator",
        "Draft a round.",
        Nothing,
        lambda lifecycle, task, _, actor: lifecycle.draft_round(task, actor=actor),
        on="task",
        after=State.DRAFT,
        address="rounds",
        done="The round is drafted. No one has been asked yet.",
    ),
    Action(
        "adjust",
        "operator",
        "Change settings for coming rounds that need no new consent.",
        Adjustment,
        lambda lifecycle, task, adjustment, actor: lifecycle.adjust(task, adjustment.settings, actor=actor),
        on="task",
        gives="task",
        done="The settings are changed for rounds that are drafted from now on.",
    ),
    Action(
        "kill",
        "operator",
        "Stop a task for good; where there are several operators, two must ask for it.",
        Nothing,
        lambda lifecycle, task, _, actor: lifecycle.ask_kill(task, actor=actor),
        on="task",
        gives="task",
        done="The task is stopped for good.",
        asks=Confirmation(
            "Stop the task for good",
            "Devices are told to forget it, and a round in progress ends without a result.",
        ),
        by_two=True,
    ),
    Action(
        "enrol",
        "operator",
        "Make enrolment codes; they are shown once.",
        NewCodes,
        lambda lifecycle, task, enrolment, actor: lifecycle.enrol(task, enrolment.count, actor=actor),
        on="task",
        gives="codes",
        address="enrolments",
    ),
)
ROUND_ACTIONS: Final[tuple[Action[Round, Any], ...]] = (
    Action(
        "open",
        "operator",
        "Ask the curator to open the round.",
        Nothing,
        lambda lifecycle, round_, _, actor: lifecycle.request_open(round_, actor=actor),
        before=frozenset({State.DRAFT}),
        after=State.OPTIN_OPEN,
        button="Open the opt-in window",
        done="Opening was asked for; the curator makes the key.",
    ),
    Action(
        "close-opt-in",
        "operator",
        "End the opt-in window now.",
        Nothing,
        lambda lifecycle, round_, _, actor: lifecycle.close_optin(round_, actor=actor),
        before=frozenset({State.OPTIN_OPEN}),
        after=State.OPTIN_CLOSED,
        button="Close the opt-in window",
        done="The opt-in window is closed.",
        asks=Confirmation(
            "Close the opt-in window",
            "No more records are taken; ε = {epsilon} will be charged to each opt-in user for the head list.",
        ),
    ),
    Action(
        "review",
        "reviewer",
        "Approve the list without what is removed; filter hits go unless kept.",
        Review,
        lambda lifecycle, round_, review, actor: lifecycle.review(round_, review, actor=actor),
        before=frozenset({State.SHREDDED}),
        after=State.REVIEWED,
        done="The list is approved.",
        asks=Confirmation(
            "Approve the list",
            "The list goes to every device; ε = {epsilon} will be charged to each client, whoever reports.",
        ),
    ),
    Action(
        "reject",
        "reviewer",
        "End the round: the list as a whole should not be published.",
        Rejection,
        lambda lifecycle, round_, rejection, actor: lifecycle.reject(round_, actor=actor, reason=rejection.reason),
        before=frozenset({State.SHREDDED}),
        after=State.ABORTED,
        done="The list was rejected; the round has ended.",
        asks=Confirmation(
            "Reject the list",
            "The list is destroyed, and the round ends without a result.",
        ),
    ),
    Action(
        "close-clients",
        "operator",
        "End the clients' window now.",
        Nothing,
        lambda lifecycle, round_, _, actor: lifecycle.close_clients(round_, actor=actor),
        before=frozenset({State.CLIENT_OPEN}),
        after=State.CLIENT_GRACE,
        button="Close the client window",
        done="The client window is closed; reports on their way are still counted.",
        asks=Confirmation(
            "Close the client window",
            "Devices that have not reported yet are no longer asked.",
        ),
    ),
    Action(
        "extend",
        "operator",
        "Keep the clients' window open for longer.",
        Extension,
        lambda lifecycle, round_, longer, actor: lifecycle.extend_clients(round_, longer.hours, actor=actor),
        before=frozenset({State.CLIENT_OPEN}),
        done="The client window stays open for longer; devices hear of it with the next manifest.",
    ),
    Action(
        "end-grace",
        "operator",
        "Take no more reports.",
        Nothing,
        lambda lifecycle, round_, _, actor: lifecycle.end_grace(round_, actor=actor),
        before=frozenset({State.CLIENT_GRACE}),
        after=State.CLOSED,
        button="Take no more reports",
        done="No more reports are taken.",
        asks=Confirmation(
            "Take no more reports",
            "Reports that arrive later are lost; the result is made of those counted so far, and is published.",
        ),
    ),
    Action(
        "load-counts",
        "operator",
        "Close a round with the counts of `searchblend aggregate`.",
        CountsFile,
        lambda lifecycle, round_, counts, actor: lifecycle.close_with_counts(round_, counts.document, actor=actor),
        before=frozenset({State.CLIENT_GRACE}),
        after=State.CLOSED,
        faces=frozenset({"command"}),  # the file is too large for a request, and lies beside the database
    ),
    Action(
        "abort",
        "operator",
        "End the round without a result; where there are several operators, two must ask for it.",
        Nothing,
        lambda lifecycle, round_, _, actor: lifecycle.ask_abort(round_, actor=actor),
        before=frozenset(State) - ENDED,
        after=State.ABORTED,
        done="The round has ended without a result.",
        asks=Confirmation(
            "End the round without a result",
            "Raw records and counts are destroyed, and nothing is published.",
        ),
        by_two=True,
    ),
)


@dataclass(frozen=True)
class JobArrow:
    """An arrow that a worker of the service takes by itself, as a job of this kind."""

    job: str
    worker: str
    before: State
    after: State


JOB_ARROWS: Final = (
    JobArrow("open", "curator", State.DRAFT, State.OPTIN_OPEN),
    JobArrow("head-list", "curator", State.OPTIN_CLOSED, State.HEADLIST_READY),
    JobArrow("shred", "curator", State.HEADLIST_READY, State.SHREDDED),
    JobArrow("client-open", "publisher", State.REVIEWED, State.CLIENT_OPEN),
    JobArrow("estimate", "estimator", State.CLOSED, State.ESTIMATED),
    JobArrow("publish", "publisher", State.ESTIMATED, State.PUBLISHED),
)


def actions_for(face: Face) -> list[Action[Any, Any]]:
    """What one face of the service offers, in the order of the tables."""
    table: list[Action[Any, Any]] = [*TASK_ACTIONS, *ROUND_ACTIONS]
    return [action for action in table if face in action.faces]


def is_done(action: Action[Any, Any], result: Round | Task) -> bool:
    """Whether an action that needs two people has happened; the first one's wish changes nothing."""
    if not action.by_two:
        return True
    return result.killed if action.on == "task" else result.state is action.after  # type: ignore[union-attr]


def next_action(state: State) -> Action[Any, Any] | None:
    """The button of a state."""
    return next((action for action in ROUND_ACTIONS if action.button and state in action.before), None)


def next_actor(state: State) -> str:
    """Who takes a round on from this state: a role of people, or a worker; empty if it has ended."""
    people = (action.role for action in ROUND_ACTIONS if state in action.before and action.after is not State.ABORTED)
    return next(people, "") or next((arrow.worker for arrow in JOB_ARROWS if arrow.before is state), "")
