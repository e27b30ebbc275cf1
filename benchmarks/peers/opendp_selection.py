"""OpenDP with Polars: one line of each user, the queries that pass a private threshold, with noisy counts."""

import json
import resource
import sys
import time
from importlib.metadata import version

start = time.perf_counter()
import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
started = time.perf_counter()
context = dp.Context.compositor(
    data=pl.scan_parquet(sys.argv[1]),
    privacy_unit=dp.unit_of(contributions=1, identifier="user"),
    privacy_loss=dp.loss_of(epsilon=4.0, delta=1e-5),
    split_evenly_over=1,
)
kept = context.query().truncate_per_group(1).group_by("query").agg(dp.len()).release().collect()
ended = time.perf_counter()
print(
    json.dumps(
        {
            "seconds": ended - started,
            "start_seconds": started - start,
            "kept": len(kept),
            "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            "version": version("opendp"),
        }
    )
)
