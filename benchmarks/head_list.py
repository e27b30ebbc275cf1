"""The head list from counts, against counting them: ten million distinct records, noise on every one.

The rows (a record for each user, as texts) lie in a Parquet file. Counting reads it and groups by record; creating the
head list asks how many records have each count, draws one noise for each record, and fetches those that pass. Both
alternate.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from searchblend.core.privacy import Budget
from searchblend.core.randomness import SystemRandomness
from searchblend.logs.duckdb.session import DuckDBSession
from searchblend.logs.relational import SqlTally
from searchblend.mechanisms.threshold import noisy_counts, printed_threshold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000, help="distinct records (10000000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    session = DuckDBSession("4GB", None, None)
    path = session.directory / "held.parquet"
    # Every record once, and as many rows again on records of a rank that falls like 1/rank.
    session.execute(
        f"""
        COPY (SELECT 'words of query ' || number AS query, 'http://www.site' || number // 3 || '.example' AS url FROM (
            SELECT range AS number FROM range({options.records})
            UNION ALL SELECT exp(random() * ln({options.records}))::BIGINT - 1 FROM range({options.records})
        )) TO '{path}'
        """
    )
    threshold = printed_threshold(Budget(4.0, 1e-5))
    times: dict[str, list[float]] = {"count": [], "head list": []}
    for _ in range(options.rounds):
        started = time.perf_counter()
        tally = SqlTally(session, f"SELECT query, url, count(*) AS n FROM '{path}' GROUP BY ALL")
        counted = time.perf_counter()
        passed = noisy_counts(tally, threshold, randomness=SystemRandomness())
        times["count"].append(counted - started)
        times["head list"].append(time.perf_counter() - counted)
        distinct = sum(tally.sizes().values())
        session.drop_all_tables()  # or the next round would have less memory
    session.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratio = medians["head list"] / medians["count"]
    if options.json:
        print(json.dumps({**medians, "ratio": ratio, "distinct_records": distinct, "listed": len(passed)}, indent=2))
        return
    print(
        f"{distinct:,} distinct records, {len(passed):,} listed: counting {medians['count']:.2f} s, "
        f"head list {medians['head list']:.2f} s, ratio {ratio:.2f}"
    )


if __name__ == "__main__":
    main()
