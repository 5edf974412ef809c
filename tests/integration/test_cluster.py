"""Real clusters: made, adopted, killed, restarted and removed."""

import asyncio
import contextlib
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from muster.core.binaries import available
from muster.core.clock import Clock
from muster.core.cluster import Cluster, State
from muster.core.errors import Unavailable
from muster.core.process import Process, processes

pytestmark = pytest.mark.newest  # clusters of our own, whatever the tests' server is

AS_ROOT = os.geteuid() == 0


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Below pytest's 0700 folders: as root these are not reachable for PostgreSQL's account."""
    cluster = Cluster(tmp_path / "clusters" / "one", max_connections=20)
    yield cluster
    await cluster.destroy()
    assert not [found for found in processes() if found.works_in(cluster.data)]


@contextlib.asynccontextmanager
async def connected(
    cluster: Cluster, password: str | None = None
) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(cluster.superuser_url().reveal(), password=password)
    try:
        yield connection
    finally:
        await connection.close()


async def killed(cluster: Cluster) -> None:
    """kill -9 of the postmaster, seen dead."""
    postmaster = Process.find((await cluster.status()).pid or 0)
    assert postmaster
    postmaster.send(signal.SIGKILL)
    assert await postmaster.gone(timedelta(seconds=5), Clock())


async def test_a_life_with_repeats_a_crash_and_a_restart(cluster: Cluster) -> None:
    await cluster.create()
    await cluster.create()
    port = await cluster.start()
    first = await cluster.status()
    assert await cluster.start() == port == cluster.port == first.port
    assert (await cluster.status()).pid == first.pid
    async with connected(cluster) as connection:
        await connection.execute("create table kept as select 42 as answer")
        assert await connection.fetchval("show fsync") == "on"
        assert await connection.fetchval("show listen_addresses") == "127.0.0.1"
        assert await connection.fetchval("show max_connections") == "20"
        busy = asyncio.ensure_future(connection.execute("select pg_sleep(60)"))
        await asyncio.sleep(0.1)
        await killed(cluster)
        assert (await cluster.status()).state is State.STOPPED

        assert await cluster.start() == port

        with pytest.raises((asyncpg.PostgresConnectionError, OSError)):
            await busy
    async with connected(cluster) as connection:
        assert await connection.fetchval("select answer from kept") == 42
    await cluster.stop()
    await cluster.stop()
    assert (await cluster.status()).state is State.STOPPED
    assert await cluster.start() == port


async def test_files_are_private_and_passwords_are_needed(cluster: Cluster) -> None:
    await cluster.create()
    await cluster.start()

    modes = {
        name: stat.S_IMODE((cluster.directory / name).stat().st_mode)
        for name in ("data", "log", "superuser", "port")
    }
    assert modes == {"data": 0o700, "log": 0o600, "superuser": 0o600, "port": 0o600}
    owner = (cluster.directory / "data").stat().st_uid
    assert (owner != 0) and (cluster.directory / "superuser").stat().st_uid == os.geteuid()
    hba = (cluster.data / "pg_hba.conf").read_text()
    rules = [line.split() for line in hba.splitlines() if not line.startswith("#")]
    assert {rule[-1] for rule in rules} == {"scram-sha-256"}
    assert [rule[2] for rule in rules if rule[1] == "replication"] == ["postgres"]
    with pytest.raises(asyncpg.InvalidPasswordError):
        async with connected(cluster, password="wrong"):
            pass
    status = Path(f"/proc/{(await cluster.status()).pid}/status").read_text()
    capabilities = {line.split()[1] for line in status.splitlines() if line.startswith("CapEff")}
    expected = (
        "4" if AS_ROOT else "0"
    )  # dac_read_search alone, and only because the folder is closed
    assert capabilities == {expected.rjust(16, "0")}


async def test_two_callers_at_once_make_one_cluster_and_one_postmaster(cluster: Cluster) -> None:
    twin = Cluster(cluster.directory)

    await asyncio.gather(cluster.create(), twin.create())
    ports = await asyncio.gather(cluster.start(), twin.start())

    assert ports[0] == ports[1]
    main = [
        found for found in processes()
        if found.works_in(cluster.data) and b"-D" in Path(f"/proc/{found.pid}/cmdline").read_bytes()
    ]  # fmt: skip
    assert len(main) == 1


async def test_a_half_made_cluster_and_a_half_removed_one_leave_no_trace(cluster: Cluster) -> None:
    program = "import asyncio, sys, pathlib; from muster.core.cluster import Cluster; asyncio.run(Cluster(pathlib.Path(sys.argv[1])).create())"
    maker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(cluster.directory)
    )
    while not list(cluster.directory.glob("data.*/PG_VERSION")):
        await asyncio.sleep(0.005)
    maker.kill()
    await maker.wait()
    removed = cluster.directory.with_name(f".{cluster.directory.name}.gone-1234")
    removed.mkdir()
    assert (await cluster.status()).state is State.ABSENT

    await cluster.create()
    await cluster.start()

    await cluster.destroy()
    await cluster.destroy()
    assert list(cluster.directory.parent.iterdir()) == []


async def test_a_stranger_on_the_port_moves_the_cluster_before_it_starts(cluster: Cluster) -> None:
    await cluster.create()
    port = await cluster.start()
    await cluster.stop()
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", port))
        stranger.listen()

        moved = await cluster.start()

    assert moved not in (None, port)
    assert moved == cluster.port < 32_768
    async with connected(cluster) as connection:
        assert await connection.fetchval("select 1") == 1


async def test_a_server_that_cannot_start_says_why_within_seconds(cluster: Cluster) -> None:
    await cluster.create()
    (cluster.data / "postgresql.auto.conf").write_text("shared_buffers = 'nonsense'\n")

    with pytest.raises(Unavailable, match="nonsense"):
        async with asyncio.timeout(15):
            await cluster.start()

    (cluster.data / "postgresql.auto.conf").write_text("")
    await cluster.start()


@pytest.mark.parametrize("major", [found.major for found in available()])
async def test_each_available_major_runs_and_keeps_its_binaries(
    cluster: Cluster, major: int
) -> None:
    await Cluster(cluster.directory, major=major).create()

    await cluster.start()

    async with connected(cluster) as connection:
        assert connection.get_server_version().major == major
        assert await connection.fetchval("select upper('ä')") == "Ä"
