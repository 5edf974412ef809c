"""Services of the core inside the test process, on a real control database.

async with a_store(account, epoch=1) as store: ...       has leadership with this epoch
service = Scheduler(core_context(account, store))        a single service; the test calls run_once()
async with running(service): ...                         or its loop runs
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

from engine.db import membership
from engine.db.membership import InstanceState
from engine.process.lease import Lease
from engine.context.core_context import CoreContext
from engine.core.service import Service
from engine.db.control_db import ControlDatabase
from engine.targets.target_access import TargetAccess
from engine.context.cluster_state import ClusterState
from muster.core.clock import Clock
from tests.support.control_db import Account
from tests.support.engine_fixture import bootstrap


@contextlib.asynccontextmanager
async def a_store(account: Account, epoch: int = 1) -> AsyncIterator[ControlDatabase]:
    store = ControlDatabase(bootstrap(account, epoch))
    assert await membership.acquire_leadership(store, uuid4())
    try:
        yield store
    finally:
        await store.close()


def core_context(
    account: Account, store: ControlDatabase, *, draining: bool = False, **more: Any
) -> CoreContext:
    given, clock = bootstrap(account, store.epoch), Clock()
    return CoreContext(
        cluster_state=ClusterState(InstanceState(False, draining, 7, 0)), store=store, clock=clock, capacity=100,
        lease=Lease("control", timedelta(60), clock), host_patience=given.host_patience,
        targets=TargetAccess(given, clock), **({"heartbeat": given.heartbeat} | more),
    )  # fmt: skip


@contextlib.asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    stop = asyncio.Event()
    tasks = [asyncio.create_task(service.run(stop)) for service in services]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
