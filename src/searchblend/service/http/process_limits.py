"""What the operating system lets this process have: no core files, and files enough for its connections."""

from __future__ import annotations

import sys
from typing import Final

if sys.platform != "win32":  # where the system sets no such limits
    import resource

SPARE_FILES: Final = 256
"""for databases, logs, keys, the health listener, and connections that are being closed"""
_FEWEST: Final = 16


def no_core_files() -> None:
    """A core file would hold what is only ever in memory."""
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def affordable_connections(wanted: int) -> int:
    """As many as there may be open files for, after asking for more; at most ``wanted``."""
    if sys.platform == "win32":
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = float("inf") if hard == resource.RLIM_INFINITY else hard
    needed = wanted + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = int(min(needed, most))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(_FEWEST, min(wanted, soft - SPARE_FILES))
