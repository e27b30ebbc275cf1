"""What this device never does, whoever signs it. Compiled in: no message can change it.

A signed manifest proves who asks, not that the request is harmless. So a device has limits of its own for every
parameter that decides how much a report gives away, and a budget over time that no number of tasks can exceed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from searchblend.core.admission import LONGEST_QUERY, LONGEST_URL

DEVICE_VERSION: Final = (0, 1)
DAY: Final = 86_400


@dataclass(frozen=True)
class Policy:
    """The limits. The defaults are the compiled-in ones; tests make stricter ones."""

    largest_epsilon: float = 8.0
    """ε of one round"""
    largest_delta: float = 1e-4
    """δ of one round"""
    window_seconds: int = 7 * DAY
    """the period of ``window_epsilon``"""
    window_epsilon: float = 8.0
    """Σ ε of the rounds within one window"""
    lifetime_epsilon: float = 416.0
    """Σ ε of all rounds: two years of ε = 4 a week"""
    lifetime_delta: float = 1e-2
    """Σ δ of all rounds"""
    most_records_per_round: int = 20
    """m_C and m_O"""
    fewest_queries: int = 1
    """of a head list"""
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
