"""What a task asks for, validated once. A round keeps the settings it was drafted with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

from searchblend.blender.method import METHODS
from searchblend.core.errors import InvalidParameter, listed
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.store.ledger import check_name
from searchblend.wire.consent import optin_consent
from searchblend.wire.manifest import DEVICE_VERSION

WINDOWS: Final = ("week", "month", "year")
SILENT_DEVICES: Final = ("skip", "report_wildcard")
_DAY: Final = 86_400
_FEWEST: Final = 2
_LONGEST_TEXT: Final = 20_000


@dataclass(frozen=True)
class TaskSettings:
    """All settings of a task; every one has a default but the name."""

    name: str
    """what people call the task; unique in a service"""
    engine: str = "any"
    """whose searches: lists of several engines are kept apart"""
    market: str = "any"
    """which country or language: lists of several markets are kept apart"""
    population: str = "everybody"
    """whom the ledger charges; tasks that ask the same people must say the same. One line, no space at either end"""
    method: str = "best"
    """``best``, or ``paper``: the algorithm as printed"""
    epsilon: float = 4.0
    """ε of each person in each round"""
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
    records_per_optin: int = 1
    """m_O: records of an opt-in user; more than 1 in method ``best`` only"""
    has_urls: bool = True
    """whether records have URLs; without, only queries are asked for"""
    wide_list: bool = False
    """whether queries without a listed URL are listed too, in method ``best``"""
    expected_clients: int = 10_000
    """for choosing how clients report, before they do"""
    min_optin: int = 500
    """with fewer opt-in records a round ends without a head list"""
    min_clients: int = 1_000
    """with fewer reports a round ends without a result"""
    min_queries: int = 3
    """with fewer listed queries after review a round ends"""
    optin_seconds: int = 7 * _DAY
    """how long opt-in records are taken"""
    client_seconds: int = 7 * _DAY
    """how long reports are taken"""
    grace_seconds: int = _DAY
    """for reports that were on their way"""
    shred_seconds: int = 14 * _DAY
    """raw records live no longer than this after the round was opened, whatever happens; more than ``optin_seconds``"""
    repeat_seconds: int = 0
    """a new round this long after the start of the one before; 0: only by hand"""
    budget_window: str = "week"
    """``week``, ``month`` or ``year``: the period of the cap per window, which counts the debits made in it"""
    uncapped: bool = False
    """whether rounds may open although no cap is on record: then nothing bounds what they cost together"""
    silent_devices: str = "skip"
    """what a device without a record does: ``skip`` the round, or ``report_wildcard``"""
    min_device_version: str = "0.1"
    """older devices take no part; numbers with dots, as ``0.1`` or ``1.2.3``"""
    consent: str = ""
    """what opt-in users agree to; if empty, a sentence that says how many searches are sent (``records_per_optin``)"""

    def __post_init__(self) -> None:
        for field in ("name", "engine", "market", "population", "min_device_version"):
            _check_text(field, getattr(self, field), 100)
        if self.consent == "":
            object.__setattr__(self, "consent", optin_consent(self.records_per_optin))
        _check_text("consent", self.consent, _LONGEST_TEXT)
        for field, allowed in (
            ("method", METHODS),
            ("budget_window", WINDOWS),
            ("silent_devices", SILENT_DEVICES),
        ):
            if getattr(self, field) not in allowed:
                raise InvalidParameter(field, f"expected one of {', '.join(allowed)}")
        for field in ("has_urls", "wide_list", "uncapped"):
            if not isinstance(getattr(self, field), bool):
                raise InvalidParameter(field, "expected true or false")
        for field, least in (
            ("expected_clients", _FEWEST),
            ("min_optin", _FEWEST),
            ("min_clients", _FEWEST),
            ("min_queries", 1),
            ("optin_seconds", 1),
            ("client_seconds", 1),
            ("grace_seconds", 0),
            ("shred_seconds", 1),
            ("repeat_seconds", 0),
        ):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
                raise InvalidParameter(field, f"expected a whole number of at least {least}")
        if self.method == "paper":
            self.params.for_printed_method()

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
        if not DEVICE_VERSION.fullmatch(self.min_device_version):
            raise InvalidParameter("min_device_version", "expected one to four numbers with dots, as 0.1 or 1.2.3")

    def _check_consent(self) -> None:
        """A custom text is the operator's to answer for; our own sentence for another number is simply untrue."""
        if self.consent == optin_consent(1) and self.records_per_optin > 1:
            raise InvalidParameter(
                "consent",
                f"says that one search is sent, but records_per_optin is {self.records_per_optin}; leave it empty for "
                "a sentence that says so",
            )

    @property
    def params(self) -> BlenderParams:
        """Checks the numbers of the algorithm."""
        for field in ("epsilon", "delta", "head_fraction", "query_budget_fraction"):
            value = getattr(self, field)
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InvalidParameter(field, "expected a number")
        params = BlenderParams(
            budget=Budget(self.epsilon, self.delta),
            max_head_queries=self.max_head_queries,
            head_fraction=self.head_fraction,
            query_budget_fraction=self.query_budget_fraction,
            records_per_optin=self.records_per_optin,
            records_per_client=self.records_per_client,
        )
        return params.for_log(has_urls=self.has_urls)

    @property
    def consent_digest(self) -> bytes:
        return hashlib.sha256(self.consent.encode()).digest()

    def window_at(self, now: int) -> str:
        """The ledger's window of what is debited now."""
        day = datetime.fromtimestamp(now, UTC)
        year, week, _ = day.isocalendar()
        return {"week": f"{year}-W{week:02}", "month": f"{day:%Y-%m}", "year": f"{day:%Y}"}[self.budget_window]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> TaskSettings:
        """From a request or the database; an unknown field is a mistake."""
        if not isinstance(document, Mapping):
            raise InvalidParameter("settings", "expected an object")
        unknown = set(document) - {field.name for field in fields(cls)}
        if unknown:
            raise InvalidParameter("settings", f"unknown fields: {listed(sorted(map(str, unknown)))}")
        if "name" not in document:
            raise InvalidParameter("name", "expected a text")
        settings = cls(**document)
        _ = settings.params
        return settings


def _check_text(field: str, value: object, longest: int) -> None:
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.replace("\n", " ").isprintable():
        raise InvalidParameter(field, f"expected 1 to {longest} printable characters")
