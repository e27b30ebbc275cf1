"""Write requirements.lock: what constraints.txt pins, with the SHA-256 of each file that pip takes on this platform.

    python scripts/lock.py [--check]

pip resolves the package with all its extras and the lab, held to the constraints, and says which files it would take
and their hashes; nothing is installed. No address of an index or a mirror enters the lock. --check only compares the
lock with the constraints and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from pins import CONSTRAINTS, LAB, LOCK, OURS, ROOT, constrained, declared, locked, normal

BUILD = ["hatchling"]
"""What building the wheel needs besides."""


def resolve() -> dict[str, tuple[str, str]]:
    """Name → version and SHA-256 of the file that pip would take."""
    extras = ",".join(sorted(extra for extra in declared() if extra))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--report", str(report), "--constraint", str(CONSTRAINTS)]
        subprocess.run([*command, *BUILD, f"{ROOT}[{extras}]", str(LAB)], check=True)
        document = json.loads(report.read_text(encoding="utf-8"))
    found = {}
    for entry in document["install"]:
        name, version = normal(entry["metadata"]["name"]), entry["metadata"]["version"]
        if name not in OURS:
            found[name] = (version, entry["download_info"]["archive_info"]["hashes"]["sha256"])
    return found


def lock_text(found: dict[str, tuple[str, str]]) -> str:
    where = f"CPython {'.'.join(platform.python_version_tuple()[:2])} on {platform.system()} {platform.machine()}"
    head = [
        f"# Written by scripts/lock.py for {where}: every extra, and what builds the wheel.",
        "# pip install --require-hashes --requirement requirements.lock",
    ]
    rows = [f"{name}=={version} \\\n    --hash=sha256:{digest}" for name, (version, digest) in sorted(found.items())]
    text = "\n".join([*head, *rows]) + "\n"
    assert "://" not in text
    assert "--index" not in text
    return text


def disagreements() -> list[str]:
    """Where lock and constraints do not say the same."""
    pins, lock = constrained(), locked()
    said = [f"{name} is not in the lock" for name in sorted(pins.keys() - lock.keys())]
    said += [f"{name} is not in constraints.txt" for name in sorted(lock.keys() - pins.keys())]
    both = sorted(pins.keys() & lock.keys())
    return said + [f"{name}: {pins[name]} and {lock[name][0]}" for name in both if pins[name] != lock[name][0]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the lock with the constraints, write nothing")
    options = parser.parse_args()
    if not options.check:
        LOCK.write_text(lock_text(resolve()), encoding="utf-8")
    found = disagreements()
    for line in found:
        print(f"lock: {line}", file=sys.stderr)
    if not found:
        print(f"requirements.lock: {len(locked())} files")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
