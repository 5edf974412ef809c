"""idle: what 10,000 resting machines cost a runner, beside a runner that has none."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

from muster.core.cluster import Cluster
from muster.core.migrate import migrate

MACHINES = 10_000
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
        print(json.dumps(asyncio.run(bench(Path(folder)))), flush=True)


async def bench(folder: Path) -> dict:
    cluster = Cluster(folder / "metadata")
    await cluster.create()
    await cluster.start()
    try:
        connection = await asyncpg.connect(cluster.superuser_url().reveal())
        await connection.execute("create database b")
        await connection.close()
        url = cluster.superuser_url("b").reveal()
        connection = await asyncpg.connect(url)
        await migrate(connection, "workflows.migrations")
        none = [cpu(url) for _ in range(2)]
        await connection.execute(REST, MACHINES)
        many = [cpu(url) for _ in range(2)]
        await connection.close()
    finally:
        await cluster.stop()
    ours, limit = min(many), min(none)
    return {
        "name": "idle",
        "ours": round(ours, 2),
        "limit": round(limit, 2),
        "peer": None,
        "ratio": round(ours / limit, 2),
        "spread": {"with": [round(v, 2) for v in many], "without": [round(v, 2) for v in none]},
        "note": f"percent of one core that a resting runner takes over {SECONDS:.0f} s, with {MACHINES} resting machines and with none",
    }


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
