"""Many accounts at once: all get their engine, and no launcher starts more at a time than it may."""

import asyncio
import os
import time
from collections import Counter
from datetime import timedelta

import pytest

from tests.support.accounts import ControlPlane, start_separate_roles
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
    async with start_separate_roles(settings, targets, tmp_path / "machine", **CALM) as (
        control_plane,
        _,
    ):
        began = time.monotonic()

        await asyncio.to_thread(all_ready, control_plane, names)

        took = time.monotonic() - began
        running = Counter(
            kind
            for process in control_plane.processes()
            for kind in ("engine", "host")
            if kind in process.argv
        )
        most = await db.fetchval("select max(starting) from counted")
        print(f"\n{MANY} accounts ready in {took:.0f} s: at most {most} / {ALLOWED} starts at once")
        assert running == {"engine": MANY, "host": MANY}
        assert 1 <= most <= ALLOWED
        epochs = await db.fetch("select epoch from workload")
        assert {row["epoch"] for row in epochs} == {1}  # none had to be started anew


def all_ready(control_plane: ControlPlane, names: list[str]) -> None:
    control_plane.database(*names)
    for name in names:
        control_plane.begin(name)
    for name in names:
        control_plane.until(
            lambda name=name: control_plane.show(name)["state"] == "Ready", within=6 * MANY
        )
