"""idle: CPU that a runner uses for 10,000 resting machines, beside a runner that has none."""

import asyncio
import base64
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

from bench.report import print_line, summary
from muster.core.cluster import Cluster
from muster.core.migrate import migrate

MACHINES = 10_000
ROUNDS = 2
SECONDS = float(os.environ.get("MUSTER_BENCH_SECONDS", "20"))
REST = """
with made as (
    insert into resource (key, id, type, name, tenant_id, properties, created_by, created_by_type, modified_by, modified_by_type)
    select '/x/' || n, '/x/' || n, 'Microsoft.Sql/servers/databases', n::text, 't', '{}', 'b', 'User', 'b', 'User'
      from generate_series(1, $1) n
    returning uid, id)
insert into machine (uid, lifecycle, resource_id, state) select uid, 'database', id, 'ready' from made
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        print_line(asyncio.run(bench(Path(folder))))


async def bench(folder: Path) -> dict:
    cluster = Cluster(folder / "metadata")
    await cluster.create()
    await cluster.start()
    try:
        empty, machines = [
            await database(cluster, name) for name in ("bench_empty", "bench_machines")
        ]
        connection = await asyncpg.connect(machines)
        await connection.execute(REST, MACHINES)
        await connection.close()
        rounds: dict[str, list[float]] = {"ours": [], "limit": []}
        for _ in range(ROUNDS):
            rounds["limit"].append(cpu(empty))
            rounds["ours"].append(cpu(machines))
    finally:
        await cluster.stop()
    note = (
        f"percent of one core that a resting runner takes over {SECONDS:.0f} s, with {MACHINES}"
        " resting machines and, for the limit, with none"
    )
    return summary("idle", rounds, digits=2, goal=None, note=note)


async def database(cluster: Cluster, name: str) -> str:
    """Creates a metadata database; returns its URL."""
    root = await asyncpg.connect(cluster.superuser_url().reveal())
    await root.execute(f"create database {name}")
    await root.close()
    url = cluster.superuser_url(name).reveal()
    connection = await asyncpg.connect(url)
    await migrate(connection, "workflows.migrations")
    await connection.close()
    return url


def cpu(url: str) -> float:
    """Percent of a core between the end of the start and the stop."""
    keys = "b:" + base64.b64encode(bytes(32)).decode()
    environ = {
        "PATH": os.environ["PATH"],
        "MUSTER_DATABASE_URL": url,
        "MUSTER_KEYS": keys,
        "MUSTER_INTERNAL_LISTEN": "127.0.0.1:0",
    }
    runner = subprocess.Popen(
        [sys.executable, "-P", "-m", "muster", "fsm"], env=environ, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(4)
        before = used(runner.pid)
        time.sleep(SECONDS)
        return 100 * (used(runner.pid) - before) / SECONDS
    finally:
        runner.terminate()
        runner.wait(20)


def used(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
