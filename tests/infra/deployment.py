"""Roles as real processes, with exactly the environment that unit files or compose file give.

Only what this machine has otherwise is replaced: folders, ports, host names.
"""

import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.infra.installation import image_environment
from tests.infra.test_containers import OURS
from tests.infra.units import command, environment, service
from tests.support.postgres import die_with_parent
from tests.support.stack import until

# Without capabilities root is held by the modes of files too, as every other user is.
CONFINED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
ROLES = ("api", "fsm", "nodeagent", "launcher")


@dataclass(frozen=True)
class Process:
    name: str
    argv: list[str]
    environment: dict[str, str]


def of_compose(name: str) -> Process:
    service = OURS[name]
    shown = {
        key: str(value) for key, value in (image_environment() | service["environment"]).items()
    }
    words = [word.replace("/tmp/", f"/tmp/{name}-") for word in service["command"]]
    return Process(name, ["/opt/muster/bin/muster", *words], shown)


def of_systemd(name: str) -> Process:
    unit, specifiers = (
        service(f"muster-{name}.service"),
        {"d": "/run/credentials", "t": "/run", "S": "/var/lib"},
    )
    return Process(
        name, command(unit, specifiers), {"PATH": "/usr/bin:/bin", **environment(unit, specifiers)}
    )


@dataclass
class Deployment:
    """`replacements`: from a text of the deployed files to that of this machine."""

    folder: Path
    replacements: dict[str, str]
    extra: dict[str, str] = field(default_factory=dict)
    running: dict[str, subprocess.Popen] = field(default_factory=dict)

    def here(self, text: str) -> str:
        """In one pass, longer texts first: what replaces is not replaced again."""
        longest = sorted(self.replacements, key=len, reverse=True)
        found = "|".join(map(re.escape, longest))
        return re.sub(found, lambda match: self.replacements[match[0]], text)

    def start(self, process: Process) -> subprocess.Popen:
        """Without capabilities, as units and compose file say, in a home that can't be written."""
        home = self.folder / "home"
        shown = {name: self.here(value) for name, value in process.environment.items()} | {
            "HOME": str(home)
        }
        with self.log(process.name).open("ab") as log:
            made = subprocess.Popen(
                [*CONFINED, *(self.here(word) for word in process.argv)], env=shown | self.extra,
                cwd="/", stdout=log, stderr=log, preexec_fn=die_with_parent(),
            )  # fmt: skip
        self.running[process.name] = made
        return made

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def run(self, process: Process) -> None:
        code = self.start(process).wait(120)
        assert code == 0, self.log(process.name).read_text()

    def wait(self, what: Callable[[], object], seconds: float = 90) -> None:
        """Fails at once when a process ends."""

        def look() -> bool:
            for name, process in self.running.items():
                if process.poll() is not None and name != "migrate":
                    raise AssertionError(
                        f"{name} ended with {process.returncode}:\n{self.log(name).read_text()}"
                    )
            return bool(what())

        until(look, seconds=seconds)

    def end(self) -> dict[str, int]:
        """Exit codes of those that were asked to end."""
        for process in self.running.values():
            process.terminate()
        return {name: process.wait(60) for name, process in self.running.items()}


def open_folder(path: Path) -> Path:
    """That the user of the processes can enter."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o755)
    return path


def fresh(path: Path, seconds: float = 30) -> bool:
    return path.exists() and time.time() - path.stat().st_mtime < seconds


def processes_in(folder: Path) -> set[int]:
    """Whose command line names the folder."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in words:
                found.add(int(entry.name))
    return found
