"""Cells of the matrix with real processes: `kill -9` is a kill, a cluster is a cluster.

A few seeded cells in `make test`; MUSTER_TEST_CELLS=all (`make chaos`) runs every one and prints
cells hit / declared.
"""

import asyncio
import os
import random
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from muster.core import failpoints
from tests.chaos.cells import ALONE, KILLS, Lot, action, point
from tests.support.fake_clusters import FakeClusters
from tests.support.idle_transactions import no_idle_transaction
from tests.support.invariants import violations
from tests.support.processes import Processes, kept
from tests.support.lifecycle_fixture import ResourceHandle, Lifecycles

SEED = int(os.environ.get("MUSTER_TEST_SEED", "2"))
FEW = 4
EVERY = os.environ.get("MUSTER_TEST_CELLS") == "all"
PATIENCE = 60.0

HIT: set[str] = set()


def chosen() -> list[Lot]:
    """Servers need a real initdb, so the few are mostly databases."""
    # Giving up and being healed by a customer is no matter of processes.
    cells = [lot for lot in ALONE if lot.fault != "raises until it gives up"]
    if EVERY:
        return cells
    dice = random.Random(SEED)
    servers = [lot for lot in cells if lot.lifecycle == "server" and lot.fault in KILLS]
    others = [lot for lot in cells if lot.lifecycle == "database"]
    return dice.sample(servers, 1) + dice.sample(others, FEW - 1)


@pytest.fixture(scope="module", autouse=True)
def print_coverage():
    yield
    print(f"\ncells hit / declared with real processes: {len(HIT)} / {len(chosen())}")


@pytest.mark.parametrize("lot", chosen(), ids=str)
async def test_a_fault_in_a_real_process_leaves_nothing_wrong(
    lot: Lot, settings, db, targets, tmp_path: Path, database_url: str
) -> None:
    tmp_path.chmod(0o711)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o711)  # PostgreSQL runs as somebody else when we are root
    slow = lot.lifecycle != "database"
    settings = replace(
        settings,
        data_dir=tmp_path / "data",
        lease=timedelta(seconds=10 if slow else 1.5),
        step_limit=timedelta(seconds=9 if slow else 1.2),
    )
    lifecycles = Lifecycles(db, settings, targets, FakeClusters(targets))

    async with (
        no_idle_transaction(database_url),
        kept(settings, tmp_path, "fsm", "fsm") as processes,
    ):
        processes.arm({point(lot): action(lot, settings)})
        handle = await life(lifecycles, lot, targets, processes)

    assert point(lot) in failpoints.hits(processes.arms)
    assert set(processes.ends) <= {0, -15}  # asked to stop, each did, one perhaps while starting
    assert processes.deaths == ([-9] if lot.fault in KILLS else []), processes.log()
    HIT.add(str(lot))
    assert await violations(db, [each.operation_id for each in handle]) == []
    assert {(await lifecycles.operation(each)).status for each in handle} == {"Succeeded"}
    assert list((tmp_path / "data" / "clusters").glob("*")) == []
    assert not {each.id.name for each in handle} & await lifecycles.databases()


async def life(
    lifecycles: Lifecycles, lot: Lot, targets, processes: Processes
) -> list[ResourceHandle]:
    handle: list[ResourceHandle] = []

    async def do(asking) -> ResourceHandle:
        handle.append(await asking)
        await ended(lifecycles, handle[-1], processes)
        return handle[-1]

    if lot.lifecycle == "database":
        endpoint = {"host": targets.host, "port": targets.port, "sslMode": "disable"}
        server = await do(
            lifecycles.put_server(
                endpoint=endpoint,
                administratorLogin=targets.administrator.name,
                administratorLoginPassword=targets.administrator.password,
            )
        )
    else:
        server = await do(lifecycles.put_server())
    database = await do(lifecycles.put_database(server, deletionPolicy="Drop"))
    if lot.state == "updating":
        await do(
            lifecycles.update(server, password=None if lot.lifecycle == "database" else "another")
        )
        await do(lifecycles.update(database, labels={"a": "b"}))
    await do(lifecycles.delete(database))
    await do(lifecycles.put_database(server)) if lot.lifecycle != "database" else None
    await do(
        lifecycles.delete_group() if lot.lifecycle == "resourceGroup" else lifecycles.delete(server)
    )
    return handle


async def ended(lifecycles: Lifecycles, handle: ResourceHandle, processes: Processes) -> None:
    until = time.monotonic() + PATIENCE
    while not (await lifecycles.operation(handle)).ended_at:
        assert time.monotonic() < until, f"{handle} does not end\n{processes.log()}"
        await asyncio.sleep(0.05)
    status = (await lifecycles.operation(handle)).status
    assert status == "Succeeded", f"{await lifecycles.operation(handle)}\n{processes.log()}"
