import asyncio
import datetime
import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from muster.core.clock import Clock
from muster.core.errors import InvalidRequest, Unavailable
from muster.core import places
from muster.core.process import Process, boot_id
from muster.core.settings import Secret, Settings, SettingsError
from muster.roles import datadir, up
from muster.roles.authority import Authority
from muster.roles.datadir import DataDir, alone, split
from muster.roles.process import announcer
from muster.roles.supervisor import Supervisor, recorded


class Later(Clock):
    def __init__(self, days: int) -> None:
        self.shift = datetime.timedelta(days=days)

    def now(self) -> datetime.datetime:
        return super().now() + self.shift


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("environ", "root", "expected"),
    [
        ({"XDG_DATA_HOME": "/x"}, True, "/x/muster"),
        ({"XDG_DATA_HOME": "/x"}, False, "/x/muster"),
        ({"HOME": "/home/a"}, True, "/var/lib/muster"),
        ({"HOME": "/home/a"}, False, "/home/a/.local/share/muster"),
    ],
)
def test_the_default_directory_follows_xdg(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], root: bool, expected: str
) -> None:
    monkeypatch.setattr(places, "surroundings", lambda: environ)
    monkeypatch.setattr(places.os, "geteuid", lambda: 0 if root else 1000)

    assert places.default_data_dir() == Path(expected)


@pytest.mark.parametrize(
    "listen", ["", "8080", ":8080", "host:", "host:x", "host:65536", "host:-1"]
)
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(InvalidRequest, match="HOST:PORT"):
        split(listen)


def test_addresses_are_split() -> None:
    assert split("127.0.0.1:0") == ("127.0.0.1", 0)
    assert split("[::1]:8080") == ("::1", 8080)


def test_the_lock_names_its_holder_and_is_free_afterwards(tmp_path: Path) -> None:
    with alone(tmp_path / "lock"):
        with pytest.raises(Unavailable, match=rf"pid {os.getpid()}\)"):
            with alone(tmp_path / "lock"):
                pass
    with alone(tmp_path / "lock"):
        pass


def test_a_full_disk_is_recognised(tmp_path: Path) -> None:
    assert "is full" in up._explain(OSError(errno.ENOSPC, "x"), tmp_path / "not" / "yet")
    assert up._explain(Unavailable("a", context="b"), tmp_path) == "a [b]"
    assert up._explain(ValueError("plain"), tmp_path) == "plain"


async def test_wrong_settings_are_told_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_LEASE", "soon")
    monkeypatch.setenv("MUSTER_NONSENSE", "1")

    with pytest.raises(SettingsError, match="LEASE.*NONSENSE"):
        await DataDir(tmp_path / "data", "127.0.0.1:0", tls=False).settings()

    assert not (tmp_path / "data" / "metadata").exists()


async def test_an_operators_secrets_are_kept_apart_from_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_DATABASE_URL", "postgresql://u:canary@db.example.com/m")
    home = DataDir(tmp_path, "127.0.0.1:0", tls=True)

    settings = await home.settings()
    environment = home.environment(settings)

    assert settings.local_token == Secret((tmp_path / "secrets" / "token").read_text())
    assert "canary" not in json.dumps(environment)
    handed = Path(environment["MUSTER_DATABASE_URL_FILE"])
    assert handed.read_text().endswith("@db.example.com/m")
    assert stat.S_IMODE(handed.stat().st_mode) == 0o600
    assert environment["MUSTER_TLS_CERT"] == str(tmp_path / "tls" / "server.pem")
    assert (
        Settings.load({k: v for k, v in environment.items() if k.startswith("MUSTER_")}) == settings
    )


def test_port_0_becomes_a_number_below_the_ephemeral_range(tmp_path: Path) -> None:
    host, port = split(DataDir(tmp_path, "127.0.0.1:0", tls=False)._listen())

    assert host == "127.0.0.1"
    assert 1024 < port < 32_768


def test_the_address_of_a_running_api_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datadir, "recorded", lambda _: {"listen": "127.0.0.1:25000"})

    assert DataDir(tmp_path, "127.0.0.1:0", tls=False)._listen() == "127.0.0.1:25000"
    assert DataDir(tmp_path, "127.0.0.1:25000", tls=False)._listen() == "127.0.0.1:25000"
    assert DataDir(tmp_path, "127.0.0.1:24999", tls=False)._listen() == "127.0.0.1:24999"


# Records


def test_a_record_counts_only_for_the_very_process(tmp_path: Path) -> None:
    here = Process.find(os.getpid())
    assert here
    true = {"pid": here.pid, "start_ticks": here.started, "boot_id": boot_id()}

    def read(record: Any) -> dict[str, Any]:
        (tmp_path / "api.json").write_text(json.dumps(record))
        return recorded(tmp_path / "api.json")

    assert read(true) == true
    assert read(true | {"start_ticks": here.started + 1}) == {}
    assert read(true | {"boot_id": "another"}) == {}
    assert read(true | {"pid": 4_194_305}) == {}
    assert read([1]) == {}
    assert recorded(tmp_path / "none.json") == {}


async def test_a_role_that_dies_at_its_start_says_why(tmp_path: Path) -> None:
    import sys

    program = "import sys; print('the reason'); sys.exit(3)"
    supervisor = Supervisor(
        tmp_path, ("api",), {}, record={"fingerprint": "x"}, say=lambda _: None,
        command=lambda role, ready: [sys.executable, "-c", program, str(ready)],
    )  # fmt: skip

    with pytest.raises(Unavailable, match="role api did not start: the reason"):
        await supervisor.start()

    assert supervisor.children["api"].exit_code() == "3"


def test_a_long_log_moves_aside_at_a_start(tmp_path: Path) -> None:
    from muster.core import log_files
    from muster.roles import supervisor

    log = tmp_path / "api.log"
    log.write_bytes(bytes(log_files.LIMIT + 1))

    supervisor._append(log).close()

    assert log.stat().st_size == 0
    assert (tmp_path / "api.log.1").stat().st_size == log_files.LIMIT


async def test_logs_are_bounded_while_the_metadata_cluster_cannot_start(tmp_path: Path) -> None:
    from muster.core import log_files
    from muster.core.cluster import State, Status

    running = up.Up(up.Options(tmp_path), (), lambda role, ready: [])
    logs = tmp_path / "logs"
    (logs / "a.log").mkdir(
        parents=True
    )  # one that can't be rotated is no reason to leave the others
    (logs / "b.log").write_bytes(bytes(log_files.LIMIT + 1))
    sizes = []

    class Cluster:
        async def status(self) -> Status:
            return Status(State.STOPPED)

        async def start(self) -> None:
            sizes.append((logs / "b.log").stat().st_size)
            raise asyncio.CancelledError

    class Now(Clock):
        async def sleep(self, delay: datetime.timedelta) -> None:
            pass

    running.home.cluster = Cluster()  # type: ignore[assignment]
    running.clock = Now()
    with pytest.raises(asyncio.CancelledError):
        await running._look_after()

    assert sizes == [0]


def test_a_ready_file_is_written_whole(tmp_path: Path) -> None:
    announcer(None)({"url": "x"})
    announcer(tmp_path / "ready")({"url": "x"})

    assert json.loads((tmp_path / "ready").read_text()) == {"url": "x", "pid": os.getpid()}


# The local CA


def names(authority: Authority) -> list[str]:
    certificate = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(entry.value) for entry in known]


def test_the_authority_is_made_once_and_the_certificate_renewed_in_time(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.ensure("127.0.0.1")
    ca, first = authority.ca.read_text(), authority.certificate.read_text()

    authority.ensure("127.0.0.1")
    assert authority.certificate.read_text() == first
    Authority(tmp_path, Later(days=360)).ensure("127.0.0.1")
    assert authority.certificate.read_text() == first
    Authority(tmp_path, Later(days=380)).ensure("127.0.0.1")
    assert authority.certificate.read_text() != first
    assert authority.ca.read_text() == ca


def test_a_new_host_and_a_lost_key_give_a_new_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.ensure("localhost")
    assert names(authority) == ["localhost", "127.0.0.1", "::1"]

    authority.ensure("muster.example.com")
    assert "muster.example.com" in names(authority)
    before = authority.certificate.read_text()
    authority.key.unlink()
    authority.ensure("muster.example.com")

    assert authority.certificate.read_text() != before
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
