"""multi-freq-ldpy: GRR or SS, one compiled call a report, then its aggregator. Compiling is not timed."""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client

values = np.load(sys.argv[1]).tolist()
k, epsilon, rounds, oracle = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
client, aggregate = {"k-RR": (GRR_Client, GRR_Aggregator_MI), "subsets": (SS_Client, SS_Aggregator_MI)}[oracle]
aggregate([client(value, k, epsilon) for value in values[:100]], k, epsilon)
rows = []
for _ in range(rounds):
    started = time.perf_counter()
    reports = [client(value, k, epsilon) for value in values]
    said = time.perf_counter()
    estimates = aggregate(reports, k, epsilon)
    rows.append(
        {
            "privatise": said - started,
            "aggregate": time.perf_counter() - said,
            "estimates": np.asarray(estimates).tolist(),
        }
    )
print(json.dumps({"rows": rows, "version": version("multi-freq-ldpy")}))
