"""The packages that people get: what their manifests ask for, what is in them, that they are always the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile

import pytest

from extension_parts import EXTENSION, browser_path, build_extension

INSTALLER = EXTENSION.parent / "scripts" / "install-browsers.sh"
NODE_TESTS = (
    "device.test.js",
    "tokens.test.js",
    "content.test.js",
    "packs.test.js",
    "words.test.js",
    "locales.test.js",
)
ARCHIVES = {"chromium": "searchblend-chromium.zip", "firefox": "searchblend-firefox.xpi"}
ENROLMENT = {"server": "https://lists.example", "task": "0" * 32, "keys": ["04" + "ab" * 64], "consent": "I agree."}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return build_extension(tmp_path_factory.mktemp("package"))


def manifest(package, browser: str) -> dict:
    return json.loads((package / browser / "manifest.json").read_text())


@pytest.mark.parametrize("browser", ARCHIVES)
def test_it_asks_for_little(package, browser):
    document = manifest(package, browser)
    assert document["permissions"] == ["alarms", "scripting"]
    assert "host_permissions" not in document  # every host is asked for, after consent
    assert "content_scripts" not in document
    assert "content_security_policy" not in document  # the browser's default, which allows no remote code
    assert document["incognito"] == "not_allowed"
    assert not any("127.0.0.1" in host for host in document["optional_host_permissions"])


def test_each_browser_gets_its_own_keys(package):
    chromium, firefox = manifest(package, "chromium"), manifest(package, "firefox")
    assert chromium["background"] == {"service_worker": "src/background/main.js", "type": "module"}
    assert firefox["background"] == {"scripts": ["src/background/main.js"], "type": "module"}
    gecko = firefox["browser_specific_settings"]["gecko"]
    assert gecko["data_collection_permissions"] == {
        "required": ["none"],
        "optional": ["searchTerms", "browsingActivity"],
    }
    assert "browser_specific_settings" not in chromium


@pytest.mark.parametrize("browser", ARCHIVES)
def test_every_file_that_is_named_is_there(package, browser):
    folder = package / browser
    text = json.dumps(manifest(package, browser))
    named = set(re.findall(r'"((?:src|icons)/[^"]+)"', text))
    named |= set(re.findall(r'"(src/[^"]+\.js)"', (folder / "src/background/main.js").read_text()))
    for page in folder.glob("src/ui/*.html"):
        for path in re.findall(r'(?:src|href)="([^"]+)"', page.read_text()):
            named.add((page.parent / path).resolve().relative_to(folder.resolve()).as_posix())
    for module in folder.rglob("*.js"):
        code = re.sub(r"/\*.*?\*/", "", module.read_text(), flags=re.DOTALL)  # comments import types alone
        for path in re.findall(r'(?:from|import) "(\.[^"]+)"', code):
            named.add((module.parent / path).resolve().relative_to(folder.resolve()).as_posix())
    assert [path for path in sorted(named) if not (folder / path).is_file()] == []


@pytest.mark.parametrize("browser", ARCHIVES)
def test_no_remote_code(package, browser):
    for path in (package / browser).rglob("*"):
        if path.suffix in (".js", ".html"):
            text = path.read_text()
            assert not re.search(r"\beval\(|new Function\(|innerHTML|document\.write|Math\.random", text), path
            assert not re.search(r'(?:src|import|from)\s*[=(]?\s*"https?://', text), path


def test_only_the_platform_touches_the_browser():
    for path in (EXTENSION / "src").rglob("*.js"):
        if path.parent.name != "platform":
            assert not re.search(r"\b(?:chrome|browser)\.(?!js\b)\w", path.read_text()), path


def test_always_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        build_extension(tmp_path / name)
    for archive in ARCHIVES.values():
        assert (tmp_path / "one" / archive).read_bytes() == (tmp_path / "two" / archive).read_bytes()
        with zipfile.ZipFile(tmp_path / "one" / archive) as package:
            assert not [name for name in package.namelist() if "test" in name or name.endswith((".md", ".py"))]


def test_a_package_for_one_list(tmp_path):
    (tmp_path / "enrolment.json").write_text(json.dumps(ENROLMENT))
    package = build_extension(tmp_path / "package", "--enrolment", str(tmp_path / "enrolment.json"))
    assert json.loads((package / "firefox" / "enrolment.json").read_text()) == {
        **ENROLMENT,
        "curators": [],
        "has_urls": True,
    }
    hosts = manifest(package, "chromium")["optional_host_permissions"]
    assert "https://lists.example/*" in hosts
    assert "https://*/*" not in hosts
    paid = build_extension(
        tmp_path / "paid", "--enrolment", str(tmp_path / "enrolment.json"), "--issuer", "https://issuer.example:8490"
    )
    assert set(manifest(paid, "firefox")["optional_host_permissions"]) - set(hosts) == {"https://issuer.example/*"}


@pytest.mark.parametrize("arguments", [("--issuer", "https://issuer.example"), ("--issuer", "issuer.example")])
def test_an_issuer_without_a_list_or_an_address_is_refused(tmp_path, arguments):
    command = [sys.executable, str(EXTENSION / "build.py"), "--output", str(tmp_path), "--folder", str(tmp_path / "x")]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "build: --issuer: expected https://HOST, and --enrolment\n")


def test_a_package_for_a_list_without_pages(tmp_path):
    (tmp_path / "enrolment.json").write_text(json.dumps({**ENROLMENT, "has_urls": False}))
    package = build_extension(tmp_path / "package", "--enrolment", str(tmp_path / "enrolment.json"))
    assert json.loads((package / "chromium" / "enrolment.json").read_text())["has_urls"] is False


@pytest.mark.parametrize("server", ["http://127.0.0.1:8080", "http://localhost", "https://lists.example/below"])
def test_a_service_that_may_be_packed(tmp_path, server):
    assert built(tmp_path, {**ENROLMENT, "server": server}).returncode == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("server", 3),
        ("server", "lists.example"),
        ("server", "http://lists.example"),
        ("server", "https://ann:secret@lists.example"),
        ("server", "https://"),
        ("server", "https://[lists"),
        ("server", "https://lists.example:port"),
        ("keys", "04"),
        ("keys", []),
        ("keys", ["04ab"]),
        ("keys", [4]),
        ("curators", "04"),
        ("curators", ["04ab"]),
        ("task", None),
        ("task", "xyz"),
        ("task", "0" * 33),
        ("consent", None),
        ("has_urls", "no"),
        ("note", "not for the package"),
    ],
)
def test_a_bad_enrolment(tmp_path, field, value):
    done = built(tmp_path, {**ENROLMENT, field: value})
    assert done.returncode == 2
    assert re.search(rf"enrolment\.json: .*{field}", done.stderr)
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert not list(tmp_path.glob("searchblend-*"))


def test_an_enrolment_that_is_no_object(tmp_path):
    for text in ("[]", "{", ""):
        done = built(tmp_path, text)
        assert done.returncode == 2
        assert "enrolment.json: enrolment: expected" in done.stderr


def built(folder, enrolment) -> subprocess.CompletedProcess:
    """How a build with this enrolment ends."""
    text = enrolment if isinstance(enrolment, str) else json.dumps(enrolment)
    (folder / "enrolment.json").write_text(text)
    command = [sys.executable, str(EXTENSION / "build.py"), "--output", str(folder), "--folder", str(folder / "x")]
    return subprocess.run(
        [*command, "--enrolment", str(folder / "enrolment.json")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def run_installer(folder, programs: dict[str, str]) -> subprocess.CompletedProcess:
    """On a machine that has these programs and no others."""
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    command = ["/bin/sh", str(INSTALLER)]
    return subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, timeout=240, check=False)


def test_absent_browsers_fail_loudly_for_others_than_root(tmp_path):
    done = run_installer(tmp_path, {"id": "echo 1000", "apt-get": "exit 0", "node": "", "npm": "", "chromium": ""})
    assert done.returncode == 1
    assert "firefox-esr" in done.stderr
    assert "chromium" not in done.stderr


def test_absent_browsers_are_installed_by_root(tmp_path):
    said = 'echo "$@" >> "${0%/*}/said"'
    done = run_installer(tmp_path, {"id": "echo 0", "apt-get": said, "node": "", "npm": ""})
    assert done.returncode == 0, done.stderr
    assert "chromium firefox-esr" in (tmp_path / "said").read_text().splitlines()[-1]


@pytest.mark.parametrize("name", NODE_TESTS)
def test_in_node(name):
    done = subprocess.run(
        [browser_path("node"), "--test", str(EXTENSION / "tests" / name)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[max(0, done.stdout.find("\nnot ok")) :][:5000]
