"""searchblend and DuckDB alone on the rows of the selection benchmark, in the project's own environment.

``plain`` counts one line of each user by query. ``searchblend`` does the same, puts noise on every count and fetches the
queries that pass. ``read_log`` starts from the log as a user of the library would: every line judged and normalized.
"""

import json
import resource
import sys
import time

start = time.perf_counter()
import duckdb

from searchblend.blender.create_head_list import create_head_list
from searchblend.logs.duckdb_session import DuckDBSession
from searchblend.logs.duckdb_tally import DuckDBTally
from searchblend.logs.read import read_log
from searchblend.mechanisms.noisy_counts import noisy_counts
from searchblend.mechanisms.threshold import printed_threshold
from searchblend.params import BlenderParams
from searchblend.privacy import Budget
from searchblend.randomness import SystemRandomness

kind, path = sys.argv[1:]
budget = Budget(4.0, 1e-5)
# One line of each user, by a keyed hash of the line; then users by query.
HELD = f"SELECT arg_min(query, md5_number(concat_ws(chr(31), 'key', user, query))) AS query FROM '{path}' GROUP BY user"
started = time.perf_counter()
if kind == "plain":
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE counted AS SELECT query, count(*) AS n FROM ({HELD}) GROUP BY query")
    kept = connection.execute("SELECT count(*) FROM counted WHERE n >= 7").fetchone()[0]
elif kind == "searchblend":
    session = DuckDBSession("4GB", None, None)
    tally = DuckDBTally(session, f"SELECT query, '' AS url, count(*) AS n FROM ({HELD}) GROUP BY query")
    kept = len(noisy_counts(tally, printed_threshold(budget), randomness=SystemRandomness()))
    session.close()
else:
    with read_log(path, memory="4GB") as log:
        everybody, _ = log.split(optin_fraction=0.999999)
        kept = len(create_head_list(everybody, BlenderParams(budget)))
ended = time.perf_counter()
print(
    json.dumps(
        {
            "seconds": ended - started,
            "start_seconds": started - start,
            "kept": kept,
            "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        }
    )
)
