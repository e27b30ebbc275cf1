"""One random record of each user, in Spark. The rules are those of ``engine``."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from searchblend.logs.engine import Drawing


def md5_number(text: Column) -> Column:
    """MD5 as a little-endian number, in 32 hexadecimal digits: they are ordered as the numbers are.

    Latin-1 has one letter for each byte, so a string can be reversed for the bytes.
    """
    letters = F.reverse(F.decode(F.unhex(F.md5(text)), "ISO-8859-1"))
    return F.lower(F.hex(F.encode(letters, "ISO-8859-1")))


def drawn_records(lines: DataFrame, drawing: Drawing) -> DataFrame:
    """The drawn records (person, optin, draw, pick, query, url) of used lines. Opted in are those whose every line says
    so. All lines of a person come to one place, and stay there for everything that follows."""
    contents = (
        lines.select("person", "digest", "query", "url", "optin")
        .repartition("person")
        .groupBy("person", "digest")
        .agg(
            F.first("query").alias("query"),
            F.first("url").alias("url"),
            F.bool_and("optin").alias("optin"),
            F.count(F.lit(1)).alias("n"),
        )
    )
    record = F.struct("query", "url")
    chosen = [F.min_by(record, _smallest_score(draw)).alias(f"draw_{draw}") for draw in _draws(drawing)]
    people = contents.groupBy("person").agg(F.bool_and("optin").alias("optin"), *chosen)
    drawn = [_drawn(F.lit(draw), F.lit(1 if draw == 1 else None), F.col(f"draw_{draw}")) for draw in _draws(drawing)]
    listed = F.array(*drawn)
    if drawing.picks > 1:
        people = people.join(_picks(contents, drawing.picks), "person", "left")
        listed = F.concat(listed, F.coalesce("picked", F.array().cast(_DRAWN_TYPE)))
    return people.select("person", "optin", F.inline(listed))


_DRAWN_TYPE: Final = "array<struct<draw:int,pick:int,query:string,url:string>>"


def _draws(drawing: Drawing) -> range:
    return range(1, drawing.draws + 1)


def _drawn(draw: Column, pick: Column, record: Column) -> Column:
    return F.struct(
        draw.cast("int").alias("draw"),
        pick.cast("int").alias("pick"),
        record["query"].alias("query"),
        record["url"].alias("url"),
    )


def _smallest_score(draw: int) -> Column:
    """The smallest score that the n repetitions of a line have in a draw."""
    scores = F.array_min(F.transform(F.sequence(F.lit(1), F.col("n")), lambda i: _score(i, draw)))
    if draw > 1:
        return scores
    return F.when(F.col("n") == 1, F.col("digest")).otherwise(scores)


def _score(i: Column, draw: int) -> Column:
    digest = F.col("digest")
    if draw > 1:
        return md5_number(F.concat(digest, F.lit(":"), i.cast("string"), F.lit(f"/{draw}")))
    return F.when(i == 1, digest).otherwise(md5_number(F.concat(digest, F.lit(":"), i.cast("string"))))


def _picks(contents: DataFrame, picks: int) -> DataFrame:
    """The second and further picks of each person: the smallest scores of the first draw."""
    scores = F.transform(F.sequence(F.lit(1), F.col("n")), lambda i: _score(i, 1))
    some = F.when(F.col("n") == 1, F.array("digest")).otherwise(F.slice(F.array_sort(scores), 1, picks))
    place = F.row_number().over(Window.partitionBy("person").orderBy("score"))
    ranked = contents.select("person", "query", "url", F.explode(some).alias("score")).withColumn("pick", place)
    picked = _drawn(F.lit(None), F.col("pick"), F.struct("query", "url"))
    return (
        ranked.where((F.col("pick") > 1) & (F.col("pick") <= picks))
        .groupBy("person")
        .agg(F.collect_list(picked).alias("picked"))
    )
