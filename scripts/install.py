"""Install the part of requirements.lock that some groups need, by hash, and then our own source.

    python scripts/install.py GROUP ... [--editable FOLDER ...]

Groups are ``base`` (the package alone), its extras, and ``lab``. pip refuses any other bytes than those of the lock; on
another Python or machine than the lock was written for, where the files differ, the versions are still those of the
lock. Our source is built with what the lock holds (``build``), not with what an index has today.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pins import LOCK, group_requirements, locked, platform_name

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile"]
"""A module is compiled when it is first imported: most of them never are."""


def requirements(groups: list[str]) -> str:
    """The lines of the lock for these groups."""
    pins = {name: pin for name, pin in locked().items() if set(groups) & set(pin.groups)}
    return "".join(
        f"{name}=={pin.version} {' '.join(f'--hash=sha256:{digest}' for digest in pin.hashes)}\n"
        for name, pin in pins.items()
    )


def versions() -> str:
    return "".join(f"{name}=={pin.version}\n" for name, pin in locked().items())


def uncompressed(folder: Path) -> dict[str, str]:
    """Settings in which wheels are built without compression: Spark comes as source, with half a gigabyte of archives.

    What is built is unpacked at once, so that compressing it is in vain.
    """
    settings = folder / "setuptools.cfg"
    settings.write_text("[bdist_wheel]\ncompression = stored\n", encoding="utf-8")
    return {"DIST_EXTRA_CONFIG": str(settings), **os.environ}


def install(groups: list[str], folder: Path) -> None:
    path = folder / "requirements.txt"
    if f" for {platform_name()}." in LOCK.read_text(encoding="utf-8").partition("\n")[0]:
        path.write_text(requirements(groups), encoding="utf-8")
        command = [*PIP, "--require-hashes", "--no-deps", "--requirement", str(path)]
        subprocess.run(command, check=True, env=uncompressed(folder))
        return
    print(f"install: {platform_name()} is not what the lock was written for: its versions, without hashes")
    path.write_text(versions(), encoding="utf-8")
    asked = [text for group in groups for text in group_requirements(group)]
    subprocess.run([*PIP, "--constraint", str(path), *asked], check=True, env=uncompressed(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="+", metavar="GROUP", help="base, an extra, or lab")
    parser.add_argument("--editable", nargs="+", default=[], metavar="FOLDER", help="source to install in place")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        install(options.groups, Path(folder))
    if options.editable:
        sources = [part for folder in options.editable for part in ("--editable", folder)]
        subprocess.run([*PIP, "--no-deps", "--no-build-isolation", *sources], check=True)


if __name__ == "__main__":
    main()
