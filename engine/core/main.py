"""The core of an account's engine: acquires leadership for its epoch, then runs its services."""

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

from engine.context.cluster_state import ClusterState
from engine.context.core_context import CoreContext
from engine.core.communicator import Communicator
from engine.core.consistency_check import ConsistencyCheck
from engine.core.controller import Controller
from engine.core.heartbeat import Heartbeat
from engine.core.listener import Listener
from engine.core.maintainer import Maintainer
from engine.core.requests import Requests
from engine.core.scheduler import Scheduler
from engine.core.service import Service
from engine.core.supervisor import JobHosting, ServiceFactories
from engine.db import membership
from engine.db.control_db import ControlDatabase
from engine.process.bootstrap import Bootstrap
from engine.process.exit_codes import Fenced
from engine.process.lease import Lease
from engine.process.metrics import CoreMetrics
from engine.process.retry import retry_until_available
from engine.targets.target_access import TargetAccess
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Unavailable
from muster.core.version import VERSION

log = telemetry.get(__name__)

SERVICES: tuple[type[Service], ...] = (
    Heartbeat,
    Listener,
    ConsistencyCheck,
    Maintainer,
    Scheduler,
    Controller,
    Communicator,
    Requests,
)


class Core:
    def __init__(
        self, bootstrap: Bootstrap, store: ControlDatabase, lease: Lease, clock: Clock
    ) -> None:
        self.hosting = JobHosting(
            load=self._load, make=self._make, patience=bootstrap.part_patience, clock=clock
        )
        self._bootstrap = bootstrap
        self._store = store
        self._lease = lease
        self._clock = clock
        self._targets = TargetAccess(bootstrap, clock)
        self._metrics = CoreMetrics()
        self._is_unsure = False  # an earlier try to acquire leadership may have succeeded

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` or a final error; hosts go on."""
        if await retry_until_available(self._acquire_leadership, self._clock, stop):
            log.info("acquired leadership", epoch=self._store.epoch, version=VERSION)
            await self.hosting.run(stop)

    async def hurry(self) -> None:
        """Drains the hosts: without a core they get no tasks."""
        await membership.drain_hosts(self._store)

    def report(self) -> dict[str, Any]:
        """The report to the control plane with each heartbeat."""
        report: dict[str, Any] = {
            "pid": os.getpid(),
            "version": VERSION,
            "epoch": self._store.epoch,
            "state": "starting",
            "restarts": dict(self.hosting.restarts),
            "metrics": self._metrics.report(self._live_runs()),
        }
        if cluster_state := self.hosting.cluster_state:
            report |= {
                "state": "live",
                "paused": cluster_state.beat.paused,
                "draining": cluster_state.beat.draining,
                "directoryRevision": cluster_state.beat.directory_revision,
                "hosts": sorted(str(host) for host in cluster_state.hosts),
                "parts": {name: service.status for name, service in self.hosting.services.items()},
            }
        return report

    def _live_runs(self) -> Iterator[tuple[str, int, int]]:
        """The job of each, and how many targets of it wait and run."""
        cluster_state = self.hosting.cluster_state
        run_state = cluster_state.run_state if cluster_state else None
        for run in run_state.runs.values() if run_state else ():
            waiting = sum(len(step.waiting) for step in run.live)
            yield run.job_name, waiting, sum(step.busy for step in run.live)

    async def _acquire_leadership(self) -> bool:
        """Returns True, or raises Fenced when a newer epoch has leadership."""
        try:
            if await membership.acquire_leadership(self._store, self._bootstrap.start.id):
                return True
        except Unavailable:
            self._is_unsure = True
            raise
        if not self._is_unsure:
            raise Fenced(f"epoch {self._store.epoch} is too old")
        # A reply was lost: if our epoch has leadership, the earlier try acquired it.
        await membership.heartbeat(self._store)
        return True

    async def _load(self, stop: asyncio.Event) -> ClusterState | None:
        async def read() -> ClusterState:
            sent = self._clock.monotonic()
            snapshot = await membership.look(self._store)
            self._lease.renew(sent)
            return ClusterState.of(snapshot)

        return await retry_until_available(read, self._clock, stop)

    def _make(self, cluster_state: ClusterState) -> ServiceFactories:
        context = CoreContext(
            cluster_state=cluster_state,
            store=self._store,
            lease=self._lease,
            clock=self._clock,
            heartbeat=self._bootstrap.heartbeat,
            host_patience=self._bootstrap.host_patience,
            capacity=self._bootstrap.workload_settings.capacity,
            targets=self._targets,
            metrics=self._metrics,
        )
        return {service.name: partial(service, context) for service in SERVICES}
