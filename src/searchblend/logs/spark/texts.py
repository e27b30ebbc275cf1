"""Texts in Spark: which are usable, their normal form, and the numbers that decide draws, as column expressions.

``searchblend.core.normalization`` is the rule, ``normal_forms`` its shortcuts in DuckDB; here are those of Spark.
A text that no shortcut covers is *hard* and goes through the Python function on the driver, each distinct one once. No
Python runs on the executors.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from searchblend.logs.duckdb import normal_forms
from searchblend.logs.duckdb.normal_forms import MAX_TEXT
from searchblend.logs.spark.session import SparkRunner

SURE_RANGES: Final = (
    (0x21, 0x7E),
    (0xA1, 0x24F),  # Latin
    (0x300, 0x36F),  # combining marks
    (0x3A3, 0x481),  # Greek (from Σ), Cyrillic
    (0x48A, 0x52F),
    (0x5D0, 0x5EA),  # Hebrew
    (0x620, 0x66F),  # Arabic
    (0x900, 0x97F),  # Devanagari
    (0xE01, 0xE3A),  # Thai
    (0xE3F, 0xE5B),
    (0x2010, 0x2027),  # dashes and quotation marks
    (0x20A0, 0x20BF),  # currencies
    (0x3041, 0x3096),  # Hiragana
    (0x30A0, 0x30FF),  # Katakana
    (0x4E00, 0x9FFC),  # Chinese characters
    (0xAC00, 0xD7A3),  # Hangul
    (0x1F300, 0x1F64F),  # pictures
)
"""Code points that a text may begin with and consist of, and be usable for certain."""

_SURE: Final = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in SURE_RANGES)
_SURE_TEXT: Final = rf"\A[{_SURE}][{_SURE}\t-\r ]*+\z"
_BLANK: Final = r"\A[\t-\r ]*+\z"
_BLANKS: Final = r"[\t-\r ]+"
_WEB_HOST: Final = r"[a-z0-9_-]++\.[a-z0-9._-]++"
_SURE_ASCII_URL: Final = rf"\Ahttps?://{_WEB_HOST}(?:[/?#][!-~ ]*+)?\z"
_SURE_URL: Final = rf"\Ahttps?://{_WEB_HOST}(?::[0-9]*+)?(?:[/?#][{_SURE} ]*+)?\z"
_PLAIN_URL: Final = rf"\Ahttps?://{_WEB_HOST}(?:/[!-\"$-~]++|\?[!-\"$-~]*+)?\z"
"""Its own normal form: lower-case scheme and host, no port, no fragment, not the path / alone."""
_NO_BLANKS: Final = r"\A[!-~]++\z"


def never_usable(text: Column) -> Column:
    """Too long, or nothing but blanks."""
    return (F.octet_length(text) > MAX_TEXT) | ((text < "!") & text.rlike(_BLANK))


def surely_usable_query(text: Column) -> Column:
    """Most are ASCII, which needs no closer look if the first character is no blank (those are below '!')."""
    return ((text >= "!") & _ascii(text)) | text.rlike(_SURE_TEXT)


def surely_usable_url(url: Column, *, host_only: bool) -> Column:
    web = url.rlike(_SURE_ASCII_URL) | url.rlike(_SURE_URL)
    return web if host_only else web | (~url.contains("://") & surely_usable_query(url))


def _ascii(text: Column) -> Column:
    return F.length(text) == F.octet_length(text)


def _query_is_hard(text: Column) -> Column:
    return ~_ascii(text)


def _normal_ascii_query(text: Column) -> Column:
    return F.lower(F.trim(F.regexp_replace(text, _BLANKS, " ")))


def _url_is_hard(url: Column, *, host_only: bool) -> Column:
    plain = url.rlike(_PLAIN_URL)
    return ~plain if host_only else ~(plain | (url.rlike(_NO_BLANKS) & ~url.contains("://")))


def _normal_simple_url(url: Column, *, host_only: bool) -> Column:
    return F.regexp_extract(url, rf"\Ahttps?://({_WEB_HOST})", 1) if host_only else url


def normal_records(runner: SparkRunner, rows: DataFrame, *, host_only: bool) -> DataFrame:
    """The rows with ``query`` and ``url`` in normal form, and ``suggestion`` if they have one.

    ``rows`` is read twice: keep it before.
    """
    query, url = F.col("query"), F.col("url")
    hard = {"query": _query_is_hard(query), "url": _url_is_hard(url, host_only=host_only)}
    simple = {"query": _normal_ascii_query(query), "url": _normal_simple_url(url, host_only=host_only)}
    rules = {"query": normal_forms.query_form, "url": normal_forms.host_form if host_only else normal_forms.url_form}
    if "suggestion" in rows.columns:
        suggestion = F.col("suggestion")
        sure = (suggestion >= "!") & _ascii(suggestion) & (F.octet_length(suggestion) <= MAX_TEXT)
        hard["suggestion"], simple["suggestion"] = ~sure, _normal_ascii_query(suggestion)
        rules["suggestion"] = normal_forms.suggestion_form
    texts = F.explode(F.array(*(F.struct(F.lit(name), F.when(hard[name], F.col(name)).alias("text")) for name in hard)))
    found = rows.select(texts.alias("hard")).where("hard.text IS NOT NULL").select("hard.*").distinct()
    forms: dict[str, list[tuple[str, str | None]]] = {name: [] for name in hard}
    for name, text in found.toLocalIterator():
        forms[name].append((text, rules[name](text)))
    for name, pairs in forms.items():
        rows = _with_forms(runner, rows, name, pairs, simple[name])
    return rows


def _with_forms(
    runner: SparkRunner, rows: DataFrame, name: str, pairs: list[tuple[str, str | None]], simple: Column
) -> DataFrame:
    if not pairs:
        return rows.withColumn(name, simple)
    forms = runner.frame(list(pairs), "hard_text string, form string")
    found = rows.join(forms, rows[name] == forms["hard_text"], "left")
    form = F.when(F.col("hard_text").isNull(), simple).otherwise(F.col("form"))
    return found.withColumn(name, form).drop("hard_text", "form")


def md5_number(text: Column) -> Column:
    """MD5 as a little-endian number, in 32 hexadecimal digits: they are ordered as the numbers are.

    Latin-1 has one letter for each byte, so a text can be turned round for the bytes.
    """
    letters = F.reverse(F.decode(F.unhex(F.md5(text)), "ISO-8859-1"))
    return F.lower(F.hex(F.encode(letters, "ISO-8859-1")))
