"""Lock, licences, bill of materials and wheel: each says the same as what it is made from."""

from __future__ import annotations

import json
import re
import sys
import zipfile

import install
import lock
import pins
import pytest
import sbom
import smoke_wheel
import wheel
from licences import faults

from searchblend.cli.parser import build_parser

HEX = re.compile("[0-9a-f]{64}")


def test_the_lock_holds_what_is_declared():
    assert lock.disagreements() == []


def test_every_file_of_the_lock_has_a_hash_and_no_address():
    text = pins.LOCK.read_text(encoding="utf-8")
    assert all(hashes and all(map(HEX.fullmatch, hashes)) for _, hashes, _ in pins.locked().values())
    for forbidden in ("://", "--index", "--extra-index", "--find-links", "--trusted-host", "file:"):
        assert forbidden not in text


def test_a_lock_that_disagrees_is_seen(monkeypatch):
    pinned = pins.locked()
    del pinned["uvloop"]
    pinned["numpy"] = pinned["numpy"]._replace(version="0.1")
    pinned["rich"] = pinned["rich"]._replace(groups=["lab"])
    pinned["left-pad"] = pins.Pin("1", ["0" * 64], [])
    monkeypatch.setattr(lock, "locked", lambda: pinned)
    assert lock.disagreements() == [
        "left-pad: nothing brings it",
        "numpy: the lock has 0.1, and base asks for >=2.0",
        "rich: asked for by base, and not in the lock for it",
        "uvloop: asked for by server, and not in the lock for it",
        "numpy: the lock has 0.1, and lab asks for >=2.0",
    ]


def test_a_group_is_installed_with_all_that_it_brings_by_hash():
    device = install.requirements(["base", "device"]).splitlines()
    names = {line.partition("==")[0] for line in device}
    assert {"numpy", "cryptography", "cffi"} <= names
    assert not names & {"uvloop", "psycopg", "matplotlib", "pyspark"}
    assert all(re.search(r"==\S+ --hash=sha256:[0-9a-f]{64}$", line) for line in device)
    assert len(install.requirements(lock.GROUPS).splitlines()) == len(pins.locked())


def test_node_packages_are_pinned_by_hash_and_without_addresses():
    folder = pins.ROOT / "extension"
    declared = json.loads((folder / "package.json").read_text())["devDependencies"]
    root, *packages = json.loads((folder / "package-lock.json").read_text())["packages"].values()
    assert root["devDependencies"] == declared
    assert all(re.fullmatch(r"\d[\w.-]*", version) for version in declared.values())
    assert all(package["integrity"].startswith("sha512-") and "resolved" not in package for package in packages)


def test_the_list_of_licences_is_fresh():
    assert faults() == []


def test_the_bill_of_materials_names_everything_once_and_no_address():
    document = sbom.document()
    references = [part["bom-ref"] for part in document["components"]]
    assert len(set(references)) == len(references) == len(pins.locked())
    known = {*references, document["metadata"]["component"]["bom-ref"]}
    assert all(set(row["dependsOn"]) <= known and row["ref"] in known for row in document["dependencies"])
    assert "://" not in json.dumps(document)
    assert sbom.document() == document


def test_requirements_are_read_with_their_extras():
    assert pins.requirement("psycopg[binary]>=3.2") == ("psycopg", ["binary"])
    assert pins.requirement("A.b_c >= 1 ; python_version < '4'") == ("a-b-c", [])


def commands(parser, path=()):
    inner = [action for action in parser._actions if isinstance(action.choices, dict)]
    found = [one for action in inner for name, sub in action.choices.items() for one in commands(sub, (*path, name))]
    return found or [" ".join(path)]


def test_the_smoke_test_uses_every_command():
    assert smoke_wheel.without_use(commands(build_parser())) == []


def test_two_wheels_are_the_same_and_hold_every_file(tmp_path):
    built = wheel.build_twice(tmp_path)
    assert list(built) == ["searchblend", "searchblend_lab"]
    for package, (first, second) in built.items():
        assert wheel.digest(first) == wheel.digest(second)
        assert wheel.missing_files(first, package) == []
        inside = zipfile.ZipFile(first).namelist()
        assert f"{package}/py.typed" in inside
        assert any(name.endswith("/licenses/LICENSE") for name in inside)
        assert not [name for name in inside if name.endswith(".pyc") or "__pycache__" in name]
        assert not [name for name in inside if not name.startswith((f"{package}/", f"{package}-"))]


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path):
    product, lab = (first for first, _ in wheel.build_twice(tmp_path / "build").values())
    (tmp_path / "smoke").mkdir()
    found = smoke_wheel.run(tmp_path / "smoke", product, lab, locked=False)
    assert found.wrong == []
    assert found.tried > 100
    assert sys.prefix not in str(product)
