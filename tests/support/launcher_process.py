"""A real `muster launcher` process whose workloads are stubs: started, killed, started again."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from muster.core.settings import Settings

ROOT = Path(__file__).parents[2]


@dataclass
class Launchers:
    settings: Settings
    running: list[subprocess.Popen] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.settings.launcher_dir

    def start(self, **failpoints: str) -> subprocess.Popen:
        points = self.folder / "points.json"
        points.write_text(json.dumps({f"launch.{k}": v for k, v in failpoints.items()}))
        environ = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT),
            **self.settings.environ(), "MUSTER_FAILPOINTS": str(points),
        }  # fmt: skip
        with (self.folder / "launcher.log").open("ab") as log:
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-P", __file__, str(self.folder / "ready")],
                    env=environ,
                    cwd=self.folder,
                    stdout=log,
                    stderr=log,
                )  # fmt: skip
            )
        return self.running[-1]

    def kill(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        self.running.clear()

    def end(self) -> list[int]:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(20) for process in self.running]
        self.running.clear()
        return codes

    def log(self) -> str:
        return (self.folder / "launcher.log").read_text()[-5000:]


@contextlib.contextmanager
def launchers(settings: Settings):
    made = Launchers(settings)
    try:
        yield made
    finally:
        made.kill()


def main() -> int:
    from muster.roles import launcher, process
    from tests.support import stub_workload

    launcher.run = partial(launcher.run, program=stub_workload.program)
    return process.main("launcher", Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
