"""Build the wheels of product and lab twice, in two folders, and demand the same bytes: dist/searchblend*.whl.

    python scripts/wheel.py [--output dist]

The sources are those that git knows, copied to a fresh folder: nothing that lies about enters a wheel. The time in
the archive is that of the last commit (SOURCE_DATE_EPOCH, unless it is set), so that anyone gets the same SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from pins import ROOT

PROJECTS = {"searchblend": ".", "searchblend_lab": "lab"}
"""Package → where its pyproject.toml is."""


def git(*arguments: str) -> str | None:
    """What git says of this folder; None where it is no checkout."""
    command = [shutil.which("git") or "git", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def epoch() -> str:
    """Seconds of the last commit (SOURCE_DATE_EPOCH overrides it); without git the first that an archive can hold."""
    return os.environ.get("SOURCE_DATE_EPOCH") or (git("log", "-1", "--format=%ct") or "315532800").strip()


def sources() -> list[Path]:
    """The files that git knows and that are still there; without git what an unpacked archive of the sources holds."""
    listed = git("ls-files", "-z")
    if listed is not None:
        names = [Path(name) for name in listed.split("\0") if name]
    else:
        inside = [path for folder in ("src", "extension", "lab") for path in (ROOT / folder).rglob("*")]
        names = [path.relative_to(ROOT) for path in [*ROOT.glob("*"), *inside]]
    left_out = {"__pycache__", "node_modules"}
    return [name for name in sorted(names) if (ROOT / name).is_file() and not left_out & set(name.parts)]


def copy_sources(folder: Path) -> Path:
    for name in sources():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def build(tree: Path, output: Path, when: str) -> Path:
    """The wheel of a folder; with the build tool of this environment, so that no index is asked."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(output)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"wheel: {done.stderr}")
    (wheel,) = output.glob("*.whl")
    return wheel


def build_twice(folder: Path) -> dict[str, list[Path]]:
    """Project → two wheels of one state of the sources, built in two places."""
    when, first = epoch(), copy_sources(folder / "here")
    second = shutil.copytree(first, folder / "elsewhere" / "deeper")
    return {
        name: [build(tree / place, folder / f"{name}-{tree.name}", when) for tree in (first, second)]
        for name, place in PROJECTS.items()
    }


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def missing_files(wheel: Path, project: str) -> list[str]:
    """Files of the package that git knows and the wheel does not hold."""
    inside = set(zipfile.ZipFile(wheel).namelist())
    top = Path(PROJECTS[project]) / "src"
    wanted = [str(name.relative_to(top)) for name in sources() if top / project in name.parents]
    return [name for name in wanted if name not in inside]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        built = build_twice(Path(folder))
        for project, (first, second) in built.items():
            if digest(first) != digest(second):
                print(f"wheel: two builds of {project} differ", file=sys.stderr)
                return 1
            if missing := missing_files(first, project):
                print(f"wheel: not in {first.name}: {', '.join(missing)}", file=sys.stderr)
                return 1
        options.output.mkdir(parents=True, exist_ok=True)
        for first, _ in built.values():
            shutil.copy(first, options.output / first.name)
            print(f"{digest(first)}  {first.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
