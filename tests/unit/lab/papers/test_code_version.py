"""A kept result belongs to the code that made it: every module that takes part is in its key."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from searchblend_lab.import_graph import OURS, ImportGraph, syntax_tree
from searchblend_lab.papers.cells import KINDS
from searchblend_lab.papers.code_version import code_version

pytestmark = pytest.mark.thorough

MODULES = sorted({kind.module for kind in KINDS.values()})
LOADED = """
import importlib, json, sys
loaded, ours = {{}}, ("searchblend.", "searchblend_lab.")
for module in {modules}:
    for name in [name for name in sys.modules if name.startswith(ours)]:
        del sys.modules[name]
    importlib.import_module(module)
    loaded[module] = [name for name in sys.modules if name.startswith(ours) and sys.modules[name].__file__]
print(json.dumps(loaded))
"""


@pytest.mark.thorough
def test_every_module_that_is_really_loaded_is_in_the_key():
    program = LOADED.format(modules=MODULES)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    for module in MODULES:
        missing = set(loaded[module]) - OURS.closure([module])
        assert {name for name in missing if not _is_package(name)} == set(), module


def _is_package(name: str) -> bool:
    return OURS.file(name).name == "__init__.py"


@pytest.mark.parametrize("generator", ["searchblend.synthetic.population", "searchblend_lab.zipf_log"])
def test_a_generator_of_synthetic_users_is_in_the_key_of_what_is_drawn_from_it(generator: str):
    assert any(generator in OURS.closure([module]) for module in MODULES)


@pytest.mark.parametrize("changed", ["searchblend.synthetic.population", "searchblend_lab.papers.people"])
def test_a_changed_module_of_either_package_changes_the_key(changed: str, tmp_path: Path):
    """A copy of both packages with one more line in a module that the cells import."""
    roots = {name: Path(shutil.copytree(root, tmp_path / name)) for name, root in OURS.roots.items()}
    copied = ImportGraph(roots)
    module = KINDS["hybrid"].module
    before = code_version.__wrapped__(module, copied)
    assert before == code_version(module)
    with copied.file(changed).open("a") as file:
        file.write("# changed\n")
    syntax_tree.cache_clear()
    assert code_version.__wrapped__(module, copied) != before
