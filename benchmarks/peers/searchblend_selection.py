"""searchblend and DuckDB alone on the rows of the selection benchmark, in the project's own environment.

``plain`` counts one random line of each user by query, drawn by the same keyed hash; ``own_hash`` draws by DuckDB's own hash, and
``any`` takes whichever line of a user comes first. ``searchblend`` is ``select_values`` in the peers' relation, one user added or removed: it puts noise on every count and
fetches the queries that pass. ``read_log`` starts from the log as a user of the library would: every line judged and
normalized.
"""

import json
import resource
import sys
import time

start = time.perf_counter()
import duckdb

from searchblend.blender.paper.create_head_list import create_head_list
from searchblend.core.params import BlenderParams
from searchblend.core.privacy import Budget, Neighbors
from searchblend.logs.read import read_log
from searchblend.releases.select_values import select_values

kind, path = sys.argv[1:]
budget = Budget(4.0, 1e-5)
ONE_LINE = {
    "plain": "arg_min(query, (md5_number('a key of twenty signs' || user || chr(31) || query) >> 1)::HUGEINT)",
    "own_hash": "arg_min(query, (hash('a key', user, query) >> 1)::BIGINT)",
    "any": "any_value(query)",
}
started = time.perf_counter()
if kind in ONE_LINE:
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false")
    held = f"SELECT {ONE_LINE[kind]} AS query FROM '{path}' GROUP BY user"
    connection.execute(f"CREATE TABLE counted AS SELECT query, count(*) AS n FROM ({held}) GROUP BY query")
    kept = connection.execute("SELECT count(*) FROM counted WHERE n >= 7").fetchone()[0]
elif kind == "searchblend":
    found = select_values(path, budget, value="query", neighbors=Neighbors.ADD_REMOVE_ONE, memory="4GB")
    kept = len(found.counts)
else:
    with read_log(path, rows=False, memory="4GB") as log:
        everyone, _ = log.split(optin_fraction=0.999999)
        kept = len(create_head_list(everyone, BlenderParams(budget)))
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
