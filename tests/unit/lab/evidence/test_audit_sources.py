"""Seedable generators are found in the source, wherever they hide; the system's own are not taken for them."""

from __future__ import annotations

import pytest

from searchblend_lab.evidence.evidence import Verdict
from searchblend_lab.evidence.randomness_source import POISON, import_graph_of, program
from searchblend_lab.evidence.source_tree import generators_in, module_paths, reachable


@pytest.mark.parametrize(
    "text",
    [
        "import numpy as np\nx = np.random.default_rng(1)\n",
        "from numpy import random\n",
        "from numpy.random import default_rng\n",
        "import random\nx = random.Random(1)\n",
        "import random as r\nx = r.random()\n",
        "from random import choice\n",
        "import scipy.stats\n",
        'x = "SELECT * FROM t ORDER BY random()"\n',
        'x = "SELECT * FROM t TABLESAMPLE 10"\n',
    ],
)
def test_generators_are_found(text, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(text)
    assert generators_in(path, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "import random\nx = random.SystemRandom().randint(1, 5)\n",
        "from random import SystemRandom\n",
        "import secrets\nx = secrets.token_bytes(8)\n",
        '"""One random record (of each user) from the log."""\n',
    ],
)
def test_the_system_is_not_taken_for_a_seeded_one(text, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(text)
    assert not generators_in(path, tmp_path)


def test_imports_are_followed(tmp_path):
    for name, text in (
        ("runs/a.py", "from searchblend.logs.b import x\n"),
        ("logs/b.py", "from importlib import import_module\nmodule = import_module('searchblend.logs.c')\n"),
        ("logs/c.py", "import random\nx = random.random()\n"),
        ("logs/d.py", "x = 1\n"),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found = {path.name for path in reachable(module_paths("runs", tmp_path), tmp_path)}
    assert found == {"a.py", "b.py", "c.py"}
    assert import_graph_of("runs", tmp_path).verdict is Verdict.REFUTED
    assert import_graph_of("device", tmp_path).verdict is Verdict.NOT_AUDITED


@pytest.mark.parametrize("use", ["random.random()", "random.Random(1)", "numpy.random.default_rng(1)"])
def test_poison_ends_a_program_of_ours_that_uses_a_generator(use):
    done = program(POISON, f"import random, numpy\n__name__ = 'searchblend.made_up'\n{use}\n")
    assert (done.returncode, done.stderr.strip()) == (97, "a seedable generator was used by the program")


def test_poison_lets_libraries_alone():
    assert program(POISON, "import random, numpy\nrandom.random()\nnumpy.random.default_rng(1)\n").returncode == 0
