"""The head-list message: what every device gets, and all it needs to make a report. Standard library only."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from searchblend.blender.best.subset_report import GAMMA_STEPS, MECHANISMS, ReportDesign
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget
from searchblend.core.records import HeadList
from searchblend.wire.optin_result import OptinResult, decode_optin_result, encode_optin_result

FORMAT: Final = "searchblend-headlist"
PROTOCOL_VERSION: Final = 1


@dataclass(frozen=True)
class HeadListMessage:
    """What a device learns from the message. ``design`` is set in method ``best``."""

    head: HeadList
    params: BlenderParams
    design: ReportDesign | None
    optin_result: OptinResult | None = None
    """the curator's word for the list; lists that no service published carry none, and devices refuse them"""


def encode_head_list(
    head: HeadList,
    params: BlenderParams,
    design: ReportDesign | None = None,
    *,
    optin_result: OptinResult | None = None,
) -> JsonObject:
    """A JSON document. Probabilities are not in it: a device computes its own from these public values.

    Args:
        head: the list
        params: ε and records of a client
        design: how clients report in method ``best``; None in method ``paper``
        optin_result: the curator's word for the list, without which a device of a service answers nothing

    Example:
        ``sb.encode_head_list(released.head, released.params, released.design)``
    """
    return {
        "format": FORMAT,
        "version": PROTOCOL_VERSION,
        "method": "best" if design else "paper",
        "epsilon": params.budget.epsilon,
        "delta": params.budget.delta,
        "query_budget_fraction": params.query_budget_fraction,
        "records_per_client": params.records_per_client,
        **({"design": asdict(design)} if design else {}),
        "digest": head.digest,
        "queries": head.as_json(),
        **({"optin_result": encode_optin_result(optin_result)} if optin_result else {}),
    }


def decode_head_list(document: Any) -> HeadListMessage:
    """The head list and the parameters of a report, or ``MessageError`` naming the field that is wrong.

    Args:
        document: as ``json.loads`` gives it

    Example:
        ``sb.decode_head_list(json.loads(text)).head``
    """
    if not isinstance(document, dict):
        raise MessageError("head list: expected a JSON object")
    for field, expected in (("format", (FORMAT,)), ("version", (PROTOCOL_VERSION,)), ("method", ("paper", "best"))):
        value = document.get(field)
        if value not in expected or isinstance(value, bool):  # True would pass for 1
            raise MessageError(f"head list: {field}: expected {' or '.join(map(repr, expected))}")
    if document.get("notice") is not None:
        raise MessageError("head list: notice: it comes from an evaluation and is not private")
    head = _decode_queries(document.get("queries"))
    if document.get("digest") != head.digest:
        raise MessageError("head list: digest: does not match the queries")
    design = _decode_design(document.get("design"), head) if document["method"] == "best" else None
    named = document.get("optin_result")
    optin_result = None if named is None else decode_optin_result(named)
    return HeadListMessage(head, _decode_params(document), design, optin_result)


def _decode_design(design: Any, head: HeadList) -> ReportDesign:
    limits = {"query_steps": (0, GAMMA_STEPS), "query_subset": (1, len(head)), "cell_subset": (1, head.n_cells - 1)}
    if not isinstance(design, dict) or set(design) != {*limits, "mechanism"}:
        raise MessageError(f"head list: design: expected an object with mechanism, {', '.join(limits)}")
    if design["mechanism"] not in MECHANISMS:
        raise MessageError(f"head list: design.mechanism: expected one of {', '.join(MECHANISMS)}")
    for field, (low, high) in limits.items():
        value = design[field]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise MessageError(f"head list: design.{field}: expected a whole number from {low} to {high}")
    try:
        return ReportDesign(**design)
    except InvalidParameter as error:
        raise MessageError(f"head list: design.{error}") from error


def _decode_queries(queries: Any) -> HeadList:
    if not isinstance(queries, list):
        raise MessageError("head list: queries: expected a list of [query, [url, …]] pairs")
    for position, pair in enumerate(queries):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], list)):
            raise MessageError(f"head list: queries[{position}]: expected [query, [url, …]]")
    return HeadList(queries)


def _decode_params(document: JsonObject) -> BlenderParams:
    numbers: dict[str, float] = {}
    for field in ("epsilon", "delta", "query_budget_fraction"):
        value = document.get(field)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise MessageError(f"head list: {field}: expected a number")
        numbers[field] = value
    records = document.get("records_per_client")
    if not isinstance(records, int) or isinstance(records, bool):
        raise MessageError("head list: records_per_client: expected a whole number")
    try:
        return BlenderParams(
            budget=Budget(numbers["epsilon"], numbers["delta"]),
            query_budget_fraction=numbers["query_budget_fraction"],
            records_per_client=records,
        )
    except InvalidParameter as error:
        raise MessageError(f"head list: {error}") from error
