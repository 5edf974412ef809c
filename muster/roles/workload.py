"""What engine and host have in common: start file, telemetry, the two leases, signals, exit code."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from engine.db.control_db import ControlDatabase
from engine.process.bootstrap import Bootstrap, read
from engine.process.exit_codes import Exit
from engine.process.lease import Lease, LeaseRenewingTransport
from engine.process.lifecycle import LAST_REPORT_TIMEOUT, ProcessLifecycle, StopSignals
from fsm.launch.client import Session
from muster.core import failpoints, telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.settings import SettingsError


class Living(Protocol):
    async def run(self, stop: asyncio.Event) -> None: ...

    async def hurry(self) -> None: ...

    def report(self) -> Mapping[str, Any]: ...


Make = Callable[[Bootstrap, ControlDatabase, Lease, Clock], Living]


async def live(
    role: str, start_file: Path, make: Make, *, completion_label: str, grace: timedelta
) -> Exit:
    stop_signals, clock = StopSignals(), Clock()
    stop_signals.listen()
    try:
        start = read(start_file)
    except SettingsError as error:
        print(f"muster {role}: {error}", file=sys.stderr)
        return Exit.MISSTARTED
    api = Lease("workload api", timedelta(seconds=start.patience), clock)
    async with Session(start, clock, LeaseRenewingTransport(api, clock)) as session:
        try:
            bootstrap = Bootstrap.of(start, start_file.parent.parent)
            telemetry.setup(role, bootstrap.settings())
            failpoints.setup(bootstrap.workload_settings.failpoints)
            store = ControlDatabase(bootstrap)
            session.on_addresses = bootstrap.egress.replace
            bootstrap.egress.ask = session.addresses
        except SettingsError as error:
            print(f"muster {role}: {error}", file=sys.stderr)
            with contextlib.suppress(Fault, TimeoutError):
                async with asyncio.timeout(LAST_REPORT_TIMEOUT):
                    await session.failure(f"InvalidStart: {error}")
            return Exit.MISSTARTED
        control = Lease("control database", bootstrap.host_patience, clock)
        living = make(bootstrap, store, control, clock)
        life = ProcessLifecycle(
            session=session,
            api=api,
            control=control,
            stop_signals=stop_signals,
            clock=clock,
            grace=grace,
            completion_label=completion_label,
        )
        try:
            return await life.run(living.run, living.report, living.hurry)
        finally:
            await store.close()
