"""A command without its extra says which one it needs; and help loads nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from searchblend.cli.main import EXTRA_OF, missing_extra
from searchblend.cli.parser import SUMMARIES

pytestmark = pytest.mark.thorough

HEAVY = {"numpy", "duckdb", "matplotlib", "scipy", "rich", "zstandard", "dp_accounting", "sqlite3", "json", "asyncio"}


@pytest.mark.parametrize("module", ["starlette.routing", "cryptography", "psycopg"])
def test_names_the_extra(module):
    assert missing_extra(ModuleNotFoundError(name=module)) == (
        f"this needs {module.partition('.')[0]}: pip install 'searchblend[server]' "
        "(in a checkout: pip install '.[server]')"
    )


def test_names_the_smallest_extra_that_a_command_needs():
    error = ModuleNotFoundError(name="cryptography.hazmat")
    assert "'searchblend[device]'" in missing_extra(error, "search")
    assert "'searchblend[server]'" in missing_extra(error, "serve")


def test_says_nothing_about_modules_of_no_extra():
    assert missing_extra(ModuleNotFoundError(name="numpy")) is None
    assert missing_extra(ModuleNotFoundError("no name")) is None


@pytest.mark.parametrize(
    "command",
    [
        ["serve", "--demo", "--once"],
        ["task", "list"],
        ["round", "show", "t", "1"],
        ["keys", "list"],
        ["doctor"],
        ["device", "status"],
        ["plan", "--plot", "plan.png"],
    ],
)
def test_a_command_without_its_extra_is_misuse_and_no_traceback(command, tmp_path):
    hidden = f"import sys; sys.modules.update(dict.fromkeys({sorted(EXTRA_OF)!r}));"
    code = f"{hidden} from searchblend.cli.main import main; sys.exit(main({command!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("searchblend: error: this needs ")
    extra = {"device": "device", "plan": "plots"}.get(command[0], "server")
    assert f"pip install 'searchblend[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["--help"], ["release", "plan", "--help"], *([name, "--help"] for name in SUMMARIES)]
)
def test_help_loads_nothing_heavy(words):
    heavy = sorted(HEAVY | set(EXTRA_OF))
    code = (
        "import sys\nfrom searchblend.cli.main import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        f"print(sorted(set({heavy!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: searchblend")
    assert done.stderr == "[]\n"


def test_a_service_starts_without_the_numerics_of_click_graphs():
    code = "import sys, searchblend.service.serve; print(sorted({'scipy', 'duckdb', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
