"""A role that hangs is replaced, one that works is left alone."""

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from muster.roles import process, supervisor
from muster.roles.supervisor import Supervisor

# Roles as the supervisor sees them: a ready file, and heartbeats by its time of modification.
BEATS = """
import os, sys, time
open(sys.argv[1], "w").write("{}")
while True:
    time.sleep(0.05)
    os.utime(sys.argv[1])
"""
SPINS = """
import os, sys
again = os.path.exists(sys.argv[1] + ".again")
open(sys.argv[1] + ".again", "w").close()
open(sys.argv[1], "w").write("{}")
while True:
    if again:
        os.utime(sys.argv[1])
"""


def a_supervisor(folder: Path, program: str, lines: list[str]) -> Supervisor:
    return Supervisor(
        folder, ("api",), {}, record={"fingerprint": "x"}, say=lines.append, silence_limit=0.5,
        command=lambda role, ready: [sys.executable, "-c", program, str(ready)],
    )  # fmt: skip


@pytest.mark.parametrize("how", ["stopped", "spinning"])
async def test_a_hung_role_is_replaced(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LIVENESS_CHECK", supervisor.LOOK)
    lines: list[str] = []
    roles = a_supervisor(tmp_path, BEATS if how == "stopped" else SPINS, lines)
    await roles.start()
    first = roles.children["api"].process
    watching = asyncio.ensure_future(roles.watch())
    try:
        if how == "stopped":
            os.kill(first.pid, signal.SIGSTOP)
        async with asyncio.timeout(60):
            while "api is up again" not in lines:
                await asyncio.sleep(0.02)
        assert not first.alive
        assert roles.children["api"].process.alive
        assert lines[0] == "api has not responded for 0.5 s; it is replaced"
    finally:
        watching.cancel()
        await roles.stop(timedelta(seconds=1))


async def test_a_suspended_supervisor_does_not_blame_the_role(tmp_path: Path) -> None:
    """After a gap of its own the supervisor begins to count again."""

    class Clock:
        def __init__(self) -> None:
            self.time = 0.0
            self.gaps = iter([0.1, 100.0, 0.1, 0.1, 0.1, 0.1, 0.1])

        def monotonic(self) -> float:
            return self.time

        async def sleep(self, _: object) -> None:
            self.time += next(self.gaps)

    roles = a_supervisor(tmp_path, BEATS, [])
    roles.clock = Clock()  # type: ignore[assignment]
    roles.ready_file("api").write_text("{}")

    with pytest.raises((StopIteration, RuntimeError)):  # the gaps end before the silence does
        await roles._hung("api")


async def test_a_role_writes_heartbeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HEARTBEAT", 0.01)
    ready = tmp_path / "ready"
    beating = asyncio.ensure_future(process.beat(ready))
    await asyncio.sleep(0)  # before the file is there
    ready.write_text("{}")
    os.utime(ready, (1, 1))
    async with asyncio.timeout(60):
        while ready.stat().st_mtime == 1:
            await asyncio.sleep(0.01)
    beating.cancel()
