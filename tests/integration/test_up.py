"""`muster up` as real processes: started, refused, killed, adopted, stopped."""

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from muster.core import log_files
from muster.core.process import Process, processes
from muster.roles import up
from tests.support.waiting import timed_out

pytestmark = pytest.mark.newest  # clusters of our own, whatever the tests' server is

# The supervisor is the real one; roles that only listen keep these tests quick.
DRIVER = """
import sys
from pathlib import Path
from muster.roles import up

folder, listen, ready, role = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4]
command = lambda name, ready_file: [sys.executable, "-P", role, name, str(ready_file)]
sys.exit(up.main(up.Options(folder, listen, ready), command=command))
"""
ROLE = """
import json, os, signal, socket, sys, threading

name, ready = sys.argv[1:]
over = threading.Event()
stubborn = os.path.exists(os.path.join(os.environ["MUSTER_DATA_DIR"], "stubborn"))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN if stubborn else lambda *_: over.set())
told = {"environ": sorted(key for key in os.environ if key.startswith("MUSTER_"))}
if name == "api":
    host, port = os.environ["MUSTER_LISTEN"].split(":")
    listener = socket.create_server((host, int(port)))
    told["url"] = f"http://{host}:{port}"
with open(ready + ".draft", "w") as file:
    json.dump(told, file)
os.rename(ready + ".draft", ready)
while not over.wait(0.2):
    os.utime(ready)
"""

KEEP = (
    "insert into answer (caller, request_key, body_digest, outcome) values ('test', 'k', '', '42')"
)
KEPT = "select outcome::text::int from answer where caller = 'test'"


@dataclass
class Home:
    """One data directory and what runs on it."""

    root: Path
    driver: list[str]
    started: list["subprocess.Popen[str]"] = field(default_factory=list)

    @property
    def ready(self) -> Path:
        return self.root.parent / "ready.json"

    def up(self, listen: str = "127.0.0.1:0", **environment: str) -> "subprocess.Popen[str]":
        argv = [
            sys.executable,
            "-P",
            self.driver[0],
            str(self.root),
            listen,
            str(self.ready),
            self.driver[1],
        ]
        return self.launch(argv, **environment)

    def launch(
        self, argv: list[str], cwd: Path | None = None, **environment: str
    ) -> "subprocess.Popen[str]":
        clean = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd,
            env=clean | environment, start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def wait_ready(self, process: "subprocess.Popen[str]", limit: float = 40) -> dict[str, Any]:
        def told() -> dict[str, Any] | None:
            if process.poll() is not None:
                raise AssertionError(f"ended with {process.returncode}: {process.stdout.read()}")
            with contextlib.suppress(OSError, ValueError):
                found: dict[str, Any] = json.loads(self.ready.read_text())
                return found if found["pid"] == process.pid else None
            return None

        return until(told, limit)  # type: ignore[no-any-return]

    def stop(self, process: "subprocess.Popen[str]") -> str:
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
        assert time.monotonic() - begin < 10
        assert process.returncode == 0, output
        assert self.living() == []
        assert not self.ready.exists()
        return output

    def pid(self, role: str) -> int:
        return json.loads((self.root / "run" / f"{role}.json").read_text())["pid"]

    def postmaster(self) -> int | None:
        """None between the death of one postmaster and the birth of the next."""
        with contextlib.suppress(FileNotFoundError):
            words = (self.root / "metadata" / "data" / "postmaster.pid").read_text().split()
            return int(words[0]) if words else None
        return None

    def living(self) -> list[Process]:
        """Every process of the directory: roles by their argv, PostgreSQL by its folder."""
        mark = f"{self.root}/"
        return [
            found for found in processes()
            if any(word.startswith(mark) for word in found.argv if word != str(self.ready))
            or (found.program == "postgres" and str(_cwd(found)).startswith(mark))
        ]  # fmt: skip


def _cwd(process: Process) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{process.pid}/cwd")
    return ""


def until(look: Callable[[], Any], limit: float = 15) -> Any:
    found = None
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.03)
    raise AssertionError(timed_out(look, limit, found))


def kill(process: "subprocess.Popen[str]") -> None:
    """kill -9, and nothing of it is left in our process."""
    process.kill()
    process.wait()
    assert process.stdout
    process.stdout.close()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in (("driver.py", DRIVER), ("role.py", ROLE)):
        (folder / name).write_text(text)
    return [str(folder / "driver.py"), str(folder / "role.py")]


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory, programs: list[str]) -> Path:
    """A data directory after its first start and stop, with a table in it."""
    home = Home(tmp_path_factory.mktemp("seed") / "data", programs)
    process = home.up()
    try:
        told = home.wait_ready(process)
        execute(told["database_url"], KEEP)
        home.stop(process)
    finally:
        kill(process)
    return home.root


@pytest.fixture
def home(tmp_path: Path, programs: list[str]) -> Iterator[Home]:
    home = Home(tmp_path / "data", programs)
    yield home
    for process in home.started:
        kill(process)
    for leftover in home.living():
        leftover.send(signal.SIGKILL)


@pytest.fixture
def used_home(home: Home, seed: Path) -> Home:
    subprocess.run(["cp", "-a", str(seed), str(home.root)], check=True)
    return home


def execute(url: str, statement: str) -> Any:
    import asyncio

    async def ask() -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(ask())


def test_a_first_start_makes_all_and_tells_it(home: Home) -> None:
    home.ready.write_text("old")

    process = home.up()
    told = home.wait_ready(process)

    assert set(told) == {"url", "token", "pid", "database_url"}
    assert told["url"].startswith("http://127.0.0.1:")
    assert len(told["token"]) >= 43
    assert (
        execute(
            told["database_url"],
            "select current_user || ' ' || rolsuper from pg_roles where rolname = current_user",
        )
        == "muster_app false"
    )
    assert execute(told["database_url"], "select count(*) from migration") > 0
    audit = "select has_table_privilege('audit_event', 'UPDATE, DELETE, TRUNCATE')"
    assert execute(told["database_url"], audit) is False
    private = [
        home.ready,
        *(home.root / "secrets").glob("*"),
        *(home.root / "logs").glob("*"),
        *(home.root / "run").glob("*.json"),
    ]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private if path.is_file()} == {0o600}
    output = home.stop(process)
    assert told["url"] in output and str(home.root / "secrets" / "token") in output
    assert told["token"] not in output


def test_a_second_start_goes_on_with_everything(used_home: Home, seed: Path) -> None:
    process = used_home.up()
    told = used_home.wait_ready(process)

    assert told["token"] == (seed / "secrets" / "token").read_text()
    assert execute(told["database_url"], KEPT) == 42
    used_home.stop(process)


def test_logs_of_roles_and_clusters_are_bounded_while_they_are_written(used_home: Home) -> None:
    process = used_home.up()
    told = used_home.wait_ready(process)
    logs = [used_home.root / "logs" / "api.log", used_home.root / "metadata" / "log"]
    for log in logs:
        with log.open("ab") as file:
            file.write(b"x" * (log_files.LIMIT + 1))

    older = [log_files.older(log) for log in logs]
    until(lambda: all(each.exists() for each in older), limit=60)

    until(lambda: all(log.stat().st_size < log_files.LIMIT for log in logs), limit=60)
    assert all(each.stat().st_size >= log_files.LIMIT for each in older)
    assert {stat.S_IMODE(each.stat().st_mode) for each in older} == {0o600}
    with contextlib.suppress(asyncpg.PostgresError):
        execute(told["database_url"], "select 'a statement that fails'::int")
    until(lambda: b"a statement that fails" in logs[1].read_bytes(), limit=60)
    used_home.stop(process)


def test_a_lost_key_file_is_not_replaced(used_home: Home) -> None:
    """A new key would leave every stored secret unreadable, and seal new ones beside them."""
    keys = used_home.root / "secrets" / "keys"
    kept = keys.read_text()
    keys.unlink()

    process = used_home.up()
    output, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert f"{keys} is missing" in output and "Restore that file" in output
    assert not keys.exists()
    keys.write_text(kept)
    process = used_home.up()
    used_home.wait_ready(process)
    used_home.stop(process)


def test_a_key_file_of_another_installation_is_refused(used_home: Home) -> None:
    keys = used_home.root / "secrets" / "keys"
    name, _, _ = keys.read_text().partition(":")
    keys.write_text(f"{name}:{'A' * 43}=")

    process = used_home.up()
    output, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert f"The envelope key '{name}' is not the key of that id" in output


def test_children_get_secrets_as_files_only(used_home: Home) -> None:
    process = used_home.up(
        MUSTER_LEASE="31s", MUSTER_REDIS_URL="redis://:canary-7@127.0.0.1:1/0", SOMETHING="else"
    )
    told = used_home.wait_ready(process)

    for role in up.ROLES:
        environ = Path(f"/proc/{used_home.pid(role)}/environ").read_text()
        argv = Path(f"/proc/{used_home.pid(role)}/cmdline").read_text()
        names = {entry.partition("=")[0] for entry in environ.split("\0") if entry}
        assert {
            "MUSTER_LOCAL_TOKEN_FILE",
            "MUSTER_KEYS_FILE",
            "MUSTER_DATABASE_URL_FILE",
            "MUSTER_REDIS_URL_FILE",
            "MUSTER_DATA_DIR",
        } <= names
        assert "MUSTER_LEASE=31s" in environ
        assert "SOMETHING" not in names
        for secret in (told["token"], told["database_url"], "canary-7"):
            assert secret not in environ and secret not in argv
    used_home.stop(process)


def test_a_database_url_is_used_instead_of_a_cluster(home: Home, database_url: str) -> None:
    process = home.up(MUSTER_DATABASE_URL=database_url)
    told = home.wait_ready(process)

    assert told["database_url"] == database_url
    assert not (home.root / "metadata").exists()
    home.stop(process)


def test_a_second_up_on_the_directory_is_refused_and_names_the_first(used_home: Home) -> None:
    first = used_home.up()
    used_home.wait_ready(first)

    second = used_home.up()
    output, _ = second.communicate(timeout=20)

    assert second.returncode == 1
    assert str(first.pid) in output
    assert used_home.ready.exists() and first.poll() is None
    used_home.stop(first)


def test_a_port_in_use_is_said_and_breaks_nothing(used_home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = used_home.up(f"127.0.0.1:{taken.getsockname()[1]}")
        output, _ = refused.communicate(timeout=20)

    assert refused.returncode == 1
    assert "in use" in output and "--listen" in output and "Traceback" not in output
    assert used_home.living() == []
    process = used_home.up()
    assert execute(used_home.wait_ready(process)["database_url"], KEPT) == 42
    used_home.stop(process)


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1:99999", "192.0.2.1:8080"])
def test_an_address_that_cannot_be_is_refused(home: Home, listen: str) -> None:
    process = home.up(listen)
    output, _ = process.communicate(timeout=20)

    assert process.returncode == 1
    assert listen in output and "Traceback" not in output


def test_after_kill_9_of_the_supervisor_the_same_processes_are_adopted(used_home: Home) -> None:
    first = used_home.up()
    told = used_home.wait_ready(first)
    before = {role: used_home.pid(role) for role in up.ROLES} | {"postgres": used_home.postmaster()}
    kill(first)
    assert all(Process.find(pid) for pid in before.values())

    second = used_home.up()
    again = used_home.wait_ready(second)

    assert {role: used_home.pid(role) for role in up.ROLES} | {
        "postgres": used_home.postmaster()
    } == before
    assert (again["url"], again["token"], again["database_url"]) == (
        told["url"],
        told["token"],
        told["database_url"],
    )
    os.kill(before["fsm"], signal.SIGKILL)  # an adopted one is watched, too
    until(lambda: used_home.pid("fsm") != before["fsm"])
    used_home.stop(second)


def test_adopted_roles_with_other_settings_are_replaced(used_home: Home) -> None:
    first = used_home.up()
    used_home.wait_ready(first)
    before = {role: used_home.pid(role) for role in up.ROLES}
    kill(first)

    second = used_home.up(MUSTER_LEASE="31s")
    used_home.wait_ready(second)

    assert not set(before.values()) & {used_home.pid(role) for role in up.ROLES}
    assert not any(Process.find(pid) for pid in before.values())
    used_home.stop(second)


def test_a_role_without_a_record_is_not_doubled(used_home: Home) -> None:
    first = used_home.up()
    used_home.wait_ready(first)
    unrecorded = used_home.pid("fsm")
    kill(first)
    (used_home.root / "run" / "fsm.json").unlink()

    second = used_home.up()
    used_home.wait_ready(second)

    assert Process.find(unrecorded) is None
    used_home.stop(second)


def test_whoever_dies_comes_back(used_home: Home) -> None:
    process = used_home.up()
    told = used_home.wait_ready(process)
    api, postmaster = used_home.pid("api"), used_home.postmaster()

    os.kill(api, signal.SIGKILL)
    os.kill(postmaster, signal.SIGKILL)

    until(lambda: used_home.pid("api") != api and Process.find(used_home.pid("api")))
    until(lambda: used_home.postmaster() not in {None, postmaster})

    def answers() -> Any:
        with contextlib.suppress(OSError, asyncpg.PostgresError):
            return execute(told["database_url"], KEPT)
        return None

    assert until(answers) == 42
    used_home.stop(process)


def test_roles_that_do_not_listen_end_within_ten_seconds_all_the_same(used_home: Home) -> None:
    (used_home.root / "stubborn").touch()
    process = used_home.up()
    used_home.wait_ready(process)

    used_home.stop(process)


@pytest.mark.parametrize("moment", ["Muster", "metadata database"])
def test_a_stop_during_the_start_is_clean(home: Home, moment: str) -> None:
    process = home.up()
    assert process.stdout
    for line in process.stdout:
        if moment in line:
            break

    home.stop(process)


def test_a_full_disk_is_named_and_heals(home: Home) -> None:
    if os.geteuid() != 0:  # only root can mount a small disk
        full = OSError(errno.ENOSPC, "No space left on device")
        assert "is full" in up._explain(full, home.root.parent)
        return
    home.root.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=30m,mode=711", "tmpfs", str(home.root)], check=True
    )
    try:
        process = home.up()
        output, _ = process.communicate(timeout=60)

        assert process.returncode == 1
        assert "full" in output and "Traceback" not in output
        assert home.living() == []
        subprocess.run(["mount", "-o", "remount,size=300m", str(home.root)], check=True)
        healed = home.up()
        home.wait_ready(healed)
        home.stop(healed)
    finally:
        subprocess.run(["umount", "-l", str(home.root)], check=True)


def test_the_real_roles_serve_https_from_a_folder_with_packages_of_our_names(
    used_home: Home, tmp_path: Path
) -> None:
    hostile = tmp_path / "elsewhere"
    for package in ("api", "core", "workflows", "fsm", "muster", "asyncio"):
        (hostile / package).mkdir(parents=True)
        (hostile / package / "__init__.py").write_text("raise SystemExit('the wrong package')")
    program = shutil.which("muster", path=str(Path(sys.executable).parent))
    assert program
    argv = [
        program,
        "up",
        "--data-dir",
        str(used_home.root),
        "--listen",
        "127.0.0.1:0",
        "--ready-file",
        str(used_home.ready),
        "--tls",
    ]

    process = used_home.launch(argv, cwd=hostile)
    told = used_home.wait_ready(process, 60)

    assert told["url"].startswith("https://")
    context = ssl.create_default_context(cafile=used_home.root / "tls" / "ca.pem")
    for host in ("127.0.0.1", "localhost"):
        url = f"{told['url'].replace('127.0.0.1', host)}/livez"
        with urllib.request.urlopen(url, context=context, timeout=10) as answer:
            assert answer.status == 200
    used_home.stop(process)
