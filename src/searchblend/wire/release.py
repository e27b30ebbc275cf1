"""A release as documents: the result with its two tables, and the privacy statement. One encoder and decoder each.

⋆ is null in JSON and an empty field in CSV, where the column ``kind`` tells it from an empty string.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from searchblend.blender.release import GroupSizes
from searchblend.blender.result import GroupShare, HeadSummary, Number, Result, ResultRow, StatedCheck
from searchblend.core.csv_cells import write_csv
from searchblend.core.documents import JsonObject
from searchblend.core.errors import InputError, MessageError
from searchblend.core.privacy import Condition, PublishedPromise, StatedGroup, StatedGuarantee
from searchblend.core.statement import FileEntry, Statement

NOT_FOR_RELEASE: Final = "NOT FOR RELEASE: exact counts of the input"
RESULT: Final = "result.json"
STATEMENT: Final = "statement.json"
_RESULT_FORMAT: Final = "searchblend-result"
_STATEMENT_FORMAT: Final = "searchblend-statement"
_MADE_BY: Final = {
    "blender": "searchblend run",
    "click-graph": "searchblend release run",
    "values": "searchblend select",
}
"""``release.kind`` of a statement → the command that makes such releases"""
_SOFTWARE: Final = ("searchblend", "numpy", "duckdb")
_CSV_COLUMNS: Final = (
    "probability",
    "low",
    "high",
    "variance",
    "raw_probability",
    "optin_probability",
    "optin_variance",
    "client_probability",
    "client_variance",
    "optin_weight",
)


def json_file(document: JsonObject) -> bytes:
    """A document as a file that people may open, too."""
    return (json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def result_files(result: Result) -> dict[str, bytes]:
    """``records.csv``, ``trends.csv`` and ``result.json``."""
    stamp = ("true_probability", "notice") if result.notice else ()
    influence = ("report_influence",) if result.has_influence else ()
    return {
        "records.csv": result_table(result.records, ("query", "url"), stamp, notice=result.notice).encode(),
        "trends.csv": result_table(result.trends, ("query",), (*stamp, *influence), notice=result.notice).encode(),
        RESULT: json_file(encode_result(result)),
    }


def encode_result(result: Result) -> JsonObject:
    """``result.json``"""
    groups = result.groups
    evaluated, influence = result.notice is not None, result.has_influence
    return {
        **({"notice": result.notice} if evaluated else {}),
        "format": _RESULT_FORMAT,
        "version": 1,
        "method": result.method,
        "guarantee": asdict(result.guarantee),
        "groups": {
            "optin_users": groups.optin_users,
            "head_users": groups.head_users,
            "estimate_users": groups.estimate_users,
            "clients": groups.clients,
        },
        "head": asdict(result.head),
        "parameters": dict(result.parameters),
        "mechanism": dict(result.mechanism),
        **({"group_check": asdict(result.group_check)} if result.group_check else {}),
        "records": [_encode_row(row, ("query", "url"), evaluated) for row in result.records],
        "trends": [_encode_row(row, ("query",), evaluated, influence) for row in result.trends],
        **({"metrics": dict(result.metrics)} if result.metrics is not None else {}),
    }


def _encode_row(row: ResultRow, names: Sequence[str], evaluated: bool, influence: bool = False) -> JsonObject:
    return {
        **{name: getattr(row, name) for name in names},
        "kind": row.kind,
        "probability": row.probability,
        "variance": row.variance,
        "interval": row.interval,
        "raw_probability": row.raw_probability,
        "optin": asdict(row.optin) if row.optin else None,
        "client": asdict(row.client) if row.client else None,
        "optin_weight": row.optin_weight,
        **({"true_probability": row.true_probability} if evaluated else {}),
        **({"report_influence": row.report_influence} if influence else {}),
    }


def result_table(
    rows: Iterable[ResultRow], names: Sequence[str], extra: Sequence[str] = (), *, notice: str | None = None
) -> str:
    """Rows as CSV; ``names`` are the leading columns, ``extra`` the last, ``notice`` the content of that column."""
    return write_csv([*names, "kind", *_CSV_COLUMNS, *extra], (_flat(row, notice) for row in rows))


def _flat(row: ResultRow, notice: str | None) -> dict[str, Any]:
    low, high = row.interval
    flat = {**vars(row), "low": low, "high": high, "notice": notice}
    for name, share in (("optin", row.optin), ("client", row.client)):
        flat[f"{name}_probability"] = share.probability if share else None
        flat[f"{name}_variance"] = share.variance if share else None
    return flat


def decode_result(content: bytes | JsonObject) -> Result:
    """The result of ``result.json``, or ``MessageError`` naming the field that is wrong."""
    document = _object(content, "result")
    number = document.get("version")
    if document.get("format") != _RESULT_FORMAT or number != 1 or isinstance(number, bool):  # True would pass for 1
        raise MessageError(f"result: expected {_RESULT_FORMAT} version 1")
    try:
        check = document.get("group_check")
        return Result(
            method=_string(document["method"], "method"),
            guarantee=_guarantee(document["guarantee"], "result: guarantee"),
            groups=GroupSizes(**document["groups"]),
            head=HeadSummary(**document["head"]),
            parameters=dict(document["parameters"]),
            mechanism=dict(document["mechanism"]),
            group_check=StatedCheck(**{**check, "flagged_queries": tuple(check["flagged_queries"])}) if check else None,
            records=tuple(_decode_rows(document["records"], "records")),
            trends=tuple(_decode_rows(document["trends"], "trends")),
            notice=document.get("notice"),
            metrics=document.get("metrics"),
            has_influence=any("report_influence" in row for row in document["trends"]),
        )
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise MessageError("result: expected the fields that a release has") from error


def _object(content: bytes | JsonObject, what: str) -> JsonObject:
    try:
        document = json.loads(content) if isinstance(content, bytes) else content
    except (ValueError, RecursionError) as error:
        raise MessageError(f"{what}: expected a JSON document") from error
    if not isinstance(document, dict):
        raise MessageError(f"{what}: expected a JSON object")
    return document


def _decode_rows(rows: Iterable[JsonObject], name: str) -> Iterator[ResultRow]:
    for place, row in enumerate(rows):
        where, query, url = f"{name}[{place}]", row["query"], row.get("url")
        named = isinstance(query, str) or (query is None and row["kind"] == "rest")
        if not named or not isinstance(url, str | None):
            raise MessageError(f"result: {where}: expected a string as query, and a string or null as url")
        yield ResultRow(
            query=query,
            url=url,
            kind=_string(row["kind"], f"{where}.kind"),
            probability=_number(row["probability"], f"{where}.probability"),
            variance=_number(row["variance"], f"{where}.variance"),
            interval=_interval(row["interval"], f"{where}.interval"),
            raw_probability=_number(row["raw_probability"], f"{where}.raw_probability"),
            optin=_share(row["optin"], f"{where}.optin"),
            client=_share(row["client"], f"{where}.client"),
            optin_weight=_number(row["optin_weight"], f"{where}.optin_weight"),
            true_probability=_number(row.get("true_probability"), f"{where}.true_probability"),
            report_influence=_number(row.get("report_influence"), f"{where}.report_influence"),
        )


def _share(share: JsonObject | None, where: str) -> GroupShare | None:
    if share is None:
        return None
    return GroupShare(
        _number(share["probability"], f"{where}.probability"),
        _number(share["variance"], f"{where}.variance"),
        _interval(share["interval"], f"{where}.interval"),
    )


def _interval(bounds: Sequence[object], where: str) -> tuple[Number, Number]:
    low, high = bounds
    return _number(low, f"{where}[0]"), _number(high, f"{where}[1]")


def _number(value: object, where: str) -> Number:
    return None if value is None else _finite(value, f"result: {where}")


def _finite(value: object, where: str) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number beyond every double
        pass
    raise MessageError(f"{where}: expected a finite number")


def _string(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise MessageError(f"result: {where}: expected a string")
    return value


def _guarantee(document: JsonObject, where: str) -> StatedGuarantee:
    return StatedGuarantee(
        epsilon=_finite(document["epsilon"], f"{where}.epsilon"),
        delta=_finite(document["delta"], f"{where}.delta"),
        holds=document["holds"] is True,
        unit=str(document["unit"]),
        neighbors=str(document["neighbors"]),
        groups=tuple(StatedGroup(**group) for group in document["groups"]),
        conditions=tuple(Condition(**condition) for condition in document["conditions"]),
        published=PublishedPromise(**published) if (published := document.get("published")) else None,
    )


def make_statement(
    files: Mapping[str, bytes],
    *,
    kind: str,
    method: str,
    created: str,
    parameters: JsonObject,
    guarantee: StatedGuarantee,
    public: Sequence[str],
    caveats: Sequence[str],
    notice: str | None = None,
) -> Statement:
    """The statement of a release that is made of these files by this software.

    ``kind`` is what was released; ``method`` how; ``created`` when, in ISO 8601; ``parameters`` what it takes to
    compute (ε, δ) again; ``public`` what was treated as public; ``caveats`` what is not promised; ``notice`` why it
    must not be released.
    """
    entries = {name: FileEntry.of(content) for name, content in files.items()}
    return Statement(
        kind, method, created, parameters, guarantee, tuple(public), tuple(caveats), _software(), entries, notice
    )


def _software() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _SOFTWARE:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def encode_statement(statement: Statement) -> JsonObject:
    """``statement.json``, in one schema for releases of every kind."""
    return {
        "format": _STATEMENT_FORMAT,
        "version": 1,
        **({"notice": statement.notice} if statement.notice else {}),
        "release": {
            "kind": statement.kind,
            "method": statement.method,
            "created": statement.created,
            "private": statement.private,
        },
        "parameters": dict(statement.parameters),
        "guarantee": asdict(statement.guarantee) if statement.guarantee else {},
        "public": list(statement.public),
        "caveats": list(statement.caveats),
        "software": dict(statement.software),
        "files": {name: {"sha256": entry.sha256, "bytes": entry.size} for name, entry in statement.files.items()},
    }


def read_result(path: Path, statement: Statement | None = None) -> Result:
    """The result in a file; with a statement, only the file that it describes."""
    content = _read(path)
    if statement is not None:
        entry = statement.files.get(path.name)
        if entry is None or not entry.sha256:
            raise InputError(path.with_name(STATEMENT), f"expected the SHA-256 of {path.name}", field="files")
        if FileEntry.of(content).sha256 != entry.sha256:
            raise InputError(path, f"is not the file that {STATEMENT} describes (SHA-256 differs)")
    try:
        return decode_result(content)
    except MessageError as error:
        raise InputError(path, str(error).removeprefix("result: ")) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def read_statement(path: Path, *, kind: str | None = None) -> Statement:
    """The statement of a release folder, of one ``kind`` if that is given."""
    if not path.exists():
        which = f" of kind {kind!r}" if kind else ""
        raise InputError(path, f"is missing; expected the folder of a release{which}")
    try:
        document = _object(_read(path), "statement")
    except MessageError as error:
        raise InputError(path, str(error).removeprefix("statement: ")) from error
    if document.get("format") != _STATEMENT_FORMAT:
        raise InputError(path, "expected a searchblend statement", field="format")
    release = document.get("release")
    if kind and (not isinstance(release, dict) or release.get("kind") != kind):
        found = release.get("kind") if isinstance(release, dict) else None
        raise InputError(path, _another_kind(kind, found), field="release.kind")
    if not isinstance(document.get("notice"), str | None):
        raise InputError(path, "expected a string", field="notice")
    if not isinstance(document.get("files", {}), dict):
        raise InputError(path, "expected an object with the SHA-256 of each file", field="files")
    try:
        return decode_statement(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(path, "expected the fields of a statement as searchblend writes them") from error


def _another_kind(expected: str, found: object) -> str:
    """Which command made it, and which ones read it."""
    known = found if isinstance(found, str) else ""
    if known not in _MADE_BY:
        return f"expected {expected!r}, found a kind of release that this version does not know"
    return (
        f"expected {expected!r}, which `{_MADE_BY[expected]}` makes, found {known!r} of `{_MADE_BY[known]}`; "
        "`searchblend page` and `searchblend release verify` read every kind"
    )


def decode_statement(document: JsonObject) -> Statement:
    """What a document states. What is missing of guarantee and hashes stays missing: a verifier says so."""
    release = document["release"]
    return Statement(
        kind=str(release["kind"]),
        method=str(release["method"]),
        created=str(release["created"]),
        parameters=document.get("parameters", {}),
        guarantee=_whole_guarantee(document.get("guarantee")),
        public=tuple(document.get("public", ())),
        caveats=tuple(document.get("caveats", ())),
        software=dict(document.get("software", {})),
        files={name: _file_entry(entry) for name, entry in document.get("files", {}).items()},
        notice=document.get("notice"),
    )


def _whole_guarantee(document: Any) -> StatedGuarantee | None:
    try:
        return _guarantee(document, "guarantee")
    except (KeyError, TypeError, MessageError):
        return None


def _file_entry(entry: Any) -> FileEntry:
    sha256, size = (entry.get("sha256"), entry.get("bytes")) if isinstance(entry, dict) else (None, None)
    return FileEntry(sha256 if isinstance(sha256, str) else "", size if isinstance(size, int) else 0)


QUOTED_LINE_FEEDS_CAVEAT: Final = (
    "The log was read with line feeds inside quotes. That no line changes how another person's is read then rests on "
    "the quotes of every line being well formed and on no record being longer than 1 MiB: one line with an open quote "
    "can swallow those that follow."
)


UNKNOWN_READING_CAVEAT: Final = (
    "How the log was read is not on record. That no line changes how another person's is read is promised of logs that "
    "searchblend read, without line feeds inside quotes."
)


USER_CAVEATS: Final = {
    "address": (
        "The log is one of a web server, and a user is a network address: people who share one are protected together, "
        "as one user; a person with several is protected once per address."
    ),
    "remote_user": (
        "The log is one of a web server, and a user is a name that was signed in with: requests without one are left "
        "out."
    ),
}
"""who is a user, by the field that says it"""


ROW_CAVEAT: Final = (
    "The input was a table of counts without users, and whoever released it declared a row to be the unit: each "
    "counted search is protected as if it were all that one person did. Nothing is promised to a person who made "
    "several."
)


DELTA_CAVEAT: Final = (
    "The log was a table of Delta Lake, whose library gives up a table for one string that is not UTF-8: that there is "
    "a release says that there was none."
)


_OF_IDS: Final = "The unit is one user id"


def all_caveats(usual: Iterable[str], log: JsonObject) -> list[str]:
    """The usual caveats of a kind of release, and those of its log. Where a row is the unit, no id is one."""
    of_rows = log.get("unit") == "row"
    return [*(one for one in usual if not (of_rows and one.startswith(_OF_IDS))), *log_caveats(log)]


def log_caveats(log: JsonObject) -> list[str]:
    """What the promise rests on, beside the mechanisms, by the way in which a log was read."""
    if "quoted_line_feeds" not in log:
        return [UNKNOWN_READING_CAVEAT]
    caveats = [QUOTED_LINE_FEEDS_CAVEAT] if log["quoted_line_feeds"] else []
    caveats += [ROW_CAVEAT] if log.get("unit") == "row" else []
    caveats += [DELTA_CAVEAT] if log.get("format") == "delta" else []
    return [*caveats, *(text for field, text in USER_CAVEATS.items() if log.get("user") == field)]


BLENDER_PUBLIC: Final = (
    "the sizes of both groups: neighbouring inputs differ in what one user searched, not in who takes part",
    "all parameters, the threshold and the report probabilities",
    "the head list: it is itself a private output and is sent to every device",
)
PAPER_CAVEAT: Final = (
    "Printed variances of opt-in trends, of ⟨⋆,⋆⟩ and of blends are too small; docs/explanation/method-paper.md "
    "has the measured coverage of their intervals."
)
SEVERAL_CELLS_CAVEAT: Final = (
    "Clients sent several cells each (m_C > 1). Printed variances take them for those of different people, which they "
    "are not: clients' and blended intervals are too narrow."
)
OUTSIDE_CAVEAT: Final = (
    "The method is code from outside of searchblend, which has checked neither its mechanisms nor its intervals: the "
    "conditions of the guarantee name who vouches for it."
)


def method_caveats(method: str, records_per_client: int) -> list[str]:
    """What a reader must know of a method's figures."""
    if method == "paper":
        return [PAPER_CAVEAT, *([SEVERAL_CELLS_CAVEAT] if records_per_client > 1 else [])]
    return [] if method == "best" else [OUTSIDE_CAVEAT]


BLENDER_CAVEATS: Final = (
    "The clients' records came from a log in the curator's hands: their protection is that of the released output. "
    "Only a collection from devices gives clients the local model, in which no one else sees a raw record.",
    "Participation is not hidden: a user without a usable record takes no part.",
    "The unit is one user id of the log; a person with two ids is protected once per id.",
    "Every further release about the same people adds to their ε and δ.",
)
