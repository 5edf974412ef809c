"""Many accounts at once: all get their engine, and no launcher starts more at a time than it may."""

import asyncio
import os
import time
from collections import Counter
from datetime import timedelta

import pytest

from tests.support.accounts import Stack, apart
from tests.support.launching import COUNTED

MANY = 100 if os.environ.get("MUSTER_TEST_CELLS") == "all" else 20
ALLOWED = 4  # starts under way at once
CALM = {
    "launcher_parallelism": ALLOWED, "launcher_drain": False, "poll_busy": timedelta(milliseconds=500),
    "account_check": timedelta(seconds=10), "workload_heartbeat": timedelta(seconds=5),
    "workload_silent": timedelta(seconds=60), "node_agent_pool": 1,
}  # fmt: skip


@pytest.mark.slow
async def test_a_crowd_starts_no_more_than_the_parallelism_allows(settings, db, targets, tmp_path):
    names = [f"n{number}" for number in range(MANY)]
    await db.execute(COUNTED)
    async with apart(settings, targets, tmp_path / "machine", **CALM) as (here, _):
        began = time.monotonic()

        await asyncio.to_thread(all_ready, here, names)

        took = time.monotonic() - began
        running = Counter(
            kind
            for process in here.processes()
            for kind in ("engine", "host")
            if kind in process.argv
        )
        most = await db.fetchval("select max(starting) from counted")
        print(f"\n{MANY} accounts ready in {took:.0f} s: at most {most} / {ALLOWED} starts at once")
        assert running == {"engine": MANY, "host": MANY}
        assert 1 <= most <= ALLOWED
        epochs = await db.fetch("select epoch from workload")
        assert {row["epoch"] for row in epochs} == {1}  # none had to be started anew


def all_ready(here: Stack, names: list[str]) -> None:
    here.database(*names)
    for name in names:
        here.begin(name)
    for name in names:
        here.until(lambda name=name: here.show(name)["state"] == "Ready", within=6 * MANY)
