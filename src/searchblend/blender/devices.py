"""Who plays the clients' devices when a whole run happens in one process.

The algorithms need the *counted* reports and nothing else. ``EachDevice`` lets every client report alone, bit for
bit as a device would; an evaluation may count reports in another way with the same law (proofs/counted_people.md).
"""

from __future__ import annotations

from typing import Final, Protocol

from searchblend.blender.best.subset_report import ReportDesign
from searchblend.blender.best.subset_report_bulk import ReportCounts, simulate_subset_reports
from searchblend.blender.paper.local_report_bulk import BulkReporter
from searchblend.blender.paper.report_probabilities import ReportProbabilities
from searchblend.core.params import BlenderParams
from searchblend.core.randomness import Randomness
from searchblend.core.records import HeadList
from searchblend.mechanisms.tally import Ints


class Devices(Protocol):
    """From how many clients hold each cell to how often each thing is reported."""

    def cells_reported(
        self, held: Ints, head: HeadList, probabilities: ReportProbabilities, randomness: Randomness
    ) -> Ints:
        """Reports of method ``paper``: how often each cell is sent."""
        ...

    def sets_reported(
        self, held: Ints, head: HeadList, design: ReportDesign, params: BlenderParams, randomness: Randomness
    ) -> ReportCounts:
        """Reports of method ``best`` under a design."""
        ...


class EachDevice:
    """Every client reports, one by one (in chunks): what a release uses."""

    def __repr__(self) -> str:
        return "EACH_DEVICE"

    def cells_reported(
        self, held: Ints, head: HeadList, probabilities: ReportProbabilities, randomness: Randomness
    ) -> Ints:
        return BulkReporter(probabilities).report_counts(held, randomness)

    def sets_reported(
        self, held: Ints, head: HeadList, design: ReportDesign, params: BlenderParams, randomness: Randomness
    ) -> ReportCounts:
        return simulate_subset_reports(held, head, design, params, randomness=randomness)


EACH_DEVICE: Final = EachDevice()
