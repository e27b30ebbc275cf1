"""Checks a release without the log: hashes, and (ε, δ) computed again from the statement where its kind allows it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.blender.best.many_records_design import ManyRecordsDesign, design_of
from searchblend.blender.best.stability_histogram import CuratorDesign
from searchblend.blender.guarantees import best_guarantee, paper_guarantee, selection_guarantee
from searchblend.blender.method import METHODS
from searchblend.clickgraph.release.attribute_counts import attribute_columns, by_name, kinds_of, no_counts
from searchblend.clickgraph.release.design import ClickGraphDesign
from searchblend.clickgraph.use.graph import ClickGraph
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InvalidParameter, MessageError
from searchblend.core.outlet import Where
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import ROW_UNIT, UNIT, Budget, Guarantee, Neighbors, StatedGuarantee, TrustModel
from searchblend.core.randomness import SystemRandomness
from searchblend.core.records import Record
from searchblend.core.silent import SILENT
from searchblend.core.statement import Statement
from searchblend.logs.formats.layout import ROW
from searchblend.mechanisms.value_selection import SelectionDesign
from searchblend.releases.saved_release import SavedRelease, folder_and_statement
from searchblend.wire.click_graph import STATEMENT_KIND, decode_noise
from searchblend.wire.click_graph_files import read_attribute_tables, read_click_graph
from searchblend.wire.click_graph_statement import params_of_statement
from searchblend.wire.release import STATEMENT
from searchblend.wire.values import VALUES_KIND

CANNOT_PROVE: Final = (
    "that the noise was drawn, from a secret source, and only once",
    "that each user's activity was limited as stated, and that user ids are one to a person",
    "that what is stated to be public came from outside the log",
    "that the parameters were chosen without looking at the log",
    "what other releases about the same people have cost",
)
_CLOSE: Final = 1e-9
_CLOSE_FIGURES: Final = 1e-6


@dataclass(frozen=True)
class Check:
    """One thing that was checked, and whether it holds."""

    name: str
    holds: bool
    detail: str


def verify_release(where: Where, *, on_step: Callable[[str], None] = SILENT) -> list[Check]:
    """Every check that the folder allows; a folder that is not a release is an ``InputError``.

    Args:
        where: the folder of a release of any kind; of a blend the hashes and the stated promise are checked
        on_step: called with the name of each step

    Example:
        ``all(check.holds for check in sb.verify_release("release"))``
    """
    folder, statement = folder_and_statement(where)
    on_step("hashes")
    checks = list(_files(folder, statement))
    on_step("budget")
    checks += {STATEMENT_KIND: budget_checks, VALUES_KIND: _selection}.get(statement.kind, _promise)(statement)
    if statement.kind == STATEMENT_KIND and all(check.holds for check in checks):
        graph = read_click_graph(folder, on_step=on_step)
        checks += _tables(graph, statement)
        checks += _by_attribute(read_attribute_tables(folder, statement), graph, statement)
    return checks


def _files(folder: Path, statement: Statement) -> Iterator[Check]:
    stated = statement.files
    for name, entry in sorted(stated.items()):
        path = folder / name
        if Path(name).name != name or not path.is_file():
            yield Check(f"file {name}", False, "is missing")
            continue
        with path.open("rb") as file:
            same = hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256
        yield Check(f"file {name}", same, f"SHA-256 {'as stated' if same else 'differs from the statement'}")
    extra = sorted(path.name for path in folder.iterdir() if path.name not in {*stated, STATEMENT})
    yield Check("no other files", not extra, f"not in the statement: {', '.join(extra)}" if extra else "all are listed")


def _promise(statement: Statement) -> Iterator[Check]:
    """What is promised is what the parameters say, and its conditions are stated to hold."""
    parameters, guarantee = statement.parameters, statement.guarantee
    if statement.notice is not None:
        yield Check("private", False, "the statement says that this is not private")
    try:
        budget = Budget(parameters["epsilon"], parameters["delta"])
    except (KeyError, TypeError, InvalidParameter):
        yield Check("parameters", False, "parameters: expected ε and δ")
        return
    promised = (guarantee.epsilon, guarantee.delta) if guarantee else (None, None)
    yield Check(
        "promise",
        promised == (budget.epsilon, budget.delta),
        f"the guarantee states the ε = {budget.epsilon:g} and δ = {budget.delta:g} of the parameters",
    )
    yield Check(
        "conditions",
        guarantee is not None and guarantee.holds,
        "all conditions of the guarantee are stated to hold",
    )


def _selection(statement: Statement) -> Iterator[Check]:
    """Noise and threshold of a selection follow from the parameters and the neighbouring relation alone."""
    checks = list(_promise(statement))
    yield from checks
    if any(check.name == "parameters" for check in checks):
        return
    try:
        design = _selection_design(statement)
    except InvalidParameter as error:
        yield Check("parameters", False, str(error))
        return
    detail = f"noise and threshold need δ = {design.delta:.3g} at ε = {design.budget.epsilon:g}"
    yield Check("δ computed again", design.delta <= design.budget.delta, detail)
    same = (statement.parameters.get("integer_threshold"), statement.method) == (design.integer, design.method)
    detail = "as stated" if same else "differs from the one that the parameters give"
    yield Check("threshold", same, detail)


def _selection_design(statement: Statement) -> SelectionDesign:
    """As the parameters give it; statements of earlier versions name no number of values, which was one."""
    parameters, guarantee = statement.parameters, statement.guarantee
    try:
        neighbors = Neighbors.REPLACE_ONE if guarantee is None else Neighbors(guarantee.neighbors)
    except ValueError:
        raise InvalidParameter("neighbors", "expected a relation of this version") from None
    budget, most = Budget(parameters["epsilon"], parameters["delta"]), parameters.get("values_per_user", 1)
    return SelectionDesign.of(budget, neighbors, values_per_user=most)


def budget_checks(statement: Statement) -> Iterator[Check]:
    """The design follows from the parameters alone, so it can be computed again and compared."""
    parameters = statement.parameters
    try:
        design = ClickGraphDesign.of(params_of_statement(parameters))
        noise, _ = decode_noise(parameters)
    except (MessageError, InvalidParameter) as error:
        yield Check("parameters", False, str(error))
        return
    yield from _promise(statement)
    budget = design.params.budget
    yield Check(
        "δ computed again",
        design.delta <= budget.delta,
        f"these noises, caps and thresholds need δ = {design.delta:.3g} at ε = {budget.epsilon:g}",
    )
    same = _same(parameters.get("design"), json.loads(json.dumps(design.as_json())))
    yield Check("noise and thresholds", same, "as stated" if same else "differ from those that the parameters give")
    law = design.query_counts.law
    same = noise.get("queries") == law
    yield Check("noise of the tables", same, f"{law.law} of scale {law.scale:.4g} on query counts")


def _same(stated: Any, computed: Any, *, within: float = _CLOSE) -> bool:
    """Equal documents, numbers up to rounding."""
    if isinstance(computed, Mapping):
        return (
            isinstance(stated, Mapping)
            and stated.keys() == computed.keys()
            and all(_same(stated[key], value, within=within) for key, value in computed.items())
        )
    if isinstance(computed, list):
        pairs = (
            zip(stated, computed, strict=True) if isinstance(stated, list) and len(stated) == len(computed) else None
        )
        return pairs is not None and all(_same(left, right, within=within) for left, right in pairs)
    if isinstance(computed, float) and isinstance(stated, int | float):
        return math.isclose(stated, computed, rel_tol=within)
    return bool(stated == computed)


def _tables(graph: ClickGraph, statement: Statement) -> Iterator[Check]:
    """What noisy values with a threshold can look like."""
    design = ClickGraphDesign.of(params_of_statement(statement.parameters))
    if design.reuses_noise:
        least = design.rounds[-1].threshold or 0
        below, known = int((graph.searches.count < least).sum()), _known(statement)
        again = f"all but those of {known} known queries are at least {least}" if known else f"all are at least {least}"
        yield Check("query counts", below <= known, again if below <= known else f"{below} are below {least}")
    step = design.click_counts
    if step and step.threshold is not None:
        below = int((graph.clicks.counts.count < step.threshold).sum())
        detail = f"all are at least {step.threshold}" if not below else f"{below} are below {step.threshold}"
        yield Check("click counts", not below, detail)


def _known(statement: Statement) -> int:
    """How many queries were public already and have no threshold; only releases of an account's windows have any."""
    parameters = statement.parameters
    log = parameters.get("log")
    known = log.get("known_queries") if isinstance(log, Mapping) and parameters.get("per", "none") != "none" else 0
    return known if isinstance(known, int) else 0


def _by_attribute(
    tables: Mapping[str, Mapping[str, NDArray[Any]]], graph: ClickGraph, statement: Statement
) -> Iterator[Check]:
    """Which rows there are follows from the published names and the declaration, and each interval from the noise."""
    params = params_of_statement(statement.parameters)
    design = ClickGraphDesign.of(params)
    queries = sorted(graph.queries, key=str.encode)
    edges = zip(graph.clicks.source.tolist(), graph.clicks.target.tolist(), strict=True)
    pairs = sorted((Record(graph.queries[source], graph.urls[target]) for source, target in edges), key=by_name)
    nothing = [no_counts(table, step, queries, pairs) for table, step in design.attribute_steps]
    for of, attributes in kinds_of(params).items():
        columns = tables[f"{of}_by_attribute"]
        expected = attribute_columns(nothing, of, attributes)
        keys = [name for name in expected if name not in ("count", "count_clamped", "lo95", "hi95")]
        same = all(columns[name].tolist() == expected[name] for name in keys)
        detail = "each published name with each declared value" if same else "not those of the declaration"
        yield Check(f"rows of {of} by attribute", same, detail)
        if same:
            count, half = columns["count"], np.array(expected["hi95"], dtype=np.int64)
            right = np.array_equal(columns["lo95"], count - half) and np.array_equal(columns["hi95"], count + half)
            detail = "as wide as the noise" if right else "not those of the noise"
            yield Check(f"intervals of {of} by attribute", right, detail)


def check_promise(release: SavedRelease) -> None:
    """``MessageError`` unless the stated guarantee is what the stated parameters give.

    Papers state no figure that a file merely claims.
    """
    try:
        _check(release)
    except (KeyError, TypeError, ValueError, InvalidParameter) as error:
        raise MessageError("parameters: expected those of a release, as searchblend writes them") from error


def _check(release: SavedRelease) -> None:
    statement, stated = release.statement, release.guarantee
    if statement.kind == STATEMENT_KIND:
        if failed := [check.name for check in budget_checks(statement) if not check.holds]:
            raise MessageError(f"guarantee: does not follow from the parameters: {', '.join(failed)}")
        return
    if statement.kind != VALUES_KIND and release.result().guarantee != stated:
        raise MessageError("guarantee: differs from that of result.json")
    if statement.kind != VALUES_KIND and statement.method not in METHODS:
        raise MessageError("guarantee: that of a method from outside, which cannot be computed again")
    unit = _unit(statement.parameters)
    if not any(_same_promise(stated, replace(promise, unit=unit).stated()) for promise in _promises(release)):
        raise MessageError("guarantee: is not the one that the parameters give")


def _promises(release: SavedRelease) -> Iterator[Guarantee]:
    """What the parameters give; a statement does not say whether its list was wide, so either may be meant."""
    parameters = release.statement.parameters
    if release.statement.kind == VALUES_KIND:
        design = _selection_design(release.statement)
        if parameters["integer_threshold"] == design.integer:
            yield selection_guarantee(design, SystemRandomness())
        return
    params, trust = _params(parameters), TrustModel(release.guarantee.groups[-1].trust)
    if release.statement.method == "paper":
        yield paper_guarantee(params, trust, cryptographic=True)
    elif release.statement.method == "best":
        optin = release.result().mechanism["optin"]
        for curator in _curators(params):
            if _same(optin, curator.figures, within=_CLOSE_FIGURES):
                yield best_guarantee(params, curator, trust, cryptographic=True)


def _unit(parameters: JsonObject) -> str:
    """Whom a promise is to, by how the log or the table was read."""
    read = parameters.get("log") or parameters.get("table") or {}
    return ROW_UNIT if read.get("unit") == ROW else UNIT


def _curators(params: BlenderParams) -> list[CuratorDesign | ManyRecordsDesign]:
    if params.counted_records_per_optin > 1:
        return [design_of(params)]
    return [CuratorDesign.of(params.budget, wide=wide) for wide in (False, True)]


def _params(parameters: JsonObject) -> BlenderParams:
    known = {name: parameters[name] for name in BlenderParams.__dataclass_fields__ if name in parameters}
    return BlenderParams(Budget(parameters["epsilon"], parameters["delta"]), **{"records_per_optin": 1, **known})


def _same_promise(stated: StatedGuarantee, computed: StatedGuarantee) -> bool:
    """Equal promises, numbers up to rounding. Whether a source was cryptographic is the one thing to be believed."""
    numbers = [
        (one.mechanism_delta, other.mechanism_delta) for one, other in zip(stated.groups, computed.groups, strict=False)
    ]
    return _without_numbers(stated) == _without_numbers(computed) and all(
        math.isclose(one, other, rel_tol=_CLOSE_FIGURES, abs_tol=1e-300) for one, other in numbers
    )


def _without_numbers(promise: StatedGuarantee) -> StatedGuarantee:
    """Without what may differ in a last digit, and the bound for published files, which no parameters give."""
    return replace(
        promise,
        groups=tuple(replace(group, mechanism_delta=0.0) for group in promise.groups),
        conditions=tuple(replace(condition, detail="") for condition in promise.conditions),
        published=None,
    )
