"""pure-ldp: direct encoding, one call a report, then one a count."""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer

values = np.load(sys.argv[1]).tolist()
k, epsilon, rounds = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
rows = []
for _ in range(rounds):
    client, server = DEClient(epsilon, k, index_mapper=lambda x: x), DEServer(epsilon, k, index_mapper=lambda x: x)
    started = time.perf_counter()
    reports = [client.privatise(value) for value in values]
    said = time.perf_counter()
    for report in reports:
        server.aggregate(report)
    estimates = [server.estimate(i, suppress_warnings=True) / len(values) for i in range(k)]
    rows.append({"privatise": said - started, "aggregate": time.perf_counter() - said, "estimates": list(estimates)})
print(json.dumps({"rows": rows, "version": version("pure-ldp")}, default=float))
