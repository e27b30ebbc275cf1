"""What was released from an input without a ledger, remembered in the folder in which the releases lie.

A reminder and not an account: it knows neither other folders nor a log that was moved, and of two releases at the very
same moment it may miss one. An input is known by where it lies, as a digest of its path. Neither its size nor a digest
of its content is kept: whoever knew all lines but one could test a guess of that one against them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from searchblend.accounting.spend import Spend, common_relation, decimal
from searchblend.core.errors import InvalidParameter
from searchblend.files.durable import write_whole
from searchblend.logs.formats.files import local_path

REMEMBERED: Final = ".searchblend-releases.jsonl"
"""Hidden, so that a folder of logs with a release beside them stays readable as one log."""


@dataclass(frozen=True)
class SpentSoFar:
    """All releases from one input that a folder remembers, by simple summing."""

    releases: int
    epsilon: float


def remember_release(output: Path, log: str | None, spend: Spend, *, created: str) -> SpentSoFar:
    """Add a release to the file beside its folder, and say what all of the same input cost together.

    ``output`` is the release's folder; ``log`` the file, glob or directory as it was given. ``None`` is
    standard input: all that came by it counts as one input, because nothing tells one from another.
    """
    file, input_ = output.resolve().parent / REMEMBERED, _digest(log)
    lines = file.read_bytes().splitlines() if file.exists() else []
    document = {"input": input_, "folder": output.resolve().name, "created": created, "spend": spend.as_json()}
    write_whole(file, b"".join(line + b"\n" for line in [*lines, json.dumps(document).encode()]))
    return _total([*_spends(lines, input_), spend])


def _digest(log: str | None) -> str:
    place = "" if log is None else str(local_path(log).resolve())
    return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()


def _spends(lines: Sequence[bytes], input_: str) -> Iterator[Spend]:
    """A line that is not ours says nothing, and stays where it is."""
    for line in lines:
        try:
            document = json.loads(line)
            if document["input"] == input_:
                yield Spend.of_json(document["spend"])
        except (ValueError, KeyError, TypeError, InvalidParameter):
            continue


def _total(spends: Sequence[Spend]) -> SpentSoFar:
    """Where both relations occur all are counted under replace-one: removing and adding is twice the ε."""
    relation = common_relation(spends)
    total = sum(decimal(spend.epsilon) * (1 if spend.neighbors is relation else 2) for spend in spends)
    return SpentSoFar(len(spends), float(total))
