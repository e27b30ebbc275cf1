"""OpenDP: exact k-ary randomized response, one call a report; it has no aggregator, so counting is numpy's."""

import json
import math
import sys
import time
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
values = np.load(sys.argv[1]).tolist()
k, epsilon, rounds = int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
keep = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
randomize = dp.m.make_randomized_response(categories=list(range(k)), prob=keep)
lie = (1 - keep) / (k - 1)
rows = []
for _ in range(rounds):
    started = time.perf_counter()
    reports = [randomize(value) for value in values]
    said = time.perf_counter()
    shares = np.bincount(np.array(reports), minlength=k) / len(values)
    estimates = (shares - lie) / (keep - lie)
    rows.append({"privatise": said - started, "aggregate": time.perf_counter() - said, "estimates": estimates.tolist()})
print(json.dumps({"rows": rows, "version": version("opendp")}))
