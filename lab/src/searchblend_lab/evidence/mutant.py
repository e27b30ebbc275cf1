"""What a planted fault is."""

from __future__ import annotations

from dataclasses import dataclass

from searchblend_lab.evidence.evidence import Check
from searchblend_lab.evidence.faults import Plant


@dataclass(frozen=True)
class Mutant:
    """A fault and the check that must see it."""

    name: str
    fault: str
    """which of the known kinds of fault it is"""
    plant: Plant
    check: Check
    seen_by: str
    cost: float = 2.0
    needs: str = ""
    quick: bool = False
