"""The image is built, and ``deploy/compose.yaml`` brings a whole round up from nothing, each container for real.

Slow. Where no image can be built the tests say so and are skipped.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import psycopg
import pytest
import yaml

from container_engine import Container, Engine, Image, why_not
from postgres_cluster import postgres_cluster
from searchblend.service.demo import DemoConnections, Population, Staff
from searchblend.service.settings import ServeSettings
from searchblend.wire.signing import read_public_point
from service_parts import SMALL, people

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVING = ("collector", "intake", "gateway", "publisher", "admin")
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
TAG = "localhost/searchblend"
PATIENT = 240.0
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    why = why_not()
    if why:
        print(f"\nNO IMAGE WAS BUILT, NO CONTAINER WAS TESTED: {why}", file=sys.__stderr__)
        pytest.skip(why)
    engine = Engine(tmp_path_factory.mktemp("engine"))
    engine.build(TAG)
    with engine.file_system(TAG) as files:
        yield Image(files, engine.configuration(TAG))


class Deployment:
    """The services of compose.yaml, each at an address of its own on the loopback interface."""

    def __init__(self, folder, image):
        self.folder, self.image, self.running = folder, image, {}
        self.services = COMPOSE["services"]
        network = f"127.{os.getpid() % 250 + 2}.{time.monotonic_ns() % 250 + 2}"
        self.hosts = {name: f"{network}.{i}" for i, name in enumerate(self.services, 2)}
        shutil.copytree(DEPLOY, folder / "deploy")
        subprocess.run(["sh", "make-secrets.sh"], cwd=folder / "deploy", check=True)
        self.volumes = {name: folder / "volumes" / name for name in COMPOSE["volumes"]}
        for place in self.volumes.values():
            place.mkdir(parents=True)
            os.chown(place, int(image.user), int(image.user))
            place.chmod(0o700)

    @property
    def secrets(self):
        return self.folder / "deploy" / "secrets"

    def of(self, service, *more):
        """The command that compose would start, and the settings that it would have."""
        described = self.services[service]
        entry = described.get("entrypoint", self.image.configuration["Entrypoint"])
        command = [part.replace("$$", "$") for part in described.get("command", ())]
        files = [self.folder / "deploy" / file for file in described.get("env_file", ())]
        settings = [line.split("=", 1) for file in files for line in file.read_text().splitlines()]
        return [*entry, *(more or command or self.image.configuration["Cmd"])], {
            **dict(settings),
            **described.get("environment", {}),
            "SEARCHBLEND_HOST": self.hosts[service],
        }

    def start(self, service, *more, name=""):
        command, settings = self.of(service, *more)
        if service in ("intake", "curator"):  # people of the demo have no enrolment codes
            command = [*command, "--demo-server"]
        if "SEARCHBLEND_HEALTH_HOST" in settings:
            settings["SEARCHBLEND_HEALTH_HOST"] = self.hosts[service]
        volumes = {}
        for volume in self.services[service].get("volumes", ()):
            source, target, *_ = volume.split(":")
            volumes[target] = self.volumes[source]
        container = Container(self.image, self.folder, name or service, command, settings, volumes, self.hosts)
        self.running[name or service] = container
        return container

    def run(self, service, *more, name=""):
        """To its end; what it has said."""
        container = self.start(service, *more, name=name)
        assert container.ended() == 0, container.log
        return container.log

    def users(self, programs):
        """The service ``users`` with PostgreSQL's own program, here instead of in PostgreSQL's image."""
        shell, option, text = self.of("users")[0]
        text = text.replace("--host database", f"--host {self.hosts['database']}")
        text = re.sub(r"/run/secrets/([$\w]+)-password", rf"{self.secrets}/\1.password", text)
        text = text.replace("/data/shared", str(self.volumes["shared"]))
        libraries = {"LD_LIBRARY_PATH": str(programs.parent / "lib")}
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", **libraries}
        subprocess.run([shell, option, text], env=environment, check=True)

    def proxy(self):
        """Its command, with the host's nginx; two of its places are another's here."""
        shell, option, text = self.of("proxy")[0]
        adapted = (self.folder / "deploy" / "nginx.conf").read_text()
        for there, here in {
            "listen 80;": f"listen {self.hosts['proxy']}:8080;",
            "listen 443 ssl": f"listen {self.hosts['proxy']}:8443 ssl",
            "/etc/nginx/tls": str(self.secrets / "tls"),
            "/var/log/nginx": str(self.folder),
            "/var/cache/nginx": str(self.folder),
            "/run/nginx.pid": str(self.folder / "nginx.pid"),
        }.items():
            assert there in adapted, there
            adapted = adapted.replace(there, here)
        (self.folder / "nginx.conf").write_text("user root;\n" + adapted)
        text = text.replace("/etc/searchblend/nginx.conf", str(self.folder / "nginx.conf"))
        text = text.replace("/run/nginx.conf", str(self.folder / "roles.conf")).replace("exec nginx", f"exec {NGINX}")
        for role in SERVING:  # there are names for them in the containers' network, and none here
            text = text.replace(
                "exec ", f"sed -i 's/ {role}:8470/ {self.hosts[role]}:8470/' {self.folder}/roles.conf\nexec "
            )
        return subprocess.Popen([shell, option, text], cwd=self.folder)

    def stop(self):
        for container in self.running.values():
            if container.process.poll() is None:
                container.process.kill()
                container.ended()


class Routed(DemoConnections):
    """Each request to the role that answers it: the proxy's limit for one address is below a whole population."""

    def __init__(self, hosts):
        self._to = {role: DemoConnections(f"http://{hosts[role]}:8470") for role in SERVING}

    def close(self):
        for transport in self._to.values():
            transport.close()

    def send(self, method, path, body=b"", **arguments):
        kinds = {"/reports": "collector", "/contributions": "intake"}
        role = next((role for end, role in kinds.items() if path.endswith(end)), "publisher")
        return self._to["admin" if path.startswith("/admin/") else role].send(method, path, body, **arguments)


@pytest.fixture(scope="module")
def deployment(image, tmp_path_factory):
    made = Deployment(tmp_path_factory.mktemp("deployment"), image)
    made.folder.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(made.stop)
        cluster = stack.enter_context(postgres_cluster(made.hosts["database"]))
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            password = (made.secrets / "owner.password").read_text()
            connection.execute(f"CREATE ROLE owner LOGIN SUPERUSER PASSWORD '{password}'")
            connection.execute("CREATE DATABASE searchblend OWNER owner")
        made.run("tables")
        made.users(cluster.programs)
        made.users(cluster.programs)  # as at each start
        yield made


def answers(address):
    deadline = time.monotonic() + PATIENT
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx2.HTTPError):
            if httpx2.get(address, timeout=PATIENT).status_code == 200:
                return True
        time.sleep(0.2)
    return False


def test_the_image_is_what_compose_and_kubernetes_expect(image):
    settings = ServeSettings()
    config = image.configuration
    assert config["User"] == "8470", "a number, so that an engine can tell that it is not root"
    assert set(config["ExposedPorts"]) == {f"{settings.port}/tcp", f"{settings.health_listens}/tcp"}
    assert config["Healthcheck"]["Test"] == ["CMD", "python", "/opt/searchblend/healthcheck.py"]
    installed = {path.name.partition("-")[0] for path in (image.files / "opt/searchblend").rglob("*.dist-info")}
    assert {"searchblend", "uvicorn", "psycopg", "starlette"} <= installed
    assert not installed & {"pip", "hatchling", "pytest", "pyspark"}, "what builds and what tests stays behind"
    assert not (image.files / "source").exists()


def test_nothing_in_the_image_is_its_users_to_change(deployment):
    script = "find / -xdev -writable ! -type l ! -path '/proc/*' ! -path '/dev/*' 2>/dev/null || true"
    probe = Container(deployment.image, deployment.folder, "probe", ["sh", "-c", script], {}, {}, deployment.hosts)
    assert probe.ended() == 0
    places = {line for line in probe.log.splitlines() if not line.startswith(("/data", "/tmp"))}
    assert places <= {"/var/tmp", "/run/lock", "/var/lock"}, probe.log
    write = Container(deployment.image, deployment.folder, "write", ["touch", "/var/tmp/x"], {}, {}, deployment.hosts)
    assert write.ended() != 0
    assert "Read-only file system" in write.log


def test_a_whole_round_comes_up_from_nothing(deployment):
    tokens = {}
    for name, role in (("ann", "operator"), ("rob", "reviewer")):
        said = deployment.run("owner", "keys", "token", name, role, "--json", name=f"token-{name}")
        tokens[role] = re.search(r'"token": "(sba_[^"]+)"', said)[1]
    for role in (*SERVING, "curator"):
        deployment.start(role)
    for role in SERVING:
        assert answers(f"http://{deployment.hosts[role]}:9470/readyz"), deployment.running[role].log
    check = ["python", "/opt/searchblend/healthcheck.py"]
    for role, code in (("collector", 0), ("curator", 0)):
        place = {"SEARCHBLEND_HEALTH_HOST": deployment.hosts[role], "SEARCHBLEND_ROLE": role}
        asked = Container(deployment.image, deployment.folder, f"health-{role}", check, place, {}, deployment.hosts)
        assert asked.ended() == code, asked.log
    keys = deployment.run("owner", "keys", "list", "--json", name="keys")
    points = dict(
        read_public_point(point, "key")
        for point in re.findall(r'"public_point": "([0-9a-f]+)"', keys.partition("curator_keys")[0])
    )
    with httpx2.Client(base_url=f"http://{deployment.hosts['admin']}:8470", timeout=PATIENT) as client:
        headers = {"authorization": f"Bearer {tokens['operator']}"}
        task = client.post("/admin/v1/tasks", json={**SMALL, "delta": 1e-3}, headers=headers).json()["task"]
    routed = Routed(deployment.hosts)
    try:
        population = Population(routed, points, lambda *_: None)
        staff = Staff(tokens["operator"], tokens["reviewer"])
        result = population.play_round(task, staff, people(200, seed=1), people(400, seed=2))
    finally:
        routed.close()
    assert (result.reports_counted, result.conservation.holds) == (400, True)
    assert list(deployment.volumes["curator-keys"].glob("*.key")) == []
    if NGINX:
        through_the_proxy(deployment, task)
    for role in (*SERVING, "curator"):
        assert deployment.running[role].stop() == 0, deployment.running[role].log


def through_the_proxy(deployment, task):
    """Each role is reached under the one address."""
    proxy = deployment.proxy()
    try:
        address = f"https://{deployment.hosts['proxy']}:8443"
        context = ssl.create_default_context(cafile=str(deployment.secrets / "tls" / "certificate.pem"))
        context.check_hostname = False
        deadline = time.monotonic() + PATIENT
        with httpx2.Client(base_url=address, verify=context, timeout=PATIENT) as client:
            while time.monotonic() < deadline:
                with contextlib.suppress(httpx2.ConnectError):
                    client.get("/healthz")
                    break
            at = f"/v1/tasks/{task}/rounds/1"
            report = {"content-type": "application/vnd.searchblend.report"}
            assert client.get(f"/v1/tasks/{task}/manifest").status_code == 200
            assert client.get(f"/trends/{task}").status_code == 200
            # Refused by the role that takes them; any other knows no such address.
            assert client.post(f"{at}/reports", content=b"x", headers=report).status_code == 400
            assert client.post(f"{at}/contributions", content=b"x").status_code in (400, 401, 415)
            assert client.get("/console/sign-in").status_code == 200
            assert client.get("/admin/v1/tasks").status_code == 401
            assert client.get("/metrics").status_code == 404
    finally:
        proxy.terminate()
        proxy.wait(PATIENT)
