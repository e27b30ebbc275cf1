"""What this device never does, whoever signs it, and what it asks of a manifest and of the head list that it names.

The limits are compiled in: no message can change them. Checks come before anything of the user's is touched.

A signed manifest proves who asks, not that the request is harmless. So a device has limits of its own for every
parameter that decides how much a report gives away, and a budget over time that no number of tasks can exceed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from searchblend.blender.best.subset_report import TWO_STAGE
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.admission import LONGEST_QUERY, LONGEST_URL
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.records import HeadList
from searchblend.device.device_errors import DeviceRefused
from searchblend.wire.head_list import HeadListMessage, decode_head_list
from searchblend.wire.manifest import DEVICE_VERSION as VERSION_FORM
from searchblend.wire.manifest import FEWEST_QUERIES, LARGEST_EPSILON, MOST_RECORDS, ClientPart, Manifest
from searchblend.wire.optin_result import DrawnBy, OptinResult
from searchblend.wire.report import ReportShape

DEVICE_VERSION: Final = (0, 2)
DAY: Final = 86_400
IsDrawn = Callable[[OptinResult, HeadList, DrawnBy], bool]


@dataclass(frozen=True)
class Policy:
    """The limits. The defaults are the compiled-in ones; tests make stricter ones."""

    largest_epsilon: float = LARGEST_EPSILON
    """ε of one round"""
    largest_delta: float = 1e-4
    """δ of one round"""
    window_seconds: int = 7 * DAY
    """the period of ``window_epsilon``"""
    window_epsilon: float = 8.0
    """Σ ε of the rounds within one window, over all tasks: two usual rounds"""
    lifetime_epsilon: float = 208.0
    """Σ ε of all rounds: a year of ε = 4 a week"""
    lifetime_delta: float = 1e-2
    """Σ δ of all rounds"""
    most_records_per_round: int = MOST_RECORDS
    """m_C and m_O"""
    fewest_queries: int = FEWEST_QUERIES
    """of a head list: at ε = 4 an answer about one of 20 is untrue at least one time in four"""
    most_queries: int = 20_000
    """of a head list"""
    most_cells: int = 200_000
    """of a head list"""
    largest_head_list: int = 16 << 20
    """bytes"""
    largest_report: int = 64 << 10
    """bytes"""
    largest_manifest: int = 64 << 10
    """bytes"""
    largest_pack: int = 32 << 20
    """bytes"""
    longest_manifest_seconds: int = 31 * DAY
    """how long a manifest may be valid"""
    clock_skew_seconds: int = DAY
    """how far this device's clock may be behind the service's"""
    longest_query: int = LONGEST_QUERY
    """code points, before normalization"""
    longest_url: int = LONGEST_URL
    """code points"""
    most_searches: int = 1_000
    """older ones are forgotten"""
    search_seconds: int = 28 * DAY
    """searches older than this are forgotten"""
    longest_delay_seconds: int = 6 * 3600
    """reports are sent after a random delay of up to this, within the round's window"""
    longest_wait_seconds: int = 3600
    """between two tries"""


POLICY: Final = Policy()


@dataclass(frozen=True)
class LastManifest:
    """The newest manifest that this device has believed."""

    sequence: int = 0
    digest: str = ""
    """SHA-256 of its canonical form"""
    round: int = 0
    issued: int = 0


def check_manifest(manifest: Manifest, *, task: str, last: LastManifest, now: int, policy: Policy) -> LastManifest:
    """What to remember of it from now on; ``DeviceRefused`` for one that is old, expired or another task's.

    ``now`` is never before the newest manifest was signed, whatever the clock says (``device_now``).
    """
    if manifest.task != task:
        raise DeviceRefused("wrong-task")
    digest = manifest.digest
    if manifest.sequence < last.sequence:
        raise DeviceRefused("rolled-back")
    if manifest.sequence == last.sequence and digest != last.digest:
        raise DeviceRefused("two-faces")
    if manifest.round < last.round:
        raise DeviceRefused("older-round")
    if manifest.issued > now + policy.clock_skew_seconds:
        raise DeviceRefused("clock-behind")
    if manifest.expires <= now:
        raise DeviceRefused("expired")
    if manifest.expires - manifest.issued > policy.longest_manifest_seconds:
        raise DeviceRefused("valid-too-long")
    if _version(manifest.min_device_version) > DEVICE_VERSION:
        raise DeviceRefused("device-too-old")
    return LastManifest(manifest.sequence, digest, manifest.round, max(manifest.issued, last.issued))


def device_now(clock: int, last: LastManifest) -> int:
    """The time, but never before the newest manifest was signed: a clock that jumps back revives nothing."""
    return max(clock, last.issued)


def check_request(manifest: Manifest, policy: Policy) -> None:
    """The promises of a round against the limits of this device."""
    epsilon, delta, client = float(manifest.epsilon), float(manifest.delta), manifest.client
    records = max(manifest.records_per_client, manifest.records_per_optin)
    for field, value, least, most in (
        ("epsilon", epsilon, 0.0, policy.largest_epsilon),
        ("delta", delta, -1.0, policy.largest_delta),
        ("records", records, 0, policy.most_records_per_round),
        ("report_bytes", client.report_bytes if client else 1, 0, policy.largest_report),
    ):
        if not least < value <= most:
            raise DeviceRefused("over-policy", field)


def check_budget(
    recent: Fraction, ever: tuple[Fraction, Fraction], own: tuple[Fraction, Fraction], policy: Policy
) -> None:
    """Whether a round may still be paid for; sums are over all tasks, since a person is one person.

    Args:
        recent: Σ ε within the window
        ever: Σ ε and Σ δ of all rounds
        own: ε and δ of this round
        policy: the limits
    """
    if recent + own[0] > Fraction(policy.window_epsilon):
        raise DeviceRefused("over-budget", f"ε of the last {policy.window_seconds // DAY} days")
    for total, cost, most, name in zip(ever, own, (policy.lifetime_epsilon, policy.lifetime_delta), "εδ", strict=True):
        if total + cost > Fraction(most):
            raise DeviceRefused("over-budget", f"lifetime {name} of this device")


def check_head_list(
    content: bytes, manifest: Manifest, policy: Policy, is_drawn: IsDrawn
) -> tuple[HeadListMessage, ReportShape]:
    """The head list of a manifest in its client phase, and the shape of a report on it.

    Args:
        content: the file that the manifest names
        manifest: believed, and checked by ``check_request``
        policy: the limits
        is_drawn: whether a curator of this device has drawn the list (``signing.is_drawn_by_curator``)
    """
    client = manifest.client
    assert client is not None
    if hashlib.sha256(content).hexdigest() != client.artifact:
        raise DeviceRefused("wrong-artifact")
    try:
        message = decode_head_list(json.loads(content.decode("utf-8")))
    except (MessageError, ArithmeticError, ValueError, RecursionError) as error:
        raise DeviceRefused("bad-head-list", str(error) if isinstance(error, MessageError) else "") from None
    _check_list(message, manifest, client, policy)
    try:
        if message.design is None:
            ReportProbabilities.of(message.head, message.params)
        shape = ReportShape.of(
            bytes.fromhex(manifest.task), manifest.round, message.head, message.params, message.design
        )
    except InvalidParameter as error:
        raise DeviceRefused("bad-head-list", error.field) from None
    except (ArithmeticError, ValueError):
        raise DeviceRefused("bad-head-list") from None
    if shape.size != client.report_bytes:
        raise DeviceRefused("wrong-parameters", "report_bytes")
    _check_target(message, manifest, policy, is_drawn)
    return message, shape


def _check_list(message: HeadListMessage, manifest: Manifest, client: ClientPart, policy: Policy) -> None:
    head, params, design = message.head, message.params, message.design
    if head.digest != client.digest:
        raise DeviceRefused("wrong-digest")
    if len(head) == 0:
        raise DeviceRefused("empty-list")
    if len(head) > policy.most_queries or head.n_cells > policy.most_cells:
        raise DeviceRefused("over-policy", "list size")
    agreed = {
        "epsilon": params.budget.epsilon == float(manifest.epsilon),
        "delta": params.budget.delta == float(manifest.delta),
        "records_per_client": params.records_per_client == manifest.records_per_client,
        "method": (design is not None) == (manifest.method == "best"),
        "mechanism": (design.mechanism if design else "two-stage") == client.mechanism,
        # k_q = 1: a list without any URL must give the URL no budget, and only such a list may. Single queries without
        # URLs (their results were removed at the review) are reported by the query stage alone, which stays private.
        "query_budget_fraction": head.has_urls == (params.query_budget_fraction < 1),
        "design": design is None or design.mechanism != TWO_STAGE or design.query_steps == 0,
    }
    for field, is_same in agreed.items():
        if not is_same:
            raise DeviceRefused("wrong-parameters", field)


def _check_target(message: HeadListMessage, manifest: Manifest, policy: Policy, is_drawn: IsDrawn) -> None:
    """A question about one person: a list so short that its answers are true, or queries that no one else was asked."""
    if len(message.head) < policy.fewest_queries:
        raise DeviceRefused("short-list", f"{len(message.head)} instead of {policy.fewest_queries}")
    round_ = DrawnBy(manifest.task, manifest.round, manifest.epsilon, manifest.delta)
    if message.optin_result is None or not is_drawn(message.optin_result, message.head, round_):
        raise DeviceRefused("not-drawn")


def _version(version: str) -> tuple[int, ...]:
    """``0.1`` and ``0.1.3`` as numbers; what is not a version is newer than everything."""
    if not VERSION_FORM.fullmatch(version):
        raise DeviceRefused("device-too-old", "min_device_version")
    return tuple(int(part) for part in version.split("."))[: len(DEVICE_VERSION)]
