"""How far both groups' figures may be used together: averaged over, not decided by a test.

Opt-in users may prefer some queries more than clients do (*tilt*: by a factor exp(N(0, τ²)), query by query), and
clients' figures may hold reports that no honest device sent. Neither is known. Every τ of a grid is weighed by a prior
and by how well it explains the gaps between the groups; a query that clients put higher than any tilt explains is
doubted, and what is published of it goes over to the opt-in users, whom no fabricated report can reach. Everything is
smooth in the reports, so no single one tips a verdict (``influence.py``). Derivations: proofs/estimates.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.estimates import Floats

TILTS: Final = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.45, 0.57, 0.72, 0.9, 1.2)
NO_TILT: Final = 0.25
"""prior probability that the groups search alike; else τ has a density of 1/(1 + (τ/TYPICAL)²)"""
TYPICAL: Final = 0.25
DOUBTED: Final = 0.006
"""prior probability that a query's figure from the clients cannot be explained by any tilt"""
ALARM_LEVEL: Final = 0.01
"""the chance of a false alarm in a whole release"""
_LOG_NORMAL: Final = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Gaps:
    """Both groups' shares of every query, each on its own."""

    optin: Floats
    client: Floats
    noise: Floats
    """variance of their difference that does not depend on the share: both groups' randomization"""
    sampling: Floats
    """variance per share: how many opt-in users there are, and how unlike each other"""

    def standardized(self, tilt: float) -> tuple[Floats, Floats]:
        """z and ln dz/dx: about standard normal if the groups differ by this tilt.

        At a share s the difference has variance V + a·s + τ²s². z integrates its inverse root from the opt-in users'
        share to the clients', so that it is 1 all the way: a count that came out low is not taken for a certain one.
        """
        at = np.maximum(self.client, 0.0)
        slope = -0.5 * np.log(self.noise + self.sampling * at + (tilt * at) ** 2)
        return self._stretched(self.client, tilt) - self._stretched(self.optin, tilt), slope

    def _stretched(self, share: Floats, tilt: float) -> Floats:
        """∫ ds/√(V + a·s + τ²s²) from 0 to the share; below 0 the variance is V."""
        at, root = np.maximum(share, 0.0), np.sqrt(self.noise)
        spread = np.sqrt(self.noise + self.sampling * at + (tilt * at) ** 2)
        if tilt:
            first = self.sampling + 2 * tilt * root
            rise = 2 * tilt**2 * at + 2 * tilt * (spread - root)
            above = np.log1p(rise / first) / tilt
        else:
            above = 2 * at / (spread + root)
        stretched: Floats = above + np.minimum(share, 0.0) / root
        return stretched


def prior() -> Floats:
    """Of the tilts: the density times the width of grid that each stands for, and what 0 has of its own."""
    tilts = np.array(TILTS)
    edges = np.concatenate([tilts[:1], (tilts[1:] + tilts[:-1]) / 2, tilts[-1:]])
    weights = np.diff(edges) / (1 + (tilts / TYPICAL) ** 2)
    weights *= (1 - NO_TILT) / weights.sum()
    weights[0] += NO_TILT
    return weights


def _wide(z: Floats) -> Floats:
    """ln of DOUBTED times the density 2/π·z²/(1 + z²)²: nothing where the groups agree, and it explains any gap."""
    square = np.maximum(z**2, 1e-200)
    result: Floats = math.log(DOUBTED * 2 / math.pi) + np.log(square) - 2 * np.log1p(square)
    return result


def log_likelihood(z: Floats) -> Floats:
    """ln of the density of z: normal, or with probability DOUBTED so wide that it explains anything."""
    likelihood: Floats = np.logaddexp(math.log1p(-DOUBTED) - _LOG_NORMAL - z**2 / 2, _wide(z))
    return likelihood


def doubt(z: Floats) -> Floats:
    """The probability that a gap of z comes from the wide part, where clients put the query higher; else 0.

    Fabricated reports can only promote a query. Where clients put it lower, the opt-in users are the odd ones.
    """
    result: Floats = np.where(z > 0, np.exp(_wide(z) - log_likelihood(z)), 0.0)
    return result


@dataclass(frozen=True)
class Trust:
    """What the gaps say."""

    weights: Floats
    """posterior of every tilt"""
    doubts: Floats
    """tilts × queries: how likely the clients' figure is not to be explained by that tilt"""
    tails: Floats
    """by query: the chance that the clients' figure lies so far above the opt-in users', over all tilts"""

    @property
    def divergence(self) -> float:
        """The posterior mean of τ."""
        return float(self.weights @ np.array(TILTS))

    def alarms(self, testable: NDArray[np.bool_]) -> tuple[int, ...]:
        """Queries that the clients put higher than any tilt explains, at ALARM_LEVEL for all together (Bonferroni).

        Higher only: fabricated reports promote, and a count that was listed for being large makes honest ones lower.
        """
        tested = np.flatnonzero(testable)
        return tuple(tested[self.tails[tested] * len(tested) < ALARM_LEVEL].tolist())


def trust(gaps: Gaps, testable: NDArray[np.bool_]) -> Trust:
    """The posterior of the tilt from the testable queries, and every query's doubt at each tilt."""
    logs = np.log(prior())
    doubts, tails = np.empty((2, len(TILTS), len(gaps.optin)))
    for number, tilt in enumerate(TILTS):
        z, slope = gaps.standardized(tilt)
        logs[number] += float((log_likelihood(z) + slope)[testable].sum())
        doubts[number] = doubt(z)
        tails[number] = [0.5 * math.erfc(value / math.sqrt(2)) for value in z.tolist()]
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return Trust(weights, doubts, weights @ tails)
