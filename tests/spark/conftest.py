"""One cluster for all tests of the Spark engine: a master and two executors, each a process of its own.

Run them in one process (``make test`` does): each worker of pytest-xdist would start a cluster of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("both_engines")

MASTER = "local-cluster[2,1,1024]"
JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Three processes that live for a minute: checking the code of Spark's many classes, or compiling it well, does not
pay."""


@pytest.fixture(scope="session")
def notices() -> list[str]:
    return []


@pytest.fixture(scope="session")
def cluster(notices: list[str]) -> Iterator[object]:
    pytest.importorskip("pyspark")
    from searchblend.logs.spark.session import SparkRunner

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",  # it plans every stage anew, by the size of what there is: here nothing
        "spark.executor.memory": "768m",
        # Beside other work a heartbeat or a socket may take longer than the two minutes and 15 s that are usual.
        "spark.network.timeout": "600s",
        "spark.python.authenticate.socketTimeout": "240s",
        # Most of the time goes into compiling: for little data Java's quick compiler is enough, and no code of Spark's
        # own (a whole run is tested with it).
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
    }
    runner = SparkRunner(MASTER, on_notice=notices.append, settings=settings)
    yield runner
    runner.close()
