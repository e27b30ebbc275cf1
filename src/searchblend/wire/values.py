"""A selection of values as files: the table, and the statement of the release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from searchblend.core.csv_cells import write_csv
from searchblend.core.documents import JsonObject
from searchblend.core.privacy import Guarantee, Neighbors
from searchblend.mechanisms.value_selection import SelectionDesign
from searchblend.wire.release import STATEMENT, all_caveats, encode_statement, json_file, make_statement

VALUES_KIND: Final = "values"
"""``release.kind`` of the statement"""
VALUES: Final = "values.csv"
_PUBLIC: Final = "all parameters and the threshold"
_PUBLIC_SIZE: Final = "the number of users: neighbouring inputs differ in what one user holds, not in who takes part"
_CAVEATS: Final = (
    "The curator held the raw table: only what is released is private.",
    "The unit is one user id; a person with two ids is protected once per id.",
    "Every further release about the same people adds to their ε and δ.",
)


def encode_values(
    counts: Mapping[str, int],
    guarantee: Guarantee,
    *,
    design: SelectionDesign,
    created: str,
    table: JsonObject | None = None,
) -> dict[str, bytes]:
    """``values.csv``, the largest count first, and ``statement.json``.

    ``created`` is when, in ISO 8601; ``table`` how the table was read, where that is known.
    """
    rows = ({"value": value, "count": n} for value, n in counts.items())
    files = {VALUES: write_csv(("value", "count"), rows).encode()}
    parameters: JsonObject = {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "integer_threshold": design.integer,
        "values_per_user": design.values_per_user,
        **({} if table is None else {"table": dict(table)}),
    }
    statement = make_statement(
        files,
        kind=VALUES_KIND,
        method=design.method,
        created=created,
        parameters=parameters,
        guarantee=guarantee.stated(),
        public=(_PUBLIC_SIZE, _PUBLIC) if design.neighbors is Neighbors.REPLACE_ONE else (_PUBLIC,),
        caveats=[f"What was counted: {design.contribution}.", *all_caveats(_CAVEATS, table or {})],
    )
    return {**files, STATEMENT: json_file(encode_statement(statement))}
