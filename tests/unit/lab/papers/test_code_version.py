"""A kept result belongs to the code that made it: every module that takes part is in its key."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from searchblend_lab.papers import code_version
from searchblend_lab.papers.cells import KINDS
from searchblend_lab.papers.code_version import import_closure

MODULES = sorted({kind.function.partition(":")[0] for kind in KINDS.values()})
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
        missing = set(loaded[module]) - import_closure(module)
        assert {name for name in missing if not _is_package(name)} == set(), module


def _is_package(name: str) -> bool:
    return code_version._file(name).name == "__init__.py"


@pytest.mark.parametrize("generator", ["searchblend.synthetic.population", "searchblend_lab.zipf_log"])
def test_a_generator_of_synthetic_users_is_in_the_key_of_what_is_drawn_from_it(generator: str):
    assert any(generator in import_closure(module) for module in MODULES)


def test_a_changed_module_changes_the_key(monkeypatch, tmp_path):
    module = KINDS["hybrid"].function.partition(":")[0]
    before = code_version.code_version.__wrapped__(module)
    changed = tmp_path / "changed.py"
    original = code_version._file
    changed.write_bytes(original("searchblend.synthetic.population").read_bytes() + b"# changed\n")
    monkeypatch.setattr(
        code_version, "_file", lambda name: changed if name == "searchblend.synthetic.population" else original(name)
    )
    assert code_version.code_version.__wrapped__(module) != before
