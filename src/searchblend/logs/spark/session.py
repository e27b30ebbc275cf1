"""One Spark session with its private directory: which Java it runs on, and its failures in our words.

``load_pyspark`` is the one place that loads PySpark by itself: every other module here is imported only after it.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from searchblend.core.errors import InvalidParameter, RunError, UsageError
from searchblend.logs.relational import Words, polled, private_directory, removal
from searchblend.logs.spark.java import find_java, java_home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OnNotice = Callable[[str], None]
"""Called with which Java and which Spark are used."""

_MASTER: Final = re.compile(r"local(-cluster)?(\[.*\])?|spark://.+|yarn|k8s://.+")
_CONNECT_SECONDS: Final = 4.0
_EXECUTOR_SECONDS: Final = 300.0
_POLL_SECONDS: Final = 0.2
_ROWS_AT_ONCE: Final = 1000
_SHELF_BITS: Final = 12
_SHELF: Final = f"(shiftleft(n, {_SHELF_BITS}) | shiftrightunsigned(place, {64 - _SHELF_BITS}))"
_SPARK_PARTITIONS: Final = "200"
"""Spark's default: far too many for a small log."""
_PARTITION_BYTES: Final = 1 << 25
_DEFAULTS: Final = {
    "spark.app.name": "searchblend",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_ON_THIS_MACHINE: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_SQL_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",  # points in time become numbers, the same everywhere
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "false",  # nothing here is large enough to ask for pandas
}


def check_master(master: str) -> None:
    """Refuses a master that is not one, or that does not answer: Spark itself would try for a minute."""
    if not _MASTER.fullmatch(master):
        raise InvalidParameter("master", "expected local[N], spark://HOST:PORT, yarn or k8s://URL")
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidParameter("master", "expected spark://HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError):
            continue
        return
    raise RunError(f"{master}: the Spark master cannot be reached; is it running, and is this its address?")


class SparkRunner:
    """A Spark session and all that was kept on its executors. ``close`` removes every trace of ours.

    A session that is active in this process is used as it is and left running; else one is started, and stopped in
    the end.
    """

    words: Final = Words(
        quotient="DIV",
        hash="xxhash64",
        # Latin-1 has one letter for each byte, so a string can be reversed for the bytes.
        md5_number="lower(hex(encode(reverse(decode(unhex(md5({})), 'ISO-8859-1')), 'ISO-8859-1')))",
        digest="digest",
        each="transform(sequence({1}, n), i -> {0})",
        shelf=_SHELF,
        shelf_bits=_SHELF_BITS,
        order=f"{_SHELF}, place, query, url",  # a place may be negative; on one shelf all have the same sign
    )

    def __init__(
        self,
        master: str | None = None,
        temp_directory: str | os.PathLike[str] | None = None,
        on_notice: OnNotice = lambda notice: None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            master: address of the cluster; None: that of the environment, or this machine
            temp_directory: where the private directory is made; executors must see it too
            on_notice: called with the versions of Spark and Java, and the master
            settings: Spark settings by name, where the environment has none
        """
        self._pyspark = load_pyspark()
        self.directory = private_directory(temp_directory)
        self._remove = removal(self, self.directory)
        self.directory.chmod(0o711)  # executors may run under another name; the names inside are not listed to them
        self._kept: list[DataFrame] = []
        self._views = 0
        self._own: Any = None
        try:
            active = self._pyspark.sql.SparkSession.getActiveSession()
            if active is None:
                active, java = self._start(master, settings or {})
                on_notice(f"Spark {active.version} on {java}, master {active.sparkContext.master}")
            self.spark: SparkSession = active.newSession()
            for name, value in _SQL_SETTINGS.items():
                self.spark.conf.set(name, value)
        except BaseException:
            self.close()
            raise

    def _start(self, master: str | None, settings: Mapping[str, str]) -> tuple[SparkSession, str]:
        if master is not None:
            check_master(master)
        pyspark = self._pyspark
        given = {**_DEFAULTS, **settings, **({} if master is None else {"spark.master": master})}
        gateway, java = self._launch(pyspark.SparkConf(loadDefaults=False).setAll(list(given.items())))
        try:
            conf = pyspark.SparkConf(_jvm=gateway.jvm)  # with the settings of spark-submit or spark-defaults.conf
            conf.setIfMissing("spark.master", "local[*]")
            if conf.get("spark.master").startswith("local"):
                given = {**_ON_THIS_MACHINE, **given}
            for name, value in given.items():
                conf.setIfMissing(name, value)
            self._own = pyspark.SparkContext(conf=conf, gateway=gateway)
            if "PYSPARK_PYTHON" not in os.environ:
                self._own.pythonExec = sys.executable
        except Exception as error:
            raise RunError(f"{master or 'spark'}: the master did not take the application") from error
        self._own.setLogLevel("OFF")
        self._await_executors()
        return self._pyspark.sql.SparkSession(self._own), java

    def _launch(self, conf: Any) -> tuple[Any, str]:
        """The Java of the driver, and what it is. Under ``spark-submit`` it is there already."""
        gateways = self._pyspark.java_gateway
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            gateway = gateways.launch_gateway()
            return gateway, f"Java {gateway.jvm.java.lang.System.getProperty('java.version')} (spark-submit)"
        java = find_java()
        home = java_home(java, self.directory)
        # The output of Java and of Spark's own logging goes to a file of ours: it may quote file names and data.
        with (self.directory / "spark.log").open("wb") as log, _environment("JAVA_HOME", str(home)):
            try:
                return gateways.launch_gateway(conf, {"stdout": log, "stderr": log}), str(java)
            except Exception as error:
                raise RunError(f"Spark did not start on {java}") from error

    def _await_executors(self) -> None:
        """A cluster may take an application and never run anything of it; then a job would wait forever."""
        if self._own.master.startswith("local["):
            return
        tracker = self._own._jsc.sc().statusTracker()
        end = time.monotonic() + _EXECUTOR_SECONDS
        while len(tracker.getExecutorInfos()) < 2:  # one is the driver
            if time.monotonic() > end:
                raise RunError(
                    f"{self._own.master}: no executor came within {_EXECUTOR_SECONDS:.0f} s: are there workers, "
                    "with the cores and the memory that were asked for?"
                )
            time.sleep(_POLL_SECONDS)

    def view(self, kind: str, frame: DataFrame) -> str:
        """A name for a table in SQL."""
        self._views += 1
        name = f"{kind}_{self._views}"
        frame.createOrReplaceTempView(name)
        return name

    def make(self, kind: str, select: str) -> str:
        with our_words():
            return self.view(kind, self.keep(self.spark.sql(select)))

    def part(self, kind: str, select: str) -> str:
        with our_words():
            return self.view(kind, self.spark.sql(select))

    def discard(self, table: str) -> None:
        """Parts are computed from their table whenever they are read, so it stays until the log is closed."""

    @contextmanager
    def values(self, kind: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
        name = self.view(kind, self.frame(rows, schema))
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with our_words():
            return [tuple(row) for row in self.spark.sql(statement).collect()]

    def arrays(self, statement: str) -> list[NDArray[Any]]:
        with our_words():
            frame = self.spark.sql(statement)
            columns = list(zip(*frame.collect(), strict=True)) or [() for _ in frame.columns]
        return [np.array(column, dtype=object) for column in columns]

    @property
    def cores(self) -> int:
        return max(1, self.spark.sparkContext.defaultParallelism)

    def set_partitions(self, n_bytes: int) -> None:
        """Into how many parts the lines are dealt: one per core, or more of a large log, unless it was set."""
        if self.spark.conf.get("spark.sql.shuffle.partitions") == _SPARK_PARTITIONS:
            n = max(self.cores, n_bytes // _PARTITION_BYTES)
            self.spark.conf.set("spark.sql.shuffle.partitions", str(n))

    def keep(self, frame: DataFrame) -> DataFrame:
        """Leaves the rows on the executors, once they are computed, until the log is closed."""
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def forget(self, frame: DataFrame) -> None:
        frame.unpersist()
        self._kept = [other for other in self._kept if other is not frame]

    def frame(self, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
        """A small table from the driver.

        It goes as JSON: Spark's own way of making a table from Python's rows would start Python on the executors.
        """
        names = [column.split()[0] for column in schema.split(", ")]
        jvm: Any = self.spark._jvm
        chunks = jvm.java.util.ArrayList()
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            chunks.add(json.dumps([dict(zip(names, row, strict=True)) for row in some]))
        encoder = jvm.org.apache.spark.sql.Encoders.STRING()
        sent = self._pyspark.sql.DataFrame(self.spark._jsparkSession.createDataset(chunks, encoder).toDF(), self.spark)
        functions = self._pyspark.sql.functions
        table: DataFrame = sent.select(functions.inline(functions.from_json("value", f"array<struct<{schema}>>")))
        return table

    def close(self) -> None:
        with suppress(Exception):  # it may be gone already
            for frame in self._kept:
                frame.unpersist()
        self._kept = []
        if self._own is not None:
            own, self._own = self._own, None
            gateway = own._gateway
            with suppress(Exception):  # it may be gone already
                own.stop()
            type(own)._gateway = type(own)._jvm = None
            with suppress(Exception):  # it may be gone already
                gateway.shutdown()
                gateway.proc.stdin.close()
                gateway.proc.wait(timeout=20)
        self._remove()

    def watched(self, on_fraction: Callable[[float], None]) -> AbstractContextManager[None]:
        """Reports how far the job inside is: the tasks done of the stages under way, never less than before."""
        most = 0.0
        tracker = self.spark.sparkContext.statusTracker()

        def poll() -> None:
            nonlocal most
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            tasks = sum(stage.numTasks for stage in stages if stage)
            if tasks:
                most = max(most, sum(stage.numCompletedTasks for stage in stages if stage) / tasks)
                on_fraction(most)

        return polled(poll, _POLL_SECONDS)


def load_pyspark() -> Any:
    """The package, with the modules that are used here."""
    try:
        import pyspark.errors
        import pyspark.java_gateway
        import pyspark.sql
        import pyspark.sql.functions
    except ModuleNotFoundError as error:
        raise UsageError("the Spark engine needs PySpark: pip install searchblend[spark]") from error
    return pyspark


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@contextmanager
def our_words() -> Iterator[None]:
    """Spark's messages may quote the data, so only their kind is passed on."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if "No module named 'searchblend" in str(error):
            raise RunError("the executors' Python has no searchblend: install the package there") from error
        kind = error.getCondition() or type(error).__name__
        raise RunError(f"Spark could not go on ({kind})") from error
    except Py4JError as error:
        raise RunError("Spark could not go on: its driver is gone or failed") from error
