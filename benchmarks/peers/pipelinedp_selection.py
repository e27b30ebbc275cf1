"""PipelineDP in one process: one line of each user, the keys that pass a truncated geometric law (keys only, no counts).

It takes Python tuples; making them of the arrays is not timed.
"""

import json
import resource
import sys
import time
from importlib.metadata import version

start = time.perf_counter()
import numpy as np
import pipeline_dp

loaded = time.perf_counter()
arrays = np.load(sys.argv[1])
rows = list(zip(arrays["users"].tolist(), arrays["keys"].tolist(), strict=True))
started = time.perf_counter()
accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=4.0, total_delta=1e-5)
engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
extractors = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 1
)
result = engine.select_partitions(rows, pipeline_dp.SelectPartitionsParams(max_partitions_contributed=1), extractors)
accountant.compute_budgets()
kept = list(result)
ended = time.perf_counter()
print(
    json.dumps(
        {
            "seconds": ended - started,
            "start_seconds": loaded - start,
            "kept": len(kept),
            "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            "version": version("pipeline-dp"),
        }
    )
)
