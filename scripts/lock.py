"""Write requirements.lock: every distribution that an extra or the lab brings, its version and its file's SHA-256.

    python scripts/lock.py [--upgrade] [--check]

pip resolves the package with all its extras and the lab, and says which files it would take on this platform; nothing
is installed. Versions stay as the lock has them; --upgrade takes the newest that pyproject.toml allows. No address of
an index or a mirror enters the lock. --check compares the lock with both pyproject.toml and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from pins import LAB, LOCK, OURS, ROOT, Pin, declared, group_requirements, locked, normal, platform_name, requirement

Report = dict[str, dict[str, Any]]
GROUPS = ["base", *(extra for extra in declared() if extra), "lab"]


def resolve(*, upgrade: bool) -> Report:
    """Name → what pip reports about the file that it would take."""
    extras = ",".join(sorted(extra for extra in declared() if extra))
    with tempfile.TemporaryDirectory() as folder:
        report, constraints = Path(folder) / "report.json", Path(folder) / "constraints.txt"
        pins = {} if upgrade or not LOCK.exists() else locked()
        constraints.write_text("".join(f"{name}=={pin.version}\n" for name, pin in pins.items()), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--report", str(report), "--constraint", str(constraints)]
        subprocess.run([*command, f"{ROOT}[{extras}]", str(LAB)], check=True)
        document = json.loads(report.read_text(encoding="utf-8"))
    entries = {normal(entry["metadata"]["name"]): entry for entry in document["install"]}
    return {name: entry for name, entry in entries.items() if name not in OURS}


def brought_by(group: str, report: Report) -> set[str]:
    """All that a group brings, directly or not."""
    todo, seen = [requirement(text) for text in group_requirements(group)], set[tuple[str, str]]()
    while todo:
        name, extras = todo.pop()
        new = {(name, extra) for extra in ("", *extras)} - seen
        if name not in report or not new:
            continue
        seen |= new
        for text in report[name]["metadata"].get("requires_dist", []):
            needed = Requirement(text)
            if any(needed.marker is None or needed.marker.evaluate({"extra": extra}) for _, extra in new):
                todo.append((normal(needed.name), sorted(needed.extras)))
    return {name for name, _ in seen}


def pins_of(report: Report) -> dict[str, Pin]:
    brought = {group: brought_by(group, report) for group in GROUPS}
    return {
        name: Pin(
            entry["metadata"]["version"],
            [entry["download_info"]["archive_info"]["hashes"]["sha256"]],
            [group for group, names in brought.items() if name in names],
        )
        for name, entry in sorted(report.items())
    }


def lock_text(pins: dict[str, Pin]) -> str:
    head = [
        f"# Written by scripts/lock.py for {platform_name()}.",
        "# scripts/install.py installs a part of it, by hash; after # stands what brings a distribution.",
        "# All of it: pip install --require-hashes --requirement requirements.lock",
    ]
    rows = [
        f"{name}=={pin.version} \\\n    --hash=sha256:{pin.hashes[0]}  # {' '.join(pin.groups)}"
        for name, pin in pins.items()
    ]
    text = "\n".join([*head, *rows]) + "\n"
    assert "://" not in text
    assert "--index" not in text
    return text


def disagreements() -> list[str]:
    """Where the lock does not hold what both pyproject.toml ask for."""
    lock = locked()
    said = [f"{name}: nothing brings it" for name, pin in lock.items() if not pin.groups]
    for group in GROUPS:
        for asked in map(Requirement, group_requirements(group)):
            pin = lock.get(normal(asked.name))
            if asked.marker is not None and not asked.marker.evaluate():
                continue
            if pin is None or group not in pin.groups:
                said.append(f"{asked.name}: asked for by {group}, and not in the lock for it")
            elif not asked.specifier.contains(pin.version, prereleases=True):
                said.append(f"{asked.name}: the lock has {pin.version}, and {group} asks for {asked.specifier}")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    parser.add_argument("--check", action="store_true", help="compare the lock with what is declared, write nothing")
    options = parser.parse_args()
    if not options.check:
        LOCK.write_text(lock_text(pins_of(resolve(upgrade=options.upgrade))), encoding="utf-8")
    found = disagreements()
    for line in found:
        print(f"lock: {line}", file=sys.stderr)
    if not found:
        print(f"requirements.lock: {len(locked())} files")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
