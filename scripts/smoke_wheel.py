"""Install the wheels into an empty environment and use every command once, for real.

    python scripts/smoke_wheel.py [--wheels dist] [--locked]

First plain, as ``pip install searchblend`` gives it: commands that need an extra or the lab must say so, without a
traceback. Then with the extra ``device``, with ``server``, and with the lab. A command that has no use listed here
fails the test, and so does any module of the environment that comes from this source tree. --locked installs what
requirements.lock holds, by hash.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from install import versions
from pins import LOCK, ROOT
from wheel import PROJECTS

LAB_COMMANDS = ("evaluate", "audit", "compare")

PLAIN = [
    "demo --users 20000",
    "run searches.tsv -o head --epsilon 4 --json",
    "run searches.tsv --dry-run",
    "plan --users 100000 --runs 1 --json",
    "page head -o head.html",
    "statement head --for nist",
    "statement head --for registry -o entry.yaml --json",
    "stats searches.tsv --json",
    "select searches.tsv --columns value=query -o values --json",
    "generate --profile aol --users 300 -o made.txt",
    "ledger cap budget.ledger --lifetime 20,1e-4",
    "ledger show budget.ledger",
    "ledger check budget.ledger --json",
    "ledger export budget.ledger",
    "ledger what-if plan.toml --json",
    "release plan --users 20000 --json",
    "release run clicks.tsv -o release --users 20000 --urls private --delta 1e-6",
    "release verify release",
    "release review release --json",
    "graph keywords release --seed-domain a.example --json",
    "graph similar release 'query 1' --json",
    "graph suggest release 'query 1' --json",
    "graph spell release --json",
    "graph study release --pattern '^query (.+)$' --json",
    "graph synthesize release --searches 100 -o synth.tsv",
    "pack build head -o answers.sbpack",
    "pack inspect answers.sbpack --json",
    "pack build head -o same.sbpack",
    "pack diff answers.sbpack same.sbpack -o update.sbdelta",
    "pack apply answers.sbpack update.sbdelta -o new.sbpack",
    "pack page answers.sbpack -o search.html",
    "search answers.sbpack weather --json",
    "completion bash",
]
LAB = [
    "evaluate list",
    "evaluate fig9 --runs 1 -o results",
    "compare clicks.tsv --rules threshold:30/5 --algorithms gaussian --attack-runs 2 -o comparison --json",
    "audit --list",
    "audit --only exact-noise --workers 1 --json",
]
POINT = (
    "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
)
"""A public key that no one signs with: the curve's own base point."""
TASK = "00112233445566778899aabbccddeeff"
DEVICE = [
    f"device enrol --state device --server http://127.0.0.1:9 --plain-http --task {TASK} --key {POINT}",
    "device consent local --agree --state device",
    "device record weather --url https://weather.example/today --state device",
    "device import searches.jsonl --state device",
    "device status --state device --json",
    "device show --state device",
    "device export --state device",
    "device pause --state device",
    "device resume --state device",
]
SERVER = [
    "serve --demo --once --json",
    "task cap --lifetime 50,1e-3",
    "task create searches --set epsilon=2",
    "task list --json",
    "task show searches",
    "task adjust searches min_clients=2000",
    "task enrol searches 2",
    "task ledger --json",
    "round draft searches",
    "round open searches 1",
    "round show searches 1 --json",
    "keys token ann operator",
    "keys list --json",
    "keys revoke ann",
    "keys add",
    "keys adopt",
    "keys curator --json",
    "keys protect --new-passphrase none",
    f"aggregate reports.bin --head-list head/head_list.json --task {TASK} --round 1 --json",
    "database migrate --json",
    "database grants curator --user sb_curator",
    "doctor --json",
    "backup write backup.db",
    "backup restore backup.db --data-dir restored",
    "issuer add device-1 --address https://issuer.example --json",
    "issuer accounts",
    "issuer rotate",
    "issuer keys --json",
    "issuer end device-1",
    "audit-log verify",
    "audit-log show --json",
    "audit-log export audit.jsonl",
]
REFUSED = {
    "round close-opt-in searches 1": "a round that no one has opened yet has no window to close",
    "round candidate searches 1": "nor a list, nor a reviewer's token",
    "round review searches 1 --token-file nothing.token": "nor anything to review",
    "round reject searches 1 --reason other --token-file nothing.token": "nor anything to reject",
    "round close-clients searches 1": "nor clients",
    "round extend searches 1 24": "nor a window of theirs to extend",
    "round end-grace searches 1": "nor a grace",
    "round load-counts searches 1 nothing.json": "and a file that is not there",
    "keys remove 0123456789abcdef": "a key that does not exist",
    "device search weather --state device": "a device without a pack",
    "device account https://issuer.example --state device": "a link without an account",
    "relay --gateway http://lists.example/": "a gateway that would be asked in the clear",
    "log verify nothing --key 04": "a key that is none",
    "log cosign nothing --key 04 --witness-key nothing.pem --name w --state s": "nor one to check with",
    "log restore nothing --key 04": "nor a log to take entries from",
    "log attach nothing.txt --witness 04": "nor a signature to publish",
    "issuer serve --port 65536": "a port that there is not",
    "device sync --now --state device": "a service that is not there",
}
"""Uses that must end in a clear error: what they need cannot be had in a smoke test."""
LAST = ["round abort searches 1", "device erase --state device", "device leave --state device", "task kill searches"]


@dataclass
class Installed:
    """An environment and a folder to work in."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    def pip(self, *arguments: str) -> None:
        command = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*command, *arguments], check=True, cwd=self.folder)

    def command(self, line: str) -> subprocess.CompletedProcess[str]:
        """One command, in a shell's words; nothing of the source tree can be imported."""
        words = [str(self.python.with_name("searchblend")), *shlex.split(line)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            words, cwd=self.folder / "work", env=clean, capture_output=True, text=True, check=False, timeout=600
        )

    def module(self, code: str) -> str:
        done = subprocess.run(
            [str(self.python), "-I", "-c", code], cwd=self.folder / "work", capture_output=True, text=True, check=True
        )
        return done.stdout


WALK = f"""
import json
from searchblend.cli.parser import SUMMARIES, build_parser
def walk(parser, path):
    inner = [action for action in parser._actions if isinstance(action.choices, dict)]
    named = [(name, one) for action in inner for name, one in action.choices.items()]
    return [walked for name, one in named for walked in walk(one, [*path, name])] or [path]
lab = {list(LAB_COMMANDS)}
paths = [path for name in SUMMARIES if name not in lab for path in walk(build_parser(name), []) if path[0] == name]
print(json.dumps([" ".join(path) for path in paths] + lab))
"""


class Smoke:
    """Counts what was tried and what went wrong."""

    def __init__(self, installed: Installed) -> None:
        self.installed, self.tried, self.wrong = installed, 0, list[str]()

    def expect(self, line: str, codes: tuple[int, ...], said: str = "") -> None:
        started = time.monotonic()
        done = self.installed.command(line)
        self.tried += 1
        good = done.returncode in codes and "Traceback" not in done.stderr and said in done.stderr
        shown = f"{'ok  ' if good else 'FAIL'} {time.monotonic() - started:6.1f} s  searchblend {line}"
        print(shown, file=sys.stderr, flush=True)
        if not good:
            self.wrong.append(line)
            print(f"     exit code {done.returncode}: {done.stderr.strip()[-1500:]}", file=sys.stderr, flush=True)


def make_inputs(work: Path) -> None:
    """Logs that every command can use: a few common queries, many users."""
    work.mkdir()
    lines = [f"u{i}\tquery {i % 7}\thttp://{'abc'[i % 3]}.example\n" for i in range(20_000)]
    lines += [f"v{i}\tweather\thttp://weather.example\n" for i in range(4_000)]
    (work / "searches.tsv").write_text("user\tquery\turl\n" + "".join(lines), encoding="utf-8")
    timed = [f"{line[:-1]}\t2026-01-01 00:00:{i % 60:02}\n" for i, line in enumerate(lines)]
    (work / "clicks.tsv").write_text("user\tquery\turl\ttime\n" + "".join(timed), encoding="utf-8")
    (work / "plan.toml").write_text('[[release]]\nname = "weekly"\nepsilon = 0.1\ntimes = 52\n', encoding="utf-8")
    (work / "reports.bin").write_bytes(bytes(1000))
    (work / "searches.jsonl").write_text('{"query": "news", "url": "https://news.example"}\n', encoding="utf-8")


def uses(paths: list[str], lines: list[str]) -> list[str]:
    """The lines whose command exists."""
    return [line for line in lines if any(line == path or line.startswith(f"{path} ") for path in paths)]


def without_use(paths: list[str]) -> list[str]:
    lines = [*PLAIN, *DEVICE, *SERVER, *REFUSED, *LAST, *LAB]
    return [path for path in paths if not any(line == path or line.startswith(f"{path} ") for line in lines)]


def test_plain(smoke: Smoke, paths: list[str]) -> None:
    of_product = [path for path in paths if path not in LAB_COMMANDS]
    for path in ["", *sorted({path.rpartition(" ")[0] for path in of_product} - {""}), *of_product]:
        smoke.expect(f"{path} --help".strip(), (0,))
    smoke.expect("--version", (0,))
    for line in uses(paths, PLAIN):
        smoke.expect(line, (0,))
    for line in ("serve --demo --once", "task list", "keys list", "doctor"):
        smoke.expect(line, (2,), "pip install 'searchblend[server]'")
    smoke.expect("device status --state device", (2,), "pip install 'searchblend[device]'")
    smoke.expect("plan --users 100000 --runs 1 --plot plan.png", (2,), "pip install 'searchblend[plots]'")
    for line in (*LAB, *(f"{name} --help" for name in LAB_COMMANDS)):
        smoke.expect(line, (2,), "pip install searchblend-lab")
    smoke.expect("stats searches.tsv --engine spark", (2,), "searchblend[spark]")
    smoke.expect("run nothing.tsv -o nowhere", (1, 2), "searchblend: error:")


def test_device(smoke: Smoke, paths: list[str]) -> None:
    for line in uses(paths, DEVICE):
        smoke.expect(line, (0,))


def test_server(smoke: Smoke, paths: list[str]) -> None:
    for line in uses(paths, SERVER):
        smoke.expect(line, (0, 1) if line.startswith(("doctor", "aggregate")) else (0,))
    for line in uses(paths, list(REFUSED)):
        smoke.expect(line, (1, 2), "searchblend: error:")
    for line in uses(paths, LAST):
        smoke.expect(line, (0,))


def test_lab(smoke: Smoke) -> None:
    for line in (*(f"{name} --help" for name in LAB_COMMANDS), *LAB):
        smoke.expect(line, (0,))


def run(folder: Path, wheel: Path, lab: Path, *, locked: bool) -> Smoke:
    """Use the product's wheel, then the lab's beside it."""
    installed = Installed(folder)
    venv.create(folder / "environment", with_pip=True)
    make_inputs(folder / "work")
    constraints = folder / "constraints.txt"
    constraints.write_text(versions(), encoding="utf-8")
    if locked:
        installed.pip("--require-hashes", "--requirement", str(LOCK))
        installed.pip("--no-deps", str(wheel))
    else:
        installed.pip("--constraint", str(constraints), str(wheel))
    where = installed.module("import searchblend; print(searchblend.__file__)").strip()
    assert Path(where).is_relative_to(folder), where
    smoke = Smoke(installed)
    paths: list[str] = json.loads(installed.module(WALK))
    smoke.wrong += [f"no use of `searchblend {path}` is listed" for path in without_use(paths)]
    if not locked:
        test_plain(smoke, paths)
        installed.pip("--constraint", str(constraints), f"{wheel}[device]")
    test_device(smoke, paths)
    if not locked:
        installed.pip("--constraint", str(constraints), f"{wheel}[server]")
    test_server(smoke, paths)
    installed.pip(*(["--no-deps"] if locked else ["--constraint", str(constraints)]), str(wheel), str(lab))
    test_lab(smoke)
    return smoke


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, default=ROOT / "dist", metavar="DIR", help="where the wheels are (dist)")
    parser.add_argument("--locked", action="store_true", help="install requirements.lock by hash; the server's part")
    options = parser.parse_args()
    built = [sorted(options.wheels.resolve().glob(f"{name}-*.whl")) for name in PROJECTS]
    if not all(built):
        parser.error("a wheel is missing: run make wheel")
    wheel, lab = (wheels[-1] for wheels in built)
    with tempfile.TemporaryDirectory(prefix="searchblend-smoke-") as folder:
        smoke = run(Path(folder), wheel, lab, locked=options.locked)
    for line in smoke.wrong:
        print(f"FAIL {line}", file=sys.stderr)
    print(f"{smoke.tried} commands of {wheel.name} and {lab.name}, {len(smoke.wrong)} wrong")
    return int(bool(smoke.wrong))


if __name__ == "__main__":
    sys.exit(main())
