"""Settings of the whole interpreter are changed where a process begins, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "searchblend"
WHOLE_PROCESS = re.compile(r"gc\.(disable|freeze|set_threshold)\(|setswitchinterval\(|setrecursionlimit\(")


def test_no_module_changes_the_interpreter_but_the_start_of_a_server():
    changing = {
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if WHOLE_PROCESS.search(path.read_text())
    }
    assert changing == {"service/serve.py"}
