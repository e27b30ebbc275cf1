"""Images that Debian's buildah builds, and their containers as processes that see nothing but their image.

Neither a daemon nor a registry is needed: a base that cannot be pulled is made of Debian's packages. A container here
is the image's file system, read-only, in a mount namespace of its own, as the image's user and with the image's
environment. It shares the network, in which it has an address of its own on the loopback interface.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from install import requirements

ROOT = Path(__file__).parents[1]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
NEEDS = ("buildah", "mmdebstrap", "unshare", "chroot")
PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
GROUPS = ("base", "server", "oidc", "build")
SECONDS = 240


def why_not() -> str:
    """Why no image can be built here, if so."""
    absent = [name for name in NEEDS if not shutil.which(name)]
    if absent:
        return f"no container engine: {', '.join(absent)} not installed (Debian: apt-get install buildah mmdebstrap)"
    if os.geteuid() != 0:
        return "no container engine: the test makes a base and mounts, as root"
    return "" if sys.version_info[:2] == (3, 11) else "no container engine: the base's Python is 3.11, as the lock's"


class Engine:
    """buildah with a store of its own, without a daemon, without overlays, without namespaces that a sandbox denies."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._options = ["--root", str(folder / "store"), "--runroot", str(folder / "run"), "--storage-driver", "vfs"]

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["buildah", *self._options, *arguments],
            env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout.strip()

    def build(self, tag: str) -> None:
        """The image of the service, from the checkout as it is; nothing is fetched while it is built."""
        wheels, configuration = self._folder / "wheels", self._folder / "pip.conf"
        self._fetch(wheels)
        configuration.write_text("[global]\nno-index = true\nfind-links = /lock\n")
        volumes = ("--volume", f"{wheels}:/lock:ro", "--volume", f"{configuration}:/etc/pip.conf:ro")
        arguments = ("--isolation", "chroot", "--format", "docker", "--build-arg", f"BASE={self._base()}", *volumes)
        self("bud", *arguments, "--file", str(CONTAINERFILE), "--tag", tag, str(ROOT))

    def _base(self) -> str:
        archive = self._folder / "base.tar"
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(archive)]
        subprocess.run(command, check=True, capture_output=True)
        container = self("from", "scratch")
        self("add", container, str(archive), "/")
        self("commit", "--quiet", container, "localhost/searchblend-base")
        self("rm", container)
        archive.unlink()
        return "localhost/searchblend-base"

    def _fetch(self, wheels: Path) -> None:
        """The files of the lock, which the build installs by their hashes without an index."""
        asked = self._folder / "requirements.txt"
        asked.write_text(requirements(list(GROUPS)))
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*command, "--requirement", str(asked), "--dest", str(wheels)], check=True, capture_output=True)

    def configuration(self, tag: str) -> dict[str, Any]:
        """What the image says about itself, as engines read it."""
        document: dict[str, Any] = json.loads(self("inspect", "--type", "image", tag))["Docker"]["config"]
        return document

    @contextlib.contextmanager
    def file_system(self, tag: str) -> Iterator[Path]:
        container = self("from", "--pull-never", tag)
        try:
            yield Path(self("mount", container))
        finally:
            self("umount", container)
            self("rm", container)


@dataclass(frozen=True)
class Image:
    """An image's files with its configuration."""

    files: Path
    configuration: Mapping[str, Any]

    @property
    def user(self) -> str:
        return str(self.configuration["User"])

    @property
    def environment(self) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in self.configuration["Env"])


class Container:
    """One process of an image."""

    def __init__(
        self,
        image: Image,
        folder: Path,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        volumes: Mapping[str, Path],
        hosts: Mapping[str, str],
    ) -> None:
        """``volumes``: folders here by their place in the container; ``hosts``: addresses by name."""
        self._log = folder / f"{name}.log"
        table = folder / f"{name}.hosts"
        table.write_text("".join(f"{address} {host}\n" for host, address in hosts.items()))
        data = folder / f"{name}.data"  # the image's own volume
        for place in (data, *(data / part for part in ("keys", "gateway", "signing", "shared", "backups"))):
            place.mkdir()
            os.chown(place, int(image.user), int(image.user))
            place.chmod(0o700)
        values = {**image.environment, **environment}
        script = _mounts(image.files, {"/data": data, **volumes, "/etc/hosts": table})
        settings = shlex.join(["env", "-i", *(f"{key}={value}" for key, value in values.items()), *command])
        script += f"exec chroot --userspec={image.user}:{image.user} {shlex.quote(str(image.files))} {settings}\n"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-ec", script], stdout=log, stderr=log, start_new_session=True
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def ended(self) -> int:
        return self.process.wait(SECONDS)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()


def _mounts(root: Path, binds: Mapping[str, Path]) -> str:
    """Commands that put a container's file system together: the image cannot be written to, volumes can."""
    place = shlex.quote(str(root))
    lines = [f"mount --bind {place} {place}", f"mount -o remount,bind,ro {place}"]
    lines += [
        f"mount --rbind /dev {place}/dev",
        f"mount -t proc proc {place}/proc",
        f"mount -t tmpfs tmpfs {place}/tmp",
    ]
    lines += [f"mount --bind {shlex.quote(str(here))} {place}{there}" for there, here in binds.items()]
    return "".join(f"{line}\n" for line in lines)
