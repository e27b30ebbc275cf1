"""A release made once, whatever dies in between: debit, make, publish, and only then show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from searchblend.accounting.spend import Spend
from searchblend.core.errors import EmptyHeadList
from searchblend.store.ledger import Ledger

NOTHING_PASSED: Final = "empty-head-list.txt"
"""the file of a release that named nothing"""


def release_once(
    ledger: Ledger,
    make: Callable[[], Mapping[str, bytes]],
    *,
    release_id: str,
    population: str,
    window: str,
    spend: Spend,
) -> dict[str, bytes]:
    """The files of a release: those published under this id, or else those that ``make`` makes now.

    ``make`` draws the noise and shows nothing to anybody; it runs after the debit is on disk. It may run again after
    a crash, under the same debit, since nothing of the first time was seen. Show what is returned, not what ``make``
    made: of two runs of one id at once only the first to publish counts.

    That no record passed the threshold is an outcome like any other: it is published too, and a repetition raises
    it again and does not draw again. Other errors of ``make`` publish nothing, so they must not depend on noise.
    """
    ledger.debit(release_id, population, window, spend)
    files = ledger.published(release_id)
    if files is None:
        try:
            files = ledger.publish(release_id, make())
        except EmptyHeadList as error:
            files = ledger.publish(release_id, {NOTHING_PASSED: str(error).encode()})
    if NOTHING_PASSED in files:
        raise EmptyHeadList(files[NOTHING_PASSED].decode())
    return files
