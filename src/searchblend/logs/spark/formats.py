"""JSON lines and Yandex sessions in Spark; delimited lines and Parquet are in ``spark_scan``."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from searchblend.logs.formats.gate import SEPARATOR
from searchblend.logs.formats.layout import JsonLines
from searchblend.logs.formats.yandex import MOST_FIELDS
from searchblend.logs.spark.scan import CARRIED, Lines, clean_rows
from searchblend.logs.summary import BAD_LINE, CLICK_WITHOUT_QUERY, TOO_MANY_FIELDS

SILENT: Final = "silent"
"""A good line that is no record by itself: a session's user, a query that was clicked."""
NOT_CLICKED: Final = "not_clicked"
"""A query without a click: a line without URL, whether its session has a user or not."""

_JSON_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "allowSingleQuotes": "false",
    "allowNumericLeadingZeros": "false",
    "allowComments": "false",
}
_END: Final = "\x1fend"
_SURROGATE: Final = r"\\u[dD][89a-fA-F]"
_SCIENTIFIC: Final = r"\A-?[0-9]\.[0-9]+E[0-9]+\z"
_LARGEST: Final = str(2**64 - 1)


def json_lines(layout: JsonLines, rows: DataFrame) -> Lines:
    """The members of every line's object; a member that is itself an object or a list makes the line unusable.

    Spark's parser stops at the end of the first value. So the line is parsed as the first of two elements of a list:
    if the second, ours, is not found there, something else followed.
    """
    fields = [*(f"`{_ticked(key)}` string" for key in layout.keys.values()), f"`{_END}` int"]
    pair = F.concat(F.lit("["), F.col("line"), F.lit(',{"\\u001fend":1}]'))
    parsed = F.from_json(pair, f"array<struct<{','.join(dict.fromkeys(fields))}>>", _JSON_OPTIONS)
    rows = clean_rows(rows, header=False).withColumn("parsed", parsed)
    first, last = F.get("parsed", F.lit(0)), F.get("parsed", F.lit(1))
    good = (F.size("parsed") == 2) & first.isNotNull() & (last.getField(_END) == 1)
    good &= F.when(F.col("line").rlike(_SURROGATE), F.try_parse_json("line").isNotNull()).otherwise(True)
    for key in layout.keys.values():
        good &= ~_is_nested(F.col("line"), first.getField(key), key)
    broken = F.when(F.col("line").contains(SEPARATOR), TOO_MANY_FIELDS).when(~F.coalesce(good, F.lit(False)), BAD_LINE)
    texts = [
        F.coalesce(_number(F.col("line"), first.getField(key)), F.lit("")).alias(role)
        for role, key in layout.keys.items()
    ]
    return Lines(rows.select(*CARRIED, F.coalesce("in_bytes", broken).alias("broken"), *texts), frozenset(layout.keys))


def _is_nested(line: Column, text: Column, key: str) -> Column:
    """A text may look like an object or a list too, so the parser's own type decides."""
    quoted_key = key.replace("\\", "\\\\").replace('"', '\\"')
    member = F.try_variant_get(F.try_parse_json(line), f'$["{quoted_key}"]', "variant")
    nested = F.coalesce(F.schema_of_variant(member).rlike(r"\A(?:OBJECT|ARRAY)"), F.lit(True))
    return F.coalesce(F.when(text.startswith("{") | text.startswith("["), nested), F.lit(False))


def _number(line: Column, text: Column) -> Column:
    """Java writes 1141818883.5 as 1.1418188835E9, other engines do not; a text in quotes stays."""
    in_quotes = line.contains(F.concat(F.lit('"'), text, F.lit('"')))
    digits = F.regexp_replace(F.rtrim(text.try_cast("decimal(38,12)").cast("string"), F.lit("0")), r"\.\z", ".0")
    return F.when(text.rlike(_SCIENTIFIC) & ~in_quotes, F.coalesce(digits, text)).otherwise(text)


def _ticked(name: str) -> str:
    return name.replace("`", "``")


def session_lines(rows: DataFrame, *, searches: bool) -> Lines:
    """The clicks of every session, each with its query and its user; who clicked is said by the session.

    With ``searches`` a line is at the time of its query, and its rank is the time of the click.
    """
    rows = clean_rows(rows, header=False).select(*CARRIED, "in_bytes", F.split("line", "\t", -1).alias("f"))
    n = F.size("f")
    kind = (
        F.when((n == 4) & (_field(1) == "M"), "M")
        .when((n >= 6) & _field(2).isin("Q", "T"), "Q")
        .when((n == 5) & (_field(2) == "C"), "C")
    )
    rows = rows.select(
        *CARRIED, "in_bytes", F.when(n > MOST_FIELDS, TOO_MANY_FIELDS).alias("too_many"), kind.alias("k"), "f"
    )
    is_session = F.col("k") == "M"
    rows = rows.select(
        *CARRIED,
        "in_bytes",
        "too_many",
        "k",
        _id(_field(0)).alias("session"),
        _id(F.when(is_session, _field(2)).otherwise(_field(1))).alias("moment"),
        _id(F.when(~is_session, _field(3))).alias("page"),
        _id(F.when(is_session, _field(3)).otherwise(_field(4))).alias("id"),
    )
    complete = F.col("session").isNotNull() & F.col("moment").isNotNull() & F.col("id").isNotNull()
    complete &= is_session | F.col("page").isNotNull()
    bad = F.when(~F.coalesce(complete, F.lit(False)), BAD_LINE)
    return _joined(rows.withColumn("broken", F.coalesce("in_bytes", "too_many", bad)), searches=searches)


def _joined(rows: DataFrame, *, searches: bool) -> Lines:
    """A click has the user of its session, and the latest query with its session and page."""
    good = F.col("broken").isNull()
    by_session = rows.where(good & F.col("session").isNotNull()).repartition("session")
    users = (
        by_session.where(F.col("k") == "M")
        .groupBy("session")
        .agg(F.min("id").alias("user"), F.min("moment").alias("day"))
    )
    pages = (
        by_session.where(F.col("k") != "M")
        .groupBy("session", "page")
        .agg(
            F.max_by("id", F.when(F.col("k") == "Q", F.struct("moment", "id"))).alias("page_query"),
            F.max(F.when(F.col("k") == "Q", F.col("moment"))).alias("page_moment"),
            F.bool_or(F.col("k") == "C").alias("is_clicked"),
        )
    )
    found = rows.join(users, "session", "left").join(pages, ["session", "page"], "left")
    kind = F.col("k")
    state = (
        F.when(kind == "M", SILENT)
        .when((kind == "Q") & F.col("is_clicked"), SILENT)
        .when(kind == "Q", NOT_CLICKED)
        .when(F.col("page_query").isNull(), CLICK_WITHOUT_QUERY)
    )
    is_click = kind == "C"
    moment = F.when(is_click, F.col("page_moment")).otherwise(F.col("moment")) if searches else F.col("moment")
    texts = {
        "user": F.col("user"),
        "query": F.when(is_click, F.col("page_query")).otherwise(F.col("id")),
        "url": F.when(is_click, F.col("id")),
        "time": F.concat_ws(" ", _padded(F.col("day"), 5), _padded(F.col("session"), 20), _padded(moment, 20)),
        "rank": F.when(is_click & F.lit(searches), F.col("moment")),
    }
    return Lines(
        found.select(
            *CARRIED,
            F.coalesce("broken", state).alias("broken"),
            *(F.coalesce(text.cast("string"), F.lit("")).alias(role) for role, text in texts.items()),
        ),
        frozenset(texts),
    )


def _field(position: int) -> Column:
    return F.get("f", F.lit(position))


def _id(text: Column) -> Column:
    """A whole number below 2^64, or NULL."""
    number = F.when(text.rlike(r"\A[0-9]{1,38}\z"), text.cast("decimal(38,0)"))
    return F.when(number <= F.lit(_LARGEST).cast("decimal(38,0)"), number)


def _padded(number: Column, digits: int) -> Column:
    text = number.cast("string")
    return F.when(F.length(text) < digits, F.lpad(text, digits, "0")).otherwise(text)
