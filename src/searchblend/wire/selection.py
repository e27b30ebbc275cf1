"""A selection of values as documents: ``selection.json`` with its table ``values.csv``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from searchblend.core.csv_cells import write_csv
from searchblend.core.documents import Between, decode, encode
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.privacy import StatedGuarantee
from searchblend.wire.release import json_file, json_object

SELECTION: Final = "selection.json"
STATEMENT_KIND: Final = "selection"
SELECTION_PUBLIC: Final = (
    "the number of users: neighbouring tables differ in what one user has, not in who takes part",
    "all parameters and the threshold",
)
SELECTION_CAVEATS: Final = (
    "One value of each user counts, drawn among their different ones; values are published as they are written.",
    "Participation is not hidden: a user without a value takes no part.",
    "The unit is one user id of the table; a person with two ids is protected once per id.",
    "Every further release about the same people adds to their ε and δ.",
)


@dataclass(frozen=True)
class SelectedValue:
    value: str
    count: int
    """users who drew it, with noise"""


@dataclass(frozen=True)
class Selection:
    """Which values many users have, and the promise under which they are named."""

    guarantee: StatedGuarantee
    threshold: int
    """no count is below it"""
    values: Sequence[SelectedValue]
    """the largest count first"""
    format: Literal["searchblend-selection"] = "searchblend-selection"
    version: Annotated[int, Between(1, 1)] = 1


def selection_files(selection: Selection) -> dict[str, bytes]:
    """``values.csv`` and ``selection.json``."""
    rows = (encode(each) for each in selection.values)
    return {
        "values.csv": write_csv(["value", "count"], rows).encode(),
        SELECTION: json_file(encode(selection)),
    }


def decode_selection(content: bytes) -> Selection:
    """The selection of ``selection.json``, or ``MessageError`` naming the field that is wrong."""
    try:
        return decode(Selection, json_object(content, "selection"))
    except InvalidParameter as error:
        raise MessageError(f"selection: {error}") from error
