"""Real processes of roles: started, started again when they die, and ended with the test."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from muster.core.settings import Settings
from tests.support.postgres import die_with_parent

LOG = 20_000  # bytes of a log that are shown when a test fails

STOP_LIMIT = (
    60.0  # seconds; a process ends after the step that it runs, and the machine may be busy
)


@dataclass
class Processes:
    settings: Settings
    folder: Path
    roles: tuple[str, ...]
    deaths: list[int] = field(default_factory=list)  # exit codes of those that ended unasked
    ends: list[int] = field(default_factory=list)  # exit codes when asked to stop
    running: dict[int, subprocess.Popen] = field(default_factory=dict)  # by place in `roles`

    @property
    def arms(self) -> Path:
        return self.folder / "failpoints.json"

    def arm(self, actions: dict[str, str]) -> None:
        draft = self.arms.with_suffix(".new")
        draft.write_text(json.dumps(actions))
        draft.rename(self.arms)

    def log(self) -> str:
        return (self.folder / "log").read_bytes()[-LOG:].decode(errors="replace")

    def start(self, role: str) -> subprocess.Popen:
        environment = {"PATH": os.environ["PATH"], **self.settings.environ()}
        environment["MUSTER_FAILPOINTS"] = str(self.arms)
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "muster", role],
                env=environment, cwd=self.folder, stdout=log, stderr=log, preexec_fn=die_with_parent(),
            )  # fmt: skip

    def send(self, role: str, number: signal.Signals) -> None:
        for place, process in self.running.items():
            if self.roles[place] == role:
                process.send_signal(number)

    async def keep(self) -> None:
        """What dies begins anew, as under a supervisor."""
        while True:
            for place, role in enumerate(self.roles):
                process = self.running.get(place)
                if process is not None and process.poll() is None:
                    continue
                if process is not None:
                    self.deaths.append(process.returncode)
                self.running[place] = self.start(role)
            await asyncio.sleep(0.05)

    def end(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                code = process.wait(STOP_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                self.ends.append(process.wait())
                continue
            if code == -signal.SIGKILL:
                self.deaths.append(code)  # by its failpoint, in the last moment
            else:
                self.ends.append(code)


@contextlib.asynccontextmanager
async def kept(settings: Settings, folder: Path, *roles: str):
    processes = Processes(settings, folder, roles)
    keeper = asyncio.create_task(processes.keep())
    try:
        yield processes
    finally:
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeper
        await asyncio.to_thread(processes.end)
