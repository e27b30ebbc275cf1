"""What a task asks for, validated once. A round keeps the settings it was drafted with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from searchblend.blender.method import METHODS
from searchblend.core.documents import Between, JsonObject, Matching, OneOf, Strict, check, decode, encode
from searchblend.core.errors import InvalidParameter, listed
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.service.clock import DAY
from searchblend.store.ledger import check_name
from searchblend.store.ledger_windows import PERIODS, window_at
from searchblend.wire.addresses import ORIGIN, is_origin
from searchblend.wire.consent import own_words, task_consent
from searchblend.wire.manifest import DEVICE_VERSION, FEWEST_QUERIES, LARGEST_EPSILON, MOST_RECORDS

AS_METHOD: Final = 0
"""a number of records that is left to the method; what is stored and asked of devices is the number itself"""
SILENT_DEVICES: Final = ("skip", "report_wildcard")
_LONGEST_CONSENT: Final = 20_000
_NUMBER_OF_SEARCHES: Final = re.compile(r"\b(?:one|up to [0-9]+) of my searches\b", re.IGNORECASE)
_MOST: Final = 2**31 - 1
Method: TypeAlias = Annotated[str, OneOf(tuple(METHODS))]
Window: TypeAlias = Annotated[str, OneOf(PERIODS)]
SilentDevices: TypeAlias = Annotated[str, OneOf(SILENT_DEVICES)]
People: TypeAlias = Annotated[int, Between(2, _MOST)]
Positive: TypeAlias = Annotated[int, Between(1, _MOST)]
NotNegative: TypeAlias = Annotated[int, Between(0, _MOST)]
Issuer: TypeAlias = Annotated[str, Matching(f"(?:{ORIGIN})?", "https://HOST, http:// on this machine, or nothing")]
_WITH_TOKENS: Final = "0.2"
"""the first version of devices that pay with tokens; an earlier one would spend its ε on a report that is refused"""
ADJUSTABLE: Final[Mapping[str, Literal["freely", "up", "down"]]] = {
    "expected_clients": "freely",
    "optin_seconds": "freely",
    "client_seconds": "freely",
    "grace_seconds": "freely",
    "repeat_seconds": "freely",
    "min_device_version": "freely",
    "min_optin": "up",
    "min_clients": "up",
    "min_queries": "up",
    "shred_seconds": "down",
    "uncapped": "down",
}
"""what may change without a new consent, and to which side of what the task was made with: no round may ask for more
than people agreed to, have fewer of them, keep raw records for longer, or cost more than a cap allowed"""
_WHY_KEPT: Final[Mapping[str, str]] = {
    "name": "people know the task by it",
    "population": "the ledger charges it for what the task has cost",
    "budget_window": "the cap counts by it what the task has cost",
}
_AGREED: Final = "people who joined agreed to it"


@dataclass(frozen=True)
class TaskSettings(Strict):
    """All settings of a task; every one has a default but the name."""

    name: str
    """what people call the task; unique in a service, also in other case or width. One line, no space at either end"""
    engine: str = "any"
    """whose searches: lists of several engines are kept apart"""
    market: str = "any"
    """which country or language: lists of several markets are kept apart"""
    population: str = "everybody"
    """whom the ledger charges; tasks that ask the same people must say the same. One line, no space at either end"""
    method: Method = "best"
    """``best``, or ``paper``: the algorithm as printed"""
    epsilon: float = 4.0
    """ε of each person in each round; devices take part in no round with more than 4"""
    delta: float = 1e-5
    """δ of each person in each round"""
    max_head_queries: int = 50
    """M: how many queries the head list may hold"""
    head_fraction: float = 0.95
    """f_O, in method ``paper``: the share of the opt-in users that makes the list"""
    query_budget_fraction: float = 0.85
    """f_C: the share of a client's budget that protects the query"""
    records_per_client: int = 1
    """m_C: cells in a report; each gets its part of the budget"""
    records_per_optin: int = AS_METHOD
    """m_O: records of an opt-in user; more than 1 in method ``best`` only. 0: as many as devices send (20), or 1 in
    method ``paper`` and where δ is too small for more"""
    has_urls: bool = True
    """whether records have URLs; without, only queries are asked for"""
    wide_list: bool = False
    """whether queries without a listed URL are listed too, in method ``best``"""
    expected_clients: People = 10_000
    """for choosing how clients report, before they do"""
    min_optin: People = 500
    """with fewer opt-in records a round ends without a head list"""
    min_clients: People = 1_000
    """with fewer reports a round ends without a result"""
    min_queries: Positive = FEWEST_QUERIES
    """with fewer listed queries after review a round ends; devices answer about no list of fewer than 20"""
    optin_seconds: Positive = 7 * DAY
    """how long opt-in records are taken"""
    client_seconds: Positive = 7 * DAY
    """how long reports are taken"""
    grace_seconds: NotNegative = DAY
    """for reports that were on their way"""
    shred_seconds: Positive = 14 * DAY
    """raw records live no longer than this after the round was opened, whatever happens; more than ``optin_seconds``"""
    repeat_seconds: NotNegative = 0
    """a new round this long after the start of the one before; 0: only by hand"""
    budget_window: Window = "week"
    """``week``, ``month`` or ``year``: the period of the cap per window, which counts the debits made in it, those of
    other tasks and periods included"""
    uncapped: bool = False
    """whether rounds may open although no cap is on record: then nothing bounds what they cost together"""
    silent_devices: SilentDevices = "skip"
    """what a device without a record does: ``skip`` the round, or ``report_wildcard``"""
    min_device_version: str = "0.1"
    """older devices take no part; numbers with dots, as ``0.1`` or ``1.2.3``. At least ``0.2`` with ``token_issuer``"""
    token_issuer: Issuer = ""
    """whose single-use tokens pay for reports, as ``https://issuer.example``; empty: reports need none"""
    consent: str = ""
    """what opt-in users agree to: a sentence that says how many searches are sent (``records_per_optin``), written by
    the service itself, and after it the operator's own words, if any are given"""

    def __post_init__(self) -> None:
        check(self)
        for field in ("name", "engine", "market", "population", "min_device_version"):
            _check_string(field, getattr(self, field), 100)
        params = METHODS[self.method].settled(self.params)
        if self.records_per_optin == AS_METHOD:
            object.__setattr__(self, "records_per_optin", min(params.counted_records_per_optin, MOST_RECORDS))
        if own := self.own_consent:
            _check_string("consent", own, _LONGEST_CONSENT)
        object.__setattr__(self, "consent", task_consent(self.records_per_optin, own))

    def check_for_rounds(self) -> None:
        """Refuse what could only fail after people have sent records.

        For what is new: tasks and rounds that were stored before these rules are still read, shown and ended.
        """
        check_name("population", self.population)
        if self.optin_seconds >= self.shred_seconds:
            raise InvalidParameter(
                "shred_seconds",
                "expected more than optin_seconds: both count from the opening, and raw records would be destroyed "
                "before a list is made of them",
            )
        self._check_consent()
        if self.epsilon > LARGEST_EPSILON:
            raise InvalidParameter("epsilon", f"expected at most {LARGEST_EPSILON:g}: devices refuse rounds with more")
        if self.token_issuer and not is_origin(self.token_issuer):
            raise InvalidParameter("token_issuer", "expected a port of at most 65535")
        if not DEVICE_VERSION.fullmatch(self.min_device_version):
            raise InvalidParameter("min_device_version", "expected one to four numbers with dots, such as 0.1 or 1.2.3")

    def _check_consent(self) -> None:
        """Two sentences about the number could differ. Devices go by the number itself, whatever the words say."""
        if _NUMBER_OF_SEARCHES.search(self.own_consent):
            raise InvalidParameter(
                "consent",
                f"says how many searches are sent; records_per_optin is {self.records_per_optin}, and the service "
                "writes that sentence by itself: leave it out",
            )

    def adjusted(self, changes: JsonObject) -> TaskSettings:
        """These settings, which a task was made with, but for what may change without a new consent (``ADJUSTABLE``).

        A change of anything else is refused by name, with the reason.
        """
        document = encode(self)
        for name, value in changes.items():
            if name not in document:
                raise InvalidParameter(listed([name]), "a task has no such setting")
            if name not in ADJUSTABLE and value != document[name]:
                why = _WHY_KEPT.get(name, _AGREED)
                raise InvalidParameter(name, f"cannot change: {why}; make a new task like this one instead")
        after = decode(TaskSettings, {**document, **changes})
        for name, side in ADJUSTABLE.items():
            first, now = getattr(self, name), getattr(after, name)
            if (side == "up" and now < first) or (side == "down" and now > first):
                bound = "at least" if side == "up" else "at most"
                raise InvalidParameter(
                    name, f"expected {bound} {_shown(first)}, with which the task was made: {_AGREED}"
                )
        return after

    @property
    def oldest_device(self) -> str:
        """The version that a device needs."""
        needs_newer = self.token_issuer and _numbers(self.min_device_version) < _numbers(_WITH_TOKENS)
        return _WITH_TOKENS if needs_newer else self.min_device_version

    @property
    def own_consent(self) -> str:
        """The operator's own words in ``consent``."""
        return own_words(self.records_per_optin, self.consent)

    @property
    def params(self) -> BlenderParams:
        """Checks the numbers of the algorithm."""
        params = BlenderParams(
            budget=Budget(self.epsilon, self.delta),
            max_head_queries=self.max_head_queries,
            head_fraction=self.head_fraction,
            query_budget_fraction=self.query_budget_fraction,
            records_per_optin=None if self.records_per_optin == AS_METHOD else self.records_per_optin,
            records_per_client=self.records_per_client,
        )
        return params.for_log(has_urls=self.has_urls)

    @property
    def consent_digest(self) -> bytes:
        return hashlib.sha256(self.consent.encode()).digest()

    def window_at(self, now: int) -> str:
        """The ledger's window of what is debited now."""
        return window_at(self.budget_window, now)


def _numbers(version: str) -> list[int]:
    """What is not a version is newer than every one; devices refuse it by themselves."""
    return [int(part) for part in version.split(".")] if DEVICE_VERSION.fullmatch(version) else [_MOST]


def _shown(value: int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:,}"


def _check_string(field: str, value: str, longest: int) -> None:
    if not 0 < len(value) <= longest or not value.replace("\n", " ").isprintable():
        raise InvalidParameter(field, f"expected 1 to {longest} printable characters")
