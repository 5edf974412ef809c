"""Runs one role in this process: settings, telemetry, limits, signals, ready file."""

import asyncio
import gc
import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

from muster.core import telemetry
from muster.core.egress import Rules
from muster.core.errors import Fault
from muster.core.files import write_private
from muster.core.settings import Settings, SettingsError

HEARTBEAT = 2.0  # seconds between two updates of the ready file's time of modification
RARELY = (
    20_000,
    20,
    20,
)  # objects and collections between collections: a task makes hundreds, a body thousands


def main(role: str, ready_file: Path | None) -> int:
    try:
        settings = Settings.load()
        Rules.of(settings)
        telemetry.setup(role, settings)
        set_limits()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(role, settings, ready_file))
    except (Fault, SettingsError, OSError) as error:
        print(f"muster {role}: {error}", file=sys.stderr)
        return 1
    finally:
        if ready_file:
            ready_file.unlink(missing_ok=True)
    return 0


def workload(role: str, start_file: Path) -> int:
    """One that a launcher started: its settings and secrets are in its start file."""
    set_limits()
    module = load(role)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code: int = runner.run(module.run(start_file))
    return code


def load(role: str) -> Any:
    module = importlib.import_module(f"muster.roles.{role}")
    collect_rarely()
    return module


def collect_rarely() -> None:
    gc.freeze()  # imported objects stay: the collector can skip them
    gc.set_threshold(*RARELY)


async def _run(role: str, settings: Settings, ready_file: Path | None) -> None:
    module = load(role)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    heartbeat = asyncio.create_task(beat(ready_file)) if ready_file else None
    try:
        await module.run(settings, stop, announcer(ready_file))
    finally:
        if heartbeat:
            heartbeat.cancel()


async def beat(ready_file: Path) -> None:
    """Shows the supervisor that this event loop turns; a process that is stopped or spins does not."""
    while True:
        with suppress(OSError):  # not there before the role is ready
            os.utime(ready_file)
        await asyncio.sleep(HEARTBEAT)


def announcer(ready_file: Path | None) -> Callable[[dict[str, object]], None]:
    """What a role calls once it serves, with what others must know about it."""

    def ready(document: dict[str, object]) -> None:
        if ready_file:
            write_private(ready_file, json.dumps(document | {"pid": os.getpid()}))

    return ready


def set_limits() -> None:
    """As many files as allowed, and no core dump that could hold a secret."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
